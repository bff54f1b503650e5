//! Observations of a world. They are used to judge machines without a connection to the web, backoffs, and standstills.

use std::collections::{BTreeMap, BTreeSet};

use crate::worker::Lease;

#[derive(Debug, Default)]
pub(crate) struct ObservedMachines {
    /// The machines by the names of their supervisors.
    pub(crate) of_names: BTreeMap<String, ObservedMachine>,
    /// The machine that got an answer from a site and is just reporting this to the dispatcher.
    pub(crate) answering: Option<String>,
    /// The machine that is just reporting attempts at tasks to the dispatcher.
    pub(crate) attempting: Option<String>,
    /// Whether attempts are just being reported to the dispatcher, or a machine is joining.
    pub(crate) is_attentive: bool,
    /// The number of times that a machine has become offline.
    pub(crate) outages: u64,
}

impl ObservedMachines {
    /// Whether the dispatcher's report about the machines is needed now.
    pub(crate) fn needs_report(&self) -> bool {
        self.is_attentive || self.of_names.values().any(|seen| seen.offline.is_some())
    }

    /// Forgets all machines when the dispatcher restarts, because a new dispatcher knows nothing about them.
    pub(crate) fn clear(&mut self) {
        self.of_names.clear();
    }
}

#[derive(Debug, Default)]
pub(crate) struct ObservedMachine {
    pub(crate) offline: Option<ObservedCutOff>,
    /// Whether the machine was offline earlier in this session, so that some of its failures may be excused.
    pub(crate) was_offline: bool,
    pub(crate) answered_ms: u64,
    /// The machine's failures at healthy sites since the last answer: site, task, and time.
    pub(crate) failed: Vec<(usize, u64, u64)>,
}

/// An outage of a machine's connection to the web that the dispatcher has reported.
#[derive(Debug)]
pub(crate) struct ObservedCutOff {
    pub(crate) since_ms: u64,
    /// The time of the last probe. Before the first probe, the time when the failure began.
    pub(crate) probed_ms: u64,
    /// The probes of the last round.
    pub(crate) probes: Vec<Lease>,
    /// The number of tasks that other machines got instead, although they could have been probes for this machine.
    pub(crate) tasks_of_others: usize,
}

#[derive(Debug, Default)]
pub(crate) struct ObservedBackoffs {
    /// The backoffs by the numbers of their sites.
    pub(crate) of_sites: BTreeMap<usize, ObservedBackoff>,
    /// Whether backoffs may have been ended, because a machine turned out to be the cause of the failures.
    pub(crate) may_be_over: bool,
    /// When the dispatcher last committed a turn.
    pub(crate) committed_ms: u64,
}

impl ObservedBackoffs {
    pub(crate) fn note_commit(&mut self, now_ms: u64) {
        self.committed_ms = now_ms;
    }
}

#[derive(Debug)]
pub(crate) struct ObservedBackoff {
    /// The site's id in the database.
    pub(crate) site: i64,
    pub(crate) until_ms: u64,
    pub(crate) handed_out_before: BTreeSet<Lease>,
}

#[derive(Debug, Default)]
pub(crate) struct Standstill {
    /// The number of turns in the dispatcher's present life since something was handed out.
    pub(crate) quiet_turns: u32,
    /// The number of consecutive checks so far that found a site due, and the time of the first of these checks.
    pub(crate) due_checks: u32,
    pub(crate) due_since_ms: u64,
}
