//! The journal of a fleet with standbys: the commits of the serving dispatcher, one after the other, in a store that
//! all dispatchers reach. This module only decides; it has no sockets and no clock, like the rest of the crate.
//!
//! - A [`Record`] is a commit, or a part of one, under a number. The store accepts each number once, so a dispatcher
//!   that was replaced fails at its next record ([`Appends`]).
//! - The [`lease`] says who may try to serve. It only saves the others the attempt: the numbers decide.
//! - A standby reads the records in order, and applies each commit as soon as all of it is there ([`JournalReader`]).
//! - A [`Member`] of the group does all of this in turn.
//! - Old records are removed, and their numbers are then free again. So a reader refuses a record below the *cut*, even
//!   if it is just the next one, and begins with a snapshot ([`JournalFault::Cut`]).
//! - [`JournalBounds`] says when a snapshot is due, and how much of the journal is kept behind it.
//!
//! A dispatcher begins to serve with a record that says nothing but its epoch. From then on no record of an earlier
//! epoch can follow. Before an effect leaves a dispatcher, the record of its commit must be in the journal and its
//! [`Tenure`] in force. `docs/explanation/decisions.md` has the reasons.

mod appends;
mod bounds;
mod lease;
mod member;
mod reader;
mod standbys;

pub use webfill_store::journal::{
    AppendAnswer, Content, DispatcherReport, Lease, Record, Snapshot, Survey,
};

pub use self::appends::{Appends, Replaced};
pub use self::bounds::JournalBounds;
pub use self::lease::{LeaseWatch, Tenure};
pub use self::member::{JournalAnswer, JournalRequest, Member, MemberTerms, Progress};
pub use self::reader::{JournalFault, JournalReader, ReadCommit};
pub use self::standbys::{AppendTimes, StandbyReport, StandbysReport};
