//! The witness: checks the dispatcher's database from outside, as another program would.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension};
use webfill_scheduler::frontier::FILE_NAME;
use webfill_wire::{CrawlKey, SupervisorOutcomes};

use crate::faults::is_failure;
use crate::store::{UNREACHABLE, UNTIL_WOKEN};
use crate::worker::Lease;

/// The time that the database stores as the end of a backoff that only a person can end.
const UNTIL_WOKEN_MS: i64 = 253_402_300_799_999;

pub(crate) struct DatabaseObserver {
    db: Connection,
    /// The tasks that have ended, each with its outcome and its time.
    done: BTreeMap<i64, (String, i64)>,
}

/// The counters of all crawls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) discovered: i64,
    pub(crate) queued: i64,
    pub(crate) leased: i64,
    pub(crate) done: i64,
}

/// The SQL query that finds inconsistent counters. It counts tasks in one pass and not for each site, because some
/// worlds have thousands of sites.
const FAULTS: &str = "
    WITH at_sites AS MATERIALIZED (
        SELECT crawl, site, count(*) AS n FROM tasks WHERE state = 0 GROUP BY crawl, site
    ), of_sites AS MATERIALIZED (
        SELECT site, sum(n) AS n FROM at_sites GROUP BY site
    )
    SELECT 'crawl ' || c.id FROM crawls c WHERE
        discovered <> queued + leased + done
            + (SELECT coalesce(sum(n), 0) FROM skipped WHERE crawl = c.id)
        OR queued <> (SELECT count(*) FROM tasks WHERE crawl = c.id AND state = 0)
        OR leased <> (SELECT count(*) FROM tasks WHERE crawl = c.id AND state = 1)
        OR done <> (SELECT count(*) FROM tasks WHERE crawl = c.id AND state = 2)
        OR done <> (SELECT coalesce(sum(n), 0) FROM outcomes WHERE crawl = c.id)
        OR queued <> (SELECT coalesce(sum(value), 0) FROM json_each(waiting))
    UNION ALL
    SELECT 'crawl ' || c.crawl || ' at ' || c.site FROM crawl_sites c
        LEFT JOIN at_sites q ON q.crawl = c.crawl AND q.site = c.site WHERE
        queued <> coalesce(q.n, 0)
        OR top_priority > (SELECT coalesce(max(priority), 0) FROM tasks
                           WHERE crawl = c.crawl AND site = c.site AND state = 0
                           AND not_before_ms = 0)
    UNION ALL
    SELECT 'parked ' || name FROM sites WHERE in_window = 2 AND top_priority > 0
    UNION ALL
    SELECT 'waits and is done: ' || id FROM tasks WHERE state <> 0 AND not_before_ms > 0
    UNION ALL
    SELECT 'site ' || s.name FROM sites s LEFT JOIN of_sites q ON q.site = s.id
        WHERE queued <> coalesce(q.n, 0)
    UNION ALL
    SELECT 'no owner of a lease at ' || s.name FROM sites s WHERE owner IS NULL
        AND EXISTS (SELECT 1 FROM tasks WHERE site = s.id AND state = 1)
    UNION ALL
    SELECT 'outcome of task ' || id FROM tasks WHERE (state = 2) <> (outcome IS NOT NULL)
    UNION ALL
    SELECT 'queued for resolved records only: ' || id FROM tasks t
        WHERE state = 0 AND attempt = 0
        AND EXISTS (SELECT 1 FROM task_records WHERE task = t.id)
        AND NOT EXISTS (SELECT 1 FROM task_records served JOIN records r ON r.id = served.record
                        WHERE served.task = t.id AND r.resolved = 0)
    UNION ALL
    SELECT 'two tasks of ' || url FROM tasks GROUP BY crawl, url HAVING count(*) > 1";

impl DatabaseObserver {
    pub(crate) fn open(folder: &Path) -> DatabaseObserver {
        DatabaseObserver {
            db: Connection::open(folder.join(FILE_NAME)).expect("it is there"),
            done: BTreeMap::new(),
        }
    }

    fn query_texts(&self, sql: &str) -> Vec<String> {
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let texts = select.query_map([], |row| row.get(0)).expect("it runs");
        texts.collect::<Result<_, _>>().expect("it is text")
    }

