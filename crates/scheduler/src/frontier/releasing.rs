//! Pauses, resumes and stops crawls, and releases them at their sites; see [`holding`](super::holding).

use super::error::ignore_pruned;
use std::collections::HashSet;

use rusqlite::{Connection, Result, Row, params};
use webfill_wire::{CrawlKey, Outcome};

use super::context::Context;
use super::error::FrontierError;
use super::holding::Limit;
use super::model::{CappedCount, Leased, QueuedCounts, SiteId, TaskId, Turn, WokenSite};
use super::parts::{Crawls, Releases};
use super::{closing, crawl_rows, sites};

/// How many tasks of a crawl may be handed out at a site. If none, notes the reason.
pub(super) fn allowance_or_hold(
    cx: &mut Context,
    site: SiteId,
    key: CrawlKey,
    now_ms: i64,
) -> Result<u64> {
    let room = crawl_allowance(cx, key)?;
    if room == 0 {
        crawl_rows::load_known_crawl(cx, key)?.held = true;
        return Ok(0);
    }
    let Some(crawl) = cx.crawls.get(&key) else {
        return Ok(0);
    };
    let app = &crawl.spec.app_id;
    let room_of_app = cx.limited_applications.allowance_at(app, site, now_ms);
    if room_of_app == 0 {
        cx.limited_applications.hold(app, key, 0);
    }
    Ok(room.min(room_of_app))
}

pub(super) fn crawl_allowance(cx: &mut Context, key: CrawlKey) -> Result<u64> {
    crawl_rows::load_known_crawl(cx, key)?;
    let crawl = cx.crawls.get(&key);
    Ok(crawl.map_or(0, |crawl| cx.lanes.allowance_or_await_lane(key, crawl)))
}

/// Notes that a lease of a crawl is over. `is_page`: there was an HTTP response.
pub(super) fn note_lease_end(cx: &mut Context, key: CrawlKey, site: SiteId, is_page: bool) {
    if let Some(crawl) = cx.crawls.get(&key) {
        cx.limited_applications
            .note_lease_end(&crawl.spec.app_id, site, is_page);
    }
    release_if_allowed(cx, key);
}

/// Lets a crawl that was held back continue: its sites are visited soon.
pub(super) fn release_later(cx: &mut Context, key: CrawlKey) {
    if let Some(crawl) = cx.crawls.get_mut(&key) {
        crawl.held = false;
    }
    // Queued even if the crawl's sites are being visited already, because some may have been held back after their
    // visit.
    cx.holding.to_release.push_back((key, 0));
}

/// Lets a crawl that was held back continue, if it may hand out tasks again.
pub(super) fn release_if_allowed(cx: &mut Context, key: CrawlKey) {
    let crawl = cx.crawls.get(&key).filter(|crawl| crawl.held);
    if crawl.is_some_and(|crawl| cx.lanes.allowance_or_await_lane(key, crawl) > 0) {
        release_later(cx, key);
    }
}

/// Counts tasks that were handed out against their site's limit.
pub(super) fn spend_site_pages(cx: &mut Context, site: SiteId, tasks: &[Leased]) -> Result<()> {
    let Some(limit) = cx.holding.limits.get_mut(&site) else {
        return Ok(());
    };
    limit.left = limit.left.saturating_sub(tasks.len() as u64);
    limit.out.extend(tasks.iter().map(|task| task.task));
    write_limit(cx, site)
}

/// Refunds the page of a task that came back unfetched, if it was handed out under the site's limit.
pub(super) fn refund_site_page(cx: &mut Context, site: SiteId, task: TaskId) -> Result<()> {
    let Some(limit) = cx.holding.limits.get_mut(&site) else {
        return Ok(());
    };
    if limit.out.remove(&task) {
        limit.left = limit.left.saturating_add(1);
    }
    write_limit(cx, site)
}

