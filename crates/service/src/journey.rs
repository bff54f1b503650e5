//! Logs the steps of each task, for `webfill trace`. Each step is a log line of the level `debug` with a target of its
//! own, so that `log.level = "info,journey=debug"` adds only the steps. If they are not logged, a step takes hardly any
//! time.

/// The log target of the steps of tasks.
pub const JOURNEY: &str = "journey";

/// Whether the steps of tasks are logged. If not, callers can skip lookups that are needed only for them.
pub fn is_logged() -> bool {
    tracing::enabled!(target: JOURNEY, tracing::Level::DEBUG)
}
