//! How long due sites have waited for a supervisor, because none is connected, none has room, or none has the lane
//! that they need. Sites that wait in their group are not due.

use std::collections::{BTreeMap, HashMap};

use webfill_wire::Lane;

use super::Dispatch;
use super::schedule::Schedule;
use super::site::Site;
use crate::frontier::SiteId;

/// The due sites of the last check, each with the time since which it is due.
#[derive(Debug, Default)]
pub struct OverdueSites {
    since_ms: HashMap<SiteId, i64>,
    checked_ms: i64,
}

impl OverdueSites {
    /// How long the site that has been due longest has waited for a supervisor. Checks each site that is in memory. A
    /// site that is found due counts from the previous check at the earliest.
    pub(crate) fn longest_overdue_ms(&mut self, schedule: &Schedule, now_ms: i64) -> i64 {
        let OverdueSites {
            since_ms,
            checked_ms,
        } = std::mem::take(self);
        let mut found = OverdueSites {
            since_ms: HashMap::new(),
            checked_ms: now_ms,
        };
        let mut oldest_ms = 0;
        for (id, site) in schedule.sites() {
            if !is_due(site, now_ms) {
                continue;
            }
            // A site that was not due at the last check counts from that check at the earliest: a new site's due time
            // is 0.
            let known_ms = since_ms.get(id).copied().unwrap_or(checked_ms);
            let since_ms = known_ms.max(site.next_request_ms()).min(now_ms);
            found.since_ms.insert(*id, since_ms);
            oldest_ms = oldest_ms.max(now_ms - since_ms);
        }
        *self = found;
        oldest_ms
    }
}

/// How many sites that are in memory could be fetched from at once, by lane: those with a leased task, and those that
/// wait for nothing but a supervisor. Checks each site in memory.
pub(crate) fn count_due_sites(dispatch: &Dispatch, now_ms: i64) -> BTreeMap<Lane, usize> {
    let mut counts = BTreeMap::new();
    for site in dispatch.schedule.sites().values() {
        let needed = site.next.map(|turn| turn.lane);
        let lane = match site.leases > 0 {
            // A site with leased tasks occupies its owner, whatever lane its next task needs.
            true => {
                let owner = site.clock.owner.as_ref();
                owner
                    .and_then(|owner| dispatch.fleet.lane_of(owner))
                    .or(needed)
            }
            false => needed.filter(|_| is_due(site, now_ms)),
        };
        if let Some(lane) = lane {
            *counts.entry(lane).or_default() += 1;
        }
    }
    counts
}

fn is_due(site: &Site, now_ms: i64) -> bool {
    site.queued > 0
        && site.leases == 0
        && site.place_in_group.is_none()
        && site.next_request_ms() <= now_ms
}
