//! Judges whether a failure is a machine's: attempts are noted in the [`egress`](super::egress) of the supervisor
//! that made them, and the schedule is adapted when a machine is cut off or open again.

use webfill_wire::TaskDone;

use super::egress::{Attempt, Change, MachineFailures, Reach};
use super::{Dispatch, Lease};
use crate::frontier::{SiteId, Standing};

/// The conclusions from an attempt about its machine.
#[derive(Debug, Default, PartialEq)]
pub struct Judgement {
    /// Whether the attempt says nothing about its site, because the machine is cut off. Then the task is to be tried
    /// again.
    pub is_excused: bool,
    /// The machine that was just found to be cut off, with its earlier failures, which say nothing about sites
    /// either.
    pub cut_off: Option<(String, MachineFailures)>,
    /// The machine that is open again.
    pub opened: Option<String>,
}

impl Dispatch {
    /// The site of an attempt that was not answered, if its lease is in force.
    pub fn unanswered(&self, done: &TaskDone) -> Option<SiteId> {
        match Reach::of(done)? {
            Reach::Answered => None,
            Reach::NoSuchName | Reach::Silence { .. } => Some(self.lease_of(done)?.site),
        }
    }

    fn lease_of(&self, done: &TaskDone) -> Option<&Lease> {
        let lease = self.leases.get(done.task)?;
        (lease.delivery == done.delivery).then_some(lease)
    }

    /// Judges the machine that made an attempt. `before`: the site's standing before.
    pub fn judge_machine(&mut self, done: &TaskDone, before: Standing, now_ms: i64) -> Judgement {
        let mut judgement = Judgement::default();
        let (Some(reach), Some(lease)) = (Reach::of(done), self.lease_of(done)) else {
            return judgement;
        };
        let (name, site) = (lease.supervisor.clone(), lease.site);
        let attempt = Attempt {
            task: done.task,
            site,
            reach,
            before,
            evidence: done.evidence.as_ref(),
            at_ms: now_ms,
        };
        let change = self.fleet.note_attempt(&name, &attempt);
        if change.is_some() {
            self.balance.forget();
        }
        match change {
            Some(Change::CutOff(failures)) => {
                self.release_starved(&name);
                judgement.cut_off = Some((name.clone(), failures));
            }
            // If another machine has a way out, the site moves there instead.
            Some(Change::StillCutOff { .. }) if self.fleet.has_open_peer(&name) => {}
            Some(Change::StillCutOff { wait_ms }) => {
                self.schedule.set_aside(site, now_ms + wait_ms);
            }
            Some(Change::Opened) => {
                self.schedule.end_set_asides();
                judgement.opened = Some(name.clone());
            }
            None => {}
        }
        judgement.is_excused = reach != Reach::Answered && self.fleet.cut_off(&name).is_some();
        judgement
    }

    pub(super) fn release_starved(&mut self, name: &str) {
        for id in self.fleet.take_all_starved(name) {
            self.schedule.make_ready(id);
        }
    }
}
