//! The journal of a fleet with standbys, its snapshots, and the lease of the dispatcher that serves, as MongoDB stores
//! them. `webfill_scheduler::journal` decides which dispatcher may append records, and when. The store only adds
//! records, and compares their numbers and epochs.
//!
//! A *group* is all dispatchers of one fleet; one of them serves. Groups share collections and nothing else.

use serde::{Deserialize, Serialize};

use crate::crawl::Crawl;
use crate::error::StoreError;
use crate::mongodb::{Mongo, MongoUri};
use crate::site_state::SiteState;

/// A record of the journal, the log of all changes to a fleet's state. The first record has the number 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub number: u64,
    /// The epoch of the dispatcher that wrote the record. Each time a dispatcher takes the lease, the epoch grows by
    /// one.
    pub epoch: u64,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// A dispatcher begins to serve. If the last commit before this record is incomplete, it is discarded.
    Begins,
    /// The changes of a commit, or a part of them.
    Changes {
        part: Vec<u8>,
        /// Whether this is the last part.
        is_last: bool,
    },
}

impl Record {
    pub fn epoch_start(number: u64, epoch: u64) -> Record {
        Record {
            number,
            epoch,
            content: Content::Begins,
        }
    }

    /// The size of the record's changes, in bytes.
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
    /// A record with this number and this epoch was there already. The given records before it were added.
    Taken { number: u64, epoch: u64 },
}

/// The stored lease: the right of one dispatcher of the group to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// 0 if the lease was never taken.
    pub epoch: u64,
    /// How many times the lease was renewed in this epoch.
    pub turn: u64,
    /// The number of the instance that took the lease. An instance is a state folder, which one process at a time has
    /// locked.
    pub holder: u64,
    /// Whether the holder has released the lease.
    pub is_free: bool,
}

impl Lease {
    /// A lease that was never taken.
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
    /// The records, in the order of their numbers.
    pub records: Vec<Record>,
    /// Whether the journal had no further record.
    pub is_end: bool,
    /// The records of the journal begin with this number, or did so when these were read. Those with lower numbers must
    /// not be applied: they may be of a former dispatcher, which has added them under numbers that were free again.
    pub cut_before: u64,
}

/// The range of the journal's record numbers, without those that were cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalExtent {
    pub first: u64,
    pub last: u64,
    /// The epoch of the last record.
    pub epoch: u64,
}

/// A copy of a dispatcher's state file, kept in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of the last journal record that the copy includes, and the epoch of that record.
    pub number: u64,
    pub epoch: u64,
    /// The number of the instance that made the snapshot.
    pub maker: u64,
    pub parts: u64,
    /// The size of the file.
    pub bytes: u64,
}

/// A dispatcher's report about itself, for the other dispatchers of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatcherReport {
    pub instance: u64,
    /// The name of the machine.
    pub name: String,
    /// The number of the last journal record that the dispatcher has applied or added.
    pub record: u64,
    pub serves: bool,
}

/// The last report of a dispatcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenDispatcher {
    pub report: DispatcherReport,
    /// The age of the report, by the server's clock.
    pub seen_ago_ms: u64,
}

/// The state of a group: all dispatchers of one fleet. One of them serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The range of the journal's records; `None` if there is none.
    pub extent: Option<JournalExtent>,
    pub journal_bytes: u64,
    pub snapshot: Option<Snapshot>,
    /// The epoch whose holder was last requested to hand over; 0 if none was.
    pub hand_over_asked: u64,
    pub dispatchers: Vec<SeenDispatcher>,
}

/// The answer to a write that only the dispatcher that serves may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FencedWrite {
    Written,
    /// Another dispatcher has begun to write: nothing was changed.
    Replaced,
}

/// Writes states of crawls and sites for one dispatcher. Its writes are refused once a dispatcher with a later epoch
/// has begun to write.
pub struct FencedStates {
    mongo: Mongo,
    group: String,
    epoch: u64,
}

impl FencedStates {
    pub async fn connect(
        uri: &MongoUri,
        group: &str,
        epoch: u64,
    ) -> Result<FencedStates, StoreError> {
        Ok(FencedStates {
            mongo: Mongo::connect(uri).await?,
            group: group.to_owned(),
            epoch,
        })
    }

    /// From now on, refuses the writes of earlier epochs. Must be called before the first write.
    pub async fn begin(&self) -> Result<FencedWrite, StoreError> {
        self.mongo.raise_fence(&self.group, self.epoch).await
    }

