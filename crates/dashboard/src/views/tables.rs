//! The tables that `webfill fill` completes.

use serde_json::{Value, json};

use super::new_table;
use crate::answer::{Problem, Shown};
use crate::tables::Project;
use crate::visit::Visit;

pub(crate) async fn show(visit: &Visit) -> Shown {
    visit.require_whole_fleet()?;
    let all = visit.dashboard.tables.all();
    let rows = run_blocking(move || Ok(all.iter().map(table_row).collect::<Vec<Value>>())).await?;
    let offered = new_table::upload_target(visit);
    let content = json!({
        "rows": rows,
        "runs": new_table::started_runs(visit),
        "home": offered.map(|(_, home)| home.display().to_string()),
    });
    visit.render_page("tables.html", "Tables", content)
}

/// Runs a function that reads or writes files, in a thread that may block.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(Problem::internal_error)?
        .map_err(Problem::internal_error)
}

/// The project of the table with this name, if the visitor may see it.
pub(crate) fn find_project(visit: &Visit, name: &str) -> Result<Project, Problem> {
    visit.require_whole_fleet()?;
    let found = visit.dashboard.tables.get(name);
    found.ok_or_else(|| Problem::not_found("this dashboard has no such table"))
}

fn table_row(project: &Project) -> Value {
    let (overview, review) = (project.read_overview(), project.read_review());
    let fault = overview.as_ref().err().or(review.as_ref().err()).cloned();
    json!({
        "name": project.name,
        "overview": overview.ok().flatten().map(with_percent),
        "open": review.map(|review| review.count_open()).ok(),
        "fault": fault,
    })
}

/// Prepares a table's overview for display: adds the percentage of filled gaps to each field and site, and rounds
/// probabilities to three digits.
pub(crate) fn with_percent(mut overview: Value) -> Value {
    let percent = |part: &Value| {
        let (filled, gaps) = (part["filled"].as_f64()?, part["gaps"].as_f64()?);
        (gaps > 0.0).then(|| 100.0 * filled / gaps)
    };
    for list in ["fields", "sites"] {
        for part in overview[list].as_array_mut().into_iter().flatten() {
            part["percent"] = json!(percent(part));
            round_probabilities(part);
        }
    }
    round_probabilities(&mut overview["all"]);
    if let Some(share) = overview["share"].as_f64() {
        overview["percent"] = json!(100.0 * share);
    }
    overview
}

fn round_probabilities(part: &mut Value) {
    let digits = |value: &mut Value| {
        if let Some(share) = value.as_f64() {
            *value = format!("{share:.3}").into();
        }
    };
    if part["expected"].is_number() {
        digits(&mut part["expected"]);
    }
    if let Value::Object(shares) = &mut part["held_out"] {
        shares.values_mut().for_each(digits);
    }
}
