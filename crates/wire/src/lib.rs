//! Messages between webfill's processes and the sockets that carry them.
//!
//! - [`vocabulary`]: the closed lists (outcomes, reasons) that all processes, logs and stores share.
//! - [`message`]: the messages, named by their direction.
//! - [`codec`]: their encoding, with a version byte.
//! - [`handshake`]: how two builds agree on that version.
//! - [`counts`]: the counts of workers, for Prometheus.
//! - [`arrivals`]: notices lost messages by their numbers.
//! - [`refusal_log`]: how often a refused peer is logged.
//! - [`report`]: the reports of supervisors about themselves.
//! - [`socket`]: the only module that uses ZeroMQ.
//! - [`repeats`]: pages that only repeat others of their site.
//! - [`likeness`]: pages that resemble a block.
//! - [`scripts`]: the findings of workers about pages filled by scripts.
//! - [`links`]: the kinds of an outcome's links, and how many fit into a message.
//! - [`keys`]: the CURVE keys of processes, and the list of admitted ones.

pub mod arrivals;
pub mod codec;
pub mod counts;
pub mod handshake;
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
pub use limited::is_rate_limited;
pub use links::{LinkKind, NO_RECORD, format_row_link, parse_row_link};
pub use message::*;
pub use refusal_log::RefusalLog;
pub use repeats::{evidence_of_repetition, is_repetition};
pub use report::SupervisorReport;
pub use scripts::{Finding, KnownKind, ScriptsReport, SiteScripts};
pub use unmatched::{is_unmatched, with_unmatched_mark};
pub use vocabulary::{BackoffReason, Follow, Lane, Outcome, Reason, SiteTrouble, TaskEnd};
