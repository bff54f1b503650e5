//! Keeps the results of checks of watched pages, and derives the order of checks from them. Each task that a run queues
//! has a rank; at each site the lowest rank goes first ([`Plan`]).
//!
//! A check counts once: one that is not later than the last check of its page changes nothing. How often the pages of a
//! site change is kept as counts only ([`SlotPages`]), so that a rank needs a look-up and not a walk through the site.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_api::CrawlSpec;
use webfill_changes::{PageCheck, Verdict};
use webfill_urls::Url;
use webfill_wire::{CrawlKey, Outcome, TaskDone};

use super::context::Context;
use super::model::{SiteId, TaskId};
use super::parts::Runs;
use super::task_rows::HeldPage;
use super::{FrontierError, crawl_rows};
use crate::revisit::{PageClass, Plan, Rate, SlotPages, slot_of};

/// The assumed delay of a site whose delay is not known yet.
const USUAL_DELAY_MS: i64 = 15_000;

/// The assumed period of a run whose schedule has none.
pub(super) const USUAL_PERIOD_MS: i64 = 86_400_000;

/// Workers request a page unconditionally if its body was not sent for at least this long.
const UNCONDITIONAL_AFTER_MS: i64 = 30 * 86_400_000;

/// The result of a check of a page, compared with the check before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckResult {
    /// There was no earlier check to compare with.
    First,
    Unchanged,
    Changed,
}

impl From<Verdict> for CheckResult {
    fn from(verdict: Verdict) -> CheckResult {
        match verdict {
            Verdict::New => CheckResult::First,
            Verdict::Unchanged => CheckResult::Unchanged,
            Verdict::Changed | Verdict::Gone | Verdict::Back => CheckResult::Changed,
        }
    }
}

/// The stored facts about the checks of a page.
#[derive(Debug, Clone, Copy)]
struct CheckHistory {
    slot: u8,
    class: PageClass,
    times_checked: u64,
    changes: u64,
    last_check_ms: Option<i64>,
    last_change_ms: Option<i64>,
    rate: Rate,
}

impl CheckHistory {
    fn with_prior_rate(class: PageClass) -> CheckHistory {
        let mut kept = CheckHistory {
            slot: 0,
            class,
            times_checked: 0,
            changes: 0,
            last_check_ms: None,
            last_change_ms: None,
            rate: Rate::prior_rate(class),
        };
        kept.update_slot();
        kept
    }

    fn update_slot(&mut self) {
        let is_listing = self.class == PageClass::Listing;
        self.slot = slot_of(self.rate.per_day(), is_listing);
    }

    /// Sets the class of the page. The usual rate of the class matters only until the page's own rate is known.
    fn set_class(&mut self, class: PageClass) {
        if self.times_checked < 2 {
            self.rate = Rate::prior_rate(class);
        }
        self.class = class;
        self.update_slot();
    }

    /// The result of a check if the server's answer decides: it is `not_modified` for an unchanged page. After
    /// [`UNCONDITIONAL_AFTER_MS`] an answer with a body shows nothing, because the page may have been requested
    /// unconditionally.
    fn result_by_server(&self, outcome: Outcome, now_ms: i64) -> Option<CheckResult> {
        let since_ms = self.last_change_ms.map(|last| now_ms.saturating_sub(last));
        match outcome {
            Outcome::NotModified => Some(CheckResult::Unchanged),
            _ if self.times_checked == 0 => None,
            _ if since_ms.is_some_and(|since_ms| since_ms >= UNCONDITIONAL_AFTER_MS) => {
                Some(CheckResult::First)
            }
            _ => Some(CheckResult::Changed),
        }
    }

    /// Counts a check. Returns false if this check or a later one was counted before.
    fn add_check(&mut self, at_ms: i64, found: CheckResult) -> bool {
        let gap_ms = match self.last_check_ms {
            Some(last_ms) if at_ms <= last_ms => return false,
            last_ms => last_ms.map(|last_ms| at_ms.saturating_sub(last_ms)),
        };
        self.times_checked += 1;
        self.last_check_ms = Some(at_ms);
        if found == CheckResult::Changed {
            self.changes += 1;
            self.last_change_ms = Some(at_ms);
        }
        if let Some(gap_ms) = gap_ms.filter(|_| found != CheckResult::First) {
            self.rate = self.rate.after_check(gap_ms, found == CheckResult::Changed);
            self.update_slot();
        }
        true
    }
}

