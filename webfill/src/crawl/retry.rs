//! `--retry`: queues ended tasks of the crawl again, before the crawl continues.

use std::str::FromStr;

use serde::Deserialize;
use serde_json::Value;
use webfill_api::CrawlSpec;
use webfill_service::Fault;
use webfill_wire::Outcome;

use crate::control_client::ControlClient;
use crate::demand::retry_action;
use crate::fleet::Fleet;

/// An outcome or an HTTP status. Tasks that ended with it are queued again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryEnd {
    Outcome(Outcome),
    /// Tasks that ended in `http_error` with this status.
    Status(u16),
}

impl FromStr for RetryEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<RetryEnd, String> {
        match text.parse() {
            Ok(status @ 100..=999) => Ok(RetryEnd::Status(status)),
            _ => text.parse().map(RetryEnd::Outcome),
        }
    }
}

/// The dispatcher's answer to an action.
#[derive(Deserialize)]
struct RetryAnswer {
    total_requeued: u64,
}

/// Queues tasks of the crawl again that ended in one of these ways, and returns their number; `None` if no ways are
/// given. The crawl cannot finish meanwhile, because its seeds are not fed yet.
pub(super) fn requeue_ended(
    ends: &[RetryEnd],
    spec: &CrawlSpec,
    client: &mut ControlClient,
    fleet: &mut Fleet,
) -> Result<Option<u64>, Fault> {
    if ends.is_empty() {
        return Ok(None);
    }
    let mut requeued = 0;
    for action in retry_actions(ends, &spec.app_id, &spec.crawl_id) {
        let retried: RetryAnswer = client.request(&action, || fleet.restart_dead())?;
        requeued += retried.total_requeued;
    }
    tracing::info!(
        event = "retried",
        crawl_id = spec.crawl_id,
        requeued,
        "finished tasks re-queued"
    );
    Ok(Some(requeued))
}

/// The dispatcher's actions that queue tasks with these ends again: one for all outcomes, and one for all statuses.
pub fn retry_actions(ends: &[RetryEnd], app_id: &str, crawl_id: &str) -> Vec<Value> {
    let (mut outcomes, mut statuses) = (Vec::new(), Vec::new());
    for end in ends {
        match end {
            RetryEnd::Outcome(outcome) => outcomes.push(*outcome),
            RetryEnd::Status(status) => statuses.push(*status),
        }
    }
    let mut actions = Vec::new();
    if !outcomes.is_empty() {
        actions.push(retry_action(app_id, crawl_id, &outcomes));
    }
    if !statuses.is_empty() {
        let mut action = retry_action(app_id, crawl_id, &[Outcome::HttpError]);
        action["status"] = statuses.into();
        actions.push(action);
    }
    actions
}
