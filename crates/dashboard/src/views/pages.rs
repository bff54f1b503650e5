//! Lists of pages: of a crawl, of a site, of a mapping, or all.

use serde_json::{Value, json};
use webfill_store::{CrawlId, PageFilter, PageRow};
use webfill_wire::Outcome;

use super::reading::{List, ROWS, open_store, parse_cursor, with_time_limit};
use super::words;
use crate::answer::{Problem, Shown};
use crate::visit::Visit;

/// Which pages to list.
pub(crate) enum PagesOf<'a> {
    All,
    Crawl(&'a str, &'a str),
    Site(&'a str),
    Mapping(&'a str),
}

pub(crate) async fn show(visit: &Visit, of: PagesOf<'_>) -> Shown {
    let filter = page_filter(visit, &of)?;
    let (store, from) = (open_store(visit).await?, parse_cursor(visit)?);
    let list_page = with_time_limit(store.browse.pages(&filter, from.as_ref(), ROWS)).await?;
    let outcomes = Outcome::ALL.iter();
    let outcomes: Vec<Value> = outcomes
        .map(|outcome| json!({"name": outcome.as_str(), "meaning": outcome.meaning()}))
        .collect();
    // The button "retry" is shown if the list is of one failed outcome, because the action retries pages by outcome.
    let again = match (&of, &filter.outcomes[..]) {
        (PagesOf::Crawl(..), [outcome]) => outcome.is_failure(),
        _ => false,
    };
    let title = match of {
        PagesOf::All => String::from("Pages"),
        PagesOf::Crawl(_, crawl) => format!("Pages of crawl {crawl}"),
        PagesOf::Site(site) => format!("Pages of {site}"),
        PagesOf::Mapping(mapping) => format!("Pages that {mapping} has read"),
    };
    let content = json!({
        "app": filter.crawl.as_ref().map(|crawl| &crawl.app_id),
        "crawl": filter.crawl.as_ref().map(|crawl| &crawl.crawl_id),
        "is_of_site": matches!(of, PagesOf::Site(_)),
        "is_of_mapping": matches!(of, PagesOf::Mapping(_)),
        "site": filter.site,
        "mapping": filter.mapping,
        "outcome": visit.query_value("outcome"),
        "outcomes": outcomes, "again": again,
        "path": visit.path,
        "list": List::from_store(visit, &list_page, page_row),
    });
    visit.render_page("pages.html", &title, content)
}

fn page_filter(visit: &Visit, of: &PagesOf<'_>) -> Result<PageFilter, Problem> {
    let outcome = visit.query_value("outcome").map(str::parse::<Outcome>);
    let outcome = outcome.transpose().map_err(Problem::bad_request)?;
    let asked = |key: &str| visit.query_value(key).map(str::trim).map(str::to_owned);
    let mut filter = PageFilter {
        site: asked("site").map(|site| site.to_lowercase()),
        mapping: asked("mapping"),
        outcomes: outcome.into_iter().collect(),
        apps: visit.apps(),
        ..PageFilter::default()
    };
    match of {
        PagesOf::All => {}
        PagesOf::Crawl(app, crawl) => {
            visit.require_app(app)?;
            filter.crawl = Some(CrawlId::new(*app, *crawl));
        }
        PagesOf::Site(site) => filter.site = Some((*site).to_owned()),
        PagesOf::Mapping(mapping) => filter.mapping = Some((*mapping).to_owned()),
    }
    Ok(filter)
}

pub(super) fn page_row(page: &PageRow) -> Value {
    json!({
        "id": page.id,
        "app": page.app_id,
        "crawl": page.crawl_id,
        "url": page.url,
        "site": page.site,
        "depth": page.depth,
        "outcome": page.outcome.as_str(),
        "meaning": page.outcome.meaning(),
        "is_failure": page.outcome.is_failure(),
        "group": words::outcome_group(page.outcome),
        "status_code": page.status_code,
        "mapping": page.mapping,
        "bytes": page.bytes,
        "started_at_ms": page.started_at_ms,
        "elapsed_ms": page.elapsed_ms,
        "attempts": page.attempts,
    })
}
