//! Reads records, changes them and writes them, with optimistic concurrency.

use std::collections::HashMap;
use std::time::Duration;

use mongodb::bson::RawDocumentBuf;

use super::document::{EntryResult, RecordDocument};
use crate::mongodb::command::Db;
use crate::mongodb::fault::{DUPLICATE_KEY, Fault};

/// How many times a call is repeated because of conflicting writes, before it fails as temporarily unavailable.
const MAX_ROUNDS: u32 = 50;

/// Groups entries by their records. The values are the indexes of the entries, in order.
pub(super) fn group_by_record<'a>(
    keys: impl Iterator<Item = &'a str>,
) -> HashMap<&'a str, Vec<usize>> {
    let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, key) in keys.enumerate() {
        groups.entry(key).or_default().push(index);
    }
    groups
}

/// The indexes of a record's entries, each with its result.
pub(super) type Results<T> = Vec<(usize, EntryResult<T>)>;

/// A record that `revise` has changed, to be written.
struct RevisedRecord<'a, T> {
    key: &'a str,
    entries: Vec<usize>,
    results: Results<T>,
}

/// Reads records, changes them with `revise`, and writes the changed ones, until no write meets a conflict. `revise`
/// returns a result for each entry of a record. After a conflict it is called again, so it must change nothing if it
/// gets its own result.
pub(super) async fn read_modify_write<T>(
    db: &Db,
    mut pending: HashMap<&str, Vec<usize>>,
    revise: impl Fn(&[usize], &mut Option<RecordDocument>) -> Vec<EntryResult<T>>,
) -> Result<Results<T>, Fault> {
    let mut settled = Vec::new();
    for round in 0..MAX_ROUNDS {
        if pending.is_empty() {
            return Ok(settled);
        }
        wait_before_round(round).await;
        let mut read = read_records(db, pending.keys().copied().collect()).await?;
        let mut in_order: Vec<(&str, Vec<usize>)> = pending.drain().collect();
        // New records are created in the order given, which is also the order of exports.
        in_order.sort_unstable_by_key(|(_, entries)| entries[0]);
        let mut statements = Vec::new();
        let mut revised = Vec::new();
        for (key, entries) in in_order {
            let before = read.remove(key);
            let mut record = before.clone();
            let states = revise(&entries, &mut record);
            let results = entries.iter().copied().zip(states).collect();
            match record.filter(|record| before.as_ref() != Some(record)) {
                None => settled.extend::<Results<T>>(results),
                Some(record) => {
                    statements.push(record.write_statement(key)?);
                    revised.push(RevisedRecord {
                        key,
                        entries,
                        results,
                    });
                }
            }
        }
        let conflicting = write_revised(db, &statements, revised, &mut settled).await?;
        pending.extend(conflicting);
    }
    match pending.is_empty() {
        true => Ok(settled),
        false => Err(Fault::Unavailable(String::from(
            "too many others are writing the same records",
        ))),
    }
}

/// Writes changed records. The results of records that were written or refused are added to `settled`. The other
/// records are returned, because their writes must be repeated.
async fn write_revised<'a, T>(
    db: &Db,
    statements: &[RawDocumentBuf],
    revised: Vec<RevisedRecord<'a, T>>,
    settled: &mut Results<T>,
) -> Result<Vec<(&'a str, Vec<usize>)>, Fault> {
    let updated = db.update("records", statements).await?;
    let refused = permanent_refusals(&updated.failed)?;
    let all_written =
        updated.failed.is_empty() && usize::try_from(updated.matched) == Ok(statements.len());
    let mut again = Vec::new();
    for (statement, record) in revised.into_iter().enumerate() {
        if let Some(reason) = refused.get(&statement) {
            let refusal = |index: &usize| (*index, Err(reason.clone()));
            settled.extend(record.entries.iter().map(refusal));
        } else if all_written {
            settled.extend(record.results);
        } else {
            // The answer does not show which statements met a conflict, so all are repeated. A record that was written
            // does not change when it is revised again.
            again.push((record.key, record.entries));
        }
    }
    Ok(again)
}

/// Waits before a new round, because a majority may not have confirmed the conflicting write yet.
async fn wait_before_round(round: u32) {
    if round > 0 {
        tokio::time::sleep(Duration::from_millis(u64::from(round.min(50)))).await;
    }
}

/// The reasons of statements that can never succeed. Conflicts, which the server reports as duplicate keys, are left
/// out.
pub(super) fn permanent_refusals(
    failed: &[(usize, i32, String)],
) -> Result<HashMap<usize, String>, Fault> {
    let mut refused = HashMap::new();
    for (statement, code, message) in failed {
        if *code == DUPLICATE_KEY {
            continue;
        }
        match Fault::from_statement_error(*code, message) {
            Fault::InvalidEntry(reason) => drop(refused.insert(*statement, reason)),
            fault => return Err(fault),
        }
    }
    Ok(refused)
}

/// The stored records with these keys.
pub(in crate::mongodb) async fn read_records(
    db: &Db,
    keys: Vec<&str>,
) -> Result<HashMap<String, RecordDocument>, Fault> {
    let mut read = HashMap::with_capacity(keys.len());
    for stored in db.find_by_ids("records", &keys).await? {
        if let Ok(id) = stored.get_str("_id") {
            read.insert(id.to_owned(), RecordDocument::from_stored(&stored));
        }
    }
    Ok(read)
}
