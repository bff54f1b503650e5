//! A watch: its runs, the changes of its pages, its recipients.

use serde_json::{Value, json};
use webfill_store::{ChangeListFilter, CrawlId};

use super::changes;
use super::reading::{data_or_fault, open_store, with_time_limit};
use crate::answer::{Problem, Shown};
use crate::visit::Visit;

/// How many runs of the watch are shown by default, and how many on request.
const RUNS: u64 = 10;
const MOST_RUNS: u64 = 1_000;

const CHANGES: u32 = 10;

pub(crate) async fn show(visit: &Visit, name: &str) -> Shown {
    let runs = if visit.query_value("runs") == Some("all") {
        MOST_RUNS
    } else {
        RUNS
    };
    let question = json!({"action": "watch_show", "name": name, "runs": runs});
    let watch = visit
        .run_action(question)
        .await
        .map_err(|problem| match problem.status {
            400 => Problem::not_found(problem.text),
            _ => problem,
        })?;
    let app = watch["app"].as_str().unwrap_or_default().to_owned();
    let (changes, store_fault) = data_or_fault(load_changes(visit, &app, name).await);
    let shown = watch["runs"].as_array().map_or(0, Vec::len) as u64;
    let content = json!({
        "app": app,
        // The pages of a watch are stored in a crawl with the same name.
        "crawl": name,
        "changes": changes, "store_fault": store_fault,
        "has_more_runs": runs < MOST_RUNS && shown == runs,
        "spec": format!("{:#}", watch["watch"]),
        "is_running": watch["state"] == "running",
        "watch": watch,
    });
    visit.render_page("watch.html", &format!("Watch {name}"), content)
}

async fn load_changes(visit: &Visit, app: &str, crawl: &str) -> Result<Vec<Value>, Problem> {
    if !visit.dashboard.store.is_configured() {
        return Ok(Vec::new());
    }
    let filter = ChangeListFilter {
        crawl: Some(CrawlId::new(app, crawl)),
        ..ChangeListFilter::default()
    };
    let store = open_store(visit).await?;
    let list_page = with_time_limit(store.browse.changes(&filter, None, CHANGES)).await?;
    Ok(list_page.rows.iter().map(changes::change_row).collect())
}
