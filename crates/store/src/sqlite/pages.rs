//! The table `pages`: pages are saved. Saved and applied pages fill records.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value, json};
use webfill_wire::FailedAttempt;

use super::Sqlite;
use super::columns::{from_json, to_json};
use super::fault::Fault;
use super::lists;
use super::records;
use super::rows;
use super::samples;
use super::validators;
use crate::error::StoreError;
use crate::list::PageOfList;
use crate::page::{MAX_ENTRY_BYTES, Page};
use crate::record::{FillRules, Leads, MappingRules, PageValues, RecordState};
use crate::row_counts::{RowCounts, rows_of};
use crate::row_page::RowPage;
use crate::sample::Sample;
use crate::site_clock::clamp_to_i64;
use crate::store::{Applied, ApplyPage, Pages, Save, SavePace, Saved};
use crate::timestamp::{iso_time, parse_iso_time};
use crate::validators::KnownPage;

const UPSERT: &str = "
INSERT INTO pages (_id, app_id, crawl_id, url, final_url, site, depth, parent, outcome,
    status_code, mapping, content_type, bytes, content_hash, started_at, elapsed_ms, attempts,
    worker, attrs, fields, links, tries, headers, body, epoch, task, mapping_version,
    template, records, document, validators, snapshot, alternatives, rows, list, row_counts, position)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36,
    (SELECT 1 + max(deleted, coalesce((SELECT max(position) FROM pages), 0)) FROM changes))
ON CONFLICT (_id) DO UPDATE SET
    app_id = excluded.app_id, crawl_id = excluded.crawl_id, url = excluded.url,
    final_url = excluded.final_url, site = excluded.site, depth = excluded.depth,
    parent = excluded.parent, outcome = excluded.outcome, status_code = excluded.status_code,
    mapping = excluded.mapping, content_type = excluded.content_type, bytes = excluded.bytes,
    content_hash = excluded.content_hash, started_at = excluded.started_at,
    elapsed_ms = excluded.elapsed_ms, attempts = excluded.attempts, worker = excluded.worker,
    attrs = excluded.attrs, fields = excluded.fields, links = excluded.links,
    tries = excluded.tries, headers = excluded.headers, body = excluded.body,
    epoch = excluded.epoch, task = excluded.task, mapping_version = excluded.mapping_version,
    template = excluded.template, records = excluded.records, document = excluded.document,
    validators = excluded.validators, snapshot = excluded.snapshot,
    alternatives = excluded.alternatives, rows = excluded.rows, list = excluded.list,
    row_counts = excluded.row_counts,
    position = CASE
        -- The same save, repeated.
        WHEN (excluded.epoch, excluded.task, excluded.attempts, excluded.started_at, excluded.outcome)
            = (pages.epoch, pages.task, pages.attempts, pages.started_at, pages.outcome)
            THEN pages.position
        ELSE excluded.position END
WHERE (excluded.epoch, excluded.task, excluded.attempts, excluded.started_at)
    >= (pages.epoch, pages.task, pages.attempts, pages.started_at)";

/// The name of a save in error messages.
pub(super) fn describe_save(save: &Save) -> String {
    format!("page {}", save.page.url)
}

/// Stores a page, unless a later version of it is already stored, and fills its records.
pub(super) fn save(conn: &Connection, save: &Save, rules: &FillRules) -> Result<Saved, Fault> {
    let list = lists::load_list_of_page(conn, &save.page)?;
    upsert(conn, &save.page, save.first_records(), list.as_ref())?;
    if let Some(sample) = Sample::from_page(&save.page) {
        samples::put(conn, &sample)?;
    }
    let leads = match save.records.is_empty() {
        true => Leads::default(),
        false => rules.find_leads(
            &save.page.url,
            save.page.mapping.as_deref(),
            &save.page.links,
        ),
    };
    let mut values = save.page.values(&leads);
    // If the page was fetched for a single record, that record's own URLs are checked when it is filled.
    values.is_of_other =
        save.records.len() > 1 && records::is_url_of_any(conn, &save.records, values.url)?;
    let mut saved = Saved::default();
    for record in &save.records {
        match records::fill(conn, record, &values, rules)? {
            RecordState::Resolved => saved.resolved.push(record.clone()),
            RecordState::Open => saved.open.push(record.clone()),
        }
    }
    let page = RowPage {
        list: list.map(|list| list.first),
        ..save.into()
    };
    let put = rows::put_rows(conn, &page, rules)?;
    if put.without_key > 0 {
        lists::mark_rows_without_key(conn, &save.page)?;
    }
    saved.leads = put.leads;
    Ok(saved)
}

