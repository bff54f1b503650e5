//! The dispatcher process: one loop. Everything that has arrived is applied to the frontier in
//! one transaction, due tasks are leased in the same one, and only after its commit does
//! anybody hear of it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use webfill_startup::signals::{self, Asked};
use webfill_startup::{ExitStatus, Fault};
use webfill_wire::socket::{Arrived, Pattern, Place, SocketName, SocketSpec, Sockets};
use webfill_wire::{DispatcherToSupervisor, MappingSource, SupervisorToDispatcher, codec};

use crate::config::DispatcherSetup;
use crate::dispatcher::Dispatcher;
use crate::frontier::FrontierError;
use crate::ledger::{Ledger, Written};

pub(crate) const TASKS: SocketName = 1;
pub(crate) const OUTCOMES: SocketName = 2;
pub(crate) const CONTROL: SocketName = 3;

/// Something that the loop reacts to.
pub(crate) enum Event {
    Frame(Arrived),
    Written(Written),
}

/// Commits are at least this far apart: what arrives meanwhile shares the next one.
const COMMIT_EVERY: Duration = Duration::from_millis(8);

/// Events taken into one transaction, at most.
const BATCH: usize = 10_000;

/// The loop turns at least this often: heartbeats, lost supervisors, signals.
const IDLE: Duration = Duration::from_millis(500);

/// Runs a dispatcher until it is told to drain, and everything is back.
pub fn run(setup: DispatcherSetup, mappings: Vec<MappingSource>) -> Result<ExitStatus, Fault> {
    let (events, arrived) = mpsc::channel();
    let written = events.clone();
    // The sockets come first, so that a port in use leaves nothing behind; what arrives waits in
    // the channel until there is somebody to answer it.
    let sockets = Sockets::start(socket_specs(&setup), move |frame| {
        // The loop outlives the sockets; a send fails only while both end.
        let _ = events.send(Event::Frame(frame));
    })
    .map_err(Fault::error)?;
    let ledger = Ledger::start(&setup.store, setup.cache.as_ref(), move |answer| {
        let _ = written.send(Event::Written(answer));
    })?;
    let mut dispatcher = Dispatcher::open(setup, mappings, ledger, sockets.outbox())?;
    eprintln!("ready");
    let ended = turn(&mut dispatcher, &arrived);
    dispatcher.close();
    drop(sockets);
    ended
}

fn turn(dispatcher: &mut Dispatcher, arrived: &mpsc::Receiver<Event>) -> Result<ExitStatus, Fault> {
    let mut committed = Instant::now();
    loop {
        let batch = gather(dispatcher, arrived, committed)?;
        for event in batch {
            match event {
                Event::Frame(frame) => take(dispatcher, frame).map_err(frontier_fault)?,
                Event::Written(written) => dispatcher.take_written(written)?,
            }
        }
        dispatcher.hand_out().map_err(frontier_fault)?;
        dispatcher.commit().map_err(frontier_fault)?;
        committed = Instant::now();
        dispatcher.send_letters();
        if signals::asked() >= Asked::Drain {
            dispatcher.drain();
        }
        if dispatcher.is_drained() || signals::asked() == Asked::Stop {
            return Ok(ExitStatus::Done);
        }
    }
}

/// Waits for something to do, and then a little longer for what may share its commit.
fn gather(
    dispatcher: &Dispatcher,
    arrived: &mpsc::Receiver<Event>,
    committed: Instant,
) -> Result<Vec<Event>, Fault> {
    let stopped = || Fault::error("the socket thread has stopped");
    let mut batch = Vec::new();
    let wait = dispatcher.next_ready_in().unwrap_or(IDLE).min(IDLE);
    match arrived.recv_timeout(wait) {
        Ok(event) => batch.push(event),
        Err(RecvTimeoutError::Timeout) => return Ok(batch),
        Err(RecvTimeoutError::Disconnected) => return Err(stopped()),
    }
    let closes = committed + COMMIT_EVERY;
    while batch.len() < BATCH {
        let left = closes.saturating_duration_since(Instant::now());
        match arrived.recv_timeout(left) {
            Ok(event) => batch.push(event),
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return Err(stopped()),
        }
    }
    Ok(batch)
}

fn take(dispatcher: &mut Dispatcher, arrived: Arrived) -> Result<(), FrontierError> {
    let Arrived {
        socket,
        peer,
        frame,
    } = arrived;
    let unreadable = match (socket, peer) {
        (TASKS, Some(peer)) => match codec::decode::<SupervisorToDispatcher>(&frame) {
            Ok(message) => return dispatcher.take_from_supervisor(&peer, message),
            Err(error) => error,
        },
        (CONTROL, Some(peer)) => return dispatcher.take_request(&peer, &frame),
        _ => match codec::decode(&frame) {
            Ok(outcomes) => return dispatcher.take_outcomes(outcomes),
            Err(error) => error,
        },
    };
    tracing::error!(event = "unreadable_message", error = %unreadable, "a message was dropped");
    Ok(())
}

fn socket_specs(setup: &DispatcherSetup) -> Vec<SocketSpec> {
    let bind = |name, pattern, endpoint: &String| SocketSpec {
        name,
        pattern,
        place: Place::Bind(endpoint.clone()),
        identity: None,
    };
    vec![
        bind(TASKS, Pattern::Router, &setup.endpoints.tasks),
        bind(OUTCOMES, Pattern::Pull, &setup.endpoints.outcomes),
        bind(CONTROL, Pattern::Router, &setup.endpoints.control),
    ]
}

/// The welcome that every supervisor gets.
pub(crate) fn welcome(mappings: &[MappingSource]) -> Vec<u8> {
    codec::encode(&DispatcherToSupervisor::Welcome {
        mappings: mappings.to_vec(),
    })
}

pub(crate) fn frontier_fault(error: FrontierError) -> Fault {
    match error {
        FrontierError::Foreign { .. } | FrontierError::Newer { .. } | FrontierError::Scope(_) => {
            Fault::usage(error)
        }
        other => Fault::fatal(other),
    }
}
