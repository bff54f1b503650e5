//! Logs the steps of a task, so that `webfill trace` can show the history of a URL.

use std::collections::HashMap;
use std::sync::Arc;

use tracing::Span;
use webfill_service::journey::JOURNEY;
use webfill_service::log::task_span;
use webfill_wire::{CrawlKey, CrawlSettings, Task};

/// The tracing span for all log lines about a task.
pub(super) fn span_of(task: &Task, crawls: &HashMap<CrawlKey, Arc<CrawlSettings>>) -> Span {
    let crawl = crawls.get(&task.crawl);
    task_span(task.task, crawl.map_or("", |crawl| &crawl.crawl_id))
}

/// Logs a step of a task. Task and crawl are in the span of the log line.
pub(super) fn log_step(task: &Task, event: &str, said: &'static str) {
    tracing::debug!(
        target: JOURNEY,
        event,
        url = task.url,
        attempt = task.delivery.number,
        "{said}"
    );
}
