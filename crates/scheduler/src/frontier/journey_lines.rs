//! Logs the first steps of a URL, for `webfill trace`: whether it was accepted.

use webfill_service::journey::JOURNEY;
use webfill_urls::Url;
use webfill_wire::Reason;

use super::crawl::Crawl;
use super::model::{LinkContext, TaskId};

pub(super) fn log_queued(crawl: &Crawl, task: TaskId, url: &Url, context: &LinkContext<'_>) {
    let said = match context.parent {
        None => "fed, in scope and new: queued",
        Some(_) => "found on a page, in scope and new: queued",
    };
    tracing::debug!(
        target: JOURNEY,
        event = "queued",
        task,
        crawl_id = crawl.spec.crawl_id,
        app_id = crawl.spec.app_id,
        url = url.as_str(),
        depth = context.depth,
        priority = context.priority,
        parent = context.parent,
        "{said}"
    );
}

/// Logs that a URL was refused, or was fed again. Duplicate links are not logged, because most links are duplicates.
pub(super) fn log_not_queued(crawl: &Crawl, url: &str, reason: Reason, parent: Option<TaskId>) {
    if reason == Reason::Duplicate && parent.is_some() {
        return;
    }
    tracing::debug!(
        target: JOURNEY,
        event = "not_taken",
        crawl_id = crawl.spec.crawl_id,
        app_id = crawl.spec.app_id,
        url,
        reason = reason.as_str(),
        parent,
        "not taken in"
    );
}
