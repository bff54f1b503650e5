//! What is observed of a world, for the checks of machines without a way out, of backoffs, and of standstills.

use std::collections::{BTreeMap, BTreeSet};

use crate::worker::Lease;

#[derive(Debug, Default)]
pub(crate) struct ObservedMachines {
    /// The machines, by the name of the supervisor.
    pub(crate) of_names: BTreeMap<String, ObservedMachine>,
    /// The machine that had a request answered, as the dispatcher is about to learn.
    pub(crate) answering: Option<String>,
    /// The machine whose attempts the dispatcher is about to learn of.
    pub(crate) attempting: Option<String>,
    /// Whether the dispatcher is about to learn of attempts, or a machine joins.
    pub(crate) is_attentive: bool,
    /// How often any machine was offline.
    pub(crate) outages: u64,
}

impl ObservedMachines {
    /// Whether the dispatcher's report about the machines matters now.
    pub(crate) fn needs_report(&self) -> bool {
        self.is_attentive || self.of_names.values().any(|seen| seen.offline.is_some())
    }

    /// Forgets all machines, because a new dispatcher knows nothing of them.
    pub(crate) fn clear(&mut self) {
        self.of_names.clear();
    }
}

#[derive(Debug, Default)]
pub(crate) struct ObservedMachine {
    pub(crate) offline: Option<ObservedCutOff>,
    /// Whether the machine was offline earlier in this session, so that some sites may be excused.
    pub(crate) was_offline: bool,
    pub(crate) answered_ms: u64,
    /// The machine's failures at healthy sites since the last answer: site, task, and time.
    pub(crate) failed: Vec<(usize, u64, u64)>,
}

/// A cut-off that the dispatcher has reported.
#[derive(Debug)]
pub(crate) struct ObservedCutOff {
    pub(crate) since_ms: u64,
    /// When the last probe was sent; before the first one, when the cut-off began.
    pub(crate) probed_ms: u64,
    /// The probes of the last round.
    pub(crate) probes: Vec<Lease>,
    /// The number of other machines' tasks that could have been probes.
    pub(crate) tasks_of_others: usize,
}

#[derive(Debug, Default)]
pub(crate) struct ObservedBackoffs {
    /// The backoffs, by the number of the site.
    pub(crate) of_sites: BTreeMap<usize, ObservedBackoff>,
    /// Whether backoffs may have been ended, because they turned out to be a machine's fault.
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
    /// The number of turns since something was handed out, in the dispatcher's present life.
    pub(crate) quiet_turns: u32,
    /// The number of the latest consecutive checks that found a site due, and the time of the first of them.
    pub(crate) due_checks: u32,
    pub(crate) due_since_ms: u64,
}
