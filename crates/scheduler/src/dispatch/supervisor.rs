//! The fleet's data about one supervisor: its session, its lease, and whether it reaches the web.

use webfill_wire::{Lane, SupervisorReport};

use super::egress::Egress;
use super::session::{AvailableCredit, Session};
use crate::frontier::{CLOCK_SLACK_MS, SiteId};

/// A supervisor that may hold leases.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) instance: u64,
    pub(super) longest_request_ms: u64,
    /// The lease counts from the heartbeat or hello that arrived at this time.
    pub(super) heard_ms: i64,
    /// `None` until a supervisor from before the dispatcher's start says hello.
    pub(super) session: Option<Session>,
    /// Ready sites that the supervisor owns and that wait for its credit.
    pub(super) starved: Vec<SiteId>,
    pub(super) egress: Egress,
    /// How far the machine's wall clock is ahead of the dispatcher's clock.
    pub(super) clock_ahead_ms: i64,
    /// Whether the supervisor has been silent for most of its lease.
    pub(super) is_silent: bool,
    pub(super) particulars: SupervisorDetails,
}

/// Data about a supervisor for people; no decision depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SupervisorDetails {
    /// The address that the supervisor connects from; `None`: a Unix socket.
    pub address: Option<String>,
    /// The number of the supervisor's worker processes.
    pub workers: u16,
    /// The protocol version used with the supervisor.
    pub wire_version: u8,
    /// The supervisor's last report about itself, and when it arrived.
    pub report: Option<(SupervisorReport, i64)>,
}

impl Supervisor {
    pub(super) fn has_session_since(&self, session: u64) -> bool {
        let current = self.session.as_ref();
        current.is_some_and(|current| current.id >= session)
    }

    pub(super) fn lane(&self) -> Option<Lane> {
        self.session.as_ref().map(|session| session.lane)
    }

    /// When the lease is over, unless a further heartbeat arrives.
    pub(super) fn lease_ends_ms(&self, lease_ms: i64) -> i64 {
        self.heard_ms + lease_ms + CLOCK_SLACK_MS
    }

    /// When the supervisor is lost, unless a further heartbeat arrives.
    pub(super) fn lost_at_ms(&self, lease_ms: i64) -> i64 {
        self.lease_ends_ms(lease_ms) + self.longest_request_ms as i64
    }

    /// How many tasks may be sent to the supervisor now, at most `most`.
    pub(super) fn available_credit(
        &self,
        most: u64,
        now_ms: i64,
        lease_ms: i64,
    ) -> AvailableCredit {
        match &self.session {
            Some(session) if !self.is_silent && now_ms - self.heard_ms <= lease_ms => {
                session.available_credit().limit_to(most)
            }
            _ => AvailableCredit::default(),
        }
    }
}
