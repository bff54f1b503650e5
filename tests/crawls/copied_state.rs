//! Tests a crawl that is continued from a backup or from a copy of its state folder. Tasks of its former processes may
//! still be in progress, so it must wait, as the dispatcher of a fleet does.

use std::path::Path;
use std::time::{Duration, Instant};

use webfill_tests::Signal;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

/// The time that the crawl must wait: the lease, a second for differences between clocks, and the longest request
/// (connection and response).
const WAIT: Duration = Duration::from_secs(2 + 1 + 2 + 4);

const PAGES: u64 = 12;

struct Crawled {
    work: Workplace,
    web: Web,
    settings: std::path::PathBuf,
}

impl Crawled {
    /// Interrupts a crawl in the middle.
    fn interrupt_crawl() -> Crawled {
        let (work, web) = (Workplace::new(), Web::start());
        let settings = work.write_short_timeouts();
        web.site("a.example")
            .serve_otherwise(|request| page(&request.path).into());
        let crawled = Crawled {
            work,
            web,
            settings,
        };
        let running = crawled.crawl("state").args(crawled.urls()).start();
        let log = crawled.web.log();
        log.wait_until("two are fetched", |visits| visits.pages().len() > 1);
        running.signal(Signal::INT);
        running.finish().expect_code(11);
        crawled
    }

    fn urls(&self) -> Vec<String> {
        let site = self.web.site("a.example");
        (0..PAGES)
            .map(|number| site.url(&format!("/{number}")))
            .collect()
    }

    fn crawl(&self, state: &str) -> Run {
        self.work
            .crawl(&self.web)
            .replace_flag("--state", self.work.path(state))
            .replace_flag("--progress", "plain")
            .arg("--config")
            .arg(&self.settings)
            .env("WEBFILL_DISPATCHER_LEASE", "2")
    }

    fn back_up(&self) {
        Run::new(["backup"])
            .arg(self.work.path("elsewhere"))
            .arg("--state")
            .arg(self.work.path("state"))
            .arg("--store")
            .arg(format!("sqlite:{}", self.work.path("store.db").display()))
            .finish()
            .expect_code(0);
    }

    fn copy_state(&self) {
        let elsewhere = self.work.path("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let name = Path::new("dispatcher.db");
        std::fs::copy(self.work.path("state").join(name), elsewhere.join(name)).unwrap();
    }

    /// Checks that the crawl reports its wait, even if it was killed during an earlier wait. No site may be visited
    /// before the wait is over.
    fn assert_continues_after_wait(&self) {
        let before = self.web.visits().len();
        let began = Instant::now();
        let reported = "requests of the former processes may be in flight";
        let mut killed: Running = self.crawl("elsewhere").start();
        killed.wait_for_stderr(reported);
        killed.kill_role("crawl");
        drop(killed);
        let mut running = self.crawl("elsewhere").start();
        running.wait_for_stderr(reported);
        let finished = running.finish().expect_code(0);
        assert_eq!(finished.summary().outcome_count("ok"), PAGES);
        let first = self.web.visits().0[before].started_at;
        let waited = first.duration_since(began);
        assert!(waited >= WAIT, "visited after {waited:?}");
    }
}

#[test]
fn a_crawl_from_a_backup_waits_until_nothing_of_the_former_one_is_under_way() {
    let crawled = Crawled::interrupt_crawl();
    crawled.back_up();
    crawled.assert_continues_after_wait();
}

#[test]
fn a_crawl_from_a_copied_state_folder_waits_as_well() {
    let crawled = Crawled::interrupt_crawl();
    crawled.copy_state();
    crawled.assert_continues_after_wait();
}
