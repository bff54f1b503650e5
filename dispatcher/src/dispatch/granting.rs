//! Leave to hand out: which site is next, who gets its tasks, and how many.

use super::{Dispatch, Grant, Lease};
use crate::frontier::{Leased, SiteId, Turn};

impl Dispatch {
    /// The next site whose tasks are to be handed out, the highest priority first, and crawls in
    /// turn; `None` when nothing is ready or nobody has room.
    pub fn next_grant(&mut self, now_ms: i64) -> Option<Grant> {
        while let Some(id) = self.schedule.first_ready(now_ms) {
            let next = self.schedule.site(id).and_then(|site| site.next);
            let priority = next.map_or(0, |turn| turn.priority);
            let owner = match self.owner_of(id) {
                Some(owner) => owner,
                None => self.next_with_room(priority, now_ms)?,
            };
            self.schedule.pop_ready(id);
            match self.room(&owner, priority, now_ms) {
                0 => self.starve(id, owner),
                room => {
                    if let Some(grant) = self.grant(id, owner, room, now_ms) {
                        return Some(grant);
                    }
                }
            }
        }
        None
    }

    /// How many tasks of this priority may be sent to a supervisor now. Of its reserve, one at a
    /// time: those that go along may be of a lower priority.
    fn room(&self, owner: &str, priority: u8, now_ms: i64) -> u64 {
        let room = self.fleet.room(owner, now_ms);
        if room.ordinary == 0 && self.out.at_least(owner, priority) < room.reserve {
            return room.reserved.min(1);
        }
        room.ordinary
    }

    fn next_with_room(&mut self, priority: u8, now_ms: i64) -> Option<String> {
        let names = self.fleet.in_turn();
        let chosen = names
            .into_iter()
            .find(|name| self.room(name, priority, now_ms) > 0)?;
        self.fleet.choose(&chosen);
        Some(chosen)
    }

    pub(super) fn owner_of(&self, id: SiteId) -> Option<String> {
        let owner = self.schedule.site(id)?.clock.owner.as_ref()?;
        self.fleet.knows(owner).then(|| owner.clone())
    }

    fn starve(&mut self, id: SiteId, owner: String) {
        self.fleet.starve(&owner, id);
    }

    fn grant(&mut self, id: SiteId, owner: String, room: u64, now_ms: i64) -> Option<Grant> {
        let pace = self.schedule.pace(id);
        let site = self.schedule.site_mut(id)?;
        site.scheduled = false;
        if pace == 0 {
            return None;
        }
        let is_new = site.clock.owner.as_ref() != Some(&owner);
        site.clock.owner = Some(owner.clone());
        site.tell_last_request |= is_new;
        let last_request = site.clock.last_start_ms.filter(|_| site.tell_last_request);
        let millis = |span_ms: i64| span_ms.clamp(0, u32::MAX.into()) as u32;
        Some(Grant {
            site: id,
            supervisor: owner,
            tasks: u64::from(pace).min(room) as usize,
            wait_ms: millis(site.starts_at_ms().saturating_sub(now_ms)),
            last_request_ago_ms: last_request.map(|at_ms| millis(now_ms.saturating_sub(at_ms))),
            delay_ms: site.rule.delay_ms,
            new_owner: is_new.then(|| site.clock.clone()),
        })
    }

    /// Tasks were handed out by a grant; `left` are still queued that could be, the next of them
    /// in this turn.
    pub fn handed_out(&mut self, grant: &Grant, tasks: &[Leased], left: u64, next: Option<Turn>) {
        for task in tasks {
            let lease = Lease {
                attempt: task.attempt,
                supervisor: grant.supervisor.clone(),
                site: grant.site,
                priority: task.priority,
            };
            self.add_lease(task.task, lease);
            self.schedule.charge(task.crawl, 1);
            if let Some(session) = self.fleet.session_of(&grant.supervisor) {
                let attrs = task.attrs.as_ref().map_or(0, String::len);
                session.use_credit((task.url.len() + attrs) as u64);
            }
        }
        if let Some(site) = self.schedule.site_mut(grant.site) {
            site.queued = left;
            site.next = next;
        }
        self.schedule.note_if_idle(grant.site);
        self.schedule.schedule(grant.site);
    }
}