/// Replaces a page that the same delivery has stored and that turned out to be a block page. The values of the replaced
/// page are taken back.
pub(super) fn retract(conn: &Connection, save: &Save, rules: &FillRules) -> Result<Saved, Fault> {
    let page = &save.page;
    let sql = "SELECT started_at FROM pages
        WHERE _id = ?1 AND epoch = ?2 AND task = ?3 AND attempts = ?4";
    let (delivery, task) = (page.delivery, clamp_to_i64(page.task));
    let values = params![
        page.id(),
        clamp_to_i64(delivery.epoch),
        task,
        delivery.number
    ];
    let started_at: Option<String> = conn
        .prepare_cached(sql)?
        .query_row(values, |row| row.get(0))
        .optional()?;
    if let Some(started_at) = started_at {
        let fetch = (page.url.as_str(), started_at.as_str());
        for record in &save.records {
            records::retract(conn, record, fetch, rules, page.started_at_ms)?;
        }
    }
    self::save(conn, save, rules)
}

fn upsert(
    conn: &Connection,
    page: &Page,
    records: &[String],
    list: Option<&PageOfList>,
) -> Result<(), Fault> {
    let fields = to_json(&page.fields)?;
    let links = to_json(&page.links)?;
    let attrs = page.attrs.as_ref().map(to_json).transpose()?;
    let headers = page.headers.as_ref().map(to_json).transpose()?;
    let document = page.document.as_ref().map(to_json).transpose()?;
    let validators = page.validators.as_ref().map(to_json).transpose()?;
    let alternatives = alternatives_to_json(&page.alternatives)?;
    let list = list.map(to_json).transpose()?;
    let row_counts = row_counts_to_json(&page.row_counts)?;
    let body = page.body.as_deref();
    check_size(
        page,
        [
            Some(fields.as_str()),
            Some(links.as_str()),
            attrs.as_deref(),
            headers.as_deref(),
            document.as_deref(),
            alternatives.as_deref(),
            list.as_deref(),
            row_counts.as_deref(),
            body,
        ],
    )?;
    conn.prepare_cached(UPSERT)?.execute(params![
        page.id(),
        page.app_id,
        page.crawl_id,
        page.url,
        page.final_url,
        page.site,
        page.depth,
        page.parent,
        page.outcome.as_str(),
        page.status_code,
        page.mapping,
        page.content_type,
        clamp_to_i64(page.bytes),
        page.content_hash,
        iso_time(page.started_at_ms),
        clamp_to_i64(page.elapsed_ms),
        page.delivery.number,
        page.worker,
        attrs,
        fields,
        links,
        to_json(
            &page
                .failed_attempts
                .iter()
                .map(failed_attempt_json)
                .collect::<Vec<_>>()
        )?,
        headers,
        body,
        clamp_to_i64(page.delivery.epoch),
        clamp_to_i64(page.task),
        page.mapping_version,
        page.template,
        to_json(&records)?,
        document,
        validators,
        page.snapshot,
        alternatives,
        rows_of(&page.row_counts),
        list,
        row_counts,
    ])?;
    Ok(())
}

/// Refuses a page whose fields and other texts are too large to be stored.
fn check_size<'t>(
    page: &Page,
    texts: impl IntoIterator<Item = Option<&'t str>>,
) -> Result<(), Fault> {
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    let bytes = page.url.len() + texts + page.snapshot.as_ref().map_or(0, Vec::len);
    match bytes > MAX_ENTRY_BYTES {
        true => Err(Fault::InvalidEntry(format!(
            "the page takes {bytes} bytes, more than the limit of {MAX_ENTRY_BYTES}"
        ))),
        false => Ok(()),
    }
}