    /// Finds inconsistencies, and tasks that have changed after their end. At sites that block, even pages with the
    /// outcome `ok` may be fetched again, because their answer may have been the block.
    pub(crate) fn find_faults(&mut self, blocking_sites: &[String]) -> Vec<String> {
        let mut faults = self.query_texts(FAULTS);
        for fault in &mut faults {
            fault.insert_str(0, "does not add up: ");
        }
        let sql = "SELECT id, outcome, done_at_ms FROM tasks WHERE state = 2";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let rows = select
            .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))
            .expect("it runs");
        let now: BTreeMap<i64, (String, i64)> = rows.collect::<Result<_, _>>().expect("its types");
        for (task, ended) in &self.done {
            if now.get(task) == Some(ended) {
                continue;
            }
            // Whether the task may continue after its end. For example, a failed task is queued again if its site or
            // machine turns out to be the cause.
            let may_go_on = match ended.0.as_str() {
                "stopped" => {
                    self.serves_several_records(*task) || self.is_wanted_by_another_crawl(*task)
                }
                "ok" => self.is_at_one_of(*task, blocking_sites),
                outcome => outcome == "http_error" || is_failure(outcome),
            };
            if !may_go_on {
                let later = now.get(task);
                faults.push(format!(
                    "task {task} ended as {ended:?}, and then as {later:?}"
                ));
            }
        }
        drop(select);
        self.done = now;
        faults
    }

    fn is_at_one_of(&self, task: i64, sites: &[String]) -> bool {
        let sql = "SELECT name FROM tasks t JOIN sites s ON s.id = t.site WHERE t.id = ?1";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let name: String = select
            .query_row([task], |row| row.get(0))
            .expect("it has a site");
        sites.contains(&name)
    }

    /// Whether another crawl also wants a record of this task. This makes the record incomplete again.
    fn is_wanted_by_another_crawl(&self, task: i64) -> bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM task_records mine
                       JOIN tasks ON tasks.id = mine.task
                       JOIN task_records others ON others.record = mine.record
                       JOIN tasks other ON other.id = others.task
                       WHERE mine.task = ?1 AND other.crawl <> tasks.crawl)";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let is_wanted = select.query_row([task], |row| row.get(0));
        is_wanted.expect("there is one row")
    }

    /// Whether several records list the page of a task. Such a task is stopped when all of them are complete. If
    /// another record is fed later, the task is queued again.
    fn serves_several_records(&self, task: i64) -> bool {
        let sql = "SELECT count(*) > 1 FROM task_records WHERE task = ?1";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let several = select.query_row([task], |row| row.get(0));
        several.expect("there is one row")
    }

    pub(crate) fn forget_owners(&self) {
        let forget = "UPDATE sites SET owner = NULL";
        self.db.execute_batch(forget).expect("it runs");
    }

    pub(crate) fn forget_backoffs(&self) {
        let forget = "UPDATE sites SET backoff_until_ms = 0; DELETE FROM site_states";
        self.db.execute_batch(forget).expect("it runs");
    }

    /// The sites whose backoff ends after this time, by the dispatcher's clock. Each has its id, its name, and the end
    /// of the backoff.
    pub(crate) fn backing_off_sites(&self, now_ms: i64) -> Vec<(i64, String, i64)> {
        // The first condition makes SQLite use the index of sites that back off.
        let sql = "SELECT id, name, backoff_until_ms FROM sites
                   WHERE backoff_until_ms > 0 AND backoff_until_ms > ?1";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let rows = select.query_map([now_ms], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let rows: Result<_, _> = rows.expect("it runs").collect();
        rows.expect("its types")
    }

    /// The sites whose states are in the store, according to the dispatcher's database. Each has the end of its
    /// backoff.
    pub(crate) fn saved_states(&self) -> Vec<(String, Option<i64>)> {
        let sql = "SELECT name, iif(unreachable_to NOT NULL, ?1, iif(backoff_until_ms >= ?2, ?3,
                       nullif(backoff_until_ms, 0)))
                   FROM sites LEFT JOIN site_states ON site = id
                   WHERE id NOT IN (SELECT site FROM unsaved_site_states)";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let values = [UNREACHABLE, UNTIL_WOKEN_MS, UNTIL_WOKEN];
        let rows = select.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)));
        let rows: Result<_, _> = rows.expect("it runs").collect();
        rows.expect("its types")
    }

    /// The site of a task under a valid lease. Also whether the site is healthy: it has answered before and is not in
    /// trouble.
    pub(crate) fn site_of(&self, task: u64, delivery: u32) -> Option<(String, bool)> {
        let sql = "SELECT name, delay_ms NOT NULL
                       AND NOT EXISTS (SELECT 1 FROM site_states WHERE site = sites.id)
                   FROM tasks JOIN sites ON sites.id = site
                   WHERE tasks.id = ?1 AND attempt = ?2 AND state = 1";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let row = select.query_row((task as i64, delivery), |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        row.optional().expect("its types")
    }

    pub(crate) fn is_leased(&self, (task, delivery): Lease) -> bool {
        self.site_of(task as u64, delivery).is_some()
    }

    /// The crawl and the outcome of a task that has ended. `None` for tasks that have records.
    pub(crate) fn outcome_of(&self, task: u64) -> Option<(CrawlKey, String)> {
        let sql = "SELECT crawl, outcome FROM tasks WHERE id = ?1 AND state = 2
                       AND NOT EXISTS (SELECT 1 FROM task_records WHERE task = tasks.id)";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let row = select.query_row([task as i64], |row| Ok((row.get(0)?, row.get(1)?)));
        row.optional().expect("its types")
    }

    /// The leased tasks of a site.
    pub(crate) fn leases(&self, site: i64) -> BTreeSet<Lease> {
        let sql = "SELECT id, attempt FROM tasks WHERE site = ?1 AND state = 1";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let rows = select.query_map([site], |row| Ok((row.get(0)?, row.get(1)?)));
        let rows: Result<_, _> = rows.expect("it runs").collect();
        rows.expect("its types")
    }

    pub(crate) fn forget_lanes(&self) {
        let forget = "UPDATE crawls SET spec = json_remove(spec, '$.lane')";
        self.db.execute_batch(forget).expect("it runs");
    }

    pub(crate) fn counters(&self) -> Counters {
        let sql = "SELECT coalesce(sum(discovered), 0), coalesce(sum(queued), 0),
                   coalesce(sum(leased), 0), coalesce(sum(done), 0) FROM crawls";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let counters = select.query_row([], |row| {
            Ok(Counters {
                discovered: row.get(0)?,
                queued: row.get(1)?,
                leased: row.get(2)?,
                done: row.get(3)?,
            })
        });
        counters.expect("there is one row")
    }

    /// Whether all leases in these outcomes have become invalid.
    pub(crate) fn are_all_stale(&self, outcomes: &SupervisorOutcomes) -> bool {
        let done = outcomes.done.iter().map(|done| (done.task, done.delivery));
        let returned = outcomes.returned.iter();
        let returned = returned.map(|returned| (returned.task, returned.delivery));
        let mut leases = done.chain(returned);
        let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND attempt = ?2 AND state = 1
             AND epoch = (SELECT id FROM epochs WHERE epochs.epoch = ?3))";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        !leases.any(|(task, delivery)| {
            let lease = (task as i64, delivery.number, delivery.epoch as i64);
            let in_force = select.query_row(lease, |row| row.get(0));
            in_force.expect("there is one row")
        })
    }

    /// Finds a site with a task that could be handed out now, according to the database: no task of the site is leased,
    /// and a crawl that is not held back has a task queued there. With `only_app`, only crawls of this application
    /// count, because other applications have limits.
    pub(crate) fn find_due_site(
        &self,
        now_ms: i64,
        has_browsers: bool,
        shares_bounds: bool,
        only_app: Option<&str>,
    ) -> Option<String> {
        let sql = "SELECT name FROM sites s
            WHERE queued > 0 AND max(due_at_ms, block_until_ms, backoff_until_ms) <= ?1
                AND coalesce(last_start_ms + rule_delay_ms, 0) <= ?1 -- a delay set since the last request
                AND pages_left IS NOT 0
                AND (in_window = 1 OR NOT EXISTS (SELECT 1 FROM sites WHERE in_window = 1))
                AND NOT (?3 AND EXISTS (SELECT 1 FROM tasks WHERE state = 1))
                AND NOT EXISTS (SELECT 1 FROM tasks WHERE state = 1 AND site = s.id)
                AND EXISTS (SELECT 1 FROM tasks t JOIN crawls c ON c.id = t.crawl
                    WHERE t.site = s.id AND t.state = 0 AND t.not_before_ms = 0
                        AND c.paused = 0 AND c.ended IS NULL
                        AND (c.expires_at_ms IS NULL OR c.expires_at_ms > ?1)
                        AND (?2 OR json_extract(c.spec, '$.lane') IS NOT 'browser')
                        AND c.app_id = coalesce(?4, c.app_id))
            LIMIT 1";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let values = (now_ms, has_browsers, shares_bounds, only_app);
        let site = select.query_row(values, |row| row.get(0)).optional();
        site.expect("it is a name")
    }

    /// For each URL of each crawl, the records that list it.
    pub(crate) fn records(&self) -> BTreeMap<(CrawlKey, String), Vec<String>> {
        let sql = "SELECT t.crawl, t.url, r.name FROM tasks t
                   JOIN task_records served ON served.task = t.id
                   JOIN records r ON r.id = served.record";
        let mut select = self.db.prepare_cached(sql).expect("it is SQL");
        let rows = select.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)));
        let mut records: BTreeMap<(CrawlKey, String), Vec<String>> = BTreeMap::new();
        for row in rows.expect("it runs") {
            let (key, record) = row.expect("its types");
            records.entry(key).or_default().push(record);
        }
        records
    }

    /// For each URL of each crawl, its outcome; `None` if it has none yet.
    pub(crate) fn outcomes(&self) -> BTreeMap<(CrawlKey, String), Option<String>> {
        let mut select = self
            .db
            .prepare_cached("SELECT crawl, url, outcome FROM tasks");
        let select = select.as_mut().expect("it is SQL");
        let rows = select.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)));
        let rows: Result<_, _> = rows.expect("it runs").collect();
        rows.expect("its types")
    }
}
