//! Lists that continue from page to page: their pages, and the rows that they hold.
//!
//! A record names the lists that hold its row. The table `listed_rows` is an index of these names, for lists that mark
//! missing rows as gone. It is written together with the record.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Sqlite;
use super::columns::{from_json, to_json};
use super::fault::Fault;
use super::records;
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::list::{ListedPage, ListedRows, MarkedGone, PageLack, PageOfList};
use crate::page::{Page, page_id};
use crate::record::{RowLoss, StoredRecord};
use crate::store::StoredLists;
use crate::timestamp::{iso_time, parse_iso_time};

/// How many rows one call of [`mark_gone`] checks at most.
const STEP: u32 = 500;

/// How many redirects in a row are followed between a page of a list and the page that links to it.
const MOST_REDIRECTS: usize = 10;

const COLUMNS: &str =
    "_id, url, parent, final_url, outcome, mapping, records, started_at, rows, list";

/// The data about a page's list, with the URL of the list's first page filled in. That is the first page of the parent
/// page's list, or this page if the parent has no list.
pub(super) fn load_list_of_page(
    conn: &Connection,
    page: &Page,
) -> Result<Option<PageOfList>, Fault> {
    let Some(list) = &page.list else {
        return Ok(None);
    };
    let sql = "SELECT outcome, parent, mapping, list ->> '$.first' FROM pages WHERE _id = ?1";
    let mut find = conn.prepare_cached(sql)?;
    let mut first = page.url.clone();
    let mut parent = page.parent.clone();
    for _ in 0..MOST_REDIRECTS {
        let Some(url) = parent else { break };
        let id = page_id(&page.app_id, &page.crawl_id, &url);
        let columns = |row: &Row<'_>| {
            let outcome: String = row.get(0)?;
            Ok((outcome, row.get(1)?, row.get(2)?, row.get(3)?))
        };
        let found = find.query_row([id], columns).optional()?;
        let Some((outcome, led_from, mapping, known)) = found else {
            break;
        };
        let (mapping, known): (Option<String>, Option<String>) = (mapping, known);
        if outcome != "redirected" {
            if let Some(known) = known.filter(|_| mapping == page.mapping) {
                first = known;
            }
            break;
        }
        parent = led_from;
    }
    Ok(Some(PageOfList {
        first,
        ..list.clone()
    }))
}

/// Notes, in the stored page, that some of its rows have no key. The list of such a page is incomplete.
pub(super) fn mark_rows_without_key(conn: &Connection, page: &Page) -> Result<(), Fault> {
    let sql = "UPDATE pages SET list = json_set(list, '$.lacks', json(?2))
        WHERE _id = ?1 AND list ->> '$.lacks' IS NULL AND (epoch, task, attempts) = (?3, ?4, ?5)";
    conn.prepare_cached(sql)?.execute(params![
        page.id(),
        to_json(&PageLack::RowsWithoutKey)?,
        crate::site_clock::clamp_to_i64(page.delivery.epoch),
        crate::site_clock::clamp_to_i64(page.task),
        page.delivery.number,
    ])?;
    Ok(())
}

/// Updates the index of the lists that hold a row, after the row was seen.
pub(super) fn update_holder_index(
    conn: &Connection,
    key: &str,
    list: Option<&str>,
    before: Option<&StoredRecord>,
    now: &StoredRecord,
) -> Result<(), Fault> {
    if let Some(gone) = before.and_then(StoredRecord::gone_from)
        && now.gone_from().is_none()
    {
        let sql = "DELETE FROM listed_rows WHERE list = ?1 AND record = ?2";
        conn.prepare_cached(sql)?.execute([&gone.list, key])?;
    }
    if let Some(held) = list.and_then(|list| now.list_holder(list)) {
        let sql =
            "INSERT OR REPLACE INTO listed_rows (list, record, since, at) VALUES (?1, ?2, ?3, ?4)";
        conn.prepare_cached(sql)?
            .execute([held.url.as_str(), key, &held.since, &held.at])?;
    }
    Ok(())
}

pub(super) fn first_pages_of_lists(
    conn: &Connection,
    crawl: &CrawlId,
    after: &str,
    limit: u32,
) -> Result<Vec<ListedPage>, Fault> {
    // The keys of a crawl's pages begin with the crawl's id and a slash, and `0` is the character after the slash in
    // ASCII.
    let sql = format!(
        "SELECT {COLUMNS} FROM pages
         WHERE _id > ?1 AND _id < ?2 AND list ->> '$.first' = url ORDER BY _id LIMIT ?3"
    );
    let after = match after {
        "" => format!("{crawl}/"),
        after => after.to_owned(),
    };
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![after, format!("{crawl}0"), limit])?;
    let mut pages = Vec::new();
    while let Some(row) = rows.next()? {
        pages.push(listed_page_from(row)?);
    }
    Ok(pages)
}

