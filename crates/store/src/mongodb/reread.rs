//! Stores the results of reading pages again: the pages' documents, and the records that they fill.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::{RawDocumentBuf, doc, rawdoc};

use super::command::{Db, with_timeout};
use super::fault::Fault;
use super::members::date;
use super::pages::{alternatives_bson, row_counts_bson};
use super::records;
use super::value::{document, or_null};
use super::{Mongo, page_log};
use crate::error::StoreError;
use crate::page::MAX_ENTRY_BYTES;
use crate::record::{FillRules, Leads};
use crate::reread::{Reread, RereadAnswer};
use crate::row_counts::rows_of;
use crate::row_page::RowPage;
use crate::sqlite::Trial;
use crate::store::Rereading;

type Answers = Vec<Result<RereadAnswer, StoreError>>;

/// Stores the results for pages that were not fetched again meanwhile. Then adds these pages to the log, so that
/// readers of changes see their new fields, and fills their records. Until a page is in the log, it has the mark
/// `unlogged`, so that a repeated call completes the work.
pub(super) async fn put(
    db: &Db,
    rereads: &[Reread],
    rules: &FillRules,
    trial: Option<&Trial>,
) -> Result<Answers, Fault> {
    let mut answers: Answers = rereads
        .iter()
        .map(|_| Ok(RereadAnswer::default()))
        .collect();
    match trial {
        Some(_) => drop(statements(rereads, &mut answers)?),
        None => update_pages(db, rereads, &mut answers).await?,
    }
    let there = pages_not_refetched(db, rereads).await?;
    let leads = |one: &Reread| rules.find_leads(&one.url, one.mapping.as_deref(), &one.links);
    let leads: Vec<Leads> = rereads.iter().map(leads).collect();
    let mut unlogged = Vec::new();
    let mut requests = Vec::new();
    for (entry, reread) in rereads.iter().enumerate() {
        let Ok(answer) = &mut answers[entry] else {
            continue;
        };
        match there.get(reread.page_id.as_str()) {
            Some(Some(mark)) => unlogged.push((reread.page_id.as_str(), *mark)),
            Some(None) => {}
            None => {
                *answer = RereadAnswer::overtaken_answer();
                continue;
            }
        }
        let request = |record: &String| records::FillRequest {
            record: record.clone(),
            values: reread.values(&leads[entry]),
            entry,
        };
        requests.extend(reread.records.iter().map(request));
    }
    records::mark_own_pages(db, &mut requests).await?;
    let filled = match trial {
        Some(trial) => records::preview_changes(db, &requests, rules, trial).await?,
        None => {
            append_to_log(db, &unlogged).await?;
            put_rows_unless_overtaken(db, rereads, &mut answers, rules).await?;
            records::fill_from_reread_pages(db, &requests, rules).await?
        }
    };
    for (request, changes) in filled {
        match (&mut answers[request.entry], changes) {
            (Ok(answer), Ok(changes)) => answer.add(&request.record, changes),
            (answer @ Ok(_), Err(reason)) => {
                *answer = Err(entry_error(&rereads[request.entry], reason));
            }
            (Err(_), _) => {}
        }
    }
    Ok(answers)
}

/// Puts the rows of those pages that have not been fetched again meanwhile.
async fn put_rows_unless_overtaken(
    db: &Db,
    rereads: &[Reread],
    answers: &mut Answers,
    rules: &FillRules,
) -> Result<(), Fault> {
    let is_there = |(_, answer): &(usize, &Result<RereadAnswer, StoreError>)| {
        answer.as_ref().is_ok_and(|answer| !answer.is_overtaken)
    };
    let there: Vec<usize> = answers
        .iter()
        .enumerate()
        .filter(is_there)
        .map(|(entry, _)| entry)
        .collect();
    let pages: Vec<RowPage<'_>> = there
        .iter()
        .map(|entry| (&rereads[*entry]).into())
        .collect();
    for (page, reason) in records::put_rows(db, &pages, rules).await?.refused {
        let entry = there[page];
        answers[entry] = Err(entry_error(&rereads[entry], reason));
    }
    Ok(())
}

/// Adds marked pages to the log, and removes their marks.
async fn append_to_log(db: &Db, unlogged: &[(&str, i64)]) -> Result<(), Fault> {
    let ids = unlogged.iter().map(|(id, _)| (*id).to_owned());
    page_log::append(db, ids.collect()).await?;
    let unmark = |(id, mark): &(&str, i64)| {
        rawdoc! {"q": {"_id": *id, "unlogged": *mark}, "u": {"$unset": {"unlogged": ""}}}
    };
    let unmark: Vec<_> = unlogged.iter().map(unmark).collect();
    db.update("pages", &unmark).await?.into_result()
}

fn entry_error(reread: &Reread, reason: String) -> StoreError {
    StoreError::Entry {
        entry: format!("page {}", reread.url),
        reason,
    }
}

