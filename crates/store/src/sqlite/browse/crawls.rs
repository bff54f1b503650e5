//! Lists the crawls of the file, and counts the stored data of a crawl.

use rusqlite::{Connection, params};
use webfill_wire::Outcome;

use super::indexes::has_index;
use crate::browse::{Count, CrawlCounts, CrawlFilter, ListPage, Place};
use crate::crawl::{Crawl, CrawlId};
use crate::sqlite::crawls;
use crate::sqlite::fault::Fault;
use crate::sqlite::list_pages::read_list_page;
use crate::timestamp::iso_time;

/// The newest crawls first. An index for this order is created for browsing; without it, SQLite sorts all crawls.
const NEWEST: &str = "WHERE (started_at, _id) < (?1, ?2) ORDER BY started_at DESC, _id DESC";

const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM pages INDEXED BY pages_by_outcome
    WHERE app_id = ?1 AND crawl_id = ?2 AND outcome = ?3 LIMIT ?4)";

pub(super) fn list(
    conn: &Connection,
    filter: &CrawlFilter,
    from: Option<&Place>,
    wanted: usize,
) -> Result<ListPage<Crawl>, Fault> {
    let mut select = conn.prepare_cached(&format!("{} {NEWEST}", crawls::COLUMNS))?;
    // `~` sorts after all times, so a list without a place begins with the newest row.
    let (before, id) = from.map_or(("~", ""), |place| (place.part(0), place.part(1)));
    read_list_page(select.query([before, id])?, wanted, |row| {
        let crawl = crawls::crawl_from(row)?;
        let place = Place::newest_first([iso_time(crawl.started_at_ms), crawl.id.to_string()]);
        Ok((place, filter.matches(&crawl).then_some(crawl)))
    })
}

pub(super) fn crawl_counts(
    conn: &Connection,
    crawl: &CrawlId,
    count_to: u64,
) -> Result<CrawlCounts, Fault> {
    let kept = crawls::record_counts(conn, &crawl.to_string())?;
    let mut outcomes = Vec::new();
    if has_index(conn, "pages_by_outcome")? {
        for outcome in Outcome::ALL {
            let count = count_pages(conn, crawl, *outcome, count_to)?;
            if count.counted > 0 {
                outcomes.push((*outcome, count));
            }
        }
    }
    Ok(CrawlCounts {
        outcomes,
        records: Count::exact(kept.total),
        resolved: Count::exact(kept.resolved),
    })
}

fn count_pages(
    conn: &Connection,
    crawl: &CrawlId,
    outcome: Outcome,
    count_to: u64,
) -> Result<Count, Fault> {
    let most = Count::count_limit(count_to);
    let values = params![crawl.app_id, crawl.crawl_id, outcome.as_str(), most];
    let found: i64 = conn
        .prepare_cached(COUNT)?
        .query_row(values, |row| row.get(0))?;
    Ok(Count::from_found(found.unsigned_abs(), count_to))
}