pub(super) fn listed_pages(conn: &Connection, ids: &[String]) -> Result<Vec<ListedPage>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM pages WHERE _id = ?1");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut pages = Vec::with_capacity(ids.len());
    for id in ids {
        let mut rows = statement.query([id])?;
        if let Some(row) = rows.next()? {
            pages.push(listed_page_from(row)?);
        }
    }
    Ok(pages)
}

fn listed_page_from(row: &Row<'_>) -> Result<ListedPage, Fault> {
    let started_at: String = row.get(7)?;
    let list: Option<String> = row.get(9)?;
    let url: String = row.get(1)?;
    Ok(ListedPage {
        id: row.get(0)?,
        parent: row.get(2)?,
        final_url: row.get(3)?,
        outcome: row.get(4)?,
        mapping: row.get(5)?,
        records: from_json(row, 6)?,
        started_at_ms: parse_iso_time(&started_at)
            .ok_or_else(|| Fault::InvalidEntry(format!("page {url} started at no time")))?,
        rows: row.get::<_, Option<i64>>(8)?.unwrap_or(0).unsigned_abs(),
        list: match list {
            Some(_) => Some(from_json(row, 9)?),
            None => None,
        },
        url,
    })
}

/// The range of the keys of a dataset's records, which begin with its name and a slash. `0` is the character after the
/// slash in ASCII.
fn record_key_range(dataset: &str) -> (String, String) {
    (format!("{dataset}/"), format!("{dataset}0"))
}

pub(super) fn count_listed_rows(
    conn: &Connection,
    list: &str,
    dataset: &str,
    began_ms: i64,
) -> Result<ListedRows, Fault> {
    let sql = "SELECT
            count(*) FILTER (WHERE gone = 0 AND since < ?4),
            count(*) FILTER (WHERE gone = 0 AND at < ?4),
            count(*) FILTER (WHERE gone = 0 AND at >= ?4),
            count(*) FILTER (WHERE gone = 1),
            count(*) FILTER (WHERE gone = 1 AND at = ?4)
        FROM listed_rows WHERE list = ?1 AND record >= ?2 AND record < ?3";
    let (from, to) = record_key_range(dataset);
    let mut count = conn.prepare_cached(sql)?;
    let counted = count.query_row(params![list, from, to, iso_time(began_ms)], |row| {
        let number = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(ListedRows {
            held: number(0)?,
            unseen: number(1)?,
            seen: number(2)?,
            gone: number(3)?,
            newly_gone: number(4)?,
        })
    });
    Ok(counted?)
}

pub(super) fn mark_gone(
    conn: &Connection,
    list: &str,
    dataset: &str,
    began_ms: i64,
    after: &str,
) -> Result<MarkedGone, Fault> {
    let began = iso_time(began_ms);
    let (from, to) = record_key_range(dataset);
    let sql = "SELECT record FROM listed_rows
        WHERE list = ?1 AND record > ?2 AND record < ?3 AND gone = 0 AND at < ?4
        ORDER BY record LIMIT ?5";
    let after = after.max(from.as_str());
    let keys: Vec<String> = conn
        .prepare_cached(sql)?
        .query_map(params![list, after, to, began, STEP], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut marked = MarkedGone {
        after: (keys.len() == STEP as usize).then(|| keys[keys.len() - 1].clone()),
        ..MarkedGone::default()
    };
    for key in keys {
        match records::note_row_missing_from_list(conn, &key, list, began_ms)? {
            RowLoss::Nothing => {}
            RowLoss::List => {
                let sql = "DELETE FROM listed_rows WHERE list = ?1 AND record = ?2";
                conn.prepare_cached(sql)?.execute([list, &key])?;
            }
            RowLoss::Row => {
                let sql =
                    "UPDATE listed_rows SET gone = 1, at = ?3 WHERE list = ?1 AND record = ?2";
                conn.prepare_cached(sql)?.execute([list, &key, &began])?;
                marked.gone.push(key);
            }
        }
    }
    Ok(marked)
}

#[async_trait]
impl StoredLists for Sqlite {
    async fn first_pages(
        &self,
        crawl: &CrawlId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ListedPage>, StoreError> {
        let (crawl, after) = (crawl.clone(), after.to_owned());
        self.read(move |conn| first_pages_of_lists(conn, &crawl, &after, limit))
            .await
    }

    async fn listed_pages(&self, ids: Vec<String>) -> Result<Vec<ListedPage>, StoreError> {
        self.read(move |conn| listed_pages(conn, &ids)).await
    }

    async fn listed_rows(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
    ) -> Result<ListedRows, StoreError> {
        let (list, dataset) = (list.to_owned(), dataset.to_owned());
        self.read(move |conn| count_listed_rows(conn, &list, &dataset, began_ms))
            .await
    }

    /// Marks one step's rows in one transaction.
    async fn mark_gone(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
        after: &str,
    ) -> Result<MarkedGone, StoreError> {
        let (list, dataset, after) = (list.to_owned(), dataset.to_owned(), after.to_owned());
        let mark = move |conn: &_| mark_gone(conn, &list, &dataset, began_ms, &after);
        self.write(mark).await
    }
}
