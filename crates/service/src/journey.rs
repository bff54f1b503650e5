//! The steps of each task, for `webfill trace`. Each step is a line at the level `debug` of a separate target, so that
//! `log.level = "info,journey=debug"` adds only the steps. While they are disabled, a step only costs checking a flag.

/// The log target of the steps.
pub const JOURNEY: &str = "journey";

/// Whether steps are logged. Otherwise lookups made only for them are skipped.
pub fn is_logged() -> bool {
    tracing::enabled!(target: JOURNEY, tracing::Level::DEBUG)
}
