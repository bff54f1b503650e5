//! One dispatcher that serves and others that stand by, following the section "Standby" of
//! `docs/explanation/decisions.md`. Everything else of the world is as with one dispatcher, and is judged by the same
//! rules: sites, orders, and the tables, which are read from a file that applies the journal as it is written.
//!
//! # What is real
//!
//! - each dispatcher's core and its file; the changes of its commits, and how another file applies them;
//! - the decisions about the journal: what is appended and when it counts, who may take the lease, until when its
//!   holder may act, and what a reader makes of the records (`webfill_scheduler::journal::Member`);
//! - the making of snapshots, and how a file is replaced by one ([`snapshots`]).
//!
//! # What is simulated
//!
//! - the store of the journal and of the lease ([`journal`]): it adds, reads and compares as MongoDB does, late or not
//!   at all; its answers are lost after it has done what was asked; for a while it is away for all or for one;
//! - dispatchers that die, between turns and within them, that are stopped and continue as ghosts, that are cut off
//!   from the journal, from the supervisors or from both, that hand over, and whose wall clocks are set ([`faults`]);
//! - supervisors, a client and an operator that try the next address if they are not answered ([`following`]).
//!
//! # What is judged besides
//!
//! Nothing leaves a dispatcher once another one has the lease. The journal has no gap, and no record of an earlier
//! epoch after one of a later. At the end all files are equal ([`file_checks`]). [`StandbySabotage`] lists deliberate faults.
//! Each of them must be found.

mod drawing;
mod faults;
pub(crate) mod file_checks;
pub(crate) mod following;
mod journal;
pub(crate) mod journalling;
mod node;
pub(crate) mod node_events;
mod node_trouble;
mod plan;
mod sabotage;
mod serving;
mod snapshots;

use std::collections::BTreeMap;

use webfill_scheduler::Caller;
use webfill_scheduler::effects::{BackfillWrite, SiteStatesWrite};
use webfill_scheduler::journal::{JournalAnswer, JournalReader, JournalRequest};

use crate::dice::Dice;
use crate::event::{MessageToDispatcher, Place};
use crate::plan::Plan;

pub(crate) use self::faults::NodeFault;
use self::journal::Journal;
use self::node::Node;
pub(crate) use self::plan::StandbyPlan;
pub use self::sabotage::StandbySabotage;

/// The dispatchers and their journal.
pub(crate) struct Standbys {
    plan: StandbyPlan,
    dice: Dice,
    nodes: Vec<Node>,
    journal: Journal,
    /// A file that every record of the journal is applied to as soon as it is added.
    reference: Option<Reference>,
    /// The dispatcher that each machine is connected to.
    following: BTreeMap<usize, Following>,
    /// The number of the dispatcher that the client and the operator ask next.
    asked_node: usize,
    /// The number of the client's current request.
    question: u64,
    lives: u32,
    deaths_in_turn: u64,
    sabotage: Option<StandbySabotage>,
    pub(crate) report: StandbysReport,
}

/// The events that were counted in worlds with standbys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StandbysReport {
    pub ms: u64,
    /// The number of times that a dispatcher began to serve.
    pub takeovers: u64,
    /// The number of times that a dispatcher noticed, while adding a record, that it had been replaced.
    pub ghosts: u64,
    /// The number of commands to the journal whose answer was lost or came too late.
    pub lost_answers: u64,
    /// The number of commits that are only partly in the journal.
    pub unfinished: u64,
    /// The number of snapshots, and how often a dispatcher began again with one.
    pub snapshots: u64,
    pub begun_again: u64,
    pub records: u64,
    pub record_bytes: u64,
    pub tasks: u64,
}

/// An event at one of the dispatchers, or at the journal.
#[derive(Debug, Clone)]
pub(crate) enum StandbyEvent {
    Starts(usize),
    Ticks {
        node: usize,
        life: u32,
    },
    Wakes {
        node: usize,
        life: u32,
    },
    FromMachine {
        node: usize,
        life: u32,
        peer: Caller,
        message: MessageToDispatcher,
    },
    /// A request from the client or from the operator.
    FromClient {
        node: usize,
        life: u32,
        asker: Asker,
        frame: Vec<u8>,
    },
    JournalGets {
        node: usize,
        life: u32,
        request: JournalRequest,
        wall_ms: i64,
    },
    JournalSays {
        node: usize,
        life: u32,
        answer: JournalAnswer,
    },
    /// A command to the journal has not been answered for some time.
    AnswerIsMissed {
        node: usize,
        life: u32,
        /// The number of the command's first record, and the number of its records.
        first: u64,
        count: u64,
    },
    StoreGets {
        node: usize,
        life: u32,
        epoch: u64,
        write: Box<SiteStatesWrite>,
    },
    StatesConfirmed {
        node: usize,
        life: u32,
        last: i64,
    },
    Applied {
        node: usize,
        life: u32,
        application: Box<BackfillWrite>,
    },
    Fault(NodeFault),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    Client(u64),
    Operator(u64),
}

impl StandbyEvent {
    pub(crate) fn place(&self) -> Place {
        match *self {
            StandbyEvent::Ticks { node, .. }
            | StandbyEvent::Wakes { node, .. }
            | StandbyEvent::FromMachine { node, .. }
            | StandbyEvent::FromClient { node, .. }
            | StandbyEvent::JournalSays { node, .. }
            | StandbyEvent::AnswerIsMissed { node, .. }
            | StandbyEvent::StatesConfirmed { node, .. }
            | StandbyEvent::Applied { node, .. } => Place::Node(node),
            StandbyEvent::Starts(_)
            | StandbyEvent::JournalGets { .. }
            | StandbyEvent::StoreGets { .. }
            | StandbyEvent::Fault(_) => Place::Nowhere,
        }
    }
}

impl Standbys {
    /// The dispatchers of a plan; `None` if the plan has only one dispatcher.
    pub(crate) fn from_plan(plan: &Plan, seed: u64) -> Option<Box<Standbys>> {
        let plan = plan.standbys.clone()?;
        Some(Box::new(Standbys {
            dice: Dice::new(seed ^ 0x57B1),
            nodes: (0..plan.nodes).map(Node::new).collect(),
            journal: Journal::default(),
            reference: None,
            following: BTreeMap::new(),
            asked_node: 0,
            question: 0,
            lives: 0,
            deaths_in_turn: 0,
            sabotage: None,
            report: StandbysReport::default(),
            plan,
        }))
    }

    pub(crate) fn set_sabotage(&mut self, sabotage: Option<StandbySabotage>) {
        self.sabotage = sabotage;
    }

    fn is_sabotaged_by(&self, sabotage: StandbySabotage) -> bool {
        self.sabotage == Some(sabotage)
    }
}

/// The dispatcher that a machine is connected to, and the time of its last message.
#[derive(Debug, Clone, Copy, Default)]
struct Following {
    node: usize,
    since_ms: u64,
}

/// A file that every record of the journal is applied to as soon as it is added. The checks read this file; in worlds
/// with one dispatcher, they read the dispatcher's file.
struct Reference {
    file: rusqlite::Connection,
    reader: JournalReader,
    /// Whether the last record is only a part of a commit, so that more records must follow.
    is_unfinished: bool,
}
