//! Reads records in order, and joins the parts of commits.

use super::{Content, Record};

/// A commit that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCommit {
    /// The number of the commit's last record.
    pub number: u64,
    pub epoch: u64,
    /// Empty for the record that a dispatcher adds when it begins to serve.
    pub changes: Vec<u8>,
}

/// Why a journal cannot be applied.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum JournalFault {
    #[error("record {found} of the journal follows record {last}: those between are missing")]
    Gap { last: u64, found: u64 },
    #[error("record {number} of the journal is of epoch {found}, after one of epoch {known}")]
    Epoch { number: u64, found: u64, known: u64 },
    #[error(
        "record {number} of the journal does not count, because the journal is cut before {cut_before}"
    )]
    Cut { number: u64, cut_before: u64 },
}

impl JournalFault {
    /// Whether the reader has missed records that are no longer in the journal, so that it must begin with a snapshot.
    pub fn needs_snapshot(&self) -> bool {
        matches!(self, JournalFault::Gap { .. } | JournalFault::Cut { .. })
    }
}

/// A reader of the journal.
#[derive(Debug)]
pub struct JournalReader {
    /// The last record that was read, and its epoch.
    last: u64,
    epoch: u64,
    /// The parts of an unfinished commit.
    unfinished: Vec<u8>,
}

impl JournalReader {
    /// Continues after a complete commit.
    pub fn starting_after(number: u64, epoch: u64) -> JournalReader {
        JournalReader {
            last: number,
            epoch,
            unfinished: Vec::new(),
        }
    }

    /// The number of the last record that was read.
    pub fn last_number(&self) -> u64 {
        self.last
    }

    /// Checks that none of these records that are not read yet is cut. The records are in order, so the first one
    /// decides, and all are refused before any is applied.
    pub fn check_cut(&self, records: &[Record], cut_before: u64) -> Result<(), JournalFault> {
        let mut numbers = records.iter().map(|record| record.number);
        match numbers.find(|number| *number > self.last) {
            Some(number) if number < cut_before => Err(JournalFault::Cut { number, cut_before }),
            _ => Ok(()),
        }
    }

    /// Takes the next record. Returns the commit that it completes. A record that was read before is skipped.
    pub fn add_record(&mut self, record: Record) -> Result<Option<ReadCommit>, JournalFault> {
        let Record {
            number,
            epoch,
            content,
        } = record;
        if number <= self.last {
            return Ok(None);
        }
        if number > self.last + 1 {
            let (last, found) = (self.last, number);
            return Err(JournalFault::Gap { last, found });
        }
        let begins = content == Content::Begins;
        if epoch < self.epoch || (epoch > self.epoch && !begins) {
            let (found, known) = (epoch, self.epoch);
            return Err(JournalFault::Epoch {
                number,
                found,
                known,
            });
        }
        (self.last, self.epoch) = (number, epoch);
        let complete = |changes| ReadCommit {
            number,
            epoch,
            changes,
        };
        Ok(match content {
            Content::Begins => {
                // The dispatcher of an unfinished commit is gone, and no effect of the commit has left it.
                self.unfinished.clear();
                Some(complete(Vec::new()))
            }
            Content::Changes { part, is_last } => {
                self.unfinished.extend(part);
                is_last.then(|| complete(std::mem::take(&mut self.unfinished)))
            }
        })
    }
}
