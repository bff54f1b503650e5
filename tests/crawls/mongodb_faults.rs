//! Tests faults of MongoDB while a crawl runs. Fetching pauses once the bounded buffers are full, and no task is
//! acknowledged before its page is stored. The crawl continues by itself once the server is back, and the log reports
//! the outage once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bson::doc;
use serde_json::{Value, json};
use webfill_test_mongod::{Mongod, ReplicaSet, fresh_database};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::isolation::{mount_small_disk, run_isolated};
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Page, Web, page};
use webfill_tests::stored::Stored;
use webfill_tests::workplace::Workplace;

use crate::wide_web::repeated_pages;

const DELAY: Duration = Duration::from_millis(200);
const SITES: usize = 30;
const PAGES_PER_SITE: usize = 6;
const PAGES: usize = SITES * PAGES_PER_SITE;

const WORKERS: usize = 2;
const CONCURRENCY: usize = 4;
/// The most tasks that a supervisor holds: four for each fetch in flight. It gets further tasks only when some of these
/// are acknowledged, so it cannot buffer more pages than this.
const HELD_AT_MOST: usize = 4 * WORKERS * CONCURRENCY;

/// A running crawl whose MongoDB server fails.
struct Trouble {
    web: Web,
    work: Workplace,
    seeds: Vec<String>,
    store: String,
}

impl Trouble {
    fn with_store(store: String) -> Trouble {
        Trouble::with_pages(store, page)
    }

    /// Prepares a crawl with more pages than the buffers can hold. `page` creates the page of a path.
    fn with_pages(store: String, page: fn(&str) -> Page) -> Trouble {
        let web = Web::start();
        let seeds = (0..SITES).map(|number| {
            let site = web.site(&format!("t{number}.example"));
            site.serve_otherwise(move |request| page(&request.path).into());
            let leaves = 1..PAGES_PER_SITE;
            let link = |page: Page, leaf| page.mapped_link(&format!("/{leaf}"));
            site.serve("/", leaves.fold(page("/"), link));
            site.url("/")
        });
        Trouble {
            seeds: seeds.collect(),
            web,
            work: Workplace::new(),
            store,
        }
    }

    fn crawl(&self) -> Run {
        self.work
            .crawl(&self.web)
            .replace_flag("--store", &self.store)
            .replace_flag("--workers", WORKERS.to_string())
            .args(["--concurrency", &CONCURRENCY.to_string()])
            .args(&self.seeds)
            .time_limit(Duration::from_secs(150))
    }

    fn start(&self) -> Running {
        let running = self.crawl().start();
        self.web
            .log()
            .wait_until("it is under way", |visits| visits.pages().len() > PAGES / 4);
        running
    }

