//! Unlinked pages: pages of a watch that a run no longer finds, neither as a seed nor by a link or in a sitemap. Most
//! removed pages become unlinked, so their removal would go unnoticed. Therefore a run that has checked all pages that
//! it found also checks unlinked ones. It checks such a page immediately and, as long as the page is still served,
//! after 1, 2, 4, ... further runs, at least every 90 days ([`LONGEST_GAP_MS`]).
//!
//! Each page of a watch that detects changes has a row in `known_pages`, with the time of its turn if no run finds it
//! before. Each check postpones the turn. The row is deleted when the page was missing often enough to be reported as
//! gone. It is also deleted if the page would not be checked even if found: it is out of scope now, or nothing of its
//! site is crawled any more. The next check of the page adds the row again.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::{CrawlKey, LinkKind, Outcome, TaskDone};

use super::context::Context;
use super::feed::FeedBatch;
use super::model::{FeedTally, LinkContext, SiteId, TaskId};
use super::page_checks::USUAL_PERIOD_MS;
use super::parts::Runs;
use super::schema::{DONE, QUEUED};
use super::task_rows::HeldPage;
use super::{FrontierError, crawl_rows, feed};
use crate::revisit::LONGEST_GAP_MS;

/// The number of consecutive checks that must miss a page before it is dropped. By then it was reported as gone,
/// unless checks were not judged for long: two checks that are judged late count as one.
const MISSED: u32 = 3;

/// The known facts about a page.
#[derive(Debug, Clone, Copy, Default)]
struct KnownPage {
    /// The number of checks as an unlinked page since a run last found it.
    lost: u32,
    /// The number of consecutive checks that found the page missing.
    missed: u32,
}

impl KnownPage {
    /// How long to wait before the next check if no run finds the page meanwhile; `None`: it is not checked again.
    fn wait_ms(self, period_ms: i64) -> Option<i64> {
        match self {
            KnownPage { lost: 1.., missed } if missed >= MISSED => None,
            KnownPage { lost: 0, .. } | KnownPage { missed: 1.., .. } => Some(0),
            KnownPage { lost, .. } => {
                let gap_ms = period_ms.saturating_mul(1 << (lost - 1).min(30));
                let gap_ms = gap_ms.min(LONGEST_GAP_MS).max(period_ms);
                // Half a period of the watch earlier, because runs do not begin exactly on time.
                Some(gap_ms - period_ms / 2)
            }
        }
    }
}

/// An unlinked page that is due to be checked, unless the run has found it.
struct DuePage {
    task: TaskId,
    /// The data of the page's task and site; `None`: the task was pruned.
    row: Option<DueRow>,
}

struct DueRow {
    state: i64,
    done_at_ms: Option<i64>,
    site: SiteId,
    url: String,
    depth: u16,
    priority: u8,
    /// Whether the run has tasks at the page's site.
    is_site_crawled: bool,
    is_site_backing_off: bool,
}

/// The decision about an unlinked page that is due to be checked.
enum DueAction {
    Checked(SiteId, i64, u8),
    NextRun,
    Forgotten,
}

impl Runs<'_> {
    /// Queues the next unlinked pages of a run that has found everything: at most `most`, those that have waited
    /// longest first. Returns whether there may be more.
    pub fn queue_unlinked_pages(
        &mut self,
        crawl: CrawlKey,
        most: usize,
        now_ms: i64,
    ) -> std::result::Result<(bool, FeedTally), FrontierError> {
        let spec = &self.0.crawl(crawl)?.spec;
        let Some(began_ms) = spec.run_began_ms.filter(|_| spec.changes) else {
            return Ok((false, FeedTally::default()));
        };
        self.0.run("queue pages that a run does not find", |cx| {
            let due = load_due_pages(&cx.db, crawl, began_ms, most)?;
            let mut batch = feed::begin_feed(cx, crawl, now_ms);
            if due.is_empty() || batch.is_unwanted(0, &[]) {
                return Ok((false, FeedTally::default()));
            }
            for due in &due {
                match decide_about_due_page(&mut batch, due, began_ms)? {
                    DueAction::Checked(site, done_at_ms, priority) => {
                        queue_page_check(
                            &mut batch,
                            (due.task, done_at_ms),
                            site,
                            priority,
                            began_ms,
                        )?;
                    }
                    DueAction::NextRun => postpone_to_next_run(batch.db, due.task, began_ms)?,
                    DueAction::Forgotten => delete_known_page(batch.db, due.task)?,
                }
            }
            Ok((true, batch.write_sums()?))
        })
    }
}

