//! The crawls, latest first, with their actions.

use serde::Serialize;
use serde_json::{Value, json};
use webfill_store::{Crawl, CrawlFilter, CrawlState};

use crate::answer::{Problem, Shown};
use crate::snapshot::Snapshot;
use crate::visit::Visit;

/// How many crawls are shown on one page.
const SHOWN: u32 = 50;

/// A crawl in the list of crawls.
#[derive(Debug, Serialize)]
struct Row {
    app_id: String,
    crawl_id: String,
    state: &'static str,
    started_at_ms: i64,
    finished_at_ms: Option<i64>,
    /// The number of fetched pages; null if the crawl has stored no such counter.
    pages: Value,
    records: Value,
    resolved: Value,
    /// The actions that the visitor can start for this crawl.
    actions: &'static [&'static str],
}

pub(crate) async fn show(visit: &Visit) -> Shown {
    let opened = visit.open_store().await?;
    let state = visit
        .query_value("state")
        .map(str::parse::<CrawlState>)
        .transpose();
    let state = state.map_err(|_| Problem::bad_request("state: unknown state of a crawl"))?;
    let from = visit.query_value("after").map(str::parse).transpose();
    let from = from.map_err(Problem::bad_request)?;
    let filter = CrawlFilter {
        apps: visit.apps(),
        state,
    };
    let list_page = opened.browse.crawls(&filter, from.as_ref(), SHOWN).await;
    let list_page = list_page.map_err(Problem::unavailable)?;
    let has_fleet = visit.dashboard.fleet.is_some();
    // The fleet knows changes a little earlier than the store.
    let snapshot = visit.dashboard.snapshot().await;
    let crawls: Vec<Row> = list_page
        .rows
        .into_iter()
        .map(|crawl| crawl_row(with_current_state(crawl, &snapshot), has_fleet))
        .collect();
    let next = list_page.next.map(|place| place.to_string());
    let states = CrawlState::ALL.map(CrawlState::as_str);
    let state = state.map(CrawlState::as_str);
    let content = json!({
        "crawls": crawls,
        "next": next,
        "states": states,
        "state": state,
        "examined": list_page.examined,
        "here": return_path(visit),
    });
    visit.render_page("crawls.html", "Crawls", content)
}

/// The path that forms return to: this page with its query.
fn return_path(visit: &Visit) -> String {
    let query: Vec<String> = ["state", "after"]
        .iter()
        .filter_map(|key| visit.query_value(key).map(|value| format!("{key}={value}")))
        .filter(|pair| {
            pair.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"=._-".contains(&byte))
        })
        .collect();
    match query[..] {
        [] => "/dashboard/crawls".to_owned(),
        _ => format!("/dashboard/crawls?{}", query.join("&")),
    }
}

/// Replaces the stored state of a crawl by the one that the fleet reports, or by "interrupted" if its process is
/// silent.
fn with_current_state(mut crawl: Crawl, snapshot: &Snapshot) -> Crawl {
    let unfinished = snapshot.status["unfinished"].as_array();
    let mut unfinished = unfinished.into_iter().flatten();
    let own = unfinished
        .find(|one| one["appid"] == *crawl.id.app_id && one["crawlid"] == *crawl.id.crawl_id);
    let state = own.and_then(|one| one["state"].as_str()?.parse().ok());
    let crawls = snapshot.crawls.as_ref();
    let is_silent = crawls.is_some_and(|crawls| crawls.silent_since(&crawl.id).is_some());
    crawl.state = match (state, crawl.state) {
        (Some(state), _) => state,
        (None, CrawlState::Running | CrawlState::Paused) if is_silent => CrawlState::Interrupted,
        (None, state) => state,
    };
    crawl
}

fn crawl_row(crawl: Crawl, has_fleet: bool) -> Row {
    let records = &crawl.counts.get("records").cloned().unwrap_or(json!({}));
    let actions: &[&str] = match crawl.state {
        _ if !has_fleet => &[],
        CrawlState::Running | CrawlState::Interrupted => &["pause", "stop"],
        CrawlState::Paused => &["resume", "stop"],
        CrawlState::LimitReached
        | CrawlState::Stopped
        | CrawlState::Expired
        | CrawlState::Finished => &[],
    };
    Row {
        pages: crawl.counts.get("pages").cloned().unwrap_or_default(),
        records: records["total"].clone(),
        resolved: records["resolved"].clone(),
        app_id: crawl.id.app_id,
        crawl_id: crawl.id.crawl_id,
        state: crawl.state.as_str(),
        started_at_ms: crawl.started_at_ms,
        finished_at_ms: crawl.finished_at_ms,
        actions,
    }
}
