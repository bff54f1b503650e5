//! The additions of a batch to the counts of its sites and its crawl. They are collected while candidates are judged,
//! and written once, at the end of the batch.

use rusqlite::{Connection, OptionalExtension, Result, params};
use webfill_wire::CrawlKey;

use super::FeedBatch;
use crate::frontier::model::{FeedTally, SiteId, Turn, WokenSite};
use crate::frontier::sites;

/// A batch's additions to one site.
#[derive(Default)]
pub(super) struct FedSite {
    /// The number of tasks that are new to the crawl.
    accepted: u64,
    /// The number of new tasks and of tasks that are queued again.
    queued: u64,
    top_priority: u8,
    /// How many tasks of the crawl the site had before the batch. Read when first needed.
    accepted_before: Option<u64>,
}

impl FeedBatch<'_> {
    /// Counts a task that the batch has queued, new or again.
    pub(in crate::frontier) fn count_queued(&mut self, site: SiteId, priority: u8) {
        let fed = self.fed.entry(site).or_default();
        fed.queued += 1;
        fed.top_priority = fed.top_priority.max(priority);
        *self.queued.entry(priority).or_default() += 1;
    }

    /// Whether the site's page budget has room. A run of a watch applies its budget only when tasks are handed out.
    pub(super) fn has_budget_left(&mut self, site: SiteId) -> Result<bool> {
        let spec = &self.crawl.spec;
        let Some(budget) = spec
            .domain_max_pages
            .filter(|_| spec.run_began_ms.is_none())
        else {
            return Ok(true);
        };
        let fed = self.fed.entry(site).or_default();
        let before = match fed.accepted_before {
            Some(before) => before,
            None => read_accepted_count(self.db, self.key, site)?,
        };
        fed.accepted_before = Some(before);
        Ok(before + fed.accepted < budget)
    }

    /// Counts a task that is new to the crawl.
    pub(in crate::frontier) fn count_accepted(&mut self, site: SiteId, priority: u8) {
        self.count_queued(site, priority);
        self.fed.entry(site).or_default().accepted += 1;
        self.tally.accepted += 1;
    }

    /// Writes the batch's additions to its sites and its crawl.
    pub(in crate::frontier) fn write_sums(mut self) -> Result<FeedTally> {
        self.new_tasks.write(self.db)?;
        // If the crawl hands nothing out now, its new tasks do not affect the sites' priorities.
        let is_held = self.lanes.allowance_or_await_lane(self.key, self.crawl) == 0;
        for (site, fed) in self.fed.iter().filter(|(_, fed)| fed.queued > 0) {
            let priority = if is_held { 0 } else { fed.top_priority };
            if sites::add_queued(self.db, *site, fed.queued, priority)? && priority > 0 {
                let turn = Turn {
                    priority,
                    crawl: self.key,
                    lane: self.lanes.lane_needed_at(*site, self.crawl.spec.lane),
                };
                self.tally.woken.push(WokenSite { site: *site, turn });
            }
            let (share, last_turn) = ((self.key, *site), self.last_turn);
            let (accepted, queued) = (fed.accepted, fed.queued);
            let accepted_in_all = sites::add_fed_to_crawl_share(
                self.db, share, accepted, queued, priority, last_turn,
            )?;
            self.crawl.status.sites += u64::from(accepted_in_all == fed.accepted);
        }
        self.crawl.status.discovered += self.tally.accepted;
        for (priority, n) in &self.queued {
            self.crawl.count_queued(*priority, *n);
        }
        self.crawl.held |= is_held;
        self.crawl.changed = true;
        self.seen.maintain(self.db)?;
        Ok(self.tally)
    }
}

fn read_accepted_count(db: &Connection, crawl: CrawlKey, site: SiteId) -> Result<u64> {
    let sql = "SELECT accepted FROM crawl_sites WHERE crawl = ?1 AND site = ?2";
    let mut select = db.prepare_cached(sql)?;
    let accepted = select
        .query_row(params![crawl, site], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(accepted.unwrap_or(0) as u64)
}
