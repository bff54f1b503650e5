//! Finds the machines that have fewer sites than their share, so that sites of others move there, and the machines
//! that are offline.
//!
//! Every grant needs this. Checking hundreds of machines costs far more than the rest of a grant, so the result is
//! reused for a while. Its users check again the few machines that it names.

use std::collections::BTreeMap;

use webfill_wire::Lane;

use super::Dispatch;

/// How long a check of all machines is reused.
const HOLDS_MS: i64 = 100;

/// A site moves to a machine with fewer sites if the owner exceeds its share by more than one part in this number. It
/// also moves if the other machine is below its share by more than that. A difference of a few sites moves none.
const SHARE_TOLERANCE: usize = 10;
const FEW_SITES: usize = 2;

/// The last check of all machines.
#[derive(Debug, Default)]
pub(super) struct Balance {
    /// When the machines were checked; `None`: the result is outdated.
    at_ms: Option<i64>,
    lanes: BTreeMap<Lane, Shares>,
}

#[derive(Debug, Default)]
struct Shares {
    /// The number of sites per machine if they were evenly distributed.
    share: usize,
    /// The deviation from the share that is tolerated.
    tolerance: usize,
    /// Machines with fewer sites than their share.
    below: Vec<String>,
    /// Machines that are below their share by more than the tolerance.
    far_below: Vec<String>,
    offline: Vec<String>,
}

impl Balance {
    /// Discards the result, because a machine has joined or gone, or a machine's connection to the web has changed.
    pub(super) fn invalidate(&mut self) {
        self.at_ms = None;
    }
}

impl Dispatch {
    /// Checks all machines, unless the last check is recent enough.
    pub(super) fn update_balance(&mut self, now_ms: i64) {
        let judged_ms = self.balance.at_ms;
        if judged_ms.is_some_and(|at_ms| (at_ms..at_ms + HOLDS_MS).contains(&now_ms)) {
            return;
        }
        let lanes = [Lane::Http, Lane::Browser].map(|lane| (lane, self.compute_shares(lane)));
        self.balance = Balance {
            at_ms: Some(now_ms),
            lanes: lanes.into(),
        };
    }

    fn compute_shares(&self, lane: Lane) -> Shares {
        let owned = |name: &str| self.schedule.count_owned_by(name);
        let open: Vec<(usize, &String)> = self
            .fleet
            .online_in(lane)
            .map(|name| (owned(name), name))
            .collect();
        let sites: usize = open.iter().map(|(sites, _)| sites).sum();
        let share = sites / open.len().max(1);
        let tolerance = (share / SHARE_TOLERANCE).max(FEW_SITES);
        let below = |most: usize| {
            let few = open.iter().filter(|(sites, _)| *sites < most);
            few.map(|(_, name)| String::clone(name)).collect()
        };
        Shares {
            share,
            tolerance,
            below: below(share),
            far_below: below(share.saturating_sub(tolerance)),
            offline: self.fleet.offline_in(lane).cloned().collect(),
        }
    }

    /// The machine with the fewest sites, if a site of the owner is to move there. It is enough if one of the two is
    /// far from its share: a machine that joins a large fleet late finds none that has far too many.
    pub(super) fn machine_below_its_share(
        &self,
        lane: Lane,
        owner: &str,
        priority: u8,
        now_ms: i64,
    ) -> Option<&String> {
        let shares = self.balance.lanes.get(&lane)?;
        let owned = |name: &str| self.schedule.count_owned_by(name);
        let (most, candidates) = match owned(owner) {
            few if few <= shares.share => return None,
            many if many > shares.share + shares.tolerance => (shares.share, &shares.below),
            _ => {
                let most = shares.share.saturating_sub(shares.tolerance);
                (most, &shares.far_below)
            }
        };
        candidates
            .iter()
            .filter(|name| owned(name) < most && self.credit_for(name, priority, now_ms) > 0)
            .min_by_key(|name| owned(name))
    }

    /// A machine that is offline and is due for the next test (*probe*) whether it reaches the web.
    pub(super) fn machine_to_probe(
        &self,
        lane: Lane,
        priority: u8,
        now_ms: i64,
    ) -> Option<&String> {
        let mut offline = self.balance.lanes.get(&lane)?.offline.iter();
        offline.find(|name| self.credit_for(name, priority, now_ms) > 0)
    }
}
