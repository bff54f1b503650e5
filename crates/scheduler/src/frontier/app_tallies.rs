//! Keeps the numbers of queued and leased tasks of applications, over all their crawls, so that they are not summed
//! up for each request.

use std::collections::HashMap;

use super::model::AppTally;

/// The maximum number of applications whose counts are kept.
const MOST: usize = 1_000;

/// The counts of those applications that a request has asked about.
#[derive(Debug, Default)]
pub(super) struct AppTallies(HashMap<String, AppTally>);

impl AppTallies {
    pub(super) fn get(&self, app_id: &str) -> Option<AppTally> {
        self.0.get(app_id).copied()
    }

    /// Keeps the counts of an application.
    pub(super) fn insert(&mut self, app_id: &str, tally: AppTally) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(app_id.to_owned(), tally);
    }

    /// Adjusts the counts of an application when the counters of one of its crawls are written.
    pub(super) fn apply_crawl_change(&mut self, app_id: &str, before: (u64, u64), now: (u64, u64)) {
        let Some(tally) = self.0.get_mut(app_id) else {
            return;
        };
        let pending = |(queued, leased): (u64, u64)| u64::from(queued + leased > 0);
        tally.queued = tally.queued + now.0 - before.0;
        tally.leased = tally.leased + now.1 - before.1;
        tally.crawls = tally.crawls + pending(now) - pending(before);
    }
}
