//! The overview: the current state, what needs attention, and the metrics over time. It updates itself
//! ([`crate::live`]).

mod alerts;

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_service::http::Answer;

use crate::answer::{self, Shown};
use crate::history;
use crate::snapshot::{Crawls, Snapshot, now_ms};
use crate::templates;
use crate::visit::Visit;

/// How many points a chart has at most, approximately.
const MOST_POINTS: usize = 360;

/// The spans of time that a chart can show, in seconds, and their labels. 0 means the time since the running crawls
/// began.
const SPANS: [(i64, &str); 9] = [
    (0, "Since the start"),
    (900, "15 minutes"),
    (3_600, "1 hour"),
    (6 * 3_600, "6 hours"),
    (DAY_S, "24 hours"),
    (3 * DAY_S, "3 days"),
    (7 * DAY_S, "7 days"),
    (30 * DAY_S, "30 days"),
    (90 * DAY_S, "90 days"),
];

const DAY_S: i64 = 24 * 3_600;

/// The shortest span that a chart shows, in seconds. Otherwise a run that has just begun would fill the chart.
const LEAST_S: i64 = 60;

pub(crate) async fn show(visit: &Visit) -> Shown {
    let snapshot = snapshot_for(visit).await;
    let mut content = overview_content(visit, &snapshot);
    if !visit.visitor.rights.is_limited_to_apps() {
        content["table"] = json!(hourly_samples(visit));
        content["charts"] = chart_choice(visit, "/dashboard/charts");
    }
    visit.render_page("overview.html", "Overview", content)
}

/// The data for the part of a page with charts: the path of their data, and the spans that can be chosen.
pub(crate) fn chart_choice(visit: &Visit, source: &str) -> Value {
    let spans = SPANS.map(|(span, label)| json!({"seconds": span, "label": label}));
    json!({"spans": spans, "span": requested_span(visit), "source": source, "every_s": history::EVERY_S})
}

/// The snapshot of the overview that this visitor may see.
pub(crate) async fn snapshot_for(visit: &Visit) -> Arc<Snapshot> {
    let snapshot = visit.dashboard.snapshot().await;
    match visit.visitor.rights.is_limited_to_apps() {
        true => Arc::new(snapshot.limited_to(&visit.visitor.rights)),
        false => snapshot,
    }
}

/// The part of the overview that a script keeps up to date.
pub(crate) fn render_live_part(visit: &Visit, snapshot: &Snapshot) -> String {
    templates::render(
        &visit.dashboard.templates,
        "snapshot.html",
        overview_content(visit, snapshot),
    )
}

fn overview_content(visit: &Visit, snapshot: &Snapshot) -> Value {
    json!({
        "snapshot": snapshot,
        "alerts": alerts::from_snapshot(snapshot),
        "not_known": alerts::not_known_yet(snapshot),
        "is_known": is_fully_read(visit, snapshot),
        "is_unused": is_unused(visit, snapshot),
        "can_repair": visit.usable_editor().is_ok(),
        "dashboard": {
            "form_token": visit.form_token, "here": "/dashboard/", "can_change": visit.can_change(),
            "has_fleet": visit.has_fleet(),
        },
        "has_fleet": visit.dashboard.fleet.is_some(),
        "is_bound": visit.visitor.rights.is_limited_to_apps(),
        "store": visit.dashboard.store.name(),
    })
}

/// Whether everything was read that could need attention.
fn is_fully_read(visit: &Visit, snapshot: &Snapshot) -> bool {
    let knows_fleet = !visit.has_fleet() || snapshot.fault.is_none() && snapshot.sites.is_some();
    let knows_crawls = |crawls: &Crawls| !crawls.has_unknown_process;
    let knows_store = !visit.has_store() || snapshot.crawls.as_ref().is_some_and(knows_crawls);
    knows_fleet && knows_store
}

/// Whether there is nothing to show, because there is no fleet, no crawl and no table yet.
fn is_unused(visit: &Visit, snapshot: &Snapshot) -> bool {
    let has_crawls = snapshot
        .crawls
        .as_ref()
        .is_some_and(|crawls| !crawls.latest.is_empty());
    !visit.has_fleet() && !has_crawls && visit.dashboard.tables.is_empty()
}

/// The data of the charts of all crawls together.
pub(crate) async fn show_charts(visit: &Visit) -> Shown {
    visit.require_whole_fleet()?;
    let snapshot = visit.dashboard.snapshot().await;
    let crawls = snapshot.crawls.as_ref();
    let began_ms = crawls.and_then(|crawls| crawls.running_since_ms);
    // The charts end with the counts that the page shows now.
    let current = visit.dashboard.counters().sample_until(&snapshot);
    let with_current = |mut samples: Vec<history::Sample>| {
        samples.extend(current.clone());
        samples
    };
    Ok(chart_data(visit, began_ms, None, with_current))
}

/// The data of charts for a span: the one that the query requests, or else the time since `began_ms`. Samples are
/// merged so that they fit the number of points.
pub(crate) fn chart_data(
    visit: &Visit,
    began_ms: Option<i64>,
    ended_ms: Option<i64>,
    reduce: impl Fn(Vec<history::Sample>) -> Vec<history::Sample>,
) -> Answer {
    let now = now_ms().div_euclid(1_000);
    let history = visit.dashboard.history();
    let (from, to) = match requested_span(visit) {
        0 => {
            let began = began_ms.map(|ms| ms.div_euclid(1_000));
            let began = began.or_else(|| history.first_since(now - DAY_S));
            let to = ended_ms.map_or(now, |ms| ms.div_euclid(1_000) + history::EVERY_S);
            let began = began.unwrap_or(now).clamp(now - 90 * DAY_S, to);
            (began.min(to - LEAST_S), to)
        }
        span => (now - span, now),
    };
    let samples = reduce(history.samples_between(from, to, MOST_POINTS));
    let mut chart = history::chart_json(&samples);
    chart["from"] = from.into();
    chart["to"] = to.into();
    answer::json(200, &chart)
}

/// The span of the charts that the query requests, in seconds; 0 by default.
pub(crate) fn requested_span(visit: &Visit) -> i64 {
    let asked = visit.query_value("span").and_then(|span| span.parse().ok());
    let is_known = |span: &i64| SPANS.iter().any(|(known, _)| known == span);
    asked.filter(is_known).unwrap_or(0)
}

/// The samples of the last day, merged by the hour, the latest first. They are shown as a table, for people who do not
/// read charts.
fn hourly_samples(visit: &Visit) -> Vec<history::Sample> {
    let now = now_ms().div_euclid(1_000);
    let mut samples = visit
        .dashboard
        .history()
        .samples_between(now - DAY_S, now, 24);
    samples.reverse();
    samples
}
