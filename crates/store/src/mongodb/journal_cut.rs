//! The collection `dispatcher_journal_cut`: for each group of dispatchers, how far old records of its journal were
//! removed (see [`super::journal`]).
//!
//! | member | contents |
//! |---|---|
//! | `_id` | the group |
//! | `before` | records with lower numbers are removed, or are about to be; it only grows |
//!
//! A number whose record was removed is free again. A dispatcher that was suspended for so long that its next number
//! has been cut can still add its record, which then stays behind as an *orphan*. It must not be taken for the record
//! that had this number. So a majority has the new value before the first record is removed. A reader applies no record
//! with a lower number, whoever wrote it, but begins with a snapshot. The next cut removes the orphans.

use mongodb::bson::{RawDocumentBuf, doc, rawdoc};
use mongodb::{ClientSession, Collection};

use super::command::Db;
use super::fault::Fault;
use super::journal::{JOURNAL, find_end_record, key, to_raw};
use super::members::integer;

const CUTS: &str = "dispatcher_journal_cut";

/// How many numbers a command removes at most, so that it ends in time.
const CUT_AT_ONCE: u64 = 20_000;

/// Where the journal is cut: before this number, at least as of the last read of this session; 0: nothing was removed.
pub(super) async fn read_in_session(
    db: &Db,
    group: &str,
    session: &mut ClientSession,
) -> mongodb::error::Result<u64> {
    let cuts: Collection<RawDocumentBuf> = db.database.collection(CUTS);
    let stored = cuts.find_one(doc! {"_id": group}).session(session).await?;
    Ok(stored.map_or(0, |stored| before_from(&stored)))
}

/// Where the journal is cut: before this number.
pub(super) async fn read(db: &Db, group: &str) -> Result<u64, Fault> {
    let stored = db.find_one(CUTS, group).await?;
    Ok(stored.map_or(0, |stored| before_from(&stored)))
}

fn before_from(stored: &RawDocumentBuf) -> u64 {
    let before = integer(stored, "before").unwrap_or_default();
    u64::try_from(before).unwrap_or_default()
}

/// Removes records with lower numbers, the lowest first, except the last record of all.
pub(super) async fn cut(db: &Db, group: &str, before: u64) -> Result<(), Fault> {
    let Some((last, _)) = find_end_record(db, group, -1).await? else {
        return Ok(());
    };
    let before = before.min(last);
    // First the number, then the records. If the process dies in between, readers begin with the snapshot without need.
    raise(db, group, before).await?;
    // Orphans are the first records. Behind them may be a wide gap, which is skipped.
    while let Some((first, _)) = find_end_record(db, group, 1).await?
        && first < before
    {
        let end = before.min(first + CUT_AT_ONCE);
        let numbers = to_raw(&doc! {"_id": {"$gte": key(group, 0), "$lt": key(group, end)}})?;
        db.delete_matching(JOURNAL, numbers).await?.into_result()?;
    }
    Ok(())
}

/// Stores where the journal is cut: before the number `before`. When this returns, a majority of the members has it on
/// disk.
async fn raise(db: &Db, group: &str, before: u64) -> Result<(), Fault> {
    let statement = rawdoc! {
        "q": {"_id": group},
        "u": {"$max": {"before": before as i64}},
        "upsert": true,
    };
    db.upsert(CUTS, &[statement]).await?.into_result()
}
