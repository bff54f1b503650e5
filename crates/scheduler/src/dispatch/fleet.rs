//! The supervisors: which are connected, how much credit they have, and which are lost.
//!
//! A supervisor is *awaited* (known from before the dispatcher's start), *connected* (it has a session), *leaving*
//! (it has said goodbye), and then *left* or *lost*.
//!
//! The lease: a supervisor starts no request later than the lease time after the last of its messages that was
//! answered. The answer returns that message's own timestamp, so the supervisor counts from a moment before the
//! dispatcher received it. A supervisor is lost, and its sites may be given to others, when the lease time plus its
//! longest request has passed since then. By then none of its requests can be in flight, whatever its state (fencing
//! by time).

use std::collections::BTreeMap;
use std::ops::Bound;

use webfill_wire::{CrawlKey, Credit, Hello, Lane, SupervisorHeartbeat};

use super::egress::Egress;
use super::session::Session;
use super::supervisor::{Supervisor, SupervisorDetails};
use crate::caller::Caller;
use crate::frontier::{SavedSupervisor, SiteId};

mod details;
mod metrics;
mod offline_machines;

pub use metrics::FleetMetrics;

/// The maximum duration of a request that a supervisor may announce: a day.
const LONGEST_REQUEST_MS: u64 = 86_400_000;

/// The state of a connected supervisor, for reports to people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Presence {
    pub is_draining: bool,
    /// The milliseconds since the supervisor sent the heartbeat that last renewed its lease.
    pub heard_ago_ms: i64,
    /// If the supervisor has fallen silent: in how many milliseconds it is lost.
    pub lost_in_ms: Option<i64>,
    /// The pages that the supervisor has fetched since it joined: tasks that ended with `ok`.
    pub pages: u64,
}

/// All supervisors, by name.
#[derive(Debug)]
pub struct Fleet {
    lease_ms: i64,
    supervisors: BTreeMap<String, Supervisor>,
    names: BTreeMap<Caller, String>,
    /// The supervisor of each lane that last got a new site. The next new site goes to the one after it.
    last_chosen: BTreeMap<Lane, String>,
}

/// Whether a supervisor that says hello is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelloVerdict {
    Joins,
    /// A later hello of the same supervisor has already arrived.
    Outdated,
    /// Another instance of the same name may be alive.
    NameTaken,
}

/// Whether a heartbeat renews the supervisor's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatReply {
    /// The lease is renewed. `heard_ms`: the newest timestamp received, by the supervisor's clock.
    InSync { heard_ms: u64, outcomes_heard: u64 },
    /// The session is unknown, messages are missing, or the lease has run out: the supervisor must
    /// say hello.
    OutOfSync,
}

impl Fleet {
    pub(super) fn new(lease_ms: u64) -> Fleet {
        Fleet {
            lease_ms: i64::try_from(lease_ms).unwrap_or(i64::MAX / 4),
            supervisors: BTreeMap::new(),
            names: BTreeMap::new(),
            last_chosen: BTreeMap::new(),
        }
    }

    /// How long messages may be in transit before they count as lost.
    fn patience_ms(&self) -> i64 {
        3 * self.lease_ms / 10
    }

    /// Adds a supervisor that was known before the dispatcher's start. Its silence before the start counts.
    pub(super) fn add_awaited(&mut self, kept: SavedSupervisor, now_ms: i64) {
        let supervisor = Supervisor {
            instance: kept.instance,
            longest_request_ms: kept.longest_request_ms,
            heard_ms: now_ms.saturating_sub_unsigned(kept.silent_ms),
            session: None,
            starved: Vec::new(),
            egress: Egress::default(),
            clock_ahead_ms: 0,
            is_silent: false,
            particulars: SupervisorDetails::default(),
        };
        self.supervisors.insert(kept.name, supervisor);
    }

    /// The supervisors that have not come back since the dispatcher's start, and how long each has been silent.
    pub(crate) fn awaited_silences(&self, now_ms: i64) -> Vec<(String, u64)> {
        let awaited = self.supervisors.iter();
        awaited
            .filter(|(_, supervisor)| supervisor.session.is_none())
            .map(|(name, supervisor)| {
                let silent_ms = now_ms.saturating_sub(supervisor.heard_ms);
                (name.clone(), u64::try_from(silent_ms).unwrap_or(0))
            })
            .collect()
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.supervisors.contains_key(name)
    }

