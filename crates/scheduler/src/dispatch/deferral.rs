//! Puts off sites that were granted but had nothing to hand out.
//!
//! Whatever the reason, such a site is not granted again in the same turn of the loop, so that it blocks no other. If
//! the frontier has made progress, or has only corrected which crawl is next, the site is granted again in the next
//! turn. Otherwise another grant would yield nothing again: the site is *set aside*, for longer each time, until
//! tasks of it are handed out. Any event at the site brings it back immediately: a new task, a released crawl, an
//! outcome, a changed rule or backoff, another supervisor.

use super::schedule::Schedule;
use super::{Dispatch, Grant};
use crate::frontier::{NothingHandedOut, SiteId, Turn};

/// How long a site that had nothing to hand out is set aside (not chosen again) the first time, and at most.
const FIRST_MS: i64 = 100;
const LONGEST_MS: i64 = 60_000;

/// For how long a site is set aside, that is, not chosen again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetAsideWait {
    pub for_ms: i64,
    /// How many consecutive times the site had nothing to hand out.
    pub times: u32,
}

impl Dispatch {
    /// Puts off a site that was chosen but had nothing to hand out, for this reason. `next` is the crawl that the
    /// frontier expects to be next there. Returns for how long the site is set aside, if it is.
    pub fn put_off(
        &mut self,
        grant: &Grant,
        why: NothingHandedOut,
        next: Option<Turn>,
        now_ms: i64,
    ) -> Option<SetAsideWait> {
        let site = self.schedule.site_mut(grant.site)?;
        let mut set_aside = None;
        if !why.is_progress() {
            site.empty_grants = site.empty_grants.saturating_add(1);
            let times = site.empty_grants;
            let is_corrected = times == 1 && next != grant.turn;
            set_aside = (!is_corrected).then(|| SetAsideWait {
                for_ms: (FIRST_MS << (times - 1).min(10)).min(LONGEST_MS),
                times,
            });
        }
        let for_ms = set_aside.map_or(1, |aside| aside.for_ms);
        self.schedule.put_off(grant.site, now_ms + for_ms);
        set_aside
    }
}

impl Schedule {
    fn put_off(&mut self, id: SiteId, until_ms: i64) {
        if let Some(site) = self.site_mut(id) {
            site.put_off_until_ms = until_ms;
            self.reschedule(id);
        }
    }

    /// Lets a site be chosen again before the end of its wait, because an event may have given it something to hand
    /// out.
    pub(super) fn end_put_off(&mut self, id: SiteId) {
        if let Some(site) = self.site_mut(id)
            && site.put_off_until_ms > 0
        {
            site.put_off_until_ms = 0;
            self.reschedule(id);
        }
    }

    /// Lets all sites be chosen again that had nothing to hand out, after a change in the fleet.
    pub(super) fn end_put_offs(&mut self) {
        let put_off = self.sites().iter();
        let put_off = put_off.filter(|(_, site)| site.put_off_until_ms > 0);
        let mut ids: Vec<SiteId> = put_off.map(|(id, _)| *id).collect();
        // Sorted, so that the order is repeatable.
        ids.sort_unstable();
        for id in ids {
            self.end_put_off(id);
        }
    }
}
