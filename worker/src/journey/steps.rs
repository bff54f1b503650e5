//! The steps of the journey in the log, for `webfill trace`.

use std::collections::HashMap;
use std::sync::Arc;

use tracing::Span;
use webfill_service::journey::JOURNEY;
use webfill_service::log::task_span;
use webfill_wire::{CrawlKey, CrawlSettings, Task};

/// The span for log lines about a task.
pub(super) fn span_of(task: &Task, crawls: &HashMap<CrawlKey, Arc<CrawlSettings>>) -> Span {
    let crawl = crawls.get(&task.crawl);
    task_span(task.task, crawl.map_or("", |crawl| &crawl.crawl_id))
}

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