    /// The number of connected supervisors.
    pub(crate) fn connected_count(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn check_hello(&self, hello: &Hello) -> HelloVerdict {
        match self.supervisors.get(&hello.supervisor) {
            Some(known) if known.instance != hello.instance => HelloVerdict::NameTaken,
            Some(known) if known.has_session_since(hello.session) => HelloVerdict::Outdated,
            _ => HelloVerdict::Joins,
        }
    }

    /// Begins the session of a supervisor whose hello was accepted.
    pub(super) fn begin_session(&mut self, hello: &Hello, peer: Caller, now_ms: i64) {
        let (starved, egress) = self.remove_with_egress(&hello.supervisor);
        let particulars = SupervisorDetails {
            workers: hello.workers,
            wire_version: peer.version,
            ..SupervisorDetails::default()
        };
        self.names.insert(peer.clone(), hello.supervisor.clone());
        let supervisor = Supervisor {
            instance: hello.instance,
            longest_request_ms: hello.longest_request_ms.min(LONGEST_REQUEST_MS),
            heard_ms: now_ms,
            session: Some(Session::begin(hello, peer, now_ms)),
            starved,
            egress,
            clock_ahead_ms: 0,
            is_silent: false,
            particulars,
        };
        self.supervisors
            .insert(hello.supervisor.clone(), supervisor);
    }

    /// Removes a supervisor. Returns the sites that waited until it accepts further tasks.
    pub(super) fn remove(&mut self, name: &str) -> Vec<SiteId> {
        self.remove_with_egress(name).0
    }

    fn remove_with_egress(&mut self, name: &str) -> (Vec<SiteId>, Egress) {
        let Some(gone) = self.supervisors.remove(name) else {
            return (Vec::new(), Egress::default());
        };
        if let Some(session) = gone.session {
            self.names.remove(&session.peer);
        }
        (gone.starved, gone.egress)
    }

    pub(crate) fn name_of(&self, peer: &Caller) -> Option<&String> {
        self.names.get(peer)
    }

    fn supervisor_in_session(&mut self, peer: &Caller, id: u64) -> Option<&mut Supervisor> {
        let supervisor = self.supervisors.get_mut(self.names.get(peer)?)?;
        let session = supervisor.session.as_ref()?;
        (session.id == id).then_some(supervisor)
    }

    pub(crate) fn is_in_session(&mut self, peer: &Caller, id: u64) -> bool {
        self.supervisor_in_session(peer, id).is_some()
    }

    pub(super) fn on_heartbeat(
        &mut self,
        peer: &Caller,
        beat: &SupervisorHeartbeat,
        now_ms: i64,
    ) -> HeartbeatReply {
        let (patience_ms, lease_ms) = (self.patience_ms(), self.lease_ms);
        let Some(supervisor) = self.supervisor_in_session(peer, beat.session) else {
            return HeartbeatReply::OutOfSync;
        };
        // Once a supervisor's lease has ended, recalls of tasks no longer wait for it, so the lease must not be
        // renewed.
        let is_over = now_ms >= supervisor.lease_ends_ms(lease_ms);
        let Some(session) = supervisor.session.as_mut().filter(|_| !is_over) else {
            return HeartbeatReply::OutOfSync;
        };
        if !session.on_heartbeat(beat, now_ms, patience_ms) {
            return HeartbeatReply::OutOfSync;
        }
        supervisor.heard_ms = now_ms;
        supervisor.is_silent = false;
        supervisor.clock_ahead_ms = beat.wall_ms - now_ms;
        HeartbeatReply::InSync {
            heard_ms: session.heard_sent_ms,
            outcomes_heard: session.outcomes_heard(),
        }
    }

    pub(super) fn on_credit(&mut self, peer: &Caller, id: u64, credit: Credit) {
        if let Some(supervisor) = self.supervisor_in_session(peer, id)
            && let Some(session) = &mut supervisor.session
        {
            session.set_granted_credit(credit);
        }
    }

    pub(crate) fn begin_leaving(
        &mut self,
        peer: &Caller,
        id: u64,
        outcomes_sent: u64,
        now_ms: i64,
    ) {
        if let Some(supervisor) = self.supervisor_in_session(peer, id)
            && let Some(session) = &mut supervisor.session
        {
            session.begin_leaving(outcomes_sent, now_ms);
        }
    }

    pub(crate) fn record_outcomes(&mut self, name: &str, id: u64, number: u64, pages: u64) {
        if let Some(session) = self.session_of(name)
            && session.id == id
        {
            session.record_outcomes(number, pages);
        }
    }

    pub(super) fn session_of(&mut self, name: &str) -> Option<&mut Session> {
        self.supervisors.get_mut(name)?.session.as_mut()
    }

    /// Where to send a message to a supervisor: the peer and its session.
    pub(crate) fn peer_and_session(&mut self, supervisor: &str) -> Option<(Caller, u64)> {
        let session = self.session_of(supervisor)?;
        Some((session.peer.clone(), session.id))
    }

    /// Where to send a numbered message: the peer, its session and the message's number.
    pub(crate) fn next_message_address(&mut self, supervisor: &str) -> Option<(Caller, u64, u64)> {
        let session = self.session_of(supervisor)?;
        Some((session.peer.clone(), session.id, session.next_number()))
    }

    /// If too many crawls were sent to the supervisor, resets the record of them. Returns true in that case: then the
    /// supervisor must be made to forget them, too.
    pub(crate) fn forget_crawls_if_too_many(&mut self, supervisor: &str) -> bool {
        let session = self.session_of(supervisor);
        session.is_some_and(|session| session.forget_crawls_if_too_many())
    }

    /// Records that a crawl is sent to the supervisor. Returns true the first time: then the crawl's settings must be
    /// sent, too.
    pub(crate) fn note_crawl_sent(&mut self, supervisor: &str, crawl: CrawlKey) -> bool {
        let session = self.session_of(supervisor);
        session.is_some_and(|session| session.note_crawl_sent(crawl))
    }

    /// Supervisors that have said goodbye and whose last outcomes have arrived, or are overdue.
    pub(crate) fn departed_supervisors(&self, now_ms: i64) -> Vec<String> {
        let patience_ms = self.patience_ms();
        let has_left = |supervisor: &Supervisor| {
            let session = supervisor.session.as_ref();
            session.is_some_and(|session| session.has_left(now_ms, patience_ms))
        };
        self.names_where(has_left)
    }

    /// Supervisors that have been silent for so long that none of their requests can still be in flight.
    pub(crate) fn lost_supervisors(&self, now_ms: i64) -> Vec<String> {
        self.names_where(|supervisor| now_ms > supervisor.lost_at_ms(self.lease_ms))
    }

    /// Supervisors that have been silent for most of their lease and were not reported before, each with the time at
    /// which it is lost.
    pub(super) fn take_newly_silent(&mut self, now_ms: i64) -> Vec<(String, i64)> {
        let (lease_ms, mut found) = (self.lease_ms, Vec::new());
        for (name, supervisor) in &mut self.supervisors {
            let is_silent = now_ms - supervisor.heard_ms > lease_ms / 5 * 4;
            if is_silent && !supervisor.is_silent {
                supervisor.is_silent = true;
                found.push((name.clone(), supervisor.lost_at_ms(lease_ms)));
            }
        }
        found
    }

    /// Whether a supervisor gets no further tasks, because it drains, leaves, or has fallen silent. It keeps the
    /// tasks that it holds.
    pub(super) fn gets_no_more_tasks(&self, name: &str) -> bool {
        self.supervisors.get(name).is_some_and(|supervisor| {
            let session = supervisor.session.as_ref();
            supervisor.is_silent || session.is_some_and(Session::is_ending)
        })
    }

    pub(crate) fn presence(&self, name: &str, now_ms: i64) -> Presence {
        let Some(supervisor) = self.supervisors.get(name) else {
            return Presence::default();
        };
        let lost_in_ms = supervisor.lost_at_ms(self.lease_ms) - now_ms;
        Presence {
            is_draining: supervisor.session.as_ref().is_some_and(Session::is_ending),
            heard_ago_ms: now_ms - supervisor.heard_ms,
            lost_in_ms: supervisor.is_silent.then_some(lost_in_ms),
            pages: supervisor.session.as_ref().map_or(0, Session::pages),
        }
    }

    /// All supervisors, each with the time when its lease is over unless a heartbeat arrives.
    pub(crate) fn lease_ends(&self) -> Vec<(String, i64)> {
        let all = self.supervisors.iter();
        all.map(|(name, supervisor)| (name.clone(), supervisor.lease_ends_ms(self.lease_ms)))
            .collect()
    }

    /// The name of a connected supervisor, and when its lease is over.
    pub(crate) fn lease_end(&self, peer: &Caller) -> Option<(&str, i64)> {
        let name = self.names.get(peer)?;
        let supervisor = self.supervisors.get(name)?;
        Some((name, supervisor.lease_ends_ms(self.lease_ms)))
    }

    fn names_where(&self, which: impl Fn(&Supervisor) -> bool) -> Vec<String> {
        let found = self.supervisors.iter();
        found
            .filter(|(_, supervisor)| which(supervisor))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// How far a supervisor's wall clock is ahead of the dispatcher's clock, as far as is known.
    pub(crate) fn wall_clock_ahead_ms(&self, name: &str) -> i64 {
        self.supervisors
            .get(name)
            .map_or(0, |supervisor| supervisor.clock_ahead_ms)
    }

    /// The connected supervisors of a lane (`http` or `browser`), beginning after the one that was chosen last.
    pub(super) fn round_robin(&self, lane: Lane) -> impl Iterator<Item = &String> {
        let last = self.last_chosen.get(&lane).map_or("", String::as_str);
        let after = (Bound::Excluded(last), Bound::Unbounded);
        let up_to = (Bound::Unbounded, Bound::Included(last));
        let in_turn = self.supervisors.range::<str, _>(after);
        let in_turn = in_turn.chain(self.supervisors.range::<str, _>(up_to));
        in_turn
            .filter(move |(_, supervisor)| supervisor.lane() == Some(lane))
            .map(|(name, _)| name)
    }

    /// Notes which supervisor gets a new site, so that the next new site goes to the one after it.
    pub(super) fn set_last_chosen(&mut self, lane: Lane, name: &str) {
        self.last_chosen.insert(lane, name.to_owned());
    }

    /// The lane (`http` or `browser`) of a connected supervisor.
    pub(super) fn lane_of(&self, name: &str) -> Option<Lane> {
        self.supervisors.get(name)?.lane()
    }

    /// Whether a supervisor of this lane is connected.
    pub(crate) fn has_lane(&self, lane: Lane) -> bool {
        let mut all = self.supervisors.values();
        all.any(|supervisor| supervisor.lane() == Some(lane))
    }

    /// Notes that a ready site waits until its owner (the supervisor that gets its tasks) grants credit.
    pub(super) fn add_starved(&mut self, name: &str, site: SiteId) {
        if let Some(supervisor) = self.supervisors.get_mut(name) {
            supervisor.starved.push(site);
        }
    }

    /// Takes the sites that wait until this supervisor accepts tasks, once it does.
    pub(super) fn take_starved(&mut self, name: &str, now_ms: i64) -> Vec<SiteId> {
        match self.available_credit(name, now_ms).reserved {
            0 => Vec::new(),
            _ => self.take_all_starved(name),
        }
    }

    pub(super) fn take_all_starved(&mut self, name: &str) -> Vec<SiteId> {
        let supervisor = self.supervisors.get_mut(name);
        supervisor.map_or(Vec::new(), |found| std::mem::take(&mut found.starved))
    }

    pub(crate) fn forget_crawl(&mut self, crawl: CrawlKey) {
        for session in self.sessions() {
            session.forget_crawl(crawl);
        }
    }

    /// Stops handing out tasks to any supervisor.
    pub(crate) fn drain_all_supervisors(&mut self) {
        for session in self.sessions() {
            session.draining = true;
        }
    }

    pub(super) fn drain_supervisor(&mut self, name: &str) {
        if let Some(session) = self.session_of(name) {
            session.draining = true;
        }
    }

    fn sessions(&mut self) -> impl Iterator<Item = &mut Session> {
        let all = self.supervisors.values_mut();
        all.filter_map(|supervisor| supervisor.session.as_mut())
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = &Caller> {
        self.names.keys()
    }

    /// The names and lanes of the connected supervisors.
    pub(crate) fn connected_lanes(&self) -> impl Iterator<Item = (&str, Lane)> {
        let all = self.supervisors.iter();
        all.filter_map(|(name, supervisor)| Some((name.as_str(), supervisor.lane()?)))
    }
}
