//! The events that the loop reacts to, and the queues where some of them wait.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use webfill_changes::PageCheck;
use webfill_notifications::DeliveryEnd;
use webfill_scheduler::effects::ChangesAnswer;
use webfill_scheduler::reload::ReloadResult;
use webfill_service::Fault;
use webfill_wire::socket::ArrivedFrame;

use super::sockets::OUTCOMES;
use crate::fair_queue::FairQueue;
use crate::postponed::{PostponedEvents, TurnEvents};
use crate::request_reader::ClientRequest;
use crate::store_writer::WriteResult;

/// The minimum time between two commits. Events that arrive meanwhile share the next one.
const COMMIT_EVERY: Duration = Duration::from_millis(8);

/// The maximum number of events in one transaction; fewer if they are long ([`PostponedEvents`]).
const BATCH: usize = 10_000;

/// An event that the loop reacts to.
pub(super) enum Event {
    Frame(ArrivedFrame),
    Request(ClientRequest),
    WriteResult(WriteResult),
    Reload(ReloadResult),
    Delivery(DeliveryEnd),
    PageChecks(Vec<PageCheck>),
    Changes(ChangesAnswer),
    /// Wakes the loop, which then reads the reports of the journal.
    JournalReported(()),
}

/// The events that have arrived and are not applied yet.
#[derive(Default)]
pub(super) struct Inbox {
    postponed: PostponedEvents<Event>,
    /// Requests of clients. Senders take turns.
    pub(super) requests: FairQueue<ClientRequest>,
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.postponed.is_empty() && self.requests.is_empty()
    }

    pub(super) fn add_request(&mut self, request: ClientRequest) {
        self.requests.push(request.requester.sender(), request);
    }

    /// Puts back events that a turn had no time for.
    pub(super) fn put_back(&mut self, left: impl Iterator<Item = Event>) {
        self.postponed
            .put_back(left.map(|event| (outcome_bytes(&event).unwrap_or(0), event)));
    }

    /// Waits for an event, at most for `idle`. Then collects further events until [`COMMIT_EVERY`] has passed since the
    /// last commit, so that they share the next one.
    pub(super) fn collect(
        &mut self,
        arrived: &mpsc::Receiver<Event>,
        idle: Duration,
        committed: Instant,
    ) -> Result<Vec<Event>, Fault> {
        let stopped = || Fault::error("the socket thread has stopped");
        let mut turn = self.postponed.begin_turn();
        let requests = &mut self.requests;
        let mut add = |turn: &mut TurnEvents<'_, Event>, event: Event| match event {
            Event::Request(request) => requests.push(request.requester.sender(), request),
            event => turn.add(outcome_bytes(&event), event),
        };
        match arrived.recv_timeout(idle) {
            Ok(event) => add(&mut turn, event),
            Err(RecvTimeoutError::Timeout) => return Ok(turn.into_events()),
            Err(RecvTimeoutError::Disconnected) => return Err(stopped()),
        }
        let closes = committed + COMMIT_EVERY;
        for _ in turn.event_count()..BATCH {
            let left = closes.saturating_duration_since(Instant::now());
            match arrived.recv_timeout(left) {
                Ok(event) => add(&mut turn, event),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(stopped()),
            }
        }
        Ok(turn.into_events())
    }
}

/// A function that sends a thread's reports to the loop as events. An error is ignored: the loop outlives the threads,
/// so sending fails only while the process ends.
pub(super) fn event_sender<T: 'static>(
    events: &mpsc::Sender<Event>,
    event: fn(T) -> Event,
) -> impl Fn(T) + Send + Sync + Clone + 'static {
    let events = events.clone();
    move |reported| drop(events.send(event(reported)))
}

/// The length of a frame of outcomes; `None` for any other event.
fn outcome_bytes(event: &Event) -> Option<usize> {
    match event {
        Event::Frame(frame) if frame.socket == OUTCOMES => Some(frame.frame.len()),
        _ => None,
    }
}