impl Runs<'_> {
    /// Counts checks of pages. Skips those of pages or crawls that are no longer known, and of crawls without a
    /// watch. A check with a time in the future, by a worker whose clock is ahead, counts as of now, so that it does
    /// not block later checks.
    pub fn count_checks(
        &mut self,
        checks: &[PageCheck],
        now_ms: i64,
    ) -> std::result::Result<(), FrontierError> {
        for check in checks {
            let found = self.0.run("look for a crawl", |cx| {
                crawl_rows::find_key(&cx.db, &check.app_id, &check.crawl_id)
            })?;
            let Some(crawl) = found else {
                continue;
            };
            if self.0.crawl(crawl)?.spec.run_began_ms.is_none() {
                continue;
            }
            self.0.run("count a check of a page", |cx| {
                let key = cx.seen.key(crawl, &check.url);
                let Some(task) = cx.seen.task_of(key)? else {
                    return Ok(());
                };
                let Some(site) = find_site_of_task(&cx.db, crawl, task)? else {
                    return Ok(());
                };
                let mut kept = read_history(&cx.db, task)?;
                let before = kept.map(|kept| kept.slot);
                let kept =
                    kept.get_or_insert(CheckHistory::with_prior_rate(class_of_url(&check.url)));
                match kept.add_check(check.at_ms.min(now_ms), check.verdict.into()) {
                    true => write_history(&cx.db, (crawl, site, task), kept, before),
                    false => Ok(()),
                }
            })?;
        }
        Ok(())
    }
}

/// Counts an outcome of a watched page: its class and, if the crawl's pages are not compared, whether the page has
/// changed according to its server.
pub(super) fn count_watched_page(
    cx: &mut Context,
    page: &HeldPage<'_>,
    report: &TaskDone,
    now_ms: i64,
) -> Result<()> {
    let spec = &crawl_rows::load_known_crawl(cx, page.crawl)?.spec;
    let (is_watched, is_compared) = (spec.run_began_ms.is_some(), spec.changes);
    if !is_watched || !report.outcome.is_page() {
        return Ok(());
    }
    let class = match report.links.is_empty() {
        true => class_of_url(page.url),
        false => PageClass::Listing,
    };
    let stored = read_history(&cx.db, report.task)?;
    let mut kept = stored.unwrap_or_else(|| CheckHistory::with_prior_rate(class));
    let mut is_new = stored.is_none();
    if kept.class != class {
        kept.set_class(class);
        is_new = true;
    }
    if let Some(found) = kept
        .result_by_server(report.outcome, now_ms)
        .filter(|_| !is_compared)
    {
        is_new |= kept.add_check(now_ms, found);
    }
    if !is_new {
        return Ok(());
    }
    let of = (page.crawl, page.site, report.task);
    write_history(&cx.db, of, &kept, stored.map(|stored| stored.slot))
}

fn class_of_url(url: &str) -> PageClass {
    const EXTENSIONS: [&str; 8] = ["pdf", "doc", "docx", "odt", "rtf", "xls", "xlsx", "ods"];
    let extension = Url::parse(url).ok().and_then(|url| {
        let (_, extension) = url.path().rsplit_once('.')?;
        Some(extension.to_ascii_lowercase())
    });
    match extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str())) {
        true => PageClass::Document,
        false => PageClass::Other,
    }
}

/// The site of a task, if the task belongs to this crawl.
fn find_site_of_task(db: &Connection, crawl: CrawlKey, task: TaskId) -> Result<Option<SiteId>> {
    let sql = "SELECT site FROM task_rows WHERE id = ?1 AND crawl = ?2";
    let mut select = db.prepare_cached(sql)?;
    let values = params![task as i64, crawl];
    select.query_row(values, |row| row.get(0)).optional()
}

fn read_history(db: &Connection, task: TaskId) -> Result<Option<CheckHistory>> {
    let sql = "SELECT slot, class, checks, changes, last_check_ms, last_change_ms, shape, exposure
               FROM page_checks WHERE task = ?1";
    let kept = |row: &Row<'_>| {
        Ok(CheckHistory {
            slot: row.get(0)?,
            class: PageClass::from_number(row.get(1)?),
            times_checked: row.get::<_, i64>(2)? as u64,
            changes: row.get::<_, i64>(3)? as u64,
            last_check_ms: row.get(4)?,
            last_change_ms: row.get(5)?,
            rate: Rate {
                shape: row.get(6)?,
                exposure: row.get(7)?,
            },
        })
    };
    let mut select = db.prepare_cached(sql)?;
    select.query_row([task as i64], kept).optional()
}