/// Sets when a page whose task has ended is checked again if no run finds it.
pub(super) fn schedule_unlinked_check(
    cx: &mut Context,
    page: &HeldPage<'_>,
    report: &TaskDone,
    now_ms: i64,
) -> Result<()> {
    let spec = &crawl_rows::load_known_crawl(cx, page.crawl)?.spec;
    let Some(began_ms) = spec.run_began_ms.filter(|_| spec.changes) else {
        return Ok(());
    };
    let period_ms = spec.run_period_ms.unwrap_or(USUAL_PERIOD_MS).max(1);
    let is_page = report.outcome.is_page();
    let is_missing =
        report.outcome == Outcome::HttpError && matches!(report.status_code, Some(404 | 410));
    let known = load_known_page(&cx.db, report.task)?;
    let Some(mut known) = known.or(is_page.then(KnownPage::default)) else {
        return Ok(());
    };
    known.missed = match is_missing {
        true => known.missed.saturating_add(1),
        false if is_page => 0,
        false => known.missed,
    };
    let Some(wait_ms) = known.wait_ms(period_ms) else {
        return delete_known_page(&cx.db, report.task);
    };
    let due_ms = now_ms.max(began_ms).saturating_add(wait_ms);
    let sql = "INSERT INTO known_pages (task, crawl, due_ms, lost, missed)
               VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT DO UPDATE SET due_ms = excluded.due_ms, missed = excluded.missed";
    let (task, crawl) = (report.task as i64, page.crawl);
    let values = params![task, crawl, due_ms, known.lost, known.missed];
    cx.db.prepare_cached(sql)?.execute(values).map(drop)
}

fn decide_about_due_page(
    batch: &mut FeedBatch<'_>,
    due: &DuePage,
    began_ms: i64,
) -> Result<DueAction> {
    let Some(row) = &due.row else {
        return Ok(DueAction::Forgotten);
    };
    let done_at_ms = match row.done_at_ms.filter(|_| row.state == DONE) {
        Some(done_at_ms) if done_at_ms < began_ms => done_at_ms,
        // The run has checked the page already, or an earlier run has left it in the queue.
        _ => return Ok(DueAction::NextRun),
    };
    let context = LinkContext {
        kind: LinkKind::Link,
        depth: row.depth,
        priority: row.priority,
        redirects: 0,
        parent: None,
        base: None,
        records: &[],
        attrs: None,
        is_of_repetition: false,
    };
    let key = batch.seen.key(batch.key, &row.url);
    let is_latest = batch.seen.task_of(key)? == Some(due.task);
    if !is_latest || !row.is_site_crawled || batch.check_url(&row.url, &context).is_err() {
        return Ok(DueAction::Forgotten);
    }
    if row.is_site_backing_off {
        return Ok(DueAction::NextRun);
    }
    Ok(DueAction::Checked(row.site, done_at_ms, row.priority))
}

