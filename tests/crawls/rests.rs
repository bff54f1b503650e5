//! A site in trouble rests: its tasks stay queued, and none is lost to a failure of the site.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use webfill_tests::run::Run;
use webfill_tests::site::{Site, Web, page, status};
use webfill_tests::workplace::Workplace;

fn urls(site: &Site, pages: usize) -> Vec<String> {
    (0..pages).map(|n| site.url(&format!("/{n}"))).collect()
}

fn crawl(work: &Workplace, web: &Web) -> Run {
    work.crawl_without_delay(web).args(["--delay", "0.1"])
}

/// Every page ended in `ok`, and was answered well exactly once.
fn assert_all_ok(work: &Workplace, pages: usize) {
    let stored = work.stored().pages();
    assert_eq!(stored.len(), pages);
    for (url, page) in stored {
        assert_eq!(page.outcome, "ok", "{url}");
    }
}

#[test]
fn a_robots_txt_that_fails_for_a_while_costs_no_url() {
    let web = Web::start();
    let site = web.site("flaps.example");
    let start = Instant::now();
    let down_for = Duration::from_secs(4);
    site.serve_with("/robots.txt", move |_| match start.elapsed() < down_for {
        true => status(503).into(),
        false => status(404).into(),
    });
    site.otherwise(|_| page("T").into());
    let work = Workplace::new();
    let run = crawl(&work, &web)
        .env("WEBFILL_RESTS_ROBOTS", "1,2,2,2,2")
        .args(urls(&site, 40))
        .finish()
        .expect(0);
    assert_eq!(run.summary().outcome("ok"), 40);
    assert_all_ok(&work, 40);
    let visits = site.visits();
    assert_eq!(visits.pages().len(), 40, "each page once");
    assert!(visits.pages().0[0].started_at >= start + down_for);
    let refused = visits.robots().len();
    assert!((2..=5).contains(&refused), "robots.txt: {refused} requests");
}

#[test]
fn a_site_that_stays_away_is_given_up_after_its_last_rest() {
    let web = Web::start();
    let site = web.site("gone.example");
    site.serve("/robots.txt", status(500));
    let work = Workplace::new();
    let run = crawl(&work, &web)
        .env("WEBFILL_RESTS_ROBOTS", "0.5,1")
        .args(urls(&site, 20))
        .finish()
        .expect(0);
    assert_eq!(run.summary().outcome("robots_unreachable"), 20);
    assert!(site.visits().pages().is_empty());
    assert_eq!(
        site.visits().robots().len(),
        3,
        "one request before each rest and one after"
    );
    let stored = work.stored();
    assert_eq!(stored.pages().len(), 20, "also those that were never tried");
}

#[test]
fn a_site_that_turns_to_403_for_a_while_loses_nothing() {
    let web = Web::start();
    let site = web.site("turns.example");
    site.robots("");
    let asked = Arc::new(AtomicUsize::new(0));
    site.otherwise(move |_| {
        // Twenty pages, then ten refusals, then pages again.
        match asked.fetch_add(1, Ordering::SeqCst) {
            20..30 => status(403).into(),
            _ => page("T").into(),
        }
    });
    let work = Workplace::new();
    let run = crawl(&work, &web)
        .env("WEBFILL_RESTS_BLOCKED", "0.3,0.3,0.3,0.3,0.3,0.3,0.3")
        .args(urls(&site, 60))
        .finish()
        .expect(0);
    assert_eq!(run.summary().outcome("ok"), 60);
    assert_all_ok(&work, 60);
    assert_eq!(site.visits().pages().len(), 70);
    let visits = site.visits().pages();
    let rest = visits.0[25].started_at - visits.0[24].started_at;
    assert!(rest >= Duration::from_millis(300), "it rested for {rest:?}");
}

#[test]
fn a_crawl_ends_with_the_words_how_to_go_on_when_all_that_is_left_rests() {
    let web = Web::start();
    let (blocks, well) = (web.site("blocks.example"), web.site("well.example"));
    let refuses = Arc::new(AtomicBool::new(true));
    blocks.robots("");
    well.robots("");
    let still = Arc::clone(&refuses);
    blocks.otherwise(move |_| match still.load(Ordering::SeqCst) {
        true => status(403).into(),
        false => page("T").into(),
    });
    well.otherwise(|_| page("T").into());
    let work = Workplace::new();
    let all = [urls(&blocks, 12), urls(&well, 30)].concat();
    let run = crawl(&work, &web)
        .instead("--summary", "human")
        .env("WEBFILL_RESTS_BLOCKED", "3600")
        .args(["--max-rest", "30m"])
        .args(&all)
        .finish()
        .expect(12);
    assert_eq!(well.visits().pages().len(), 30);
    assert_eq!(
        blocks.visits().pages().len(),
        5,
        "the fifth refusal is the last"
    );
    let text = &run.stdout;
    for words in [
        "blocks.example rests until",
        "blocked, 12 queued",
        "resume with the same command",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }

    refuses.store(false, Ordering::SeqCst);
    let still_rests = crawl(&work, &web)
        .env("WEBFILL_RESTS_BLOCKED", "3600")
        .args(["--max-rest", "30m"])
        .finish();
    still_rests.expect(12);
    assert_eq!(blocks.visits().pages().len(), 5, "over a restart");
}

#[test]
fn a_rest_outlives_a_killed_dispatcher() {
    let web = Web::start();
    let site = web.site("rests.example");
    let first = Arc::new(AtomicBool::new(true));
    site.serve_with("/robots.txt", move |_| {
        match first.swap(false, Ordering::SeqCst) {
            true => status(500).into(),
            false => status(404).into(),
        }
    });
    site.otherwise(|_| page("T").into());
    let work = Workplace::new();
    let mut running = crawl(&work, &web)
        .env("WEBFILL_RESTS_ROBOTS", "3,3")
        .args(urls(&site, 10))
        .start();
    let refused = web
        .log()
        .wait_until("robots.txt was asked for", |visits| visits.len() == 1);
    std::thread::sleep(Duration::from_millis(500));
    running.kill_role("dispatcher");
    running.finish().expect(0);
    let visits = site.visits();
    let rest = visits.0[1].started_at - refused.0[0].started_at;
    assert!(rest >= Duration::from_secs(3), "asked again after {rest:?}");
    assert_all_ok(&work, 10);
}