/// The alternatives as JSON; `None` if there are none.
pub(super) fn alternatives_to_json(of: &Map<String, Value>) -> Result<Option<String>, Fault> {
    (!of.is_empty()).then(|| to_json(&of)).transpose()
}

/// The counts of rows as JSON; `None` if the page's mapping has no rows.
pub(super) fn row_counts_to_json(of: &[RowCounts]) -> Result<Option<String>, Fault> {
    (!of.is_empty()).then(|| to_json(&of)).transpose()
}

fn failed_attempt_json(one: &FailedAttempt) -> Value {
    json!({
        "ended_at": iso_time(one.ended_at_ms),
        "outcome": one.outcome.as_str(),
        "status_code": one.status_code,
    })
}

/// Fills a record from a stored page that was fetched for other records.
pub(super) fn apply_to_record(
    conn: &Connection,
    apply: &ApplyPage,
    rules: &FillRules,
) -> Result<Option<Applied>, Fault> {
    let Some(page) = load(conn, &apply.page_id)? else {
        return Ok(None);
    };
    let leads = rules.find_leads(&page.url, page.mapping.as_deref(), &page.links);
    let values = PageValues {
        fields: &page.fields,
        url: &page.url,
        mapping: page.mapping.as_deref(),
        started_at_ms: page.started_at_ms,
        ended_at_ms: page.started_at_ms.saturating_add(page.elapsed_ms),
        depth: Some(page.depth),
        leads: &leads,
        is_reread: false,
        is_of_other: records::is_url_of_any(conn, &page.records, &page.url)?,
    };
    let state = records::fill(conn, &apply.record, &values, rules)?;
    Ok(Some(Applied {
        state,
        links: page.links,
    }))
}

/// The columns of a stored page that are needed to fill records.
struct StoredPage {
    url: String,
    mapping: Option<String>,
    started_at_ms: i64,
    elapsed_ms: i64,
    fields: Map<String, Value>,
    links: Vec<String>,
    depth: u16,
    records: Vec<String>,
}

fn load(conn: &Connection, page_id: &str) -> Result<Option<StoredPage>, Fault> {
    let sql = "SELECT url, mapping, started_at, elapsed_ms, fields, links, depth, records FROM pages WHERE _id = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([page_id])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let started_at: String = row.get(2)?;
    Ok(Some(StoredPage {
        url: row.get(0)?,
        mapping: row.get(1)?,
        started_at_ms: parse_iso_time(&started_at)
            .ok_or_else(|| Fault::InvalidEntry(format!("page {page_id} started at no time")))?,
        elapsed_ms: row.get(3)?,
        fields: from_json(row, 4)?,
        links: from_json(row, 5)?,
        depth: row.get(6)?,
        records: from_json(row, 7)?,
    }))
}

#[async_trait]
impl Pages for Sqlite {
    /// Batches are small: commits are cheap, and a long transaction blocks the other writers.
    fn save_pace(&self, _processes: u16) -> SavePace {
        SavePace {
            max_entries: 128,
            max_age: Duration::from_millis(20),
        }
    }

    fn set_mapping_rules(&self, mappings: Arc<dyn MappingRules>) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *rules = Arc::new(FillRules::from_mappings(mappings));
    }

    /// Saves all pages in one transaction.
    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let rules = self.rules();
        let save = move |conn: &_, one: &_| save(conn, one, &rules);
        self.write_each(saves, describe_save, save).await
    }

    /// Takes back all pages in one transaction.
    async fn take_back(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let rules = self.rules();
        let take_back = move |conn: &_, one: &_| retract(conn, one, &rules);
        self.write_each(saves, describe_save, take_back).await
    }

    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError> {
        let rules = self.rules();
        self.write(move |conn| {
            let apply = |one| apply_to_record(conn, one, &rules);
            applies.iter().map(apply).collect()
        })
        .await
    }

    async fn known_pages(&self, ids: Vec<String>) -> Result<Vec<KnownPage>, StoreError> {
        self.read(move |conn| validators::known_pages(conn, &ids))
            .await
    }
}
