//! The journal of a fleet with standbys: the commits of the serving dispatcher, one after the other, in a store that
//! all dispatchers reach. What is here decides; it has no sockets and no clock, like the rest of the crate.
//!
//! - A [`Record`] is a commit, or a part of one, under a number. The store accepts each number once, so a dispatcher
//!   that was replaced fails at its next record ([`Appends`]).
//! - The [`lease`] says who may try to serve. It only saves the others the attempt: the numbers decide.
//! - A standby reads the records in order, and applies each commit as soon as all of it is there ([`JournalReader`]).
//!
//! A dispatcher begins to serve with a record that says nothing but its epoch. From then on no record of an earlier
//! epoch can follow. Before an effect leaves a dispatcher, the record of its commit must be in the journal and its
//! [`Tenure`] in force. `docs/explanation/decisions.md` has the reasons.

mod appends;
mod lease;
mod reader;

use serde::{Deserialize, Serialize};

pub use self::appends::{AppendAnswer, Appends, Replaced};
pub use self::lease::{Lease, LeaseWatch, Tenure};
pub use self::reader::{JournalFault, JournalReader, ReadCommit};

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
