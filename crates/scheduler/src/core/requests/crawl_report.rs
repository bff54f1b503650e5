//! The parts of a report on a crawl that need its sites and leases: why it waits, its pace, when it may be done, and
//! its longest-running task.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webfill_wire::CrawlKey;

use super::{awaited, waits};
use crate::core::context::Context;
use crate::frontier::{FrontierError, TaskId};
use crate::wording::to_seconds;

/// The longest-running task of a crawl.
pub(super) struct OldestLease {
    task: TaskId,
    supervisor: String,
    since_ms: i64,
}

/// The part of a report that requires reading up to `most_sites` of the crawl's sites, and its leases.
pub(super) fn crawl_report(
    cx: &mut Context,
    crawl: CrawlKey,
    most_sites: usize,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let pending = cx.frontier.crawls().queued_counts(crawl)?;
    let mut report = json!({
        "total_domains": pending.sites.count,
        "low_priority": pending.low_priority,
        "high_priority": pending.high_priority,
    });
    if pending.sites.has_more {
        report["total_domains_at_least"] = true.into();
    }
    if let Some(awaited) = awaited::explain_crawl_wait(cx, crawl, most_sites, now_ms)? {
        report["waiting_for"] = awaited.into();
    }
    add_progress(cx, &mut report, crawl, most_sites, now_ms)?;
    let oldest = oldest_leases(cx, &[crawl]).remove(&crawl);
    add_oldest_lease(cx, &mut report, oldest)?;
    Ok(report)
}

/// Adds why the crawl waits, its pace, and its estimated end.
pub(super) fn add_progress(
    cx: &mut Context,
    report: &mut Value,
    crawl: CrawlKey,
    most_sites: usize,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let progress = waits::crawl_progress(cx, crawl, most_sites, now_ms)?;
    report["waits"] = progress.waits.into();
    report["done_per_second"] = progress.per_second.into();
    report["not_before"] = progress.not_before_ms.map(to_seconds).into();
    report["estimated_end"] = progress.end_ms.map(to_seconds).into();
    if let Some((sites, tasks)) = progress.left_out {
        report["estimate_without"] = json!({"sites": sites, "tasks": tasks});
    }
    Ok(())
}

/// The longest-running task of each of these crawls.
pub(super) fn oldest_leases(cx: &Context, crawls: &[CrawlKey]) -> BTreeMap<CrawlKey, OldestLease> {
    let oldest = cx.dispatch.leases.oldest_by_crawl(crawls).into_iter();
    let found = oldest.map(|(crawl, (task, lease))| {
        let oldest = OldestLease {
            task,
            supervisor: lease.supervisor.clone(),
            since_ms: lease.since_ms,
        };
        (crawl, oldest)
    });
    found.collect()
}

/// Adds the longest-running task of a crawl.
pub(super) fn add_oldest_lease(
    cx: &mut Context,
    report: &mut Value,
    oldest: Option<OldestLease>,
) -> Result<(), FrontierError> {
    if let Some(oldest) = oldest
        && let Some(sketch) = cx.frontier.tasks().get(oldest.task)?
    {
        report["oldest_lease"] = json!({
            "task": oldest.task,
            "url": sketch.url,
            "supervisor": oldest.supervisor,
            "since": to_seconds(oldest.since_ms),
        });
    }
    Ok(())
}
