//! Judges whether a failure is a machine's fault. Each attempt is noted in the [`egress`](super::egress) of the
//! supervisor that made it, which says whether its machine reaches the web. When a machine goes offline or is online
//! again, the schedule is adapted.

use webfill_wire::TaskDone;

use super::egress::{EgressChange, MachineFailures, ReachAttempt, ReachResult};
use super::{Dispatch, Lease};
use crate::frontier::{SiteHealth, SiteId};

/// What an attempt to fetch shows about the machine that made it.
#[derive(Debug, Default, PartialEq)]
pub struct MachineFindings {
    /// Whether the attempt says nothing about its site, because the machine is offline. Then the task is to be tried
    /// again.
    pub is_excused: bool,
    /// The machine that was just found to be offline, with its earlier failures, which say nothing about sites
    /// either.
    pub offline: Option<(String, MachineFailures)>,
    /// The machine that reaches the web again.
    pub opened: Option<String>,
}

impl Dispatch {
    /// The site of an attempt that was not answered, if its lease is in force.
    pub fn site_if_unanswered(&self, done: &TaskDone) -> Option<SiteId> {
        match ReachResult::from_task(done)? {
            ReachResult::Answered => None,
            ReachResult::NoSuchName | ReachResult::Silence { .. } => {
                Some(self.find_lease_in_force(done)?.site)
            }
        }
    }

    fn find_lease_in_force(&self, done: &TaskDone) -> Option<&Lease> {
        let lease = self.leases.get(done.task)?;
        (lease.delivery == done.delivery).then_some(lease)
    }

    /// Judges the machine that made an attempt. `before`: the site's health before the attempt.
    pub fn record_attempt_of_machine(
        &mut self,
        done: &TaskDone,
        before: SiteHealth,
        now_ms: i64,
    ) -> MachineFindings {
        let mut judgement = MachineFindings::default();
        let (Some(reach), Some(lease)) =
            (ReachResult::from_task(done), self.find_lease_in_force(done))
        else {
            return judgement;
        };
        let (name, site) = (lease.supervisor.clone(), lease.site);
        let attempt = ReachAttempt {
            task: done.task,
            site,
            reach,
            before,
            evidence: done.evidence.as_ref(),
            at_ms: now_ms,
        };
        let change = self.fleet.record_attempt(&name, &attempt);
        if change.is_some() {
            self.balance.invalidate();
        }
        match change {
            Some(EgressChange::Offline(failures)) => {
                self.release_starved(&name);
                judgement.offline = Some((name.clone(), failures));
            }
            // Nothing to do: another machine reaches the web, so the site moves there.
            Some(EgressChange::StillOffline { .. }) if self.fleet.has_online_peer(&name) => {}
            Some(EgressChange::StillOffline { wait_ms }) => {
                self.schedule.set_aside(site, now_ms + wait_ms);
            }
            Some(EgressChange::Opened) => {
                self.schedule.end_set_asides();
                judgement.opened = Some(name.clone());
            }
            None => {}
        }
        judgement.is_excused =
            reach != ReachResult::Answered && self.fleet.offline_state(&name).is_some();
        judgement
    }

    pub(super) fn release_starved(&mut self, name: &str) {
        for id in self.fleet.take_all_starved(name) {
            self.schedule.make_ready(id);
        }
    }
}
