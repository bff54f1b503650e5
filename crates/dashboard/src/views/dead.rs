//! The dead links of a crawl as a list and as a file: URLs whose page or host no longer exists.

use hyper::header::{CACHE_CONTROL, CONTENT_DISPOSITION, HeaderValue};
use serde_json::json;
use webfill_store::{CrawlId, ListPage, PageFilter, PageRow, Place, iso_time};
use webfill_table::escape_formula;
use webfill_wire::Outcome;

use super::pages::page_row;
use super::reading::{List, ROWS, open_store, parse_cursor, with_time_limit};
use crate::answer::{Problem, Shown, with_content_type, with_header};
use crate::visit::Visit;

/// How many rows the file has at most, and how many rows are read at a time.
const MOST_ROWS: usize = 100_000;
const PAGE_ROWS: u32 = 1_000;

/// How many failed pages are checked for the file. The visitor waits while it is made.
const MOST_EXAMINED: u64 = 1_000_000;

pub(crate) async fn show(visit: &Visit, app: &str, crawl: &str) -> Shown {
    let list_page = load_dead_links(visit, app, crawl, parse_cursor(visit)?.as_ref(), ROWS).await?;
    let content =
        json!({"app": app, "crawl": crawl, "list": List::from_store(visit, &list_page, page_row)});
    visit.render_page(
        "dead.html",
        &format!("Dead links of crawl {crawl}"),
        content,
    )
}

/// Loads one page of the list of failed pages, and keeps only the dead links in it.
async fn load_dead_links(
    visit: &Visit,
    app: &str,
    crawl: &str,
    from: Option<&Place>,
    limit: u32,
) -> Result<ListPage<PageRow>, Problem> {
    visit.require_app(app)?;
    let filter = PageFilter {
        crawl: Some(CrawlId::new(app, crawl)),
        outcomes: vec![Outcome::HttpError, Outcome::DnsError],
        ..PageFilter::default()
    };
    let store = open_store(visit).await?;
    let mut list_page = with_time_limit(store.browse.pages(&filter, from, limit)).await?;
    list_page.rows.retain(is_dead);
    Ok(list_page)
}

fn is_dead(page: &PageRow) -> bool {
    page.outcome == Outcome::DnsError || matches!(page.status_code, Some(404 | 410))
}

pub(crate) async fn download(visit: &Visit, app: &str, crawl: &str) -> Shown {
    let mut text = String::from("url,outcome,status_code,site,found_on,fetched_at\r\n");
    let (mut rows, mut examined, mut from) = (0, 0, None);
    loop {
        let list_page = load_dead_links(visit, app, crawl, from.as_ref(), PAGE_ROWS).await?;
        rows += list_page.rows.len();
        examined += list_page.examined;
        for page in &list_page.rows {
            text += &csv_line(page);
        }
        from = list_page.next;
        if from.is_none() {
            break;
        }
        if rows >= MOST_ROWS || examined >= MOST_EXAMINED {
            text += &format!("\"Not complete: {examined} failed pages were examined\",,,,,\r\n");
            break;
        }
    }
    let kind = HeaderValue::from_static("text/csv; charset=utf-8");
    let answer = with_content_type(200, kind, text.into_bytes());
    let answer = with_header(answer, CACHE_CONTROL, "no-store");
    let name = "attachment; filename=\"dead-links.csv\"";
    Ok(with_header(answer, CONTENT_DISPOSITION, name))
}

fn csv_line(page: &PageRow) -> String {
    let status = page.status_code.map(|code| code.to_string());
    let cells = [
        page.url.as_str(),
        page.outcome.as_str(),
        status.as_deref().unwrap_or_default(),
        &page.site,
        page.parent.as_deref().unwrap_or_default(),
        &iso_time(page.started_at_ms),
    ];
    let quoted = cells.map(|cell| format!("\"{}\"", escape_formula(cell).replace('"', "\"\"")));
    quoted.join(",") + "\r\n"
}
