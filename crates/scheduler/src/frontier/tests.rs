use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use tempfile::TempDir;
use webfill_api::CrawlSpec;
use webfill_wire::{CrawlKey, Lane, Outcome, Reason, SiteClock, TaskDone};

use super::*;

mod application_limits;
mod awaited;
mod backing_off;
mod feeding;
mod holding;
mod lanes;
mod leasing;
mod many_crawls;
mod opening;
mod page_checks;
mod patience;
mod pruning;
mod rechecking;
mod reopening;
mod reporting;
mod retrying;
mod reversal;
mod scripts;
mod serving_records;
mod sharing;
mod sitemaps;
mod unlinked;
mod unreachable;

/// A database with the empty tables of a frontier.
pub(crate) fn empty_database() -> (TempDir, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let db = schema::open(&dir.path().join(FILE_NAME), &FrontierConfig::default()).unwrap();
    (dir, db)
}

/// A frontier with one crawl, for tests.
struct Fixture {
    dir: TempDir,
    frontier: Frontier,
    spec: CrawlSpec,
    crawl: CrawlKey,
}

fn fixture() -> Fixture {
    fixture_with_spec(|_| ())
}

fn fixture_with_spec(change: impl FnOnce(&mut CrawlSpec)) -> Fixture {
    fixture_with_config(FrontierConfig::default(), |spec| {
        spec.max_depth = 3;
        change(spec);
    })
}

/// A frontier with these settings and one crawl.
fn fixture_with_config(config: FrontierConfig, change: impl FnOnce(&mut CrawlSpec)) -> Fixture {
    fixture_in_folder(tempfile::tempdir().unwrap(), config, change)
}

/// Like [`fixture_with_config`], in a folder that may already have a frontier.
fn fixture_in_folder(
    dir: TempDir,
    config: FrontierConfig,
    change: impl FnOnce(&mut CrawlSpec),
) -> Fixture {
    let mut frontier = Frontier::open(dir.path(), config, 0).unwrap();
    let mut spec = CrawlSpec::new("app", "crawl");
    change(&mut spec);
    let crawl = frontier.crawls().open(&spec).unwrap();
    Fixture {
        dir,
        frontier,
        spec,
        crawl,
    }
}

impl Fixture {
    fn feed(&mut self, urls: &[&str]) -> FeedTally {
        self.feed_for_records(urls, &[], 0)
    }

    fn feed_for_records(&mut self, urls: &[&str], records: &[&str], now_ms: i64) -> FeedTally {
        let records: Vec<String> = records.iter().map(|name| name.to_string()).collect();
        let candidate = |url| Candidate {
            url,
            depth: 0,
            priority: None,
            parent: None,
            records: &records,
            attrs: None,
        };
        let candidates: Vec<_> = urls.iter().copied().map(candidate).collect();
        self.frontier
            .tasks()
            .feed(self.crawl, &candidates, now_ms)
            .unwrap()
    }

    /// Leases all queued tasks of all sites.
    fn lease_all(&mut self) -> Vec<Leased> {
        self.lease_all_at(0)
    }

    fn lease_all_at(&mut self, now_ms: i64) -> Vec<Leased> {
        let mut tasks = Vec::new();
        for site in self.frontier.sites().admit_due(i64::MAX, 1_000).unwrap() {
            let batch = self
                .frontier
                .tasks()
                .lease(site.id, 1_000, Lane::Http, now_ms)
                .unwrap();
            tasks.extend(batch.tasks);
            self.frontier.sites().evict(site.id, &site.clock).unwrap();
        }
        tasks
    }

    fn lease_one(&mut self) -> Leased {
        let mut tasks = self.lease_all();
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        tasks.remove(0)
    }

    fn complete_with_links(&mut self, task: &Leased, links: &[&str]) -> CompletionTally {
        self.complete_task(&TaskDone {
            links: to_strings(links),
            ..successful_report(task)
        })
    }

    fn complete_task(&mut self, report: &TaskDone) -> CompletionTally {
        self.complete_task_at(report, 0)
    }