    /// Waits until no request has arrived for some seconds.
    fn wait_until_quiet(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let visits = self.web.visits();
            let last = visits.0.last().map(|visit| visit.started_at);
            if last.is_some_and(|last| last.elapsed() > Duration::from_secs(3)) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "fetching continues without a store"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The number of tasks that the dispatcher has recorded as done.
    fn closed_tasks(&self) -> usize {
        let frontier = Stored::open(&self.work.path("state/dispatcher.db"));
        frontier.query_number("SELECT count(*) FROM tasks WHERE state = 2") as usize
    }

    fn assert_paused_by_full_buffers(&self) {
        self.wait_until_quiet();
        let (fetched, acknowledged) = (self.web.visits().pages().len(), self.closed_tasks());
        assert!(fetched < PAGES, "there was nothing left to fetch");
        assert!(
            fetched <= acknowledged + HELD_AT_MOST,
            "{fetched} pages were fetched, of which {acknowledged} are acknowledged"
        );
    }

    /// Checks that every page was fetched once and is stored. `outages` is the number of the server's outages. During a
    /// long outage, the crawl cannot renew its claim in the store, so tasks that have not started are handed out once
    /// more.
    fn assert_unharmed(&self, outages: usize) {
        // A busy machine may fail once more to reach the server soon after the server is back.
        let outages = outages + 1;
        assert_eq!(self.closed_tasks(), PAGES);
        let pages = Documents::open(&self.store).pages();
        assert_eq!(pages.len(), PAGES, "acknowledged pages are not stored");
        for page in pages.values() {
            assert_eq!(page.outcome, "ok", "{}", page.url);
            let deliveries = page.attempts as usize;
            assert!(
                (1..=1 + outages).contains(&deliveries),
                "{} was handed out {deliveries} times",
                page.url
            );
        }
        assert_eq!(repeated_pages(&self.web), BTreeMap::new());
        self.web.visits().assert_polite(DELAY);
        self.assert_log_is_brief(outages);
    }

    fn assert_log_is_brief(&self, outages: usize) {
        for (file, lines) in self.work.logs() {
            let loud = |line: &&Value| line["level"] == "WARN" || line["level"] == "ERROR";
            let events: Vec<&str> = lines
                .iter()
                .filter(loud)
                .map(|line| line["event"].as_str().unwrap_or("?"))
                .collect();
            let kinds: BTreeSet<&str> = events.iter().copied().collect();
            for kind in kinds {
                let times = events.iter().filter(|event| **event == kind).count();
                assert!(times <= outages, "{file}: {times} times {kind}: {lines:#?}");
            }
        }
    }

    fn count_logged(&self, event: &str) -> usize {
        let logs = self.work.logs();
        let lines = logs.values().flatten();
        lines.filter(|line| line["event"] == event).count()
    }

    /// Waits until each worker has logged the event.
    fn wait_until_logged(&self, event: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.count_logged(event) < WORKERS {
            assert!(
                Instant::now() < deadline,
                "not each worker has logged {event}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Breaks the server of a running crawl, repairs it once the crawl has paused, and checks that no page was lost.
fn assert_survives(break_it: impl FnOnce(&mut Mongod), mend: impl FnOnce(&mut Mongod)) {
    let mut mongod = Mongod::start();
    let trouble = Trouble::with_store(mongod.uri("trouble"));
    let running = trouble.start();
    break_it(&mut mongod);
    trouble.wait_until_logged("store_away");
    trouble.assert_paused_by_full_buffers();
    mend(&mut mongod);
    running.finish().expect_code(0);
    assert_eq!(
        trouble.count_logged("store_back"),
        trouble.count_logged("store_away")
    );
    trouble.assert_unharmed(1);
}

#[needs(mongod)]
#[test]
fn a_mongod_that_is_stopped_and_started_again_only_delays_the_crawl() {
    assert_survives(Mongod::stop, Mongod::restart);
}

#[needs(mongod)]
#[test]
fn a_mongod_that_is_killed_and_started_again_has_all_that_was_acknowledged() {
    assert_survives(Mongod::kill, Mongod::restart);
}

#[needs(mongod)]
#[test]
fn a_mongod_that_stands_still_for_a_while_only_delays_the_crawl() {
    assert_survives(|mongod| mongod.pause(), |mongod| mongod.resume());
}

#[needs(mongod)]
#[test]
fn mongod_may_go_away_again_and_again() {
    let mut mongod = Mongod::start();
    let trouble = Trouble::with_store(mongod.uri("trouble"));
    let running = trouble.start();
    for round in 1..=3 {
        mongod.kill();
        mongod.restart();
        let enough = PAGES / 4 + round * PAGES / 6;
        trouble
            .web
            .log()
            .wait_until("it continues", |visits| visits.pages().len() > enough);
    }
    running.finish().expect_code(0);
    trouble.assert_unharmed(3);
}

#[needs(mongod)]
#[test]
fn another_mongod_of_a_replica_set_takes_over() {
    let mut set = ReplicaSet::start(3);
    let trouble = Trouble::with_store(set.uri("trouble"));
    let running = trouble.start();
    let first = set.primary();
    set.members[first].kill();
    let so_far = trouble.web.visits().pages().len();
    trouble.web.log().wait_until("it continues", |visits| {
        visits.pages().len() > so_far + PAGES / 3
    });
    set.members[first].restart();
    let second = set.primary();
    set.members[second].stop();
    running.finish().expect_code(0);
    trouble.assert_unharmed(2);
}

/// An operator makes the primary step down before an upgrade of its server. No server ends, and the members elect
/// another primary.
#[needs(mongod)]
#[test]
fn a_primary_that_steps_down_holds_nothing_up() {
    let set = ReplicaSet::start(3);
    let trouble = Trouble::with_store(set.uri("trouble"));
    let running = trouble.start();
    for _ in 0..2 {
        let primary = set.members[set.primary()].address();
        let direct = format!("mongodb://{primary}/admin?directConnection=true");
        Documents::open(&direct)
            .run(doc! {"replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 20});
        let so_far = trouble.web.visits().pages().len();
        trouble.web.log().wait_until("it continues", |visits| {
            visits.pages().len() > so_far + PAGES / 5
        });
        let now = set.members[set.primary()].address();
        assert_ne!(now, primary, "another one was elected");
    }
    running.finish().expect_code(0);
    trouble.assert_unharmed(2);
}

#[needs(mongod)]
#[test]
fn a_cache_in_mongodb_that_stands_still_ends_no_worker_and_gets_all_clocks_afterwards() {
    let (mongod, cache) = (Mongod::start(), Mongod::start());
    let trouble = Trouble::with_store(mongod.uri("trouble"));
    let delay = Duration::from_secs(4);
    let crawl = trouble.crawl().replace_flag("--delay", "4");
    let mut running = crawl.args(["--cache", &cache.uri("cache")]).start();
    let workers = running.wait_for_role("worker", WORKERS);
    let log = trouble.web.log();
    log.wait_until("every site is known", |visits| visits.pages().len() > SITES);
    cache.pause();
    let fetched = trouble.web.visits().pages().len();
    trouble.wait_until_logged("cache_away");
    assert!(trouble.web.visits().pages().len() > fetched, "it continues");
    assert_eq!(running.processes_of_role("worker"), workers);
    cache.resume();
    running.finish().expect_code(0);
    assert_eq!(
        trouble.count_logged("cache_back"),
        trouble.count_logged("cache_away")
    );
    trouble.assert_unharmed(1);
    trouble.web.visits().assert_polite(delay);
    assert_eq!(
        Documents::open(&cache.uri("cache")).count("sites"),
        SITES as u64
    );
}

#[needs(mongod)]
#[test]
fn a_crawl_can_be_stopped_while_mongod_is_away_and_resumed_later() {
    let mut mongod = Mongod::start();
    let trouble = Trouble::with_store(mongod.uri("trouble"));
    let mut running = trouble.start();
    mongod.kill();
    trouble.wait_until_logged("store_away");
    let asked_at = Instant::now();
    running.signal(Signal::INT);
    running.wait_until("the first was taken", |run| !run.has_pending_signals());
    running.signal(Signal::INT);
    running.finish().expect_code(11);
    let took = asked_at.elapsed();
    assert!(took < Duration::from_secs(30), "stopped after {took:?}");
    mongod.restart();
    trouble.crawl().finish().expect_code(0);
    let pages = Documents::open(&trouble.store).pages();
    assert_eq!((pages.len(), trouble.closed_tasks()), (PAGES, PAGES));
    assert!(pages.values().all(|page| page.outcome == "ok"));
    trouble.web.visits().assert_polite(DELAY);
}

#[needs(namespaces, mongod)]
#[test]
fn a_crawl_waits_while_the_disk_of_mongod_is_full() {
    run_isolated(
        "mongodb_faults::a_crawl_waits_while_the_disk_of_mongod_is_full",
        || {
            let disk = tempfile::tempdir().expect("a temporary folder");
            // The server's journal takes 100 MB of the disk. The crawl writes twice as much as the remaining space.
            mount_small_disk(disk.path(), 150 << 10, false);
            let mut mongod = Mongod::start_in(disk.path());
            let trouble = Trouble::with_pages(mongod.uri("trouble"), heavy_page);
            let running = trouble.start();
            trouble.wait_until_logged("store_away");
            trouble.assert_paused_by_full_buffers();
            let answer = TcpStream::connect(mongod.address());
            assert!(answer.is_err(), "the server did not end itself");
            mongod.kill();
            mount_small_disk(disk.path(), 1 << 20, true);
            mongod.restart();
            running.finish().expect_code(0);
            trouble.assert_unharmed(1);
        },
    );
}

/// A page with half a megabyte of incompressible text in a field.
fn heavy_page(path: &str) -> Page {
    let seed = path
        .bytes()
        .fold(1, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
    let mut rng = fastrand::Rng::with_seed(seed);
    let noise: String = (0..500 << 10).map(|_| rng.lowercase()).collect();
    page(path).field("name", &noise)
}

#[needs(mongod)]
#[test]
fn a_page_result_too_large_for_a_document_ends_its_task_alone() {
    let database = fresh_database();
    let web = Web::start();
    let site = web.site("large.example");
    let paragraphs = format!("<p>{}</p>", "x".repeat(900 << 10)).repeat(8);
    site.serve("/large", page("large").html(paragraphs));
    for number in 0..3 {
        site.serve(&format!("/{number}"), page("small").html("<p>few</p>"));
    }
    let work = Workplace::new();
    let field = |name: &str| {
        let processor = json!({"type": "xpath", "parameters": {"expression": "//p/text()"}});
        json!({"name": name, "multiple": true, "processors": [processor]})
    };
    let mapping = json!({
        "name": "profile",
        "url_patterns": [{"type": "regex", "pattern": "^http://large\\.example/"}],
        "fields": [field("one"), field("two"), field("three")],
    });
    work.write_json("mappings/profile.json", &mapping);
    let urls = ["/0", "/large", "/1", "/2"].map(|path| site.url(path));
    let run = work.crawl(&web).replace_flag("--store", database.uri());
    // With less memory, the fields of the page would be cut.
    let run = run.env("WEBFILL_WORKER_MEMORY_MIB", "1024");
    let run = run.args(&urls).finish().expect_code(0);
    assert_eq!(run.summary().outcome_count("extract_error"), 1);
    assert_eq!(run.summary().outcome_count("ok"), 3);
    let pages = Documents::open(database.uri()).pages();
    for (url, page) in pages {
        let is_large = url.ends_with("/large");
        let outcome = if is_large { "extract_error" } else { "ok" };
        assert_eq!(page.outcome, outcome, "{url}");
        assert_eq!(page.fields.is_empty(), is_large, "{url}");
        assert_eq!(page.attempts, 1, "{url}");
    }
}