pub(super) fn set_limit(cx: &mut Context, site: SiteId, left: Option<u64>) -> Result<()> {
    match (left, cx.holding.limits.get(&site)) {
        // If the same limit is set again, its refunds are kept.
        (Some(left), Some(limit)) if limit.left == left => return Ok(()),
        (Some(left), _) => {
            let out = HashSet::new();
            cx.holding.limits.insert(site, Limit { left, out });
        }
        (None, _) => drop(cx.holding.limits.remove(&site)),
    }
    write_limit(cx, site)
}

pub(super) fn write_limit(cx: &mut Context, site: SiteId) -> Result<()> {
    let limit = cx.holding.limits.get(&site);
    let left = limit.map(|limit| i64::try_from(limit.left).unwrap_or(i64::MAX));
    let sql = "UPDATE sites SET pages_left = ?2 WHERE id = ?1";
    cx.db.prepare_cached(sql)?.execute(params![site, left])?;
    Ok(())
}

/// The maximum number of sites that one call of [`Releases::release_next`] visits.
pub(super) const SLICE: usize = 500;

/// The approximate maximum number of tasks that one call of [`Crawls::end_queued_tasks`] closes.
pub(super) const MOST_CLOSED: usize = 2_000;

pub(super) fn queued_sites(db: &Connection, crawl: CrawlKey, limit: usize) -> Result<Vec<SiteId>> {
    let sql = "SELECT site FROM crawl_sites WHERE crawl = ?1 AND queued > 0 LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let site = |row: &Row<'_>| row.get(0);
    select
        .query_map(params![crawl, limit as i64], site)?
        .collect()
}

pub(super) fn held_sites_after(
    db: &Connection,
    crawl: CrawlKey,
    after: i64,
    limit: usize,
) -> Result<Vec<SiteId>> {
    let sql = "SELECT site FROM crawl_sites
               WHERE crawl = ?1 AND site > ?2 AND queued > 0 AND top_priority = 0
               ORDER BY site LIMIT ?3";
    let mut select = db.prepare_cached(sql)?;
    let site = |row: &Row<'_>| row.get(0);
    select
        .query_map(params![crawl, after, limit as i64], site)?
        .collect()
}

impl Releases<'_> {
    /// Lets crawls continue if the limits of their applications allow further tasks again.
    pub fn queue_application_releases(&mut self, now_ms: i64) {
        let freed = self.0.cx.limited_applications.take_released_crawls(now_ms);
        self.0.cx.holding.to_release.extend(freed);
    }

    /// Visits up to [`SLICE`] sites of a crawl that was held back, so that it continues there. Returns the sites in
    /// memory that got tasks by this.
    pub fn release_next(
        &mut self,
        now_ms: i64,
    ) -> std::result::Result<Vec<WokenSite>, FrontierError> {
        let Some((key, last_site)) = self.0.cx.holding.to_release.pop_front() else {
            return Ok(Vec::new());
        };
        if ignore_pruned(self.0.crawl(key).map(|_| false), true)? {
            return Ok(Vec::new());
        }
        self.0.run("resume a crawl", |cx| {
            if crawl_allowance(cx, key)? == 0 {
                crawl_rows::load_known_crawl(cx, key)?.held = true;
                return Ok(Vec::new());
            }
            let spec = &crawl_rows::load_known_crawl(cx, key)?.spec;
            let (app, lane) = (spec.app_id.clone(), spec.lane);
            let room = cx.limited_applications.new_site_allowance(&app, now_ms);
            if room == 0 {
                cx.limited_applications.hold(&app, key, last_site);
                return Ok(Vec::new());
            }
            let slice = usize::try_from(room).unwrap_or(SLICE).min(SLICE);
            let held = held_sites_after(&cx.db, key, last_site, slice)?;
            let mut woken = Vec::new();
            for site in &held {
                if let Some(priority) = sites::release_crawl_at(&cx.db, *site, key)? {
                    let crawl = key;
                    let turn = Turn {
                        priority,
                        crawl,
                        lane: cx.lanes.lane_needed_at(*site, lane),
                    };
                    woken.push(WokenSite { site: *site, turn });
                }
            }
            let next = match held.get(slice - 1) {
                Some(last) => Some(last.0),
                // Begin again with the first site, because some sites may have been held back since their visit.
                None => (last_site > 0 && cx.limited_applications.is_limited(&app)).then_some(0),
            };
            match next {
                Some(next) if cx.limited_applications.is_limited(&app) => {
                    cx.limited_applications.hold(&app, key, next)
                }
                Some(next) => cx.holding.to_release.push_front((key, next)),
                None => {}
            }
            Ok(woken)
        })
    }
}