    fn complete_task_at(&mut self, report: &TaskDone, now_ms: i64) -> CompletionTally {
        match self.frontier.tasks().complete(report, now_ms).unwrap() {
            Completion::Counted(tally) => tally,
            Completion::WillRetry | Completion::HandedOn | Completion::SiteBackoffs(_) => {
                panic!("to be tried again: {report:?}")
            }
            Completion::Stale => panic!("stale: {report:?}"),
        }
    }

    fn status(&mut self) -> CrawlStatus {
        self.frontier.crawls().status(self.crawl).unwrap()
    }

    fn outcomes(&mut self) -> Vec<(Outcome, u64)> {
        self.status().outcomes.into_iter().collect()
    }

    /// Opens the file again as after `kill -9`: uncommitted changes are lost.
    fn reopen(self, now_ms: i64) -> Fixture {
        let Fixture {
            dir,
            frontier,
            spec,
            ..
        } = self;
        drop(frontier);
        let mut frontier = Frontier::open(dir.path(), FrontierConfig::default(), now_ms).unwrap();
        let crawl = frontier.crawls().open(&spec).unwrap();
        Fixture {
            dir,
            frontier,
            spec,
            crawl,
        }
    }

    fn assert_counts_consistent(&mut self) {
        self.frontier.commit().unwrap();
        assert_counts_consistent(self.dir.path());
    }
}

fn successful_report(task: &Leased) -> TaskDone {
    TaskDone {
        task: task.task,
        delivery: task.delivery,
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 1_000,
        fields: 2,
        rows: 0,
        rows_stored: 0,
        links: Vec::new(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
        evidence: None,
    }
}

fn to_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

fn urls(tasks: &[Leased]) -> Vec<&str> {
    tasks.iter().map(|task| task.url.as_str()).collect()
}

fn skipped_counts(reasons: &[(Reason, u64)]) -> BTreeMap<Reason, u64> {
    reasons.iter().copied().collect()
}

/// Checks the file as another program would.
fn assert_counts_consistent(dir: &Path) {
    let db = Connection::open(dir.join(FILE_NAME)).unwrap();
    let faults = "
        SELECT 'crawl ' || c.id FROM crawls c WHERE app_id <> '' AND (
            discovered <> queued + leased + done
                + (SELECT coalesce(sum(n), 0) FROM skipped WHERE crawl = c.id)
            OR queued <> (SELECT count(*) FROM tasks WHERE crawl = c.id AND state = 0)
            OR leased <> (SELECT count(*) FROM tasks WHERE crawl = c.id AND state = 1)
            OR done <> (SELECT count(*) FROM tasks WHERE crawl = c.id AND state = 2)
            OR done <> (SELECT coalesce(sum(n), 0) FROM outcomes WHERE crawl = c.id)
            OR sites <> (SELECT count(DISTINCT site) FROM tasks WHERE crawl = c.id)
            OR queued <> (SELECT coalesce(sum(value), 0) FROM json_each(waiting)))
        UNION ALL
        SELECT 'crawl ' || c.crawl || ' at ' || c.site FROM crawl_sites c WHERE
            queued <> (SELECT count(*) FROM tasks
                       WHERE crawl = c.crawl AND site = c.site AND state = 0)
        UNION ALL
        SELECT 'site ' || s.name FROM sites s WHERE
            queued <> (SELECT count(*) FROM tasks WHERE site = s.id AND state = 0)
            OR top_priority > (SELECT coalesce(max(priority), 0) FROM tasks
                               WHERE site = s.id AND state = 0 AND not_before_ms = 0)
            OR top_priority NOT IN (0, (SELECT coalesce(max(priority), 0) FROM tasks
                                        WHERE site = s.id AND state = 0 AND not_before_ms = 0))
                AND NOT EXISTS (SELECT 1 FROM tasks WHERE site = s.id AND state = 0 AND rank <> 0)
        UNION ALL
        SELECT 'outcome of ' || t.id FROM tasks t WHERE (state = 2) <> (outcome IS NOT NULL)";
    let mut select = db.prepare(faults).unwrap();
    let faults: Result<Vec<String>, _> = select.query_map([], |row| row.get(0)).unwrap().collect();
    assert_eq!(faults.unwrap(), Vec::<String>::new());
}
