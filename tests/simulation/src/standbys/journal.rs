//! The simulated store of the journal (the records of all commits) and of the lease (the right to serve). It behaves as
//! MongoDB does with a majority of its members.

use std::collections::BTreeMap;
use std::path::PathBuf;

use webfill_scheduler::frontier::Applied;
use webfill_scheduler::journal::{AppendAnswer, JournalAnswer, JournalRequest, Lease, Record};

/// The most records that a read returns.
const READ_AT_ONCE: usize = 20;

/// A copy of a dispatcher's file. A dispatcher that is far behind can begin with this copy.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) path: PathBuf,
    pub(super) applied: Applied,
}

#[derive(Debug)]
pub(super) struct Journal {
    records: BTreeMap<u64, Record>,
    /// The epochs of all records that were ever added, without those that were added under numbers that were cut.
    epochs: BTreeMap<u64, u64>,
    /// The records before this number were removed.
    cut_before: u64,
    pub(super) lease: Lease,
    /// The time of the last renewal of the lease, by the wall clock of its holder.
    pub(super) renewed_wall_ms: i64,
    pub(super) away_until_ms: u64,
    /// The newest snapshot.
    pub(super) snapshot: Option<Snapshot>,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal {
            records: BTreeMap::new(),
            epochs: BTreeMap::new(),
            cut_before: 0,
            lease: Lease {
                epoch: 0,
                turn: 0,
                holder: u64::MAX,
                is_free: true,
            },
            renewed_wall_ms: 0,
            away_until_ms: 0,
            snapshot: None,
        }
    }
}

impl Journal {
    /// Carries out a request. `wall_ms` is the wall clock of the sender. Returns the answer, and the records that were
    /// added.
    pub(super) fn execute(
        &mut self,
        request: JournalRequest,
        wall_ms: i64,
    ) -> (JournalAnswer, Vec<Record>) {
        let answer = match request {
            JournalRequest::Append(records) => {
                return self.append(records);
            }
            JournalRequest::Read { after } => self.read(after),
            JournalRequest::Renew { epoch, sent_ms } => {
                let is_held = self.lease.epoch == epoch && !self.lease.is_free;
                if is_held {
                    self.lease.turn += 1;
                    self.renewed_wall_ms = wall_ms;
                }
                JournalAnswer::Renewed {
                    epoch,
                    is_held,
                    sent_ms,
                }
            }
            JournalRequest::Take {
                seen,
                holder,
                sent_ms,
            } => {
                let is_as_seen = (seen.epoch, seen.turn) == (self.lease.epoch, self.lease.turn);
                if is_as_seen {
                    self.lease = Lease {
                        epoch: seen.epoch + 1,
                        turn: 0,
                        holder,
                        is_free: false,
                    };
                    self.renewed_wall_ms = wall_ms;
                }
                let epoch = is_as_seen.then_some(self.lease.epoch);
                JournalAnswer::Taken { epoch, sent_ms }
            }
            JournalRequest::Free { epoch } => {
                self.lease.is_free |= self.lease.epoch == epoch;
                JournalAnswer::Freed
            }
        };
        (answer, Vec::new())
    }

    /// Adds records in order, up to the first record whose number is already taken.
    fn append(&mut self, records: Vec<Record>) -> (JournalAnswer, Vec<Record>) {
        let first = records.first().map_or(0, |record| record.number);
        let count = records.len() as u64;
        let mut added = Vec::new();
        let mut answer = AppendAnswer::Added;
        for record in records {
            if let Some(there) = self.records.get(&record.number) {
                let (number, epoch) = (there.number, there.epoch);
                answer = AppendAnswer::Taken { number, epoch };
                break;
            }
            self.records.insert(record.number, record.clone());
            added.push(record);
        }
        let end = self
            .records
            .last_key_value()
            .map(|(_, end)| (end.number, end.epoch));
        if let (Some(last), Some((number, epoch))) = (added.last(), end)
            && last.number < number
        {
            // This number was taken before, and the record with it was removed from the journal.
            answer = AppendAnswer::Taken { number, epoch };
            added.clear();
        }
        let epochs = added.iter().map(|record| (record.number, record.epoch));
        self.epochs.extend(epochs);
        let answer = JournalAnswer::Appended {
            first,
            count,
            answer,
        };
        (answer, added)
    }

    fn read(&self, after: u64) -> JournalAnswer {
        let records = self.records.range(after + 1..).map(|(_, record)| record);
        let records: Vec<Record> = records.take(READ_AT_ONCE).cloned().collect();
        JournalAnswer::Read {
            is_end: records.len() < READ_AT_ONCE,
            records,
            cut_before: self.cut_before,
            lease: self.lease,
        }
    }

    /// Removes all records with lower numbers than this, except for the last record of the journal.
    pub(super) fn cut_before(&mut self, number: u64) {
        let kept = number.min(self.last_number());
        self.cut_before = self.cut_before.max(kept);
        self.records = self.records.split_off(&kept);
    }

    /// Whether the record with this number was added in this epoch.
    pub(super) fn is_of_epoch(&self, number: u64, epoch: u64) -> bool {
        self.epochs.get(&number) == Some(&epoch)
    }

    /// The number of the last record in the journal.
    pub(super) fn last_number(&self) -> u64 {
        self.records
            .last_key_value()
            .map_or(0, |(number, _)| *number)
    }

    pub(super) fn records_after(&self, after: u64) -> Vec<Record> {
        let records = self.records.range(after + 1..);
        records.map(|(_, record)| record.clone()).collect()
    }
}
