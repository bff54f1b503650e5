//! Why and how long the sites that are in memory wait, for reports to people. No decision depends on it.

use super::Schedule;
use crate::dispatch::site::{LOOKAHEAD_MS, Site};
use crate::frontier::SiteId;

/// Why a site that is in memory waits before its next task can be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteWait {
    /// The site waits for the outcomes of its leased tasks.
    Leased,
    /// The site waits for the time that its clock, a block or a backoff allows.
    Time { until_ms: i64 },
    /// The site waits for other sites of its address or provider.
    Group,
    /// The site waits for another supervisor: a task that was to test whether its owner's machine reaches the web has
    /// failed here.
    Aside { until_ms: i64 },
    /// The site is not chosen for a while, because it had nothing to hand out when it was chosen.
    SetAside { until_ms: i64 },
    /// The site waits until its owner, or another supervisor of its lane, accepts tasks.
    Credit,
    /// The site is ready, but other sites are served first.
    Turn,
}

impl Schedule {
    /// Why a site waits, and the delay between two requests to it. `None`: the site is not in memory.
    pub(crate) fn wait_reason_and_delay(&self, id: SiteId, now_ms: i64) -> Option<(SiteWait, u32)> {
        let site = self.site(id)?;
        let delay_ms = site.delay_ms(self.default_delay_ms());
        Some((wait_reason(site, now_ms), delay_ms))
    }

    pub(crate) fn count_sites_in_window(&self) -> usize {
        self.sites().len()
    }

    /// How many sites that are in memory, besides those that back off, are not due before `ms`, and when the first of
    /// them is due.
    pub(crate) fn count_delayed_sites(&self, ms: i64) -> (u64, Option<i64>) {
        let sites = self.sites().values();
        let waiting = sites.filter(|site| {
            let backoff = site.backoff_until_ms.is_some_and(|until_ms| until_ms > ms);
            site.queued > 0 && site.leases == 0 && !backoff && site.next_request_ms() > ms
        });
        let due: Vec<i64> = waiting.map(|site| site.next_request_ms()).collect();
        (due.len() as u64, due.iter().min().copied())
    }

    /// The minimum time until the slowest site in memory has no queued tasks left.
    pub(crate) fn least_time_left_ms(&self, now_ms: i64) -> i64 {
        let default_delay_ms = self.default_delay_ms();
        let sites = self.sites().values();
        let least = sites.map(|site| site.least_time_left_ms(default_delay_ms, now_ms));
        least.max().unwrap_or(0)
    }

    /// The number of sites in memory that have had nothing to hand out more than once in a row.
    pub(crate) fn count_set_aside_sites(&self) -> usize {
        let sites = self.sites().values();
        sites.filter(|site| site.empty_grants > 1).count()
    }

    pub(crate) fn site_name(&self, id: SiteId) -> Option<&str> {
        self.site(id).map(|site| site.name.as_str())
    }
}

fn wait_reason(site: &Site, now_ms: i64) -> SiteWait {
    let until_ms = site.next_request_ms();
    if site.leases > 0 {
        SiteWait::Leased
    } else if site.place_in_group.is_some() {
        SiteWait::Group
    } else if site.aside_until_ms > now_ms {
        let until_ms = site.aside_until_ms;
        SiteWait::Aside { until_ms }
    } else if site.empty_grants > 0 && site.put_off_until_ms > now_ms {
        let until_ms = site.put_off_until_ms;
        SiteWait::SetAside { until_ms }
    } else if until_ms - LOOKAHEAD_MS > now_ms {
        SiteWait::Time { until_ms }
    } else if site.place.is_some() {
        SiteWait::Turn
    } else {
        SiteWait::Credit
    }
}
