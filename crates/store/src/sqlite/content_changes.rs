//! The tables `page_changes`, `versions` and `judged`.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params, params_from_iter};
use serde_json::Value;

use super::Sqlite;
use super::columns::{parse_time, to_json};
use super::fault::Fault;
use super::list_pages::read_list_page;
use crate::browse::{ChangeListFilter, ListPage, Place};
use crate::change::{
    Change, ChangeFilter, ChangeKind, ComparedPosition, Comparison, KnownVersions,
};
use crate::crawl::CrawlId;
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::site_clock::clamp_to_i64;
use crate::store::ContentChanges;
use crate::timestamp::iso_time;

const PUT_VERSIONS: &str =
    "INSERT OR REPLACE INTO versions (_id, checked_at, state) VALUES (?1, ?2, ?3)";

const PUT_CHANGE: &str = "
INSERT INTO page_changes
    (number, app_id, crawl_id, url, page, site, kind, at, mapping, old, new, difference)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

const CHANGES: &str = "
SELECT number, app_id, crawl_id, url, page, site, kind, at, mapping, old, new, difference FROM page_changes";

pub(super) fn load_compared_position(conn: &Connection) -> Result<ComparedPosition, Fault> {
    let mut statement = conn.prepare_cached("SELECT revision, cursor, last_number FROM judged")?;
    let mut rows = statement.query(())?;
    let Some(row) = rows.next()? else {
        return Ok(ComparedPosition::default());
    };
    Ok(ComparedPosition {
        revision: row.get::<_, i64>(0)?.unsigned_abs(),
        cursor: parse_cursor(&row.get::<_, String>(1)?)?,
        last_number: row.get::<_, i64>(2)?.unsigned_abs(),
    })
}

fn parse_cursor(text: &str) -> Result<Cursor, Fault> {
    text.parse()
        .map_err(|error| Fault::InvalidEntry(format!("a stored cursor: {error}")))
}

pub(super) fn versions(conn: &Connection, ids: &[String]) -> Result<Vec<KnownVersions>, Fault> {
    let sql = "SELECT _id, checked_at, state FROM versions WHERE _id = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut found = Vec::new();
    for id in ids {
        let mut rows = statement.query([id])?;
        if let Some(row) = rows.next()? {
            found.push(KnownVersions {
                id: row.get(0)?,
                checked_at_ms: parse_time(&row.get::<_, String>(1)?)?,
                state: row.get(2)?,
            });
        }
    }
    Ok(found)
}

pub(super) fn ids_with_versions(
    conn: &Connection,
    ids: Vec<String>,
) -> Result<HashSet<String>, Fault> {
    let mut statement = conn.prepare_cached("SELECT 1 FROM versions WHERE _id = ?1")?;
    let mut found = HashSet::new();
    for id in ids {
        if statement.exists([&id])? {
            found.insert(id);
        }
    }
    Ok(found)
}

/// Stores the results of a comparison. Returns false unless they directly follow the last stored results, or are those.
pub(super) fn append_comparison(conn: &Connection, judgement: &Comparison) -> Result<bool, Fault> {
    let to = &judgement.to;
    let stored = load_compared_position(conn)?.revision;
    if stored + 1 != to.revision {
        let sql = "SELECT 1 FROM judged WHERE revision = ?1 AND writer = ?2";
        let of_writer = params![clamp_to_i64(to.revision), judgement.writer];
        return Ok(conn.prepare_cached(sql)?.exists(of_writer)?);
    }
    let mut put = conn.prepare_cached(PUT_VERSIONS)?;
    for one in &judgement.versions {
        put.execute(params![one.id, iso_time(one.checked_at_ms), one.state])?;
    }
    for change in &judgement.changes {
        insert_change(conn, change)?;
    }
    conn.prepare_cached("DELETE FROM judged")?.execute(())?;
    let sql = "INSERT INTO judged (revision, writer, cursor, last_number) VALUES (?1, ?2, ?3, ?4)";
    conn.prepare_cached(sql)?.execute(params![
        clamp_to_i64(to.revision),
        judgement.writer,
        to.cursor.to_string(),
        clamp_to_i64(to.last_number),
    ])?;
    Ok(true)
}

fn insert_change(conn: &Connection, change: &Change) -> Result<(), Fault> {
    conn.prepare_cached(PUT_CHANGE)?.execute(params![
        clamp_to_i64(change.number),
        change.app_id,
        change.crawl_id,
        change.url,
        change.page_id,
        change.site,
        change.kind.as_str(),
        iso_time(change.at_ms),
        change.mapping,
        change.old.as_ref().map(to_json).transpose()?,
        change.new.as_ref().map(to_json).transpose()?,
        change.difference,
    ])?;
    Ok(())
}

pub(super) fn read(
    conn: &Connection,
    filter: &ChangeFilter,
    after: u64,
    limit: u32,
) -> Result<Vec<Change>, Fault> {
    let (which, values) = condition_sql(filter, after);
    let sql = format!("{CHANGES} {which} ORDER BY number LIMIT {limit}");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        changes.push(change_from_row(row)?);
    }
    Ok(changes)
}

