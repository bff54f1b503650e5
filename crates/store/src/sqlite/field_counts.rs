//! Counts the values that a crawl has found.

use rusqlite::{Connection, Row, params};

use super::columns::from_json;
use super::fault::Fault;
use crate::crawl::CrawlId;
use crate::field_counts::FieldCounts;
use crate::row_counts::RowCounts;

/// The pages of a crawl by mapping. Their keys begin with the crawl's id and a slash, and `0` is the character after
/// the slash in ASCII. Sitemaps are left out, because mappings are not meant to match them.
const PAGES: &str = "SELECT mapping, count(*) FROM pages
    WHERE _id > ?1 || '/' AND _id < ?1 || '0' AND outcome IN ('ok', 'not_modified')
        AND (mapping NOT NULL OR document IS NULL OR document ->> 'type' <> 'sitemap')
    GROUP BY mapping";

const FILLED: &str = "SELECT mapping, field.key, count(*)
    FROM pages, json_each(pages.fields) AS field
    WHERE _id > ?1 || '/' AND _id < ?1 || '0' AND outcome IN ('ok', 'not_modified') AND mapping NOT NULL
        AND field.type <> 'null'
    GROUP BY mapping, field.key";

/// Counts the fields whose text is ambiguous, which have the number 0 in [`crate::Page::alternatives`].
const UNDECIDED: &str = "SELECT mapping, field.key, count(*)
    FROM pages, json_each(pages.alternatives) AS field
    WHERE _id > ?1 || '/' AND _id < ?1 || '0' AND outcome IN ('ok', 'not_modified') AND mapping NOT NULL
        AND alternatives NOT NULL AND field.value = 0
    GROUP BY mapping, field.key";

/// Reads counts of rows. They are grouped, because many pages of a list have the same counts.
const ROWS: &str = "SELECT mapping, row_counts, count(*) FROM pages
    WHERE _id > ?1 || '/' AND _id < ?1 || '0' AND outcome IN ('ok', 'not_modified') AND mapping NOT NULL
        AND row_counts NOT NULL
    GROUP BY mapping, row_counts";

const MISSING: &str = "SELECT field.value, count(*)
    FROM crawl_records JOIN records ON records._id = record, json_each(records.missing) AS field
    WHERE crawl = (SELECT key FROM crawls WHERE _id = ?1) AND resolved_at IS NULL
    GROUP BY field.value";

const RESOLVED: &str = "SELECT field.key, count(*)
    FROM crawl_records JOIN records ON records._id = record, json_each(records.sources) AS field
    WHERE crawl = (SELECT key FROM crawls WHERE _id = ?1)
        AND NOT EXISTS (SELECT 1 FROM json_each(records.missing) WHERE value = field.key)
    GROUP BY field.key";

const DOUBTS: &str = "SELECT doubts FROM crawl_records JOIN records ON records._id = record
    WHERE crawl = (SELECT key FROM crawls WHERE _id = ?1) AND doubts <> '{}'";

/// The last crawl of the same application that began before the given crawl.
const BEFORE: &str = "SELECT crawl_id FROM crawls
    WHERE app_id = ?1 AND crawl_id <> ?2
        AND started_at <= (SELECT started_at FROM crawls WHERE app_id = ?1 AND crawl_id = ?2)
    ORDER BY started_at DESC, key DESC LIMIT 1";

pub(super) fn count(conn: &Connection, crawl: &str) -> Result<FieldCounts, Fault> {
    let mut counts = FieldCounts::default();
    let number = |row: &Row<'_>, column| Ok::<_, Fault>(row.get::<_, i64>(column)?.unsigned_abs());
    let mut pages = conn.prepare_cached(PAGES)?;
    let mut rows = pages.query([crawl])?;
    while let Some(row) = rows.next()? {
        counts.add_pages(row.get(0)?, number(row, 1)?);
    }
    let mut filled = conn.prepare_cached(FILLED)?;
    let mut rows = filled.query([crawl])?;
    while let Some(row) = rows.next()? {
        let mapping: String = row.get(0)?;
        counts.add_filled(&mapping, row.get(1)?, number(row, 2)?);
    }
    let mut undecided = conn.prepare_cached(UNDECIDED)?;
    let mut rows = undecided.query([crawl])?;
    while let Some(row) = rows.next()? {
        let mapping: String = row.get(0)?;
        counts.add_undecided(&mapping, row.get(1)?, number(row, 2)?);
    }
    let mut of_rows = conn.prepare_cached(ROWS)?;
    let mut rows = of_rows.query([crawl])?;
    while let Some(row) = rows.next()? {
        let mapping: String = row.get(0)?;
        let listed: Vec<RowCounts> = from_json(row, 1)?;
        counts.add_rows(&mapping, &listed, number(row, 2)?);
    }
    for (sql, by_field) in [
        (RESOLVED, &mut counts.resolved),
        (MISSING, &mut counts.missing),
    ] {
        let mut records = conn.prepare_cached(sql)?;
        let mut rows = records.query([crawl])?;
        while let Some(row) = rows.next()? {
            by_field.insert(row.get(0)?, number(row, 1)?);
        }
    }
    let mut doubts = conn.prepare_cached(DOUBTS)?;
    let mut rows = doubts.query([crawl])?;
    while let Some(row) = rows.next()? {
        counts.add_doubts(&from_json(row, 0)?);
    }
    Ok(counts)
}

pub(super) fn crawl_before(conn: &Connection, crawl: &CrawlId) -> Result<Option<CrawlId>, Fault> {
    let mut before = conn.prepare_cached(BEFORE)?;
    let mut rows = before.query(params![crawl.app_id, crawl.crawl_id])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(CrawlId::new(&crawl.app_id, row.get::<_, String>(0)?)))
}
