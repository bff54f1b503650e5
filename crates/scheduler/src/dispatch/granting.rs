//! Grants: which site is next, which supervisor gets its tasks, and how many.

use std::collections::BTreeSet;

use webfill_wire::Lane;

use super::egress::FIRST_PROBE_MS;
use super::{Dispatch, Grant, Lease};
use crate::frontier::{LeaseBatch, SiteId};

/// The step between two pseudo-random numbers. As multiples of the golden ratio (modulo 1, as 64 bits) they are spread
/// evenly over their range, and repeatable.
const DRAW_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Which supervisor gets the next task of a site.
enum NextReceiver {
    /// The present owner, or the one the site moves to now.
    Owner(String),
    /// Another supervisor, once the owner holds no more leases of the site.
    NotYet,
    /// Any supervisor of this lane, as the new owner.
    AnyOf(Lane),
}

impl Dispatch {
    /// Chooses the next site whose tasks are handed out: by the highest priority, then by crawls in turn, then the
    /// site that has been due longest. `None` when no site is ready or no supervisor has credit. If no machine
    /// reaches the web, the site is drawn at random.
    pub fn next_grant(&mut self, now_ms: i64) -> Option<Grant> {
        // The lanes where no supervisor accepts tasks of a new site.
        let mut full = BTreeSet::new();
        self.update_balance(now_ms);
        while let Some(id) = self.next_ready_site(&full, now_ms) {
            let next = self.schedule.site(id).and_then(|site| site.next);
            let priority = next.map_or(0, |turn| turn.priority);
            if self.schedule.await_group_if_full(id, now_ms) {
                continue;
            }
            let owner = match self.choose_receiver(id, priority, now_ms) {
                NextReceiver::Owner(owner) => owner,
                NextReceiver::NotYet => {
                    self.schedule.await_owner_change(id);
                    continue;
                }
                NextReceiver::AnyOf(lane) => {
                    match self.choose_supervisor_with_credit(lane, priority, now_ms) {
                        Some(owner) => owner,
                        None => {
                            self.schedule.await_lane_credit(id, lane);
                            full.insert(lane);
                            continue;
                        }
                    }
                }
            };
            self.schedule.remove_from_ready(id);
            match self.credit_for(&owner, priority, now_ms) {
                0 => self.mark_starved(id, owner),
                room => {
                    if let Some(grant) = self.make_grant(id, owner, room, now_ms) {
                        return Some(grant);
                    }
                }
            }
        }
        None
    }

    fn next_ready_site(&mut self, full: &BTreeSet<Lane>, now_ms: i64) -> Option<SiteId> {
        let draw = self.fleet.is_offline().then(|| {
            self.last_draw = self.last_draw.wrapping_add(DRAW_STEP);
            self.last_draw
        });
        self.schedule.next_ready_site(full, draw, now_ms)
    }

    /// How many tasks of this priority may be sent to a supervisor now. If it has only the credit left that is reserved
    /// for high priorities, the number is at most one, because further tasks of the same grant may have a lower
    /// priority.
    pub(super) fn credit_for(&self, owner: &str, priority: u8, now_ms: i64) -> u64 {
        let room = self.fleet.available_credit(owner, now_ms);
        if room.ordinary == 0 && self.leases.count_held_at_least(owner, priority) < room.reserve {
            return room.reserved.min(1);
        }
        room.ordinary
    }

    fn choose_receiver(&self, id: SiteId, priority: u8, now_ms: i64) -> NextReceiver {
        let lane = self.lane_of_new_owner(self.next_lane(id));
        let Some(owner) = self.owner_of(id) else {
            return NextReceiver::AnyOf(lane);
        };
        let is_empty = self.schedule.site(id).is_none_or(|site| site.leases == 0);
        if self.needs_other_owner(id, &owner) {
            return match is_empty {
                true => NextReceiver::AnyOf(lane),
                false => NextReceiver::NotYet,
            };
        }
        match self.better_owner(id, &owner, priority, now_ms) {
            None => NextReceiver::Owner(owner),
            Some(better) if is_empty => NextReceiver::Owner(better),
            Some(_) => NextReceiver::NotYet,
        }
    }

    /// A supervisor that is better for a site than its owner: an offline one that is due for a test, or one that has
    /// joined late and has fewer sites than its share.
    fn better_owner(&self, id: SiteId, owner: &str, priority: u8, now_ms: i64) -> Option<String> {
        let lane = self.fleet.lane_of(owner)?;
        let site = self.schedule.site(id)?;
        let is_well = site.clock.delay_ms.is_some() && site.backoff_until_ms.is_none();
        let probed = self.machine_to_probe(lane, priority, now_ms);
        let better = probed.filter(|_| is_well);
        let better = better.or_else(|| self.machine_below_its_share(lane, owner, priority, now_ms));
        better.cloned()
    }

    fn next_lane(&self, id: SiteId) -> Lane {
        let next = self.schedule.site(id).and_then(|site| site.next);
        next.map_or(Lane::Http, |turn| turn.lane)
    }

    /// The lane to choose a site's new owner from. If no supervisor has a browser, any lane will do: the frontier hands
    /// out no task that needs one, and the site skips such tasks.
    fn lane_of_new_owner(&self, needed: Lane) -> Lane {
        let is_open = |lane| self.fleet.online_in(lane).next().is_some();
        let has_http = is_open(Lane::Http) || !is_open(Lane::Browser);
        match needed {
            Lane::Browser if self.fleet.has_lane(Lane::Browser) => Lane::Browser,
            _ if has_http && self.fleet.has_lane(Lane::Http) => Lane::Http,
            _ if self.fleet.has_lane(Lane::Browser) => Lane::Browser,
            _ => Lane::Http,
        }
    }