/// Queues the task again as a mere check, without its records.
fn queue_page_check(
    batch: &mut FeedBatch<'_>,
    (task, done_at_ms): (TaskId, i64),
    site: SiteId,
    priority: u8,
    began_ms: i64,
) -> Result<()> {
    let (crawl, checked) = ((batch.key, &batch.crawl.spec), Some((task, done_at_ms)));
    let rank = batch
        .ranks
        .compute_rank(batch.db, crawl, site, checked, priority)?;
    let sql = "UPDATE task_rows SET state = ?2, outcome = NULL, status_code = NULL,
                   done_at_ms = NULL, deaths = 0, not_before_ms = 0, redirects = 0, rank = ?3
               WHERE id = ?1";
    let values = params![task as i64, QUEUED, rank];
    batch.db.prepare_cached(sql)?.execute(values)?;
    for sql in [
        "DELETE FROM tries WHERE task = ?1",
        "DELETE FROM task_records WHERE task = ?1",
    ] {
        batch.db.prepare_cached(sql)?.execute([task as i64])?;
    }
    // If the task ends without a check, the page is due again in the next run.
    let sql = "UPDATE known_pages SET lost = lost + 1, due_ms = ?2 WHERE task = ?1";
    let values = params![task as i64, began_ms];
    batch.db.prepare_cached(sql)?.execute(values)?;
    batch.count_accepted(site, priority);
    Ok(())
}

/// Notes that the run has found a page.
pub(super) fn mark_page_found(batch: &mut FeedBatch<'_>, task: TaskId) -> Result<()> {
    let sql = "UPDATE known_pages SET lost = 0 WHERE task = ?1 AND lost <> 0";
    let mut update = batch.db.prepare_cached(sql)?;
    update.execute([task as i64]).map(drop)
}

fn load_known_page(db: &Connection, task: TaskId) -> Result<Option<KnownPage>> {
    let sql = "SELECT lost, missed FROM known_pages WHERE task = ?1";
    let known = |row: &Row<'_>| {
        Ok(KnownPage {
            lost: row.get(0)?,
            missed: row.get(1)?,
        })
    };
    let mut select = db.prepare_cached(sql)?;
    select.query_row([task as i64], known).optional()
}

/// The pages whose checks were due before the run began.
fn load_due_pages(
    db: &Connection,
    crawl: CrawlKey,
    began_ms: i64,
    most: usize,
) -> Result<Vec<DuePage>> {
    let sql = "SELECT k.task, t.state, t.done_at_ms, t.site, t.url, t.depth, t.priority,
                   coalesce(c.accepted, 0) > 0, coalesce(s.backoff_until_ms, 0) > 0
               FROM known_pages k
               LEFT JOIN tasks t ON t.id = k.task
               LEFT JOIN crawl_sites c ON c.crawl = k.crawl AND c.site = t.site
               LEFT JOIN sites s ON s.id = t.site
               WHERE k.crawl = ?1 AND k.due_ms < ?2 ORDER BY k.due_ms LIMIT ?3";
    let mut select = db.prepare_cached(sql)?;
    let due = |row: &Row<'_>| {
        let row_of_task = || -> Result<DueRow> {
            Ok(DueRow {
                state: row.get(1)?,
                done_at_ms: row.get(2)?,
                site: row.get(3)?,
                url: row.get(4)?,
                depth: row.get(5)?,
                priority: row.get(6)?,
                is_site_crawled: row.get(7)?,
                is_site_backing_off: row.get(8)?,
            })
        };
        let is_there = row.get::<_, Option<i64>>(1)?.is_some();
        Ok(DuePage {
            task: row.get::<_, i64>(0)? as u64,
            row: is_there.then(row_of_task).transpose()?,
        })
    };
    let due = select.query_map(params![crawl, began_ms, most as i64], due)?;
    due.collect()
}

/// Postpones the check of a page to the next run.
fn postpone_to_next_run(db: &Connection, task: TaskId, began_ms: i64) -> Result<()> {
    let sql = "UPDATE known_pages SET due_ms = ?2 WHERE task = ?1";
    let mut update = db.prepare_cached(sql)?;
    update.execute(params![task as i64, began_ms]).map(drop)
}

fn delete_known_page(db: &Connection, task: TaskId) -> Result<()> {
    let sql = "DELETE FROM known_pages WHERE task = ?1";
    let mut delete = db.prepare_cached(sql)?;
    delete.execute([task as i64]).map(drop)
}