/// Lists changes, the latest first.
pub(super) fn list(
    conn: &Connection,
    filter: &ChangeListFilter,
    from: Option<&Place>,
    wanted: usize,
) -> Result<ListPage<Change>, Fault> {
    let before = from.map_or(i64::MAX, |place| place.number(0));
    let read = |row: &Row<'_>| {
        let change = change_from_row(row)?;
        let place = Place::newest_first([change.number.to_string()]);
        Ok((place, filter.matches(&change).then_some(change)))
    };
    let Some(crawl) = &filter.crawl else {
        let sql = format!("{CHANGES} WHERE number < ?1 ORDER BY number DESC");
        return read_list_page(conn.prepare_cached(&sql)?.query([before])?, wanted, read);
    };
    let sql = format!(
        "{CHANGES} INDEXED BY changes_by_crawl WHERE app_id = ?1 AND crawl_id = ?2 AND number < ?3
        ORDER BY number DESC"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query(params![crawl.app_id, crawl.crawl_id, before])?;
    read_list_page(rows, wanted, read)
}

pub(super) fn count(
    conn: &Connection,
    filter: &ChangeFilter,
) -> Result<BTreeMap<ChangeKind, u64>, Fault> {
    let (which, values) = condition_sql(filter, 0);
    let sql = format!("SELECT kind, count(*) FROM page_changes {which} GROUP BY kind");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut counts = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let count = row.get::<_, i64>(1)?.unsigned_abs();
        counts.insert(parse_kind(&row.get::<_, String>(0)?)?, count);
    }
    Ok(counts)
}

const DOCUMENTS_OF_FIRST_RUN: &str = "SELECT count(*) FROM pages
WHERE app_id = ?1 AND crawl_id = ?2 AND started_at >= ?3 AND document IS NOT NULL";

const NEW_DOCUMENTS: &str = "SELECT count(*) FROM page_changes
JOIN pages ON pages._id = page_changes.page
WHERE page_changes.app_id = ?1 AND page_changes.crawl_id = ?2 AND page_changes.at >= ?3
  AND page_changes.kind = 'new' AND pages.document IS NOT NULL";

pub(super) fn count_new_documents(
    conn: &Connection,
    crawl: &CrawlId,
    began_ms: i64,
    is_first: bool,
) -> Result<u64, Fault> {
    let sql = match is_first {
        true => DOCUMENTS_OF_FIRST_RUN,
        false => NEW_DOCUMENTS,
    };
    let values = params![crawl.app_id, crawl.crawl_id, iso_time(began_ms)];
    let mut select = conn.prepare_cached(sql)?;
    let count: i64 = select.query_row(values, |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// The SQL condition for a filter. It has only the requested parts, so that an index can be used.
fn condition_sql(filter: &ChangeFilter, after: u64) -> (String, Vec<Sql>) {
    let mut conditions = String::from("WHERE number > ?");
    let mut values = vec![Sql::Integer(clamp_to_i64(after))];
    let since = filter.since_ms.map(iso_time);
    for (condition, value) in [
        (" AND app_id = ?", &filter.app_id),
        (" AND crawl_id = ?", &filter.crawl_id),
        (" AND at >= ?", &since),
    ] {
        if let Some(value) = value {
            conditions.push_str(condition);
            values.push(Sql::Text(value.clone()));
        }
    }
    (conditions, values)
}

fn parse_kind(name: &str) -> Result<ChangeKind, Fault> {
    let none = || Fault::InvalidEntry(format!("`{name}` is no kind of change"));
    ChangeKind::from_name(name).ok_or_else(none)
}

fn change_from_row(row: &Row<'_>) -> Result<Change, Fault> {
    let value = |column| -> Result<Option<Value>, Fault> {
        let text: Option<String> = row.get(column)?;
        let broken = |error| Fault::InvalidEntry(format!("a stored change: {error}"));
        text.map(|text| serde_json::from_str(&text).map_err(broken))
            .transpose()
    };
    Ok(Change {
        number: row.get::<_, i64>(0)?.unsigned_abs(),
        app_id: row.get(1)?,
        crawl_id: row.get(2)?,
        url: row.get(3)?,
        page_id: row.get(4)?,
        site: row.get(5)?,
        kind: parse_kind(&row.get::<_, String>(6)?)?,
        at_ms: parse_time(&row.get::<_, String>(7)?)?,
        mapping: row.get(8)?,
        old: value(9)?,
        new: value(10)?,
        difference: row.get(11)?,
    })
}

#[async_trait]
impl ContentChanges for Sqlite {
    async fn load_compared_position(&self) -> Result<ComparedPosition, StoreError> {
        self.read(load_compared_position).await
    }

    async fn versions(&self, ids: Vec<String>) -> Result<Vec<KnownVersions>, StoreError> {
        self.read(move |conn| versions(conn, &ids)).await
    }

    async fn with_versions(&self, ids: Vec<String>) -> Result<HashSet<String>, StoreError> {
        self.read(move |conn| ids_with_versions(conn, ids)).await
    }

    /// Stores the results of a comparison in one transaction.
    async fn put_judgement(&self, judgement: Comparison) -> Result<bool, StoreError> {
        self.write(move |conn| append_comparison(conn, &judgement))
            .await
    }

    async fn content_changes(
        &self,
        filter: &ChangeFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError> {
        let filter = filter.clone();
        self.read(move |conn| read(conn, &filter, after, limit))
            .await
    }

    async fn count_content_changes(
        &self,
        filter: &ChangeFilter,
    ) -> Result<BTreeMap<ChangeKind, u64>, StoreError> {
        let filter = filter.clone();
        self.read(move |conn| count(conn, &filter)).await
    }

    async fn count_new_documents(
        &self,
        crawl: &CrawlId,
        began_ms: i64,
        is_first: bool,
    ) -> Result<u64, StoreError> {
        let crawl = crawl.clone();
        let count = move |conn: &_| count_new_documents(conn, &crawl, began_ms, is_first);
        self.read(count).await
    }
}
