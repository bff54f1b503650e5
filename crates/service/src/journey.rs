//! The steps of each task, for `webfill trace`: one line for each, at the level `debug` of a target of its own, so
//! that `log.level = "info,journey=debug"` adds only them. If disabled, a step only costs checking a flag.

/// The target of the lines.
pub const JOURNEY: &str = "journey";

/// Whether steps are logged. Otherwise lookups made only for them are skipped.
pub fn is_logged() -> bool {
    tracing::enabled!(target: JOURNEY, tracing::Level::DEBUG)
}
