//! Tests that only one `webfill crawl` runs a crawl at a time, whatever state folder it is started with.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

/// A site of ten slow pages, which take some seconds to crawl.
fn serve_slow_site(web: &Web) -> Vec<String> {
    let site = web.site("slow.example");
    site.serve_otherwise(|request| page(&request.path).into());
    site.set_latency(Duration::from_millis(500));
    (0..10)
        .map(|number| site.url(&format!("/{number}")))
        .collect()
}

/// A crawl of these URLs whose state folder has this name.
fn crawl_from(folder: &str, work: &Workplace, web: &Web, store: &str, urls: &[String]) -> Run {
    let run = work.crawl(web).replace_flag("--store", store);
    let run = run.arg("--config").arg(work.write_short_timeouts());
    run.replace_flag("--state", work.path(folder)).args(urls)
}

fn assert_second_crawl_is_refused(work: &Workplace, store: &str) {
    let web = Web::start();
    let urls = serve_slow_site(&web);
    let mut first = crawl_from("state", work, &web, store, &urls).start();
    first.wait_until("the first page was asked", |_| {
        !web.visits().pages().hosts().is_empty()
    });
    let pid = first.pid();
    let second = crawl_from("other", work, &web, store, &urls)
        .finish()
        .expect_code(1);
    let output = second.one_sentence();
    for part in [
        &format!("process {pid} on "),
        "/state, since 20",
        "another --crawl",
    ] {
        assert!(output.contains(part), "{output}");
    }
    assert!(!work.path("other").exists(), "nothing is left of it");
    // A crawl with the same id but for another application is a different crawl, and may run.
    let other = crawl_from("third", work, &web, store, &[]);
    let site = web.site("quick.example");
    site.serve("/", page("quick"));
    other
        .args(["--app", "another", &site.url("/")])
        .finish()
        .expect_code(0);
    first.finish().expect_code(0);
    let counts = web.site("slow.example").visits().pages().counts();
    assert_eq!(counts.len(), 10);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

fn assert_killed_crawl_is_taken_over(work: &Workplace, store: &str) {
    let web = Web::start();
    let urls = serve_slow_site(&web);
    let mut first = crawl_from("state", work, &web, store, &urls).start();
    first.wait_until("the first page was asked", |_| {
        !web.visits().pages().hosts().is_empty()
    });
    first.kill_role("crawl");
    let killed = Instant::now();
    let second = crawl_from("other", work, &web, store, &urls)
        .finish()
        .expect_code(0);
    assert_eq!(second.summary().outcome_count("ok"), 10);
    assert!(killed.elapsed() < Duration::from_secs(60));
    // The state folder belongs to the killed process, so the crawl can see that this process is dead and continue at
    // once.
    let again = crawl_from("state", work, &web, store, &urls)
        .finish()
        .expect_code(0);
    assert_eq!(again.summary().outcome_count("ok"), 10);
}

/// A site with this many pages. The crawl fetches one page every 200 ms, so a test has time to stop its process.
fn serve_paced_site(web: &Web, pages: usize) -> Vec<String> {
    let site = web.site("paced.example");
    site.serve_otherwise(|request| page(&request.path).into());
    (0..pages)
        .map(|number| site.url(&format!("/{number}")))
        .collect()
}

/// Starts a crawl, and after the first page stops its own process but not its children. Runs the same crawl from
/// another folder to the end. Then continues the stopped process.
fn take_over_stopped_crawl(work: &Workplace, web: &Web, urls: &[String], settings: PathBuf) {
    let store = sqlite_uri(work);
    let from = |folder| {
        let run = crawl_from(folder, work, web, &store, urls);
        run.replace_flag("--config", &settings)
    };
    let mut first = from("state").start();
    first.wait_until("the first page was asked", |_| {
        !web.visits().pages().hosts().is_empty()
    });
    first.signal(Signal::STOP);
    let second = from("other").finish().expect_code(0);
    assert_eq!(second.summary().outcome_count("ok"), urls.len() as u64);
    first.signal(Signal::CONT);
    let reported = first.finish().expect_code(1);
    assert!(
        reported
            .one_sentence()
            .contains("has taken over this crawl"),
        "{}",
        reported.one_sentence()
    );
}

#[test]
fn the_children_of_a_stopped_crawl_visit_no_site_beside_its_successor() {
    let (work, web) = (Workplace::new(), Web::start());
    let urls = serve_paced_site(&web, 90);
    take_over_stopped_crawl(&work, &web, &urls, work.write_short_timeouts());
    web.visits().assert_polite(Duration::from_millis(200));
}

/// The first request is still unanswered when another process takes over the crawl.
#[test]
fn a_successor_waits_for_the_requests_that_are_under_way() {
    let (work, web) = (Workplace::new(), Web::start());
    let patient = "[fetch]\nconnect_timeout = 1.0\nhead_timeout = 16.0\nbody_timeout = 16.0\ntotal_timeout = 16.0\n";
    let site = web.site("slow.example");
    let is_first = AtomicBool::new(true);
    site.serve_otherwise(move |request| match request.path.as_str() {
        "/" if is_first.swap(false, Ordering::Relaxed) => {
            page("late").latency(Duration::from_secs(15)).into()
        }
        path => page(path).into(),
    });
    let settings = work.write("patient.toml", patient);
    take_over_stopped_crawl(&work, &web, &[site.url("/")], settings);
    web.visits().assert_polite(Duration::from_millis(200));
}

#[test]
fn a_crawl_that_was_taken_over_does_not_end_as_finished() {
    let (work, web) = (Workplace::new(), Web::start());
    let urls = serve_paced_site(&web, 10);
    take_over_stopped_crawl(&work, &web, &urls, work.write_short_timeouts());
}

fn sqlite_uri(work: &Workplace) -> String {
    format!("sqlite:{}", work.path("store.db").display())
}

#[test]
fn a_second_crawl_on_the_same_file_is_refused() {
    let work = Workplace::new();
    assert_second_crawl_is_refused(&work, &sqlite_uri(&work));
}

#[test]
fn a_killed_crawl_on_a_file_is_continued_from_another_folder() {
    let work = Workplace::new();
    assert_killed_crawl_is_taken_over(&work, &sqlite_uri(&work));
}

#[needs(mongod)]
#[test]
fn a_second_crawl_on_the_same_database_is_refused() {
    assert_second_crawl_is_refused(&Workplace::new(), fresh_database().uri());
}

#[needs(mongod)]
#[test]
fn a_killed_crawl_on_a_database_is_continued_from_another_folder() {
    assert_killed_crawl_is_taken_over(&Workplace::new(), fresh_database().uri());
}
