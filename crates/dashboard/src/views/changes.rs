//! Changes of pages, with their differences: of all crawls, or of one.

use serde_json::{Value, json};
use webfill_store::{Change, ChangeKind, ChangeListFilter, CrawlId};

use super::reading::{List, ROWS, open_store, parse_cursor, with_time_limit};
use crate::answer::{Problem, Shown};
use crate::visit::Visit;

/// How many characters of a difference are shown. The view of the page shows the whole difference.
const MOST_DIFFERENCE: usize = 4_000;

/// Shows the changes of one crawl, given by its application and id, or of all crawls that the visitor may see.
pub(crate) async fn show(visit: &Visit, of: Option<(&str, &str)>) -> Shown {
    if let Some((app, _)) = of {
        visit.require_app(app)?;
    }
    let kind = visit.query_value("kind").map(parse_kind).transpose()?;
    let filter = ChangeListFilter {
        crawl: of.map(|(app, crawl)| CrawlId::new(app, crawl)),
        kind,
        apps: visit.apps(),
        ..ChangeListFilter::default()
    };
    let (store, from) = (open_store(visit).await?, parse_cursor(visit)?);
    let list_page = with_time_limit(store.browse.changes(&filter, from.as_ref(), ROWS)).await?;
    let title = match of {
        Some((_, crawl)) => format!("Changes of {crawl}"),
        None => String::from("Changes"),
    };
    let content = json!({
        "app": of.map(|(app, _)| app), "crawl": of.map(|(_, crawl)| crawl),
        "kind": kind.map(ChangeKind::as_str),
        "kinds": ChangeKind::ALL.map(ChangeKind::as_str),
        "list": List::from_store(visit, &list_page, change_row),
    });
    visit.render_page("changes.html", &title, content)
}

fn parse_kind(name: &str) -> Result<ChangeKind, Problem> {
    let mut all = ChangeKind::ALL.into_iter();
    let found = all.find(|kind| kind.as_str() == name);
    found.ok_or_else(|| Problem::bad_request("kind: expected new, changed, gone or back"))
}

pub(super) fn change_row(change: &Change) -> Value {
    let difference: String = change.difference.chars().take(MOST_DIFFERENCE).collect();
    json!({
        "at_ms": change.at_ms,
        "kind": change.kind.as_str(),
        "url": change.url,
        "site": change.site,
        "page": change.page_id,
        "mapping": change.mapping,
        "is_cut": difference.len() < change.difference.len(),
        "difference": difference,
    })
}