    /// Whether the owner is offline or gets no more tasks, or the next task needs a browser, which the owner lacks and
    /// another supervisor has.
    pub(super) fn needs_other_owner(&self, id: SiteId, owner: &str) -> bool {
        let lacks_browser = self.next_lane(id) == Lane::Browser
            && self.fleet.has_lane(Lane::Browser)
            && self.fleet.lane_of(owner) != Some(Lane::Browser);
        lacks_browser
            || self.fleet.offline_state(owner).is_some()
            || self.fleet.gets_no_more_tasks(owner)
    }

    fn choose_supervisor_with_credit(
        &mut self,
        lane: Lane,
        priority: u8,
        now_ms: i64,
    ) -> Option<String> {
        // The first supervisor nearly always has credit, so a lazy search avoids a list of a large fleet.
        let has_room = |name: &&String| self.credit_for(name, priority, now_ms) > 0;
        let chosen = self.fleet.round_robin(lane).find(has_room)?.clone();
        self.fleet.set_last_chosen(lane, &chosen);
        Some(chosen)
    }

    pub(super) fn owner_of(&self, id: SiteId) -> Option<String> {
        let owner = self.schedule.site(id)?.clock.owner.as_ref()?;
        self.fleet.knows(owner).then(|| owner.clone())
    }

    fn mark_starved(&mut self, id: SiteId, owner: String) {
        self.fleet.add_starved(&owner, id);
    }

    fn make_grant(&mut self, id: SiteId, owner: String, room: u64, now_ms: i64) -> Option<Grant> {
        let pace = match self.fleet.offline_state(&owner) {
            Some(_) => self.schedule.free_leases(id).min(1),
            None => self.schedule.free_leases(id),
        };
        let (group_room, next_start_ms) = self.schedule.group_capacity(id);
        let site = self.schedule.site_mut(id)?;
        site.scheduled = false;
        if pace == 0 {
            return None;
        }
        let is_new = site.clock.owner.as_ref() != Some(&owner);
        if is_new {
            self.schedule.set_owner(id, Some(owner.clone()));
        }
        let site = self.schedule.site_mut(id)?;
        site.sends_last_request |= is_new;
        let last_request = site.clock.last_start_ms.filter(|_| site.sends_last_request);
        let millis = |span_ms: i64| span_ms.clamp(0, u32::MAX.into()) as u32;
        let start_ms = site.next_request_ms().max(next_start_ms).max(now_ms);
        Some(Grant {
            site: id,
            turn: site.next,
            lane: self.fleet.lane_of(&owner).unwrap_or(Lane::Http),
            supervisor: owner,
            tasks: u64::from(pace.min(group_room)).min(room) as usize,
            start_ms,
            wait_ms: millis(start_ms.saturating_sub(now_ms)),
            last_request_ago_ms: last_request.map(|at_ms| millis(now_ms.saturating_sub(at_ms))),
            delay_ms: site.rule.delay_ms,
            new_owner: is_new.then(|| site.clock.clone()),
        })
    }

    /// Records the tasks that were handed out under a grant, how many more tasks the site has, and which crawl is next
    /// there.
    pub fn record_grant(&mut self, grant: &Grant, batch: &LeaseBatch) {
        let now_ms = grant.start_ms - i64::from(grant.wait_ms);
        let group = self.schedule.group_of(grant.site);
        for task in &batch.tasks {
            let lease = Lease {
                group: group.clone(),
                delivery: task.delivery,
                supervisor: grant.supervisor.clone(),
                site: grant.site,
                priority: task.priority,
                crawl: task.crawl,
                since_ms: now_ms,
            };
            self.add_lease(task.task, lease);
            self.schedule.count_handed_out(task.crawl, 1);
            if let Some(egress) = self.fleet.egress_of(&grant.supervisor) {
                egress.on_handed_out(task.task);
            }
            if let Some(session) = self.fleet.session_of(&grant.supervisor) {
                let attrs = task.attrs.as_ref().map_or(0, String::len);
                session.use_credit((task.url.len() + attrs) as u64);
            }
        }
        self.schedule
            .put_off_next_start_of_group(grant.site, batch.tasks.len(), grant.start_ms);
        if let Some(site) = self.schedule.site_mut(grant.site) {
            site.queued = batch.left;
            site.set_next(batch.next);
            if !batch.tasks.is_empty() {
                site.empty_grants = 0;
            }
        }
        self.schedule.queue_if_idle(grant.site);
        if self.is_probe(grant) {
            // The site is not chosen again for a while, so that the other tests of the machine go to other sites.
            let until_ms = grant.start_ms + FIRST_PROBE_MS;
            self.schedule.set_aside(grant.site, until_ms);
        }
        self.schedule.schedule(grant.site);
    }

    /// Whether the tasks of a grant are tests (*probes*), because neither this machine nor another reaches the web.
    fn is_probe(&self, grant: &Grant) -> bool {
        let is_offline = self.fleet.offline_state(&grant.supervisor).is_some();
        is_offline && !self.fleet.has_online_peer(&grant.supervisor)
    }
}
