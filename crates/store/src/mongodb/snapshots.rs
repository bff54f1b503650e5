//! The collections `dispatcher_snapshots` and `dispatcher_snapshot_parts`: for each group of dispatchers, a copy of
//! the file of one of them, as of a record of the journal (see [`crate::journal`]).
//!
//! | collection | member | contents |
//! |---|---|---|
//! | `dispatcher_snapshots` | `_id` | the group |
//! | | `number`, `epoch` | the last record that the copy has applied |
//! | | `maker`, `parts`, `bytes` | the instance that made it, and its size |
//! | | `made_at` | by the server's clock, for people only |
//! | `dispatcher_snapshot_parts` | `_id` | `group`, `number`, `maker`, and `part` from 0 |
//! | | `contents` | a part of the copy |
//!
//! The parts come first. The document in `dispatcher_snapshots` is written last, and only replaces that of an earlier
//! record. So a snapshot with such a document is complete, and its parts stay until a later snapshot replaces it.

use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc, rawdoc};

use super::Mongo;
use super::command::{Db, with_timeout, write_concern};
use super::fault::Fault;
use super::journal::{key, to_raw};
use super::members::integer;
use super::value::binary;
use crate::error::StoreError;
use crate::journal::Snapshot;

const SNAPSHOTS: &str = "dispatcher_snapshots";
const PARTS: &str = "dispatcher_snapshot_parts";

pub(super) async fn newest(db: &Db, group: &str) -> Result<Option<Snapshot>, Fault> {
    let stored = db.find_one(SNAPSHOTS, group).await?;
    Ok(stored.and_then(|stored| snapshot_from(&stored)))
}

fn snapshot_from(stored: &RawDocument) -> Option<Snapshot> {
    let member = |name| integer(stored, name).map(|number| number as u64);
    Some(Snapshot {
        number: member("number")?,
        epoch: member("epoch")?,
        maker: member("maker")?,
        parts: member("parts")?,
        bytes: member("bytes")?,
    })
}

async fn put_part(
    db: &Db,
    group: &str,
    (number, maker): (u64, u64),
    part: u64,
    contents: Vec<u8>,
) -> Result<(), Fault> {
    let key = to_raw(&part_key(group, (number, maker), part))?;
    let statement = rawdoc! {
        "q": {"_id": key},
        "u": {"$set": {"contents": binary(&contents)}},
        "upsert": true,
    };
    db.upsert(PARTS, &[statement]).await?.into_result()
}

async fn part(
    db: &Db,
    group: &str,
    snapshot: Snapshot,
    part: u64,
) -> Result<Option<Vec<u8>>, Fault> {
    let Snapshot { number, maker, .. } = snapshot;
    let key = part_key(group, (number, maker), part);
    let collection: Collection<RawDocumentBuf> = db.database.collection(PARTS);
    let stored = with_timeout(async { collection.find_one(doc! {"_id": key}).await }).await?;
    let contents = stored
        .as_ref()
        .and_then(|stored| stored.get_binary("contents").ok());
    Ok(contents.map(|contents| contents.bytes.to_owned()))
}

/// Makes a snapshot the newest one, after all its parts were stored, and removes the parts of earlier snapshots. If the
/// newest snapshot is another one of the same record, or of a later record, removes the parts of this snapshot and
/// returns false.
async fn finish(db: &Db, group: &str, snapshot: Snapshot) -> Result<bool, Fault> {
    let Snapshot { number, maker, .. } = snapshot;
    let command = rawdoc! {
        "findAndModify": SNAPSHOTS,
        "query": {"_id": group, "number": {"$lt": number as i64}},
        "update": [{"$set": {
            "number": number as i64,
            "epoch": snapshot.epoch as i64,
            "maker": maker as i64,
            "parts": snapshot.parts as i64,
            "bytes": snapshot.bytes as i64,
            "made_at": "$$NOW",
        }}],
        "upsert": true,
        "writeConcern": write_concern(),
    };
    let is_newest = match db.run(command).await {
        Ok(_) => true,
        // The newest snapshot has the same record or a later one. It may be this very snapshot, if an earlier answer
        // was lost.
        Err(fault) if fault.is_duplicate_key() => newest(db, group).await? == Some(snapshot),
        Err(fault) => return Err(fault),
    };
    let (from, to) = match is_newest {
        true => (key(group, 0), key(group, number)),
        false => part_key_range(group, number, maker),
    };
    let superseded = to_raw(&doc! {"_id": {"$gte": from, "$lt": to}})?;
    db.delete_matching(PARTS, superseded).await?.into_result()?;
    Ok(is_newest)
}

/// The first key of a snapshot's parts, and a key after all of them.
fn part_key_range(group: &str, number: u64, maker: u64) -> (Document, Document) {
    let first = part_key(group, (number, maker), 0);
    let mut behind = first.clone();
    behind.insert("part", Bson::MaxKey);
    (first, behind)
}

/// The key of a part. The server sorts keys by their members, in the order they are added here.
fn part_key(group: &str, (number, maker): (u64, u64), part: u64) -> Document {
    let mut key = key(group, number);
    key.insert("maker", maker as i64);
    key.insert("part", part as i64);
    key
}

impl Mongo {
    pub(crate) async fn newest_snapshot(
        &self,
        group: &str,
    ) -> Result<Option<Snapshot>, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| newest(&db, &group).await)
            .await
    }

    pub(crate) async fn put_snapshot_part(
        &self,
        group: &str,
        snapshot: (u64, u64),
        part: u64,
        contents: Vec<u8>,
    ) -> Result<(), StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| put_part(&db, &group, snapshot, part, contents).await)
            .await
    }

    pub(crate) async fn snapshot_part(
        &self,
        group: &str,
        snapshot: Snapshot,
        number: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| part(&db, &group, snapshot, number).await)
            .await
    }

    pub(crate) async fn finish_snapshot(
        &self,
        group: &str,
        snapshot: Snapshot,
    ) -> Result<bool, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| finish(&db, &group, snapshot).await)
            .await
    }
}
