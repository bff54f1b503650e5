//! The backoffs of sites, as seen by the witness when they begin in the dispatcher's database. While a site backs
//! off, it gets no requests, whatever happens to the dispatcher, except for tasks that were handed out before.

use std::collections::{BTreeMap, BTreeSet};

use crate::web::Request;
use crate::worker::site_number;
use crate::world::World;

/// A leased task and the number of its delivery.
pub(crate) type Lease = (i64, u32);

#[derive(Debug, Default)]
pub(crate) struct ObservedBackoffs {
    /// The backoffs, by the number of the site.
    of_sites: BTreeMap<usize, ObservedBackoff>,
    /// Whether backoffs may have been ended, because they turned out to be a machine's fault.
    pub(crate) may_be_over: bool,
    /// When the dispatcher last committed a turn.
    committed_ms: u64,
}

impl ObservedBackoffs {
    pub(crate) fn note_commit(&mut self, now_ms: u64) {
        self.committed_ms = now_ms;
    }
}

#[derive(Debug)]
struct ObservedBackoff {
    /// The site's id in the database.
    site: i64,
    until_ms: u64,
    handed_out_before: BTreeSet<Lease>,
}

impl World {
    /// Reads the committed backoffs. Called after outcomes, which may begin them.
    pub(crate) fn read_backoffs(&mut self) {
        if !self.plan.backoff {
            return;
        }
        let ahead_ms = self.coordinator.ahead_ms();
        let witness = self.coordinator.open_witness();
        let backoff = witness.backing_off_sites(ahead_ms + self.now_ms as i64);
        if std::mem::take(&mut self.backoff.may_be_over) {
            let in_force = |site: i64| backoff.iter().any(|(backing_off, ..)| *backing_off == site);
            self.backoff.of_sites.retain(|_, rest| in_force(rest.site));
        }
        for (site, name, until_ms) in backoff {
            let until_ms = (until_ms - ahead_ms) as u64;
            match self.backoff.of_sites.get_mut(&site_number(&name)) {
                Some(rest) if rest.until_ms > self.now_ms => {
                    rest.until_ms = rest.until_ms.max(until_ms);
                }
                _ => {
                    let handed_out_before = witness.leases(site);
                    let rest = ObservedBackoff {
                        site,
                        until_ms,
                        handed_out_before,
                    };
                    self.backoff.of_sites.insert(site_number(&name), rest);
                }
            }
        }
    }

    /// Prolongs the backoffs when the dispatcher restarts, because none of them has run while it was down. A probe
    /// that was handed out shortly before the end of a backoff still goes at its time.
    pub(crate) fn extend_backoffs_after_restart(&mut self) {
        let committed_ms = self.backoff.committed_ms;
        let down_ms = self.now_ms - committed_ms;
        for rest in self.backoff.of_sites.values_mut() {
            if rest.until_ms > committed_ms {
                rest.until_ms += down_ms;
                let handed_out = self.coordinator.open_witness().leases(rest.site);
                rest.handed_out_before.extend(handed_out);
            }
        }
    }

    /// Judges a request by the backoff of its site. Tasks that were handed out before the backoff are permitted.
    /// Nothing is judged if clocks are set, or if an operator ends the backoff.
    pub(crate) fn check_backoff(
        &mut self,
        machine: usize,
        slot: u16,
        site: usize,
        request: Request,
        who: &str,
    ) {
        let Some(rest) = self.backoff.of_sites.get(&site) else {
            return;
        };
        let lease = self.machines[machine].workers[usize::from(slot)].lease(site);
        let was_before = lease.is_none_or(|lease| rest.handed_out_before.contains(&lease));
        if self.now_ms >= rest.until_ms
            || was_before
            || self.plan.has_clock_fault()
            || self.plan.has_forget_of(site)
        {
            return;
        }
        let (now_ms, until_ms) = (self.now_ms, rest.until_ms);
        let fault = format!(
            "during its backoff until {until_ms}: site {site}, {request:?} by {who} at {now_ms}"
        );
        self.faults.push(fault);
    }
}