impl Crawls<'_> {
    /// Pauses a crawl: none of its tasks is handed out; they and further tasks stay queued.
    pub fn pause(&mut self, key: CrawlKey) -> std::result::Result<(), FrontierError> {
        let crawl = self.0.crawl(key)?;
        crawl.paused = true;
        crawl.changed = true;
        self.0.run("pause a crawl", |_| Ok(()))
    }

    /// Resumes a paused crawl.
    pub fn resume(&mut self, key: CrawlKey) -> std::result::Result<(), FrontierError> {
        let crawl = self.0.crawl(key)?;
        if std::mem::replace(&mut crawl.paused, false) {
            crawl.changed = true;
            release_later(&mut self.0.cx, key);
        }
        self.0.run("resume a crawl", |_| Ok(()))
    }

    /// Stops a crawl: its queued tasks will end with `stopped`. Leased tasks may still finish, but their links are
    /// not followed. Opening the crawl again revokes the stop for tasks that are still queued.
    pub fn stop(&mut self, crawl: CrawlKey) -> std::result::Result<(), FrontierError> {
        let crawl = self.0.crawl(crawl)?;
        crawl.ended = Some(Outcome::Stopped);
        crawl.changed = true;
        self.0.run("stop a crawl", |_| Ok(()))
    }

    /// Ends some of the queued tasks of a crawl that was stopped or has expired, as many as take some milliseconds.
    /// Returns whether further calls are needed.
    pub fn end_queued_tasks(
        &mut self,
        key: CrawlKey,
        now_ms: i64,
    ) -> std::result::Result<bool, FrontierError> {
        self.0.crawl(key)?;
        self.0.run("end the tasks of a crawl", |cx| {
            let wall_ms = cx.wall_ms(now_ms);
            let Some(outcome) = crawl_rows::load_known_crawl(cx, key)?.ending_outcome(wall_ms)
            else {
                return Ok(false);
            };
            let mut closed = 0;
            for site in queued_sites(&cx.db, key, SLICE)? {
                let most = MOST_CLOSED - closed;
                let n = closing::end_tasks_at(cx, site, key, outcome, most, now_ms)?;
                sites::subtract_queued(&cx.db, site, n as u64)?;
                closed += n;
                if closed >= MOST_CLOSED {
                    break;
                }
            }
            Ok(crawl_rows::load_known_crawl(cx, key)?.status.queued > 0 && closed > 0)
        })
    }

    /// The counts of the crawl's queued tasks and of their sites.
    pub fn queued_counts(
        &mut self,
        key: CrawlKey,
    ) -> std::result::Result<QueuedCounts, FrontierError> {
        self.0.crawl(key)?;
        self.0.run("count the queued tasks", |cx| {
            let sql = "SELECT count(*) FROM (
                           SELECT 1 FROM crawl_sites WHERE crawl = ?1 AND queued > 0 LIMIT ?2)";
            let mut count = cx.db.prepare_cached(sql)?;
            let sites: i64 =
                count.query_row(params![key, CappedCount::EXAMINED], |row| row.get(0))?;
            drop(count);
            let crawl = crawl_rows::load_known_crawl(cx, key)?;
            Ok(QueuedCounts {
                total: crawl.status.queued,
                low_priority: crawl.waiting.keys().next().copied(),
                high_priority: crawl.waiting.keys().next_back().copied(),
                sites: CappedCount::from_found(sites),
            })
        })
    }
}
