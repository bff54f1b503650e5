//! The steps of the journey in the log, for `webfill trace`.

use webfill_startup::journey::JOURNEY;
use webfill_wire::Task;

/// Logs a step. Its span has the task and the crawl.
pub(super) fn log_step(task: &Task, event: &str, said: &'static str) {
    tracing::debug!(
        target: JOURNEY,
        event,
        url = task.url,
        attempt = task.delivery.number,
        "{said}"
    );
}
