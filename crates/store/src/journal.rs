//! The journal of a fleet with standbys, and the lease of the dispatcher that serves, as MongoDB keeps them. Who may
//! append what, and when, is decided by `webfill_scheduler::journal`; the store adds and compares.
//!
//! A *group* is all dispatchers of one fleet; one of them serves. Groups share collections and nothing else.

use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::mongodb::{Mongo, MongoUri};

/// One record. The first has the number 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub number: u64,
    /// The epoch of the dispatcher that wrote it: the number of its tenure.
    pub epoch: u64,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// A dispatcher begins to serve. A commit that is unfinished here never happened.
    Begins,
    /// The changes of a commit, or a part of them.
    Changes {
        part: Vec<u8>,
        /// Whether this is the last part.
        is_last: bool,
    },
}

impl Record {
    pub fn begins(number: u64, epoch: u64) -> Record {
        Record {
            number,
            epoch,
            content: Content::Begins,
        }
    }

    /// The size of what a store has to keep.
    pub fn bytes(&self) -> usize {
        match &self.content {
            Content::Begins => 0,
            Content::Changes { part, .. } => part.len(),
        }
    }
}

/// The answer to a command that adds records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendAnswer {
    /// All records were added.
    Added,
    /// The record with this number was there already, and has this epoch. Those before it were added.
    Taken { number: u64, epoch: u64 },
}

/// The lease as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// 0: nobody has ever had it.
    pub epoch: u64,
    /// How often it was renewed in this epoch.
    pub turn: u64,
    /// The instance that took it: a state folder. One process at a time has its lock.
    pub holder: u64,
    /// Whether its holder gave it up.
    pub is_free: bool,
}

impl Lease {
    /// A lease that nobody has ever had.
    pub fn unused() -> Lease {
        Lease {
            epoch: 0,
            turn: 0,
            holder: 0,
            is_free: true,
        }
    }
}

/// Records that were read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPage {
    /// In the order of their numbers.
    pub records: Vec<Record>,
    /// Whether no further record was there.
    pub is_end: bool,
}

/// Which numbers the journal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalExtent {
    pub first: u64,
    pub last: u64,
    /// The epoch of the last record.
    pub epoch: u64,
}

/// A connection to the journal and the lease of one group.
pub struct JournalStore {
    mongo: Mongo,
    group: String,
}

impl JournalStore {
    /// Connects. Collections are created with their first documents.
    pub async fn connect(uri: &MongoUri, group: &str) -> Result<JournalStore, StoreError> {
        Ok(JournalStore {
            mongo: Mongo::connect(uri).await?,
            group: group.to_owned(),
        })
    }

    /// Adds records in order, up to the first whose number is taken. Once this is answered, a majority of the members
    /// has what was added in its journals. An error says nothing about what was added: the command can be repeated.
    pub async fn append(&self, records: Vec<Record>) -> Result<AppendAnswer, StoreError> {
        self.mongo.append_records(&self.group, records).await
    }

    /// Reads records behind the one with the number `after`, up to about `most_bytes` of changes, and at least one.
    pub async fn read(&self, after: u64, most_bytes: usize) -> Result<JournalPage, StoreError> {
        self.mongo
            .read_records(&self.group, after, most_bytes)
            .await
    }

    /// Which records there are; `None`: none.
    pub async fn extent(&self) -> Result<Option<JournalExtent>, StoreError> {
        self.mongo.journal_extent(&self.group).await
    }

    /// Removes all records with lower numbers, except the last record of all.
    pub async fn cut_before(&self, number: u64) -> Result<(), StoreError> {
        self.mongo.cut_journal(&self.group, number).await
    }

    pub async fn lease(&self) -> Result<Lease, StoreError> {
        self.mongo.read_lease(&self.group).await
    }

    /// Takes the lease, if it is still as it was seen. Returns the new epoch. If the answer was lost, the lease may
    /// have been taken all the same: it then shows this holder.
    pub async fn take_lease(&self, seen: Lease, holder: u64) -> Result<Option<u64>, StoreError> {
        self.mongo.take_lease(&self.group, seen, holder).await
    }

    /// Renews the lease. Returns false if it has another epoch by now, or was given up.
    pub async fn renew_lease(&self, epoch: u64) -> Result<bool, StoreError> {
        self.mongo.renew_lease(&self.group, epoch).await
    }

    /// Gives the lease up, if it still has this epoch.
    pub async fn free_lease(&self, epoch: u64) -> Result<(), StoreError> {
        self.mongo.free_lease(&self.group, epoch).await
    }
}
