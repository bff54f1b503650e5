//! Stores the results of reading pages again: the pages' rows, and the records that they fill.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};

use super::Sqlite;
use super::batch::repeat_error;
use super::columns::to_json;
use super::connection::Db;
use super::fault::Fault;
use super::pages::{alternatives_to_json, row_counts_to_json};
use super::records;
use super::rows;
use super::trial::Trial;
use crate::error::StoreError;
use crate::record::FillRules;
use crate::reread::{Reread, RereadAnswer};
use crate::row_counts::rows_of;
use crate::store::Rereading;

/// The statement that updates a page. The page gets a new position, so that readers of changes see its new fields. If
/// the mapping has changed, the validators are removed: the page is then fetched in full the next time, which gives the
/// links for the new mapping.
const UPDATE: &str = "
UPDATE pages SET outcome = ?5, mapping = ?6, mapping_version = ?7, template = ?8, fields = ?9, alternatives = ?10,
    rows = ?11, row_counts = ?12,
    validators = CASE WHEN mapping IS ?6 AND mapping_version IS ?7 THEN validators END,
    position = (SELECT 1 + max(deleted, coalesce((SELECT max(position) FROM pages), 0)) FROM changes)
WHERE _id = ?1 AND attempts = ?2 AND started_at = ?3 AND content_hash = ?4";

const FIND: &str = "
SELECT 1 FROM pages WHERE _id = ?1 AND attempts = ?2 AND started_at = ?3 AND content_hash = ?4";

/// The name of a page that was read again, in error messages.
pub(super) fn describe_reread(reread: &Reread) -> String {
    format!("page {}", reread.url)
}

/// Stores the result of reading a page again, unless the page was fetched again meanwhile.
pub(super) fn apply_reread(
    conn: &Connection,
    reread: &Reread,
    rules: &FillRules,
) -> Result<RereadAnswer, Fault> {
    let is_there = match reread.is_changed {
        true => update_page(conn, reread)?,
        false => is_not_refetched(conn, reread)?,
    };
    if !is_there {
        return Ok(RereadAnswer::overtaken_answer());
    }
    let mut answer = RereadAnswer::default();
    let leads = rules.find_leads(&reread.url, reread.mapping.as_deref(), &reread.links);
    let mut values = reread.values(&leads);
    values.is_of_other = records::is_url_of_any(conn, &reread.records, &reread.url)?;
    for record in &reread.records {
        let changes = records::fill_from_reread_page(conn, record, &values, rules)?;
        answer.add(record, changes);
    }
    rows::put_rows(conn, &reread.into(), rules)?;
    Ok(answer)
}

/// The changes that storing the result would make, after all earlier changes of the trial.
pub(super) fn preview_changes(
    conn: &Connection,
    reread: &Reread,
    rules: &FillRules,
    trial: &Trial,
) -> Result<RereadAnswer, Fault> {
    if !is_not_refetched(conn, reread)? {
        return Ok(RereadAnswer::overtaken_answer());
    }
    let mut answer = RereadAnswer::default();
    let leads = rules.find_leads(&reread.url, reread.mapping.as_deref(), &reread.links);
    let mut values = reread.values(&leads);
    values.is_of_other = records::is_url_of_any(conn, &reread.records, &reread.url)?;
    let mut filled = Vec::new();
    for record in &reread.records {
        let stored = match trial.load(record)? {
            None => records::load(conn, record)?,
            tried => tried,
        };
        let Some(mut stored) = stored else {
            continue;
        };
        let before = stored.clone();
        answer.add(record, stored.fill_from_reread_page(&values, rules));
        if stored != before {
            records::Columns::from_record(record, &stored)?;
            filled.push((record, stored));
        }
    }
    // If the values do not fit into one of the page's records, none of the records is filled.
    for (record, stored) in filled {
        trial.keep(record, &stored)?;
    }
    Ok(answer)
}

fn update_page(conn: &Connection, reread: &Reread) -> Result<bool, Fault> {
    let updated = conn.prepare_cached(UPDATE)?.execute(params![
        reread.page_id,
        reread.attempts,
        reread.started_at(),
        reread.content_hash,
        reread.outcome.as_str(),
        reread.mapping,
        reread.mapping_version,
        reread.template,
        to_json(&reread.fields)?,
        alternatives_to_json(&reread.alternatives)?,
        rows_of(&reread.row_counts),
        row_counts_to_json(&reread.row_counts)?,
    ])?;
    Ok(updated > 0)
}

fn is_not_refetched(conn: &Connection, reread: &Reread) -> Result<bool, Fault> {
    let which = params![
        reread.page_id,
        reread.attempts,
        reread.started_at(),
        reread.content_hash
    ];
    let mut find = conn.prepare_cached(FIND)?;
    Ok(find.query_row(which, |_| Ok(())).optional()?.is_some())
}

#[async_trait]
impl Rereading for Sqlite {
    /// Writes all results in one transaction.
    async fn put_reread(
        &self,
        rereads: Vec<Reread>,
        trial: Option<Arc<Trial>>,
    ) -> Vec<Result<RereadAnswer, StoreError>> {
        let rules = self.rules();
        let Some(trial) = trial else {
            let write = move |conn: &_, one: &_| apply_reread(conn, one, &rules);
            return self.write_each(rereads, describe_reread, write).await;
        };
        let count = rereads.len();
        let preview_each = move |db: &mut Db| {
            let preview = |one| db.read(|conn| preview_changes(conn, one, &rules, &trial));
            rereads.iter().map(preview).collect()
        };
        let previewed = self.thread.call(preview_each).await;
        previewed.unwrap_or_else(|error| repeat_error(count, &error))
    }
}
