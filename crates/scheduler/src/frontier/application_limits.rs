//! Limits of applications: how much of each limit is used, and which crawls wait for it.
//!
//! The limits are total pages, pages per second (a token bucket) and sites in parallel. As with a crawl's own limits
//! (see [`holding`](super::holding)), a site notices in its turn that the application may have no further task, and
//! skips the crawl. When there is an allowance again, a crawl of the application is released at as many sites as the
//! allowance covers; the crawls take turns.
//!
//! Pages and leases are counted from the tables at the start; the token bucket starts empty.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use rusqlite::{Connection, Result};
use webfill_wire::CrawlKey;

use super::model::SiteId;
use crate::application_limits::ApplicationLimits;

/// The capacity of the token bucket that limits pages per second: as many pages as the rate allows in this time. So
/// much may be handed out in one burst.
const BURST_S: f64 = 0.25;

/// The applications that have limits, by name.
#[derive(Debug, Default)]
pub(super) struct LimitedApplications {
    apps: HashMap<String, LimitedApplication>,
}

/// The limits of an application, and how far they are used.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationUse {
    pub limits: ApplicationLimits,
    /// The number of fetched pages and of leased tasks.
    pub pages: u64,
    pub sites: u64,
    /// Whether a crawl waits for one of the limits.
    pub is_awaited: bool,
}

#[derive(Debug, Default)]
struct LimitedApplication {
    limits: ApplicationLimits,
    pages: u64,
    leased: u64,
    /// The number of the application's leased tasks at each site.
    sites: HashMap<SiteId, u64>,
    /// The tokens in the bucket as of `tokens_at_ms`; each is worth a page.
    tokens: f64,
    tokens_at_ms: i64,
    /// Crawls that wait until the limits allow further tasks, each with the last site where it was allowed to continue.
    held: VecDeque<(CrawlKey, i64)>,
    in_line: HashSet<CrawlKey>,
}

impl LimitedApplications {
    pub(super) fn load(
        db: &Connection,
        limits: BTreeMap<String, ApplicationLimits>,
        now_ms: i64,
    ) -> Result<LimitedApplications> {
        let mut limited = LimitedApplications::default();
        for (app, limits) in limits {
            let sql = "SELECT coalesce(sum(pages), 0) FROM crawls WHERE app_id = ?1";
            let pages: i64 = db.query_row(sql, [&app], |row| row.get(0))?;
            let application = LimitedApplication {
                limits,
                pages: pages as u64,
                tokens_at_ms: now_ms,
                ..LimitedApplication::default()
            };
            limited.apps.insert(app, application);
        }
        if limited.apps.is_empty() {
            return Ok(limited);
        }
        let sql = "SELECT app_id, site FROM task_rows INDEXED BY tasks_leased
                   CROSS JOIN crawls ON crawls.id = crawl WHERE state = 1";
        let mut select = db.prepare(sql)?;
        let mut leased = select.query([])?;
        while let Some(row) = leased.next()? {
            let app: String = row.get(0)?;
            limited.note_handed_out(&app, row.get(1)?);
        }
        Ok(limited)
    }

    /// Whether the application has limits.
    pub(super) fn is_limited(&self, app: &str) -> bool {
        self.apps.contains_key(app)
    }

    /// How many tasks of an application may be handed out at a site now.
    pub(super) fn allowance_at(&mut self, app: &str, site: SiteId, now_ms: i64) -> u64 {
        match self.apps.get_mut(app) {
            None => u64::MAX,
            Some(application) if application.sites.contains_key(&site) => {
                application.allowance_by_pages(now_ms)
            }
            Some(application) => application.new_site_allowance(now_ms),
        }
    }

    /// How many tasks of an application may be handed out at a site where it has no leased task yet.
    pub(super) fn new_site_allowance(&mut self, app: &str, now_ms: i64) -> u64 {
        let application = self.apps.get_mut(app);
        application.map_or(u64::MAX, |application| {
            application.new_site_allowance(now_ms)
        })
    }

    pub(super) fn note_handed_out(&mut self, app: &str, site: SiteId) {
        if let Some(application) = self.apps.get_mut(app) {
            application.leased += 1;
            application.tokens -= 1.0;
            *application.sites.entry(site).or_default() += 1;
        }
    }

