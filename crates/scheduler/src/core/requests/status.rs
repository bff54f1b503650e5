//! The answer to `status`: the fleet, machine by machine, the store, and why crawls wait.
//!
//! The cost is bounded, whatever the number of URLs. For all crawls together a limited number of sites is read, and
//! the leases are scanned once. The result is kept for up to two seconds. Only the longest-running task of each crawl
//! is read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::reply::Reply;
use crate::core::context::Context;
use crate::core::notifications::Notifications;
use crate::core::requests::reports::ReportCache;
use crate::core::window;
use crate::dispatch::{Presence, SupervisorDetails};
use crate::frontier::{FrontierError, MOST_WAITING_COUNTED};
use crate::wording::to_seconds;

pub(super) fn fleet_status(
    cx: &mut Context,
    notifications: &Notifications,
    reports: &mut ReportCache,
    uuid: Option<String>,
    now_ms: i64,
) -> Result<Reply, FrontierError> {
    let tally = reports.cached_tally(cx, now_ms)?;
    let (store, cache) = cx.surroundings.backends.status_json();
    let ended = cx.frontier.ended_tasks_by_outcome().iter();
    let ended: BTreeMap<&str, u64> = ended
        .map(|(outcome, count)| (outcome.as_str(), *count))
        .collect();
    let oldest_due_ms = window::longest_overdue_ms(cx, now_ms);
    let mut answer = json!({
        "action": "status",
        "webfill": env!("CARGO_PKG_VERSION"),
        "server_time": cx.wall_ms(now_ms) / 1_000,
        "supervisors": supervisors_json(cx, now_ms),
        "store": store,
        "cache": cache,
        "crawls": {"known": tally.crawls, "running": tally.unfinished, "paused": tally.paused},
        "unfinished": reports.unfinished_crawls(cx, now_ms)?,
        "total_pending": tally.queued,
        "leased": tally.leased,
        "done": tally.done,
        "ended": ended,
        "oldest_due_s": to_seconds(oldest_due_ms),
        "pages": tally.pages,
        "rows_stored": tally.rows_stored,
        "bytes": tally.bytes,
        "discovered": tally.discovered,
        "sites": {
            "waiting": tally.sites_waiting,
            "waiting_at_least": tally.sites_waiting == MOST_WAITING_COUNTED,
            "in_window": cx.dispatch.schedule.count_sites_in_window(),
        },
        "draining": cx.draining,
        "messages": {"received": cx.counters.messages.received, "sent": cx.counters.messages.sent},
    });
    if let Some(standbys) = &cx.surroundings.standbys {
        answer["journal"] = standbys.status_json();
    }
    if let Some(shortage) = &cx.surroundings.low_disk {
        answer["paused"] = shortage.as_str().into();
    }
    if let Some(standing) = &cx.surroundings.standing {
        for (name, rows) in [
            ("alerts", &standing.alerts),
            ("warnings", &standing.warnings),
        ] {
            if !rows.is_empty() {
                answer[name] = rows.clone().into();
            }
        }
    }
    let undelivered = notifications.undelivered_rows();
    if !undelivered.is_empty() {
        answer["undelivered"] = undelivered.into();
    }
    if let Some(uuid) = uuid {
        answer["uuid"] = uuid.into();
    }
    Ok(Reply::Now(answer))
}

/// The connected supervisors, for operators.
pub(super) fn supervisors_json(cx: &Context, now_ms: i64) -> Vec<Value> {
    let rows = cx.dispatch.fleet.connected_lanes().map(|(name, lane)| {
        let offline = cx.dispatch.fleet.offline_state(name);
        let presence = cx.dispatch.fleet.presence(name, now_ms);
        let particulars = cx.dispatch.fleet.supervisor_details(name);
        let mut row = json!({
            "id": name,
            "lane": lane,
            "sites": cx.dispatch.schedule.count_owned_by(name),
            "pages": presence.pages,
            "clock_ahead_s": to_seconds(cx.dispatch.fleet.wall_clock_ahead_ms(name)),
            "draining": presence.is_draining,
            "heard_ago_s": to_seconds(presence.heard_ago_ms),
            "lost_in_s": presence.lost_in_ms.map(to_seconds),
            "egress": if offline.is_some() { "offline" } else { "open" },
            "offline_since": offline.map(|found| to_seconds(found.since_ms)),
            "sign": offline.map(|found| &found.sign),
            "leased": cx.dispatch.leases.count_held_by(name),
            "state": supervisor_state(presence, offline.is_some(), particulars),
        });
        if let Some(particulars) = particulars {
            add_supervisor_details(&mut row, particulars, now_ms);
        }
        row
    });
    rows.collect()
}

/// The state of a supervisor, in one word.
fn supervisor_state(
    presence: Presence,
    is_offline: bool,
    particulars: Option<&SupervisorDetails>,
) -> &'static str {
    let report = particulars.and_then(|found| found.report.as_ref());
    let report = report.map(|(report, _)| report);
    if presence.lost_in_ms.is_some() {
        "silent"
    } else if presence.is_draining {
        "draining"
    } else if is_offline {
        "offline"
    } else if report.is_some_and(|report| report.workers_ready == 0) {
        "starting"
    } else if report.is_some_and(|report| report.holds.is_some()) {
        "holds"
    } else {
        "working"
    }
}

/// Adds a supervisor's address and its last report about itself. Missing parts are null.
fn add_supervisor_details(row: &mut Value, particulars: &SupervisorDetails, now_ms: i64) {
    row["address"] = particulars.address.as_deref().into();
    row["wire_version"] = particulars.wire_version.into();
    row["workers"] = particulars.workers.into();
    let report = particulars.report.as_ref();
    let of = |value: fn(&webfill_wire::SupervisorReport) -> Value| {
        report.map_or(Value::Null, |(report, _)| value(report))
    };
    row["webfill"] = of(|report| report.webfill.as_str().into());
    row["workers_ready"] = of(|report| report.workers_ready.into());
    row["worker_deaths"] = of(|report| report.worker_deaths.into());
    row["memory_bytes"] = of(|report| report.memory_bytes.into());
    row["workers_memory_bytes"] = of(|report| report.workers_memory_bytes.into());
    row["load"] = of(|report| (f64::from(report.load_hundredths) / 100.0).into());
    row["cores"] = of(|report| report.cores.into());
    row["held"] = of(|report| report.held.into());
    row["waiting"] = of(|report| report.waiting.into());
    row["holds"] = of(|report| report.holds.as_deref().into());
    row["reported_ago_s"] = report.map(|(_, at_ms)| to_seconds(now_ms - at_ms)).into();
}