    pub async fn put_crawl(&self, crawl: Crawl) -> Result<FencedWrite, StoreError> {
        let writer = (self.group.as_str(), self.epoch);
        self.mongo.put_fenced_crawl(writer, crawl).await
    }

    /// Stores the states of sites in trouble, and removes those of sites that are open.
    pub async fn change_site_states(
        &self,
        in_trouble: Vec<SiteState>,
        open: Vec<String>,
    ) -> Result<FencedWrite, StoreError> {
        let writer = (self.group.as_str(), self.epoch);
        let changed = self
            .mongo
            .change_fenced_site_states(writer, in_trouble, open);
        changed.await
    }
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

    /// Adds records in order, up to the first whose number is taken. When this returns, a majority of the members has
    /// written the added records to disk. After an error, it is unknown which records were added, and the call can be
    /// repeated.
    pub async fn append(&self, records: Vec<Record>) -> Result<AppendAnswer, StoreError> {
        self.mongo.append_records(&self.group, records).await
    }

    /// Reads records after the one with the number `after`: at least one, and up to about `most_bytes` of changes.
    pub async fn read(&self, after: u64, most_bytes: usize) -> Result<JournalPage, StoreError> {
        self.mongo
            .read_records(&self.group, after, most_bytes)
            .await
    }

    /// The range of the journal's record numbers; `None` if there is no record.
    pub async fn extent(&self) -> Result<Option<JournalExtent>, StoreError> {
        self.mongo.journal_extent(&self.group).await
    }

    /// Removes all records with numbers below this one. The last record of the journal stays in any case. From now on,
    /// a record that is added under one of these numbers does not count.
    pub async fn cut_before(&self, number: u64) -> Result<(), StoreError> {
        self.mongo.cut_journal(&self.group, number).await
    }

    pub async fn lease(&self) -> Result<Lease, StoreError> {
        self.mongo.read_lease(&self.group).await
    }

    /// Takes the lease, if it is unchanged since it was read as `seen`. Returns the new epoch. If the answer is lost,
    /// the lease may have been taken nevertheless; then it names this holder.
    pub async fn take_lease(&self, seen: Lease, holder: u64) -> Result<Option<u64>, StoreError> {
        self.mongo.take_lease(&self.group, seen, holder).await
    }

    /// Renews the lease. Returns false if it has another epoch by now, or was released.
    pub async fn renew_lease(&self, epoch: u64) -> Result<bool, StoreError> {
        self.mongo.renew_lease(&self.group, epoch).await
    }

    /// Requests that the holder of the lease in this epoch hands over. Returns false if that holder no longer has the
    /// lease.
    pub async fn ask_hand_over(&self, epoch: u64) -> Result<bool, StoreError> {
        self.mongo.ask_hand_over(&self.group, epoch).await
    }

    /// Stores this process's report about its dispatcher, if it has one, and reads the state of the group.
    pub async fn survey(&self, own: Option<DispatcherReport>) -> Result<Survey, StoreError> {
        self.mongo
            .report_and_survey_dispatchers(&self.group, own)
            .await
    }

    /// The newest complete snapshot.
    pub async fn newest_snapshot(&self) -> Result<Option<Snapshot>, StoreError> {
        self.mongo.newest_snapshot(&self.group).await
    }

    /// Adds a part of a snapshot, given by the number of its last record and the instance that makes it. The snapshot
    /// is complete only after [`finish_snapshot`](JournalStore::finish_snapshot).
    pub async fn put_snapshot_part(
        &self,
        (number, maker): (u64, u64),
        part: u64,
        contents: Vec<u8>,
    ) -> Result<(), StoreError> {
        let snapshot = (number, maker);
        let put = self
            .mongo
            .put_snapshot_part(&self.group, snapshot, part, contents);
        put.await
    }

    /// Makes a snapshot the newest one, after all its parts were added, and removes earlier snapshots. If a snapshot up
    /// to the same or a later record exists, removes the added parts and returns false.
    pub async fn finish_snapshot(&self, snapshot: Snapshot) -> Result<bool, StoreError> {
        self.mongo.finish_snapshot(&self.group, snapshot).await
    }

    /// A part of a snapshot; `None` if a later snapshot has replaced it.
    pub async fn snapshot_part(
        &self,
        snapshot: Snapshot,
        part: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.mongo.snapshot_part(&self.group, snapshot, part).await
    }

    /// Releases the lease, if it still has this epoch.
    pub async fn release_lease(&self, epoch: u64) -> Result<(), StoreError> {
        self.mongo.release_lease(&self.group, epoch).await
    }
}
