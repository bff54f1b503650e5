//! Logs the ends of leases, for `webfill trace`.

use webfill_service::journey::{self, JOURNEY};
use webfill_wire::{TaskDone, TaskReturned};

use crate::core::context::Context;
use crate::frontier::{FrontierError, ReturnResult};

/// Logs how a lease has ended.
pub(super) fn log_lease_end(
    cx: &mut Context,
    done: &TaskDone,
    event: &str,
    said: &'static str,
) -> Result<(), FrontierError> {
    if !journey::is_logged() {
        return Ok(());
    }
    let Some(task) = cx.frontier.tasks().get(done.task)? else {
        return Ok(());
    };
    tracing::debug!(
        target: JOURNEY,
        event,
        task = done.task,
        crawl_id = cx.frontier.crawls().spec(task.crawl)?.crawl_id,
        url = task.url,
        attempt = done.delivery.number,
        outcome = done.outcome.as_str(),
        status_code = done.status_code,
        links = done.links.len(),
        "{said}"
    );
    Ok(())
}

pub(super) fn log_returned_task(
    cx: &mut Context,
    returned: &TaskReturned,
    given_back: ReturnResult,
) -> Result<(), FrontierError> {
    if !journey::is_logged() {
        return Ok(());
    }
    let Some(task) = cx.frontier.tasks().get(returned.task)? else {
        return Ok(());
    };
    tracing::debug!(
        target: JOURNEY,
        event = "came_back",
        task = returned.task,
        crawl_id = cx.frontier.crawls().spec(task.crawl)?.crawl_id,
        url = task.url,
        attempt = returned.delivery.number,
        cause = ?returned.cause,
        "{}",
        match given_back {
            ReturnResult::Requeued(_) => "returned without an outcome, queued again",
            _ => "returned without an outcome, finished",
        }
    );
    Ok(())
}
