//! The overview: the current state, what needs attention, and the metrics over time. It updates itself
//! ([`crate::live`]).

mod alerts;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::answer::{self, Shown};
use crate::history;
use crate::snapshot::Snapshot;
use crate::templates;
use crate::visit::Visit;

/// Charts have at most about this many points.
const MOST_POINTS: usize = 360;

/// The spans that charts show, in hours.
const SPANS: [i64; 4] = [3, 24, 168, 720];

const HOUR_S: i64 = 3_600;

pub(crate) async fn show(visit: &Visit) -> Shown {
    let snapshot = snapshot_for(visit).await;
    let mut content = content(visit, &snapshot);
    let has_history = !visit.visitor.rights.is_bound() && visit.dashboard.fleet.is_some();
    if has_history {
        content["table"] = json!(by_hour(visit));
        content["hours"] = hours(visit).into();
        content["spans"] = json!(SPANS);
    }
    visit.page("overview.html", "Overview", content)
}

/// The snapshot, limited to this visitor's rights.
pub(crate) async fn snapshot_for(visit: &Visit) -> Arc<Snapshot> {
    let snapshot = visit.dashboard.snapshot().await;
    match visit.visitor.rights.is_bound() {
        true => Arc::new(snapshot.of_apps(&visit.visitor.rights)),
        false => snapshot,
    }
}

/// The part of the page that updates itself.
pub(crate) fn part(visit: &Visit, snapshot: &Snapshot) -> String {
    templates::render(
        &visit.dashboard.templates,
        "snapshot.html",
        content(visit, snapshot),
    )
}

fn content(visit: &Visit, snapshot: &Snapshot) -> Value {
    json!({
        "snapshot": snapshot,
        "alerts": alerts::of(snapshot),
        "has_fleet": visit.dashboard.fleet.is_some(),
        "is_bound": visit.visitor.rights.is_bound(),
        "store": visit.dashboard.store.name(),
    })
}

/// The metrics of charts.
pub(crate) fn charts(visit: &Visit) -> Shown {
    visit.needs_whole_fleet()?;
    let samples = visit
        .dashboard
        .history()
        .since(hours(visit) * HOUR_S, MOST_POINTS);
    Ok(answer::json(200, &history::chart_json(&samples)))
}

/// The requested span.
fn hours(visit: &Visit) -> i64 {
    let asked = visit.asked("hours").and_then(|hours| hours.parse().ok());
    asked
        .filter(|hours| SPANS.contains(hours))
        .unwrap_or(SPANS[1])
}

/// The last day by the hour, latest hour first, for people who do not read charts.
fn by_hour(visit: &Visit) -> Vec<history::Sample> {
    let mut samples = visit.dashboard.history().since(24 * HOUR_S, 24);
    samples.reverse();
    samples
}
