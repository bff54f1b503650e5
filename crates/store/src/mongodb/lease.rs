//! The collection `dispatcher_lease`: for each group of dispatchers, the one that may try to serve (see
//! [`crate::journal`]).
//!
//! | member | contents |
//! |---|---|
//! | `_id` | the group |
//! | `epoch`, `turn` | how often it was taken, and renewed since |
//! | `holder`, `is_free` | the instance that took it, and whether it has given it up |
//! | `hand_over_asked` | the epoch of the holder that an operator has asked to hand over |
//! | `taken_at`, `renewed_at` | by the server's clock, for people only: nothing is decided by them |
//!
//! Each change is a `findAndModify`, which changes the lease only if it is still as its sender has read it.

use mongodb::bson::{RawDocument, RawDocumentBuf, rawdoc};

use super::Mongo;
use super::command::{Db, write_concern};
use super::fault::Fault;
use super::members::integer;
use crate::error::StoreError;
use crate::journal::Lease;

const LEASE: &str = "dispatcher_lease";

async fn read(db: &Db, group: &str) -> Result<Lease, Fault> {
    let stored = db.find_one(LEASE, group).await?;
    Ok(stored.map_or(Lease::unused(), |stored| lease_from(&stored)))
}

fn lease_from(stored: &RawDocument) -> Lease {
    let member = |name| integer(stored, name).unwrap_or_default() as u64;
    Lease {
        epoch: member("epoch"),
        turn: member("turn"),
        holder: member("holder"),
        is_free: stored.get_bool("is_free").unwrap_or_default(),
    }
}

/// Takes the lease for an instance, if it is unchanged since it was read as `seen`. Returns the new epoch.
async fn take(db: &Db, group: &str, seen: Lease, holder: u64) -> Result<Option<u64>, Fault> {
    let epoch = seen.epoch + 1;
    match find_and_modify(db, take_lease_command(group, seen, holder)).await {
        Ok(is_taken) => Ok(is_taken.then_some(epoch)),
        // Another dispatcher has created the lease meanwhile.
        Err(fault) if fault.is_duplicate_key() => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn take_lease_command(group: &str, seen: Lease, holder: u64) -> RawDocumentBuf {
    rawdoc! {
        "findAndModify": LEASE,
        "query": {"_id": group, "epoch": seen.epoch as i64, "turn": seen.turn as i64},
        "update": [{"$set": {
            "epoch": (seen.epoch + 1) as i64,
            "turn": 0_i64,
            "holder": holder as i64,
            "is_free": false,
            "taken_at": "$$NOW",
            "renewed_at": "$$NOW",
        }}],
        "new": true,
        "upsert": seen.epoch == 0,
        "writeConcern": write_concern(),
    }
}

async fn renew(db: &Db, group: &str, epoch: u64) -> Result<bool, Fault> {
    let turn = rawdoc! {"$add": ["$turn", 1_i64]};
    let command = rawdoc! {
        "findAndModify": LEASE,
        "query": {"_id": group, "epoch": epoch as i64, "is_free": false},
        "update": [{"$set": {"turn": turn, "renewed_at": "$$NOW"}}],
        "new": true,
        "writeConcern": write_concern(),
    };
    find_and_modify(db, command).await
}

async fn free(db: &Db, group: &str, epoch: u64) -> Result<(), Fault> {
    let command = rawdoc! {
        "findAndModify": LEASE,
        "query": {"_id": group, "epoch": epoch as i64},
        "update": {"$set": {"is_free": true}},
        "writeConcern": write_concern(),
    };
    find_and_modify(db, command).await.map(drop)
}

/// Requests that the holder of this epoch hands over. Returns false if that holder no longer has the lease.
async fn ask_hand_over(db: &Db, group: &str, epoch: u64) -> Result<bool, Fault> {
    let command = rawdoc! {
        "findAndModify": LEASE,
        "query": {"_id": group, "epoch": epoch as i64, "is_free": false},
        "update": {"$set": {"hand_over_asked": epoch as i64}},
        "writeConcern": write_concern(),
    };
    find_and_modify(db, command).await
}

/// The epoch whose holder was last requested to hand over; 0 if none was.
pub(super) async fn requested_hand_over_epoch(db: &Db, group: &str) -> Result<u64, Fault> {
    let stored = db.find_one(LEASE, group).await?;
    let asked = stored.and_then(|stored| integer(&stored, "hand_over_asked"));
    Ok(asked.unwrap_or_default() as u64)
}

/// Runs a command that changes the lease. Returns whether its query has found the lease.
async fn find_and_modify(db: &Db, command: RawDocumentBuf) -> Result<bool, Fault> {
    let answer = db.run(command).await?;
    Ok(answer.get_document("value").is_ok())
}

impl Mongo {
    pub(crate) async fn read_lease(&self, group: &str) -> Result<Lease, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| read(&db, &group).await).await
    }

    pub(crate) async fn take_lease(
        &self,
        group: &str,
        seen: Lease,
        holder: u64,
    ) -> Result<Option<u64>, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| take(&db, &group, seen, holder).await)
            .await
    }

    pub(crate) async fn renew_lease(&self, group: &str, epoch: u64) -> Result<bool, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| renew(&db, &group, epoch).await)
            .await
    }

    pub(crate) async fn ask_hand_over(&self, group: &str, epoch: u64) -> Result<bool, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| ask_hand_over(&db, &group, epoch).await)
            .await
    }

    pub(crate) async fn release_lease(&self, group: &str, epoch: u64) -> Result<(), StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| free(&db, &group, epoch).await)
            .await
    }
}
