//! For how long sites are due whose tasks nobody gets: because no supervisor is there, none has room, or
//! none is of the lane that they need. What waits for its address or provider is not due.

use std::collections::HashMap;

use super::schedule::Schedule;
use super::site::Site;
use crate::frontier::SiteId;

/// The due sites that were found at the last look, and since when they are.
#[derive(Debug, Default)]
pub struct Overdue {
    since_ms: HashMap<SiteId, i64>,
    looked_ms: i64,
}

impl Overdue {
    /// How long the site of the window that has been due for longest waits, as far as calls of this have
    /// seen it; looks at each site.
    pub(crate) fn oldest_due_ms(&mut self, schedule: &Schedule, now_ms: i64) -> i64 {
        let Overdue {
            since_ms,
            looked_ms,
        } = std::mem::take(self);
        let mut found = Overdue {
            since_ms: HashMap::new(),
            looked_ms: now_ms,
        };
        let mut oldest_ms = 0;
        for (id, site) in schedule.sites() {
            if !is_due(site, now_ms) {
                continue;
            }
            // A new site is due since before all time.
            let known_ms = since_ms.get(id).copied().unwrap_or(looked_ms);
            let since_ms = known_ms.max(site.next_request_ms()).min(now_ms);
            found.since_ms.insert(*id, since_ms);
            oldest_ms = oldest_ms.max(now_ms - since_ms);
        }
        *self = found;
        oldest_ms
    }
}

fn is_due(site: &Site, now_ms: i64) -> bool {
    site.queued > 0
        && site.leases == 0
        && site.place_in_group.is_none()
        && site.next_request_ms() <= now_ms
}
