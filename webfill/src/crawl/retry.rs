//! `--retry`: ended tasks of the crawl are queued again, before the crawl goes on.

use serde::Deserialize;
use webfill_api::CrawlSpec;
use webfill_startup::Fault;
use webfill_wire::Outcome;

use crate::control_client::ControlClient;
use crate::demand::retry_action;
use crate::fleet::Fleet;

/// The answer of the dispatcher.
#[derive(Deserialize)]
struct Retried {
    total_requeued: u64,
}

/// Queues the crawl's tasks again that ended in one of these outcomes, if any are named. Returns
/// how many tasks that were. The crawl is open and its seeds have not ended, so it does not finish
/// before.
pub(super) fn queue_ended_again(
    outcomes: &[Outcome],
    spec: &CrawlSpec,
    client: &mut ControlClient,
    fleet: &mut Fleet,
) -> Result<Option<u64>, Fault> {
    if outcomes.is_empty() {
        return Ok(None);
    }
    let action = retry_action(&spec.app_id, &spec.crawl_id, outcomes);
    let retried: Retried = client.ask(&action, || fleet.restart_dead())?;
    tracing::info!(
        event = "retried",
        crawl_id = spec.crawl_id,
        requeued = retried.total_requeued,
        "ended tasks are queued again"
    );
    Ok(Some(retried.total_requeued))
}
