//! The events in a world, and the places where they happen.

use webfill_scheduler::Caller;
use webfill_scheduler::effects::{BackfillWrite, SiteStatesWrite};
use webfill_wire::{
    DispatcherToSupervisor, SupervisorOutcomes, SupervisorToDispatcher, SupervisorToWorker,
    WorkerToSupervisor,
};

use crate::faults::Fault;
use crate::standbys::StandbyEvent;
use crate::worker::FinishedTask;

/// A process that events affect. It may be stopped for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Nowhere,
    Dispatcher,
    /// One of several dispatchers, by its number.
    Node(usize),
    Supervisor(usize),
    Worker(usize, u16),
}

/// An event at one of the processes.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    DispatcherWakes,
    DispatcherStarts,
    ToDispatcher {
        life: u32,
        peer: Caller,
        message: MessageToDispatcher,
    },
    ToSupervisor {
        machine: usize,
        connection: u64,
        message: DispatcherToSupervisor,
    },
    SupervisorStarts(usize),
    SupervisorSpeaks(usize),
    FromWorker {
        machine: usize,
        life: u32,
        message: WorkerToSupervisor,
    },
    WorkerMissed {
        machine: usize,
        life: u32,
        slot: u16,
        blamed: Option<u64>,
    },
    WorkerStarts {
        machine: usize,
        life: u32,
        slot: u16,
        blamed: Option<u64>,
    },
    WorkerHangs {
        machine: usize,
        slot: u16,
        incarnation: u32,
    },
    ToWorker {
        machine: usize,
        slot: u16,
        incarnation: u32,
        message: SupervisorToWorker,
    },
    WorkerReady {
        machine: usize,
        slot: u16,
        incarnation: u32,
    },
    Turn {
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    },
    Answered {
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    },
    Saved {
        machine: usize,
        slot: u16,
        incarnation: u32,
        finished: Box<FinishedTask>,
    },
    ClocksKept {
        machine: usize,
        slot: u16,
        incarnation: u32,
    },
    /// A task of a worker waits for a name server.
    WorkerWaits {
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    },
    /// The store has written states of sites. The dispatcher is informed later.
    SiteStatesStored {
        life: u32,
        write: Box<SiteStatesWrite>,
    },
    SiteStatesConfirmed {
        life: u32,
        last: i64,
    },
    /// The store has applied a saved page to another record that lists the page's URL.
    Applied {
        life: u32,
        application: Box<BackfillWrite>,
    },
    Fault(Fault),
    Standby(StandbyEvent),
    NamesakeEnds(usize),
    ClientAsks,
    OperatorActs(usize),
}

impl Event {
    /// The process that this event affects.
    pub(crate) fn place(&self) -> Place {
        if let Event::Standby(event) = self {
            return event.place();
        }
        match *self {
            Event::DispatcherWakes
            | Event::ToDispatcher { .. }
            | Event::Applied { .. }
            | Event::SiteStatesStored { .. }
            | Event::SiteStatesConfirmed { .. } => Place::Dispatcher,
            Event::ToSupervisor { machine, .. }
            | Event::SupervisorSpeaks(machine)
            | Event::FromWorker { machine, .. }
            | Event::WorkerMissed { machine, .. }
            | Event::WorkerStarts { machine, .. }
            | Event::WorkerHangs { machine, .. } => Place::Supervisor(machine),
            Event::ToWorker { machine, slot, .. }
            | Event::WorkerReady { machine, slot, .. }
            | Event::Turn { machine, slot, .. }
            | Event::Answered { machine, slot, .. }
            | Event::Saved { machine, slot, .. }
            | Event::WorkerWaits { machine, slot, .. }
            | Event::ClocksKept { machine, slot, .. } => Place::Worker(machine, slot),
            Event::DispatcherStarts
            | Event::Standby(_)
            | Event::SupervisorStarts(_)
            | Event::Fault(_)
            | Event::NamesakeEnds(_)
            | Event::ClientAsks
            | Event::OperatorActs(_) => Place::Nowhere,
        }
    }
}

/// A message to the dispatcher.
#[derive(Debug, Clone)]
pub(crate) enum MessageToDispatcher {
    Word(SupervisorToDispatcher),
    Outcomes(SupervisorOutcomes),
}
