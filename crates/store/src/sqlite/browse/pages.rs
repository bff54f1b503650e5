//! Lists the pages of the file, the latest stored first.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::indexes::has_index;
use crate::browse::{ListPage, MAX_FIELDS_OF_ROW, PageFilter, PageResult, PageRow, Place};
use crate::crawl::CrawlId;
use crate::sqlite::columns::parse_time;
use crate::sqlite::fault::Fault;
use crate::sqlite::list_pages::read_list_page;

/// The columns of a page in a list. Columns that may be long are left out.
const COLUMNS: &str = "SELECT position, _id, app_id, crawl_id, url, final_url, site, depth, parent,
    outcome, status_code, mapping, content_type, bytes, started_at, elapsed_ms, attempts FROM pages";

const OF_OUTCOME: &str = "SELECT position FROM pages INDEXED BY pages_by_outcome
    WHERE app_id = ?1 AND crawl_id = ?2 AND outcome = ?3 AND position < ?4
    ORDER BY position DESC LIMIT ?5";

const OF_MAPPING: &str = "SELECT position FROM pages INDEXED BY pages_by_mapping
    WHERE app_id = ?1 AND crawl_id = ?2 AND outcome = ?3 AND position < ?4 AND mapping = ?6
    ORDER BY position DESC LIMIT ?5";

const OF_SITE: &str = "INDEXED BY pages_by_site WHERE site = ?1 AND position < ?2
    ORDER BY position DESC";

const ALL: &str = "WHERE position < ?1 ORDER BY position DESC";

pub(super) fn list(
    conn: &Connection,
    filter: &PageFilter,
    from: Option<&Place>,
    wanted: usize,
) -> Result<ListPage<PageRow>, Fault> {
    let before = from.map_or(i64::MAX, |place| place.number(0));
    if let Some(site) = &filter.site
        && has_index(conn, "pages_by_site")?
    {
        let mut select = conn.prepare_cached(&format!("{COLUMNS} {OF_SITE}"))?;
        let rows = select.query(params![site, before])?;
        return read_list_page(rows, wanted, |row| place_and_row(row, filter));
    }
    if let (Some(crawl), None) = (&filter.crawl, &filter.site)
        && has_index(conn, "pages_by_mapping")?
        && has_index(conn, "pages_by_outcome")?
    {
        return list_crawl_pages(conn, crawl, filter, before, wanted);
    }
    let mut select = conn.prepare_cached(&format!("{COLUMNS} {ALL}"))?;
    read_list_page(select.query([before])?, wanted, |row| {
        place_and_row(row, filter)
    })
}

/// Lists pages of a crawl. For each outcome, positions of pages are read in the wanted order; then the first of all of
/// them are returned.
fn list_crawl_pages(
    conn: &Connection,
    crawl: &CrawlId,
    filter: &PageFilter,
    before: i64,
    wanted: usize,
) -> Result<ListPage<PageRow>, Fault> {
    let (app_id, crawl_id) = (&crawl.app_id, &crawl.crawl_id);
    // One position more than wanted shows that the list continues.
    let most = wanted as i64 + 1;
    let mut positions = Vec::new();
    for outcome in filter.wanted_outcomes() {
        let outcome = outcome.as_str();
        let found: Vec<i64> = match &filter.mapping {
            Some(mapping) => conn
                .prepare_cached(OF_MAPPING)?
                .query_map(
                    params![app_id, crawl_id, outcome, before, most, mapping],
                    |row| row.get(0),
                )?
                .collect::<Result<_, _>>()?,
            None => conn
                .prepare_cached(OF_OUTCOME)?
                .query_map(params![app_id, crawl_id, outcome, before, most], |row| {
                    row.get(0)
                })?
                .collect::<Result<_, _>>()?,
        };
        positions.extend(found);
    }
    positions.sort_unstable_by(|one, other| other.cmp(one));
    let goes_on = positions.len() > wanted;
    positions.truncate(wanted);
    read_rows_at_positions(conn, &positions, goes_on, filter)
}

fn read_rows_at_positions(
    conn: &Connection,
    positions: &[i64],
    goes_on: bool,
    filter: &PageFilter,
) -> Result<ListPage<PageRow>, Fault> {
    let mut page = ListPage::end();
    let mut select = conn.prepare_cached(&format!("{COLUMNS} WHERE position = ?1"))?;
    for position in positions {
        let mut rows = select.query([position])?;
        // There is no row if the page was saved again meanwhile, because it then has a new position.
        if let Some(row) = rows.next()? {
            page.rows.extend(place_and_row(row, filter)?.1);
        }
    }
    page.examined = positions.len() as u64;
    page.next = match goes_on {
        true => positions.last().map(place_at),
        false => None,
    };
    Ok(page)
}

fn place_at(position: &i64) -> Place {
    Place::newest_first([position.to_string()])
}

/// The place in the list of a row, and the page in the row if the filter accepts it.
fn place_and_row(row: &Row<'_>, filter: &PageFilter) -> Result<(Place, Option<PageRow>), Fault> {
    let page = page_row_from(row)?;
    Ok((
        place_at(&row.get(0)?),
        filter.matches(&page).then_some(page),
    ))
}

fn page_row_from(row: &Row<'_>) -> Result<PageRow, Fault> {
    let outcome: String = row.get(9)?;
    Ok(PageRow {
        id: row.get(1)?,
        app_id: row.get(2)?,
        crawl_id: row.get(3)?,
        url: row.get(4)?,
        final_url: row.get(5)?,
        site: row.get(6)?,
        depth: row.get(7)?,
        parent: row.get(8)?,
        outcome: outcome.parse().map_err(Fault::InvalidEntry)?,
        status_code: row.get(10)?,
        mapping: row.get(11)?,
        content_type: row.get(12)?,
        bytes: row.get::<_, i64>(13)?.unsigned_abs(),
        started_at_ms: parse_time(&row.get::<_, String>(14)?)?,
        elapsed_ms: row.get::<_, i64>(15)?.unsigned_abs(),
        attempts: row.get(16)?,
    })
}

/// The outcomes and values of the pages with these keys.
pub(super) fn load_page_results(
    conn: &Connection,
    ids: &[String],
) -> Result<Vec<PageResult>, Fault> {
    let sql = format!(
        "SELECT url, outcome, CASE WHEN octet_length(fields) <= {MAX_FIELDS_OF_ROW} THEN fields END
        FROM pages WHERE _id = ?1"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let mut rows = select.query([id])?;
        let Some(row) = rows.next()? else { continue };
        let fields: Option<String> = row.get(2)?;
        let fields = fields.and_then(|fields| serde_json::from_str::<Value>(&fields).ok());
        found.push(PageResult {
            id: id.clone(),
            url: row.get(0)?,
            outcome: row
                .get::<_, String>(1)?
                .parse()
                .map_err(Fault::InvalidEntry)?,
            fields: fields.and_then(|fields| fields.as_object().cloned()),
        });
    }
    Ok(found)
}

/// The content hash of a page, if it has one.
pub(super) fn hash(conn: &Connection, id: &str) -> Result<Option<String>, Fault> {
    let mut select = conn.prepare_cached("SELECT content_hash FROM pages WHERE _id = ?1")?;
    let hash = select.query_row([id], |row| row.get::<_, Option<String>>(0));
    Ok(hash.optional()?.flatten())
}
