//! First sight: how everything is doing, what asks for somebody, and how it went lately. It changes by itself
//! ([`crate::live`]).

mod alarms;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::answer::{self, Shown};
use crate::history;
use crate::sight::Sight;
use crate::templates;
use crate::visit::Visit;

/// Charts have about so many points at most.
const MOST_POINTS: usize = 360;

/// The spans that charts show, in hours.
const SPANS: [i64; 4] = [3, 24, 168, 720];

const HOUR_S: i64 = 3_600;

pub(crate) async fn show(visit: &Visit) -> Shown {
    let sight = sight_for(visit).await;
    let mut content = content(visit, &sight);
    let has_history = !visit.visitor.rights.is_bound() && visit.desk.fleet.is_some();
    if has_history {
        content["table"] = json!(by_hour(visit));
        content["hours"] = hours(visit).into();
        content["spans"] = json!(SPANS);
    }
    visit.page("overview.html", "First sight", content)
}

/// What this visitor may see of everything.
pub(crate) async fn sight_for(visit: &Visit) -> Arc<Sight> {
    let sight = visit.desk.sight().await;
    match visit.visitor.rights.is_bound() {
        true => Arc::new(sight.of_apps(&visit.visitor.rights)),
        false => sight,
    }
}

/// The part of the page that changes by itself.
pub(crate) fn part(visit: &Visit, sight: &Sight) -> String {
    templates::render(&visit.desk.templates, "sight.html", content(visit, sight))
}

fn content(visit: &Visit, sight: &Sight) -> Value {
    json!({
        "sight": sight,
        "alarms": alarms::of(sight),
        "has_fleet": visit.desk.fleet.is_some(),
        "is_bound": visit.visitor.rights.is_bound(),
        "store": visit.desk.store.name(),
    })
}

/// The figures of charts.
pub(crate) fn figures(visit: &Visit) -> Shown {
    visit.needs_whole_fleet()?;
    let samples = visit
        .desk
        .history()
        .since(hours(visit) * HOUR_S, MOST_POINTS);
    Ok(answer::json(200, &history::told(&samples)))
}

/// The span that was asked for.
fn hours(visit: &Visit) -> i64 {
    let asked = visit.asked("hours").and_then(|hours| hours.parse().ok());
    asked
        .filter(|hours| SPANS.contains(hours))
        .unwrap_or(SPANS[1])
}

/// The last day by the hour, the last one first, for whoever reads no charts.
fn by_hour(visit: &Visit) -> Vec<history::Sample> {
    let mut samples = visit.desk.history().since(24 * HOUR_S, 24);
    samples.reverse();
    samples
}
