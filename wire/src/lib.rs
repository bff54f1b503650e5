//! Messages between webfill's processes and the sockets that carry them.
//!
//! [`vocabulary`] holds the closed lists (outcomes, reasons) that every process, log and store
//! shares; [`message`] the messages, named by their direction; [`codec`] their encoding behind a
//! version byte; [`arrivals`] notices lost ones; [`socket`] is the only module that knows ZeroMQ;
//! [`keys`] say who may speak to whom.

pub mod arrivals;
pub mod codec;
pub mod keys;
pub mod message;
pub mod socket;
pub mod vocabulary;

pub use arrivals::Arrivals;
pub use message::*;
pub use vocabulary::{Follow, Lane, Outcome, Reason};
