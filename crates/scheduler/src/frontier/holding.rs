//! Holds tasks back, or ends them before they are handed out, because of pauses, page limits, stops and expiry of
//! crawls, limits of sites, or lanes that no supervisor serves.
//!
//! A crawl may have tasks at a million sites, so no operation visits all sites at once:
//!
//! - *hold*: a site whose turn comes finds that a crawl hands nothing out, and skips the crawl from then on (the
//!   crawl's `top_priority` there becomes 0);
//! - *release*: when the crawl continues, its sites are visited in slices of at most
//!   [`SLICE`](super::releasing::SLICE);
//! - *end*: the queue of a crawl that is over is closed in slices of at most
//!   [`MOST_CLOSED`](super::releasing::MOST_CLOSED) tasks.
//!
//! Holds are stored with the sites. At the start every unpaused crawl with held sites is released again, because
//! releases in progress are not stored.

use std::collections::{HashMap, HashSet, VecDeque};

use rusqlite::{Connection, Result};
use webfill_wire::CrawlKey;

use super::model::{SiteId, TaskId};

/// The crawls that were held back and continue now, and the page limits of sites.
#[derive(Debug, Default)]
pub(super) struct Holding {
    /// Crawls to continue, each with the last of its sites that was visited.
    pub(super) to_release: VecDeque<(CrawlKey, i64)>,
    /// The sites that have a page limit.
    pub(super) limits: HashMap<SiteId, Limit>,
    /// Sites whose rules have changed.
    pub(super) changed_sites: Vec<SiteId>,
    /// Sites whose learned data was dropped on request.
    pub(super) forgotten_sites: Vec<SiteId>,
}

/// A site's limit on further pages.
#[derive(Debug, Default)]
pub(super) struct Limit {
    pub(super) left: u64,
    /// Tasks that were handed out under the limit since the start. A task that comes back unfetched refunds its page.
    pub(super) out: HashSet<TaskId>,
}

impl Holding {
    pub(super) fn load(db: &Connection) -> Result<Holding> {
        let sql = "SELECT id FROM crawls INDEXED BY crawls_unfinished
                   WHERE queued + leased > 0 AND paused = 0 AND EXISTS (
                       SELECT 1 FROM crawl_sites INDEXED BY crawl_sites_held
                       WHERE crawl = crawls.id AND queued > 0 AND top_priority = 0)";
        let mut select = db.prepare(sql)?;
        let to_release = select.query_map([], |row| Ok((row.get(0)?, 0)))?;
        let to_release = to_release.collect::<Result<_>>()?;
        let mut select = db.prepare(
            "SELECT id, pages_left FROM sites INDEXED BY sites_limited WHERE pages_left NOT NULL",
        )?;
        let limits = select.query_map([], |row| {
            let left = row.get::<_, i64>(1)? as u64;
            let out = HashSet::new();
            Ok((row.get(0)?, Limit { left, out }))
        })?;
        Ok(Holding {
            to_release,
            limits: limits.collect::<Result<_>>()?,
            changed_sites: Vec::new(),
            forgotten_sites: Vec::new(),
        })
    }

    /// Whether any crawl that was held back is to continue.
    pub(super) fn has_crawls_to_release(&self) -> bool {
        !self.to_release.is_empty()
    }

    /// How many tasks a site may hand out by its page limit, at most `wanted`.
    pub(super) fn cap_by_page_limit(&self, site: SiteId, wanted: usize) -> usize {
        let Some(limit) = self.limits.get(&site) else {
            return wanted;
        };
        wanted.min(usize::try_from(limit.left).unwrap_or(usize::MAX))
    }

    /// Notes that a task has ended, so that its page cannot be refunded any more.
    pub(super) fn note_task_end(&mut self, site: SiteId, task: TaskId) {
        if let Some(limit) = self.limits.get_mut(&site) {
            limit.out.remove(&task);
        }
    }
}
