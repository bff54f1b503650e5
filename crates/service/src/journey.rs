//! The steps of each task, for `webfill trace`: one line for each, at the level `debug` of a target of its own, so
//! that `log.level = "info,journey=debug"` logs them and nothing else more. Left out, a step costs a look at a
//! flag.

/// The target of the lines.
pub const JOURNEY: &str = "journey";

/// Whether steps are logged: what is looked up only for them is left out otherwise.
pub fn is_logged() -> bool {
    tracing::enabled!(target: JOURNEY, tracing::Level::DEBUG)
}
