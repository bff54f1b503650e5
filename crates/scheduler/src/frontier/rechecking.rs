//! Runs of a watch: its crawl starts over, and every page that is found is checked again, once per run. A page's task
//! is queued again in its existing row, so that the file does not grow with each run.
//!
//! A task belongs to the run if it is queued or leased, or has ended since the run began (`CrawlSpec::run_began_ms`).
//! Tasks that the previous run has left in the queue stay there, with their ranks: a rank is a time, so waiting tasks
//! move to the front (see [`revisit`](crate::revisit)).

use rusqlite::{OptionalExtension, Result, params};
use webfill_api::CrawlSpec;
use webfill_wire::CrawlKey;

use super::context::Context;
use super::database::Database;
use super::feed::FeedBatch;
use super::model::{LinkContext, SiteId, TaskId};
use super::parts::Runs;
use super::schema::{DONE, QUEUED};
use super::{FrontierError, crawl_rows, unlinked};

/// Begins a run: the input is read from its beginning, and the counters and the sites' budgets start over.
pub(super) fn begin_run(db: &Database, crawl: CrawlKey) -> Result<()> {
    let sql = "UPDATE crawl_sites SET accepted = queued, taken = 0 WHERE crawl = ?1";
    db.execute(sql, [crawl])?;
    let mut select = db.prepare_cached("SELECT site FROM crawl_sites WHERE crawl = ?1")?;
    let mut sites = select.query([crawl])?;
    while let Some(row) = sites.next()? {
        db.note_crawl_site(crawl, row.get(0)?);
    }
    for table in ["outcomes", "skipped", "unmatched_pages", "listed_rows"] {
        db.execute(&format!("DELETE FROM {table} WHERE crawl = ?1"), [crawl])?;
    }
    let sql = "UPDATE crawls SET fed_lines = 0, discovered = queued + leased, done = 0, pages = 0,
                   fields = 0, links = 0, bytes = 0,
                   sites = (SELECT count(*) FROM crawl_sites WHERE crawl = ?1 AND accepted > 0)
               WHERE id = ?1";
    db.execute(sql, [crawl])?;
    Ok(())
}

impl FeedBatch<'_> {
    /// The task of a URL that was seen before, and when it ended, if that was before the run began. `None` otherwise,
    /// and if the crawl does not belong to a watch.
    pub(super) fn find_task_before_run(&mut self, key: u64) -> Result<Option<(TaskId, i64)>> {
        let Some(began_ms) = self.crawl.spec.run_began_ms else {
            return Ok(None);
        };
        self.new_tasks.write(self.db)?;
        let Some(task) = self.seen.task_of(key)? else {
            return Ok(None);
        };
        let sql = "SELECT done_at_ms FROM task_rows
                   WHERE id = ?1 AND state = ?2 AND done_at_ms < ?3";
        let values = params![task as i64, DONE, began_ms];
        let mut select = self.db.prepare_cached(sql)?;
        let done_at_ms = select.query_row(values, |row| row.get(0)).optional()?;
        Ok(done_at_ms.map(|done_at_ms| (task, done_at_ms)))
    }

    /// Queues a task again as if its URL were new. Its earlier attempts and records belonged to another run. Its
    /// deliveries (hand-outs) stay counted, so that late outcomes of earlier ones are still recognised.
    pub(super) fn requeue_for_recheck(
        &mut self,
        (task, done_at_ms): (TaskId, i64),
        site: SiteId,
        context: &LinkContext<'_>,
    ) -> Result<()> {
        let (crawl, checked) = ((self.key, &self.crawl.spec), Some((task, done_at_ms)));
        let priority = context.priority;
        let rank = self
            .ranks
            .compute_rank(self.db, crawl, site, checked, priority)?;
        let sql = "UPDATE task_rows SET state = ?2, outcome = NULL, status_code = NULL,
                       done_at_ms = NULL, deaths = 0, not_before_ms = 0, priority = ?3, depth = ?4,
                       redirects = ?5, parent = ?6, attrs = ?7, rank = ?8
                   WHERE id = ?1";
        self.db.prepare_cached(sql)?.execute(params![
            task as i64,
            QUEUED,
            context.priority,
            context.depth,
            context.redirects,
            context.parent.map(|parent| parent as i64),
            context.attrs,
            rank,
        ])?;
        for sql in [
            "DELETE FROM tries WHERE task = ?1",
            "DELETE FROM task_records WHERE task = ?1",
        ] {
            self.db.prepare_cached(sql)?.execute([task as i64])?;
        }
        let sql = "INSERT OR IGNORE INTO task_records (task, record) VALUES (?1, ?2)";
        for record in context.records {
            self.db
                .prepare_cached(sql)?
                .execute([task as i64, *record])?;
            self.db.note_task_record(task, *record);
        }
        unlinked::mark_page_found(self, task)?;
        self.count_accepted(site, context.priority);
        Ok(())
    }
}

impl Runs<'_> {
    /// Whether all queued tasks of a run are at sites whose budget is used up.
    pub fn is_beyond_budget(
        &mut self,
        crawl: CrawlKey,
    ) -> std::result::Result<bool, FrontierError> {
        let (queued, budget) = {
            let crawl = self.0.crawl(crawl)?;
            (crawl.status.queued, pages_per_site_of_run(&crawl.spec))
        };
        let Some(budget) = budget.filter(|_| queued > 0) else {
            return Ok(false);
        };
        self.0.run("count the tasks beyond the budget", |cx| {
            let sql = "SELECT coalesce(sum(queued), 0) FROM crawl_sites
                       WHERE crawl = ?1 AND queued > 0 AND taken >= ?2";
            let mut select = cx.db.prepare_cached(sql)?;
            let budget = i64::try_from(budget).unwrap_or(i64::MAX);
            let beyond: i64 = select.query_row(params![crawl, budget], |row| row.get(0))?;
            Ok(beyond as u64 == queued)
        })
    }
}

/// How many tasks of a crawl may still be handed out at a site in its run. All pages that a run finds are queued,
/// even beyond the budget, because only then is it known which of them go first.
pub(super) fn run_allowance_at(cx: &mut Context, site: SiteId, crawl: CrawlKey) -> Result<u64> {
    let Some(budget) = pages_per_site_of_run(&crawl_rows::load_known_crawl(cx, crawl)?.spec) else {
        return Ok(u64::MAX);
    };
    let sql = "SELECT taken FROM crawl_sites WHERE crawl = ?1 AND site = ?2";
    let mut select = cx.db.prepare_cached(sql)?;
    let taken: i64 = select.query_row(params![crawl, site], |row| row.get(0))?;
    Ok(budget.saturating_sub(taken as u64))
}

/// The number of pages that a run may check at each site.
fn pages_per_site_of_run(spec: &CrawlSpec) -> Option<u64> {
    spec.run_began_ms.and(spec.domain_max_pages)
}
