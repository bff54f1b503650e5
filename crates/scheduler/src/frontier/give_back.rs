//! Ends leases without an outcome: the tasks are given back, and may be closed.

use rusqlite::{OptionalExtension, Result, Row, params};
use webfill_wire::{Delivery, Outcome};

use super::closing::end_task;
use super::model::{HeldLease, NextCrawl, ReturnResult, TaskId, TaskSketch};
use super::parts::Tasks;
use super::schema::QUEUED;
use super::task_rows::find_held_task;
use super::{FrontierError, crawl_rows, epochs, releasing, sites, turns};

/// A task that has killed this many workers ends with `crashed`.
const MOST_DEATHS: u32 = 3;

impl Tasks<'_> {
    /// Queues a leased task again that has no outcome. `blamed`: the task has killed its worker. After
    /// [`MOST_DEATHS`] deaths it ends with `crashed`.
    pub fn return_task(
        &mut self,
        task: TaskId,
        delivery: Delivery,
        blamed: bool,
        now_ms: i64,
    ) -> Result<ReturnResult, FrontierError> {
        self.0.run("take a task back", |cx| {
            let Some(held) = find_held_task(&cx.db, task, delivery)? else {
                return Ok(ReturnResult::Stale);
            };
            cx.backoff.ending.remove(&task);
            let deaths = held.deaths + u32::from(blamed);
            let sql = "UPDATE task_rows SET state = ?2, deaths = ?3 WHERE id = ?1";
            let values = params![task as i64, QUEUED, deaths];
            cx.db.prepare_cached(sql)?.execute(values)?;
            let wall_ms = cx.wall_ms(now_ms);
            let crawl = crawl_rows::load_known_crawl(cx, held.crawl)?;
            crawl.changed = true;
            crawl.status.leased -= 1;
            let ending = crawl.ending_outcome(wall_ms);
            releasing::note_lease_end(cx, held.crawl, held.site, false);
            releasing::refund_site_page(cx, held.site, task)?;
            if deaths >= MOST_DEATHS {
                end_task(cx, held.crawl, task, Outcome::Crashed, None, now_ms)?;
                return Ok(ReturnResult::Quarantined);
            }
            if let Some(outcome) = ending {
                end_task(cx, held.crawl, task, outcome, None, now_ms)?;
                return Ok(ReturnResult::Ended);
            }
            crawl_rows::load_known_crawl(cx, held.crawl)?.count_queued(held.priority, 1);
            let (site, crawl) = (held.site, held.crawl);
            sites::add_to_crawl_share(&cx.db, site, crawl, 1, held.priority)?;
            sites::add_queued(&cx.db, site, 1, held.priority)?;
            let (priority, crawl) = (held.priority, held.crawl);
            let turn = turns::turn_with_lane(cx, site, NextCrawl { priority, crawl })?;
            Ok(ReturnResult::Requeued(turn))
        })
    }

    /// A stored task, by its id.
    pub fn get(&mut self, task: TaskId) -> Result<Option<TaskSketch>, FrontierError> {
        self.0.run("read a task", |cx| {
            let sql = "SELECT crawl, url, name, depth, json FROM tasks
                       JOIN sites ON sites.id = site LEFT JOIN attrs ON attrs.id = tasks.attrs
                       WHERE tasks.id = ?1";
            let mut select = cx.db.prepare_cached(sql)?;
            let sketch = |row: &Row<'_>| {
                Ok(TaskSketch {
                    crawl: row.get(0)?,
                    url: row.get(1)?,
                    site: row.get(2)?,
                    depth: row.get(3)?,
                    attrs: row.get(4)?,
                })
            };
            select.query_row([task as i64], sketch).optional()
        })
    }

    /// Tasks that have ended with `crashed` since a time: their id, their last delivery (hand-out), and when they
    /// ended.
    pub fn list_crashed_since(
        &mut self,
        ms: i64,
    ) -> Result<Vec<(TaskId, Delivery, i64)>, FrontierError> {
        self.0.run("look for crashed tasks", |cx| {
            let sql = concat!(
                "SELECT ",
                epochs::delivery!(),
                ", id, done_at_ms FROM tasks
                 WHERE outcome = 'crashed' AND done_at_ms >= ?1"
            );
            let mut select = cx.db.prepare_cached(sql)?;
            let crashed = select.query_map([ms], |row| {
                let task = row.get::<_, i64>(2)? as u64;
                Ok((task, epochs::read_delivery(row)?, row.get(3)?))
            })?;
            crashed.collect()
        })
    }

    /// All leases in force, oldest task first.
    pub fn leases(&mut self) -> std::result::Result<Vec<HeldLease>, FrontierError> {
        self.0.run("list the leases", |cx| {
            // The index is named because SQLite would otherwise scan all tasks in the order of their ids.
            let sql = concat!(
                "SELECT ",
                epochs::delivery!(),
                ", id, site, priority, crawl
                 FROM task_rows AS tasks INDEXED BY tasks_leased WHERE state = 1"
            );
            let mut select = cx.db.prepare_cached(sql)?;
            let leases = select.query_map([], |row| {
                Ok(HeldLease {
                    task: row.get::<_, i64>(2)? as u64,
                    delivery: epochs::read_delivery(row)?,
                    site: row.get(3)?,
                    priority: row.get(4)?,
                    crawl: row.get(5)?,
                })
            })?;
            let mut leases = leases.collect::<Result<Vec<_>>>()?;
            leases.sort_by_key(|lease| lease.task);
            Ok(leases)
        })
    }
}