    /// Notes that a leased task has ended or come back. `is_page`: a page was fetched.
    pub(super) fn note_lease_end(&mut self, app: &str, site: SiteId, is_page: bool) {
        let Some(application) = self.apps.get_mut(app) else {
            return;
        };
        application.leased = application.leased.saturating_sub(1);
        application.pages += u64::from(is_page);
        if let Some(n) = application.sites.get_mut(&site) {
            *n -= 1;
            if *n == 0 {
                application.sites.remove(&site);
            }
        }
    }

    /// Makes a crawl wait until the limits of its application allow further tasks. `last_site`: the last site where it
    /// was allowed to continue.
    pub(super) fn hold(&mut self, app: &str, crawl: CrawlKey, last_site: i64) {
        if let Some(application) = self.apps.get_mut(app)
            && application.in_line.insert(crawl)
        {
            application.held.push_back((crawl, last_site));
        }
    }

    /// The use of an application's limits.
    pub(super) fn application_use(&self, app: &str) -> Option<ApplicationUse> {
        let application = self.apps.get(app)?;
        Some(ApplicationUse {
            limits: application.limits.clone(),
            pages: application.pages + application.leased,
            sites: application.sites.len() as u64,
            is_awaited: !application.held.is_empty(),
        })
    }

    /// The applications with waiting crawls: first the ones whose page limit is used up, then all other ones.
    pub(super) fn apps_waiting_at_limits(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let waiting = self.apps.iter().filter(|(_, app)| !app.held.is_empty());
        let (spent, others): (Vec<_>, Vec<_>) = waiting.partition(|(_, app)| app.is_spent());
        let names =
            |apps: Vec<(&String, _)>| apps.into_iter().map(|(name, _)| name.clone()).collect();
        (names(spent), names(others))
    }

    /// Takes out the crawls that need not wait any more: one of each application whose limits allow further tasks.
    pub(super) fn take_released_crawls(&mut self, now_ms: i64) -> Vec<(CrawlKey, i64)> {
        let mut freed = Vec::new();
        for application in self.apps.values_mut() {
            if !application.held.is_empty() && application.new_site_allowance(now_ms) > 0 {
                let first = application.held.pop_front();
                if let Some((crawl, _)) = &first {
                    application.in_line.remove(crawl);
                }
                freed.extend(first);
            }
        }
        freed
    }

    /// When a limit of pages per second next lets a waiting crawl continue.
    pub(super) fn next_allowance_ms(&self) -> Option<i64> {
        let waiting = self
            .apps
            .values()
            .filter(|application| !application.held.is_empty());
        waiting
            .filter_map(LimitedApplication::next_allowance_ms)
            .min()
    }
}

impl LimitedApplication {
    /// How many tasks the limits of pages and of pages per second allow now.
    fn allowance_by_pages(&mut self, now_ms: i64) -> u64 {
        let used = self.pages + self.leased;
        let most = self.limits.max_pages;
        let left = most.map_or(u64::MAX, |most| most.saturating_sub(used));
        let Some(rate) = self.limits.pages_per_second else {
            return left;
        };
        let passed_s = (now_ms - self.tokens_at_ms).max(0) as f64 / 1_000.0;
        self.tokens = (self.tokens + passed_s * rate).min((rate * BURST_S).max(1.0));
        self.tokens_at_ms = now_ms;
        left.min(self.tokens.max(0.0) as u64)
    }

    /// How many tasks are allowed now at a site where the application has no leased task.
    fn new_site_allowance(&mut self, now_ms: i64) -> u64 {
        let most = self.limits.max_sites;
        match most.is_some_and(|most| self.sites.len() as u64 >= most) {
            true => 0,
            false => self.allowance_by_pages(now_ms),
        }
    }

    /// Whether the page limit is used up by fetched pages and leased tasks.
    fn is_spent(&self) -> bool {
        let most = self.limits.max_pages;
        most.is_some_and(|most| self.pages + self.leased >= most)
    }

    fn next_allowance_ms(&self) -> Option<i64> {
        let rate = self.limits.pages_per_second?;
        let is_full = self.is_spent()
            || self
                .limits
                .max_sites
                .is_some_and(|most| self.sites.len() as u64 >= most);
        let wait_ms = ((1.0 - self.tokens).max(0.0) / rate * 1_000.0).ceil() as i64;
        (!is_full).then_some(self.tokens_at_ms + wait_ms + 1)
    }
}
