//! Messages between webfill's processes and the sockets that carry them.
//!
//! - [`vocabulary`]: the closed lists (outcomes, reasons) that all processes, logs and stores share.
//! - [`message`]: the messages, named by their direction.
//! - [`codec`]: their encoding, with a version byte.
//! - [`greeting`]: how two builds agree on that version.
//! - [`figures`]: what workers have counted, for Prometheus.
//! - [`arrivals`]: notifications lost messages by their numbers.
//! - [`refusal_log`]: how often a refused peer is logged.
//! - [`report`]: what supervisors tell of themselves.
//! - [`socket`]: the only module that uses ZeroMQ.
//! - [`repeats`]: that a page only repeats others of its site.
//! - [`likeness`]: that a page resembles a block.
//! - [`scripts`]: what workers find out about pages that scripts make.
//! - [`links`]: what the links of an outcome are, and how many fit into a message.
//! - [`keys`]: the CURVE keys of processes, and the list of those that are admitted.

pub mod arrivals;
pub mod codec;
pub mod figures;
pub mod greeting;
pub mod keys;
pub mod likeness;
mod limited;
pub mod links;
pub mod message;
pub mod refusal_log;
pub mod repeats;
pub mod report;
pub mod scripts;
pub mod socket;
pub mod unmatched;
pub mod vocabulary;

pub use arrivals::Arrivals;
pub use likeness::{evidence_of_likeness, likeness_of};
pub use limited::is_limited;
pub use links::{LinkKind, NO_RECORD, mark_of_row, of_row};
pub use message::*;
pub use refusal_log::RefusalLog;
pub use repeats::{evidence_of_repetition, is_repetition};
pub use report::SupervisorReport;
pub use scripts::{Finding, KnownKind, ScriptsReport, SiteScripts};
pub use unmatched::{is_unmatched, with_unmatched};
pub use vocabulary::{BackoffReason, Follow, Lane, Outcome, Reason};