/// Stores the facts about the checks of a page. `before`: the page's former slot (class of change rates), if it had
/// one.
fn write_history(
    db: &Connection,
    (crawl, site, task): (CrawlKey, SiteId, TaskId),
    kept: &CheckHistory,
    before: Option<u8>,
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO page_checks
               (task, slot, class, checks, changes, last_check_ms, last_change_ms, shape, exposure)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    db.prepare_cached(sql)?.execute(params![
        task as i64,
        kept.slot,
        kept.class.number(),
        kept.times_checked as i64,
        kept.changes as i64,
        kept.last_check_ms,
        kept.last_change_ms,
        kept.rate.shape,
        kept.rate.exposure,
    ])?;
    if before == Some(kept.slot) {
        return Ok(());
    }
    let sql = "INSERT INTO check_rates (crawl, site, slot, pages) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO UPDATE SET pages = max(pages + excluded.pages, 0)";
    let mut count = db.prepare_cached(sql)?;
    count.execute(params![crawl, site, kept.slot, 1])?;
    if let Some(before) = before {
        count.execute(params![crawl, site, before, -1])?;
    }
    Ok(())
}

/// The plans of the sites where a batch queues tasks of a run.
#[derive(Default)]
pub(super) struct Ranks {
    plans: BTreeMap<SiteId, Plan>,
}

impl Ranks {
    /// The rank of a task in a run, where the lowest goes first; 0 if the crawl does not belong to a watch. `task`: a
    /// known task, with the time when its last attempt ended.
    pub(super) fn compute_rank(
        &mut self,
        db: &Connection,
        (crawl, spec): (CrawlKey, &CrawlSpec),
        site: SiteId,
        task: Option<(TaskId, i64)>,
        priority: u8,
    ) -> Result<i64> {
        let Some(began_ms) = spec.run_began_ms else {
            return Ok(0);
        };
        let plan = match self.plans.get(&site) {
            Some(plan) => *plan,
            None => load_plan(db, crawl, spec, site, began_ms)?,
        };
        self.plans.insert(site, plan);
        let key = match task {
            None => plan.key_of_new_page(priority),
            Some((task, done_at_ms)) => {
                let kept = read_history(db, task)?
                    .unwrap_or_else(|| CheckHistory::with_prior_rate(PageClass::Other));
                plan.key_of_checked_page(task, kept.slot, kept.rate.per_day(), done_at_ms)
            }
        };
        // 0 would mean that the task has no rank.
        Ok(if key == 0 { 1 } else { key })
    }
}

fn load_plan(
    db: &Connection,
    crawl: CrawlKey,
    spec: &CrawlSpec,
    site: SiteId,
    began_ms: i64,
) -> Result<Plan> {
    let sql = "SELECT slot, pages FROM check_rates WHERE crawl = ?1 AND site = ?2";
    let mut select = db.prepare_cached(sql)?;
    let pages = select.query_map(params![crawl, site], |row| {
        Ok(SlotPages {
            slot: row.get(0)?,
            pages: row.get::<_, i64>(1)?.max(0) as u64,
        })
    })?;
    let pages: Vec<SlotPages> = pages.collect::<Result<_>>()?;
    let sql = "SELECT max(coalesce(delay_ms, ?2), coalesce(rule_delay_ms, 0), 1)
               FROM sites WHERE id = ?1";
    let mut select = db.prepare_cached(sql)?;
    let values = params![site, USUAL_DELAY_MS];
    let delay_ms: i64 = select.query_row(values, |row| row.get(0))?;
    let by_window = spec
        .run_window_ms
        .map(|window_ms| window_ms as u64 / delay_ms as u64);
    let budgets = [by_window, spec.max_pages, spec.domain_max_pages];
    let budget = budgets.into_iter().flatten().min();
    let period_ms = spec.run_period_ms.unwrap_or(USUAL_PERIOD_MS);
    Ok(Plan::new(&pages, budget, (began_ms, period_ms)))
}
