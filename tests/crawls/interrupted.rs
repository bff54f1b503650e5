//! Tests requested interruptions: Ctrl-C, SIGTERM, and limits. Completed work is not repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

use crate::wide_web::{PAGES_PER_SITE, SITES, assert_complete, repeated_pages, serve_wide_web};

fn crawl_command(work: &Workplace, web: &Web, roots: &[String]) -> Run {
    work.crawl(web).args(roots)
}

#[test]
fn ctrl_c_drains_and_the_same_command_resumes() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let running = crawl_command(&work, &web, &roots)
        .replace_flag("--progress", "plain")
        .start();
    web.log()
        .wait_until("a third is fetched", |visits| visits.pages().len() > 18);
    running.signal(Signal::INT);
    let first = running.finish().expect_code(11);
    let output = &first.stderr;
    assert!(output.contains("interrupted: "), "{output}");
    let fetched = web.visits().pages().len();
    assert!(fetched < SITES * PAGES_PER_SITE, "it was interrupted");
    let stored = work.stored().pages();
    assert_eq!(stored.len(), fetched, "what was fetched was stored");
    assert_eq!(first.summary().tasks(), fetched as u64);

    let second = crawl_command(&work, &web, &roots).finish().expect_code(0);
    assert_complete(&work);
    assert_eq!(
        repeated_pages(&web),
        BTreeMap::new(),
        "nothing done is fetched again"
    );
    assert_eq!(
        second.summary().tasks(),
        (SITES * PAGES_PER_SITE) as u64,
        "{}",
        second.summary().json
    );
    web.visits().assert_polite(Duration::from_millis(200));

    let third = crawl_command(&work, &web, &roots).finish().expect_code(0);
    assert_eq!(
        repeated_pages(&web),
        BTreeMap::new(),
        "a finished crawl has nothing left to do"
    );
    assert_eq!(third.summary().tasks(), (SITES * PAGES_PER_SITE) as u64);
}

#[test]
fn a_crawl_is_resumed_only_with_its_original_scope() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    crawl_command(&work, &web, &roots)
        .args(["--max-pages", "9"])
        .finish()
        .expect_code(12);
    let fetched = web.visits().len();
    let other = crawl_command(&work, &web, &roots).args(["--deny-regex", "/1"]);
    let refused = other.finish().expect_code(2);
    for reported in ["--deny-regex is `/1` and was ``", "another --crawl"] {
        assert!(refused.stderr.contains(reported), "{}", refused.stderr);
    }
    assert_eq!(web.visits().len(), fetched);
    crawl_command(&work, &web, &roots).finish().expect_code(0);
    assert_complete(&work);
}

#[test]
fn a_second_ctrl_c_stops_at_once_and_resumes_as_well() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    // The slow answers of this site keep the drain waiting.
    web.site("w0.example").set_latency(Duration::from_secs(20));
    let work = Workplace::new();
    let mut running = crawl_command(&work, &web, &roots).start();
    web.log().wait_until("the slow site is asked", |visits| {
        visits.len() > 18 && !visits.for_host("w0.example").is_empty()
    });
    running.signal(Signal::INT);
    // The kernel merges pending signals of the same kind, so the second one is sent only when the first was received.
    running.wait_until("the first was taken", |run| !run.has_pending_signals());
    running.signal(Signal::INT);
    running.finish().expect_code(11);
    web.log()
        .wait_until("the answer was not waited for", |visits| {
            let of_slow = visits.for_host("w0.example");
            of_slow.0.last().is_some_and(|visit| visit.cut_short)
        });
    web.site("w0.example").set_latency(Duration::ZERO);
    crawl_command(&work, &web, &roots).finish().expect_code(0);
    assert_complete(&work);
}

#[test]
fn sigterm_drains_too() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let running = crawl_command(&work, &web, &roots).start();
    web.log()
        .wait_until("some pages are fetched", |visits| visits.pages().len() > 9);
    running.signal(Signal::TERM);
    running.finish().expect_code(11);
    assert_eq!(work.stored().pages().len(), web.visits().pages().len());
}

#[test]
fn max_pages_stops_politely_and_can_be_continued() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let run = crawl_command(&work, &web, &roots)
        .args(["--max-pages", "12"])
        .finish()
        .expect_code(12);
    let fetched = web.visits().pages().len();
    // The limit is reached while requests are in progress, at most one for each site. They are still finished.
    assert!((12..12 + SITES).contains(&fetched), "{fetched} pages");
    assert_eq!(run.summary().pages() as usize, fetched);
    assert_eq!(work.stored().pages().len(), fetched);
    crawl_command(&work, &web, &roots).finish().expect_code(0);
    assert_complete(&work);
    assert_eq!(repeated_pages(&web), BTreeMap::new());
}

#[test]
fn max_time_stops_politely() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let run = work
        .crawl_without_delay(&web)
        .args(["--delay", "1", "--max-time", "2s"])
        .args(&roots)
        .finish();
    let run = run.expect_code(12);
    assert!(
        run.elapsed >= Duration::from_secs(2) && run.elapsed < Duration::from_secs(30),
        "{:?}",
        run.elapsed
    );
    let fetched = web.visits().pages().len();
    assert!(
        (SITES..SITES * PAGES_PER_SITE).contains(&fetched),
        "{fetched} pages"
    );
    assert_eq!(work.stored().pages().len(), fetched);
}

#[test]
fn a_crawl_that_needs_exactly_its_limit_is_done() {
    let web = Web::start();
    let site = web.site("exact.example");
    site.serve_otherwise(|_| page("leaf").into());
    let work = Workplace::new();
    let urls = (0..5).map(|number| site.url(&format!("/{number}")));
    let run = work
        .crawl(&web)
        .args(["--max-pages", "500"])
        .args(urls)
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().pages(), 5);
}

#[test]
fn another_crawl_id_starts_afresh_on_the_same_state() {
    let web = Web::start();
    let site = web.site("twice.example");
    site.serve("/", page("T"));
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect_code(0);
    work.crawl(&web)
        .replace_flag("--crawl", "other")
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(site.visits().pages().len(), 2);
    site.visits().assert_polite(Duration::from_millis(200));
    assert_eq!(
        work.stored()
            .query_number("SELECT count(DISTINCT crawl_id) FROM pages"),
        2
    );
}

#[test]
fn refresh_after_fetches_old_pages_again() {
    let web = Web::start();
    let site = web.site("fresh.example");
    let visits = std::sync::atomic::AtomicU32::new(0);
    site.serve_with("/", move |_| {
        let number = visits.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        page(&format!("version {number}")).into()
    });
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect_code(0);
    work.crawl(&web)
        .args(["--refresh-after", "1h"])
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(site.visits().pages().len(), 1, "it is not an hour old");
    work.crawl(&web)
        .args(["--refresh-after", "0s"])
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(site.visits().pages().len(), 2);
    let pages = work.stored().pages();
    assert_eq!(
        pages["http://fresh.example/"].fields["title"], "version 1",
        "one page, the newer one"
    );
}