/// The statements that update pages, and the index of the entry of each. An entry that cannot be stored gets its error
/// as the answer.
fn statements(
    rereads: &[Reread],
    answers: &mut Answers,
) -> Result<(Vec<RawDocumentBuf>, Vec<usize>), Fault> {
    let (mut statements, mut entries) = (Vec::new(), Vec::new());
    for (entry, reread) in rereads.iter().enumerate() {
        if !reread.is_changed {
            continue;
        }
        match statement(reread) {
            Ok(statement) => {
                statements.push(statement);
                entries.push(entry);
            }
            Err(Fault::InvalidEntry(reason)) => answers[entry] = Err(entry_error(reread, reason)),
            Err(fault) => return Err(fault),
        }
    }
    Ok((statements, entries))
}

async fn update_pages(db: &Db, rereads: &[Reread], answers: &mut Answers) -> Result<(), Fault> {
    let (statements, sent) = statements(rereads, answers)?;
    for (statement, code, message) in db.update("pages", &statements).await?.failed {
        let entry = sent[statement];
        match Fault::from_statement_error(code, &message) {
            Fault::InvalidEntry(reason) => {
                answers[entry] = Err(entry_error(&rereads[entry], reason));
            }
            fault => return Err(fault),
        }
    }
    Ok(())
}

/// The statement that updates a page, unless it was fetched again meanwhile. The page keeps the links that the former
/// mapping has found; for those of the new mapping, it is fetched in full the next time. Values from outside are put
/// below `$literal`, where the server does not evaluate them.
fn statement(reread: &Reread) -> Result<RawDocumentBuf, Fault> {
    let fields = document(&reread.fields)?;
    if fields.as_bytes().len() > MAX_ENTRY_BYTES {
        return Err(Fault::InvalidEntry(format!(
            "its fields take {} bytes, more than the {MAX_ENTRY_BYTES} of a page",
            fields.as_bytes().len()
        )));
    }
    let alternatives = alternatives_bson(&reread.alternatives)?;
    let row_counts = row_counts_bson(&reread.row_counts)?;
    let literal = |text: &Option<String>| rawdoc! {"$literal": or_null(text.as_deref())};
    let is_same_mapping = rawdoc! {"$and": [
        {"$eq": ["$mapping", literal(&reread.mapping)]},
        {"$eq": ["$mapping_version", literal(&reread.mapping_version)]},
    ]};
    Ok(rawdoc! {
        "q": {
            "_id": reread.page_id.as_str(),
            "attempts": i64::from(reread.attempts),
            "started_at": date(reread.started_at_ms),
            "content_hash": reread.content_hash.as_str(),
        },
        "u": [{"$set": {
            "outcome": reread.outcome.as_str(),
            "mapping": literal(&reread.mapping),
            "mapping_version": literal(&reread.mapping_version),
            "template": literal(&reread.template),
            "fields": {"$literal": fields},
            "alternatives": {"$literal": alternatives},
            "rows": or_null(rows_of(&reread.row_counts)),
            "row_counts": {"$literal": row_counts},
            "unlogged": reread.at_ms,
            "validators": {"$cond": [is_same_mapping, "$validators", null]},
        }}],
    })
}

/// The pages that have not been fetched again meanwhile, by key, with the time in `unlogged` if they have one.
async fn pages_not_refetched<'r>(
    db: &Db,
    rereads: &'r [Reread],
) -> Result<HashMap<&'r str, Option<i64>>, Fault> {
    let ids: Vec<&str> = rereads.iter().map(|one| one.page_id.as_str()).collect();
    let pages: Collection<RawDocumentBuf> = db.database.collection("pages");
    let parts = doc! {"attempts": 1, "started_at": 1, "content_hash": 1, "unlogged": 1};
    let find = async {
        let mut cursor = pages
            .find(doc! {"_id": {"$in": ids}})
            .projection(parts)
            .await?;
        let mut found = Vec::new();
        while cursor.advance().await? {
            found.push(cursor.current().to_owned());
        }
        Ok(found)
    };
    let found: Vec<RawDocumentBuf> = with_timeout(find).await?;
    let is_same = |stored: &RawDocumentBuf, reread: &Reread| {
        stored.get_str("_id").ok() == Some(&*reread.page_id)
            && stored.get_i64("attempts").ok() == Some(i64::from(reread.attempts))
            && stored.get_datetime("started_at").ok() == Some(date(reread.started_at_ms))
            && stored.get_str("content_hash").ok() == Some(&*reread.content_hash)
    };
    let there = rereads.iter().filter_map(|reread| {
        let stored = found.iter().find(|stored| is_same(stored, reread))?;
        Some((reread.page_id.as_str(), stored.get_i64("unlogged").ok()))
    });
    Ok(there.collect())
}

#[async_trait]
impl Rereading for Mongo {
    async fn put_reread(
        &self,
        rereads: Vec<Reread>,
        trial: Option<Arc<Trial>>,
    ) -> Vec<Result<RereadAnswer, StoreError>> {
        let count = rereads.len();
        let rules = self.rules();
        let put = async move |db: Db| put(&db, &rereads, &rules, trial.as_deref()).await;
        self.call_for_each(count, put).await
    }
}
