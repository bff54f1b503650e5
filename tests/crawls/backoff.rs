//! Tests backoffs (a site in trouble gets no requests for a while): the site's tasks stay queued, and none is lost,
//! however the site fails.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use webfill_tests::run::Run;
use webfill_tests::site::{Site, Web, page, redirect, script, status};
use webfill_tests::workplace::Workplace;

fn page_urls(site: &Site, pages: usize) -> Vec<String> {
    (0..pages).map(|n| site.url(&format!("/{n}"))).collect()
}

fn crawl_command(work: &Workplace, web: &Web) -> Run {
    work.crawl_without_delay(web).args(["--delay", "0.1"])
}

/// A robots.txt with a long delay. It gives the dispatcher time to recall the tasks of a blocking site, so at most one
/// more request starts.
const TIME_TO_RECALL: &str = "User-agent: *\nCrawl-delay: 1\n";

/// Checks that this many pages are stored, all with the outcome `ok`.
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
    // The time is counted from the first request, because a busy machine may send it late.
    let first_asked = OnceLock::new();
    let down_for = Duration::from_secs(4);
    site.serve_with("/robots.txt", move |_| {
        let since = first_asked.get_or_init(Instant::now);
        match since.elapsed() < down_for {
            true => status(503).into(),
            false => status(404).into(),
        }
    });
    site.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .env("WEBFILL_BACKOFF_ROBOTS", "1,2,2,2,2")
        .args(page_urls(&site, 40))
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 40);
    assert_all_ok(&work, 40);
    let visits = site.visits();
    assert_eq!(visits.pages().len(), 40, "each page once");
    let first_asked = visits.robots().0[0].started_at;
    assert!(visits.pages().0[0].started_at >= first_asked + down_for);
    let refused = visits.robots().len();
    assert!((2..=5).contains(&refused), "robots.txt: {refused} requests");
}

#[test]
fn a_robots_txt_that_hangs_at_the_first_contact_costs_no_url() {
    let web = Web::start();
    let site = web.site("hangs.example");
    let first = Arc::new(AtomicBool::new(true));
    site.serve_with("/robots.txt", move |_| {
        match first.swap(false, Ordering::SeqCst) {
            true => script().hold_open().into(),
            false => status(404).into(),
        }
    });
    site.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .arg("--config")
        .arg(work.write_short_timeouts())
        .env("WEBFILL_BACKOFF_ROBOTS", "1,1,1")
        .args(page_urls(&site, 20))
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 20);
    assert_all_ok(&work, 20);
    assert_eq!(site.visits().robots().len(), 2, "one in vain, one probe");
    assert_eq!(site.visits().pages().len(), 20, "each page once");
}

/// Every second request for a robots.txt fails, on all hosts of the site.
#[test]
fn a_robots_txt_that_flaps_costs_no_url() {
    let (hosts, pages) = (6, 5);
    let web = Web::start();
    let asked = Arc::new(AtomicUsize::new(0));
    let sites: Vec<Site> = (0..hosts)
        .map(|n| web.site(&format!("h{n}.flaps.example")))
        .collect();
    for site in &sites {
        let asked = Arc::clone(&asked);
        site.serve_with("/robots.txt", move |_| {
            match asked.fetch_add(1, Ordering::SeqCst) % 2 {
                0 => status(503).into(),
                _ => status(404).into(),
            }
        });
        site.serve_otherwise(|_| page("T").into());
    }
    let work = Workplace::new();
    let all: Vec<String> = sites
        .iter()
        .flat_map(|site| page_urls(site, pages))
        .collect();
    let run = crawl_command(&work, &web)
        .env("WEBFILL_BACKOFF_ROBOTS", vec!["0.3"; 20].join(","))
        .args(&all)
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), all.len() as u64);
    assert_all_ok(&work, all.len());
    for site in &sites {
        let (robots, fetched) = (site.visits().robots(), site.visits().pages());
        assert_eq!(fetched.len(), pages, "{}: each page once", site.host());
        let good = robots.0.last().expect("it was asked for");
        assert_eq!(good.status, Some(404), "{}", site.host());
        assert!(fetched.0[0].started_at > good.started_at, "{}", site.host());
    }
    let robots = web.visits().robots().len();
    assert!((12..=40).contains(&robots), "robots.txt: {robots} requests");
}

#[test]
fn a_site_that_stays_away_is_unreachable_after_its_last_backoff() {
    let web = Web::start();
    let site = web.site("gone.example");
    site.serve("/robots.txt", status(500));
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .env("WEBFILL_BACKOFF_ROBOTS", "0.5,1")
        .args(page_urls(&site, 20))
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("robots_unreachable"), 20);
    assert!(site.visits().pages().is_empty());
    assert_eq!(
        site.visits().robots().len(),
        3,
        "one request before each backoff and one after"
    );
    let stored = work.stored();
    assert_eq!(stored.pages().len(), 20, "also those that were never tried");
}

/// A page links to the dead host at depth 2. After the host became unreachable, another link to it is found at depth 1,
/// which has a higher priority.
#[test]
fn a_link_that_is_found_late_leaves_no_older_one_behind() {
    let web = Web::start();
    let (gone, well) = (web.site("gone.example"), web.site("well.example"));
    gone.serve("/robots.txt", status(503));
    let mut list = page("list");
    for number in 0..1_500 {
        list = list.link(&gone.url(&format!("/{number}")));
    }
    well.serve("/list", list);
    well.serve("/", page("start").link(&well.url("/list")));
    let late = web.site("late.example");
    let found_late = page("late").link(&gone.url("/late"));
    late.serve("/", found_late.latency(Duration::from_secs(5)));
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .env("WEBFILL_BACKOFF_ROBOTS", "0.2,0.2")
        .args(["--depth", "3", "--follow", "all"])
        .args([well.url("/"), late.url("/")])
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(summary.outcome_count("robots_unreachable"), 1_501);
    assert!(gone.visits().pages().is_empty());
}

#[test]
fn a_site_that_turns_to_403_for_a_while_loses_nothing() {
    let web = Web::start();
    let site = web.site("turns.example");
    site.serve_robots("");
    let asked = Arc::new(AtomicUsize::new(0));
    site.serve_otherwise(move |_| {
        // Serve twenty pages, then ten refusals, then pages again.
        match asked.fetch_add(1, Ordering::SeqCst) {
            20..30 => status(403).into(),
            _ => page("T").into(),
        }
    });
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .env("WEBFILL_BACKOFF_BLOCKED", "0.3,0.3,0.3,0.3,0.3,0.3,0.3")
        .args(page_urls(&site, 60))
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 60);
    assert_all_ok(&work, 60);
    assert_eq!(site.visits().pages().len(), 70);
    let visits = site.visits().pages();
    // The tenth refusal is the answer to a probe (a single test request after a backoff), so another backoff must
    // follow it. After the fifth refusal, one more request may start before its task is recalled.
    let rest = visits.0[30].started_at - visits.0[29].started_at;
    assert!(rest >= Duration::from_millis(300), "it rested for {rest:?}");
}

/// The site redirects every page to a captcha with status 200, as one of the large search engines does.
#[test]
fn a_site_that_redirects_everything_to_a_captcha_backs_off_and_its_pages_end_as_blocked() {
    let web = Web::start();
    let (blocks, well) = (web.site("blocks.example"), web.site("well.example"));
    blocks.serve_robots(TIME_TO_RECALL);
    well.serve_robots("");
    blocks.serve_otherwise(|request| match request.path.starts_with("/sorry") {
        true => page("captcha").into(),
        false => {
            let back = format!("http://blocks.example{}", request.path);
            redirect(&format!("/sorry/index?continue={back}&q=abc")).into()
        }
    });
    well.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .env("WEBFILL_BACKOFF_BLOCKED", "0.5,3600")
        .args(page_urls(&blocks, 30))
        .args(page_urls(&well, 30))
        .finish()
        .expect_code(0);
    let summary = run.summary();
    // The second backoff of the blocking site would last longer than the patience of the crawl, so its pages end as
    // blocked.
    let counts = ["ok", "blocked", "redirected"].map(|code| summary.outcome_count(code));
    assert_eq!(counts, [30, 30, 0], "{}", summary.json);
    assert_eq!(summary.json["queued"], 0);
    assert_eq!(well.visits().pages().len(), 30);
    let asked = blocks.visits().pages();
    assert_eq!(asked.len(), 2, "one and the probe: {:?}", asked.paths());
    let sorry = |path: &String| path.contains("/sorry");
    assert!(!asked.paths().iter().any(sorry), "{:?}", asked.paths());
}

#[test]
fn a_site_that_answers_429_is_asked_less_and_less_and_its_pages_can_be_retried() {
    let web = Web::start();
    let site = web.site("busy.example");
    site.serve_robots("");
    let busy = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&busy);
    site.serve_otherwise(move |_| match still.load(Ordering::SeqCst) {
        true => status(429).header("retry-after", "1").into(),
        false => page("T").into(),
    });
    let work = Workplace::new();
    let crawl = || crawl_command(&work, &web).env("WEBFILL_BACKOFF_BUSY", "1,12");
    let run = crawl()
        .args(["--patience", "8s"])
        .args(page_urls(&site, 20))
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(summary.outcome_count("http_error"), 20, "{}", summary.json);
    assert_eq!(summary.json["queued"], 0, "{}", summary.json);
    let gaps = site.visits().pages().gaps();
    let least = [1, 2, 4].map(Duration::from_secs);
    assert!(
        gaps.len() == 3 && gaps.iter().zip(least).all(|(gap, least)| *gap >= least),
        "three refusals and the probe after the rest: {gaps:?}"
    );

    busy.store(false, Ordering::SeqCst);
    let run = crawl()
        .args(["--retry", "http_error"])
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 20);
    assert_all_ok(&work, 20);
    assert_eq!(site.visits().pages().len(), 4 + 20, "each page once");
}

#[test]
fn a_crawl_ends_although_a_site_blocks_and_names_the_command_that_tries_it_again() {
    let web = Web::start();
    let (blocks, well) = (web.site("blocks.example"), web.site("well.example"));
    let refuses = Arc::new(AtomicBool::new(true));
    blocks.serve_robots(TIME_TO_RECALL);
    well.serve_robots("");
    let still = Arc::clone(&refuses);
    blocks.serve_otherwise(move |_| match still.load(Ordering::SeqCst) {
        true => status(403).into(),
        false => page("T").into(),
    });
    well.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let all = [page_urls(&blocks, 12), page_urls(&well, 30)].concat();
    let run = crawl_command(&work, &web)
        .replace_flag("--summary", "human")
        .env("WEBFILL_BACKOFF_BLOCKED", "3600")
        .args(["--patience", "30m"])
        .args(&all)
        .finish()
        .expect_code(0);
    assert_eq!(well.visits().pages().len(), 30);
    let asked = blocks.visits().pages().len();
    assert!(
        (5..=6).contains(&asked),
        "the fifth refusal is the last, but for one whose request starts before its task is recalled: {asked}"
    );
    let text = &run.stdout;
    for words in [
        format!("{} blocked", 12 - asked),
        format!("{asked} http_error"),
    ] {
        assert!(text.contains(&words), "{words}: {text}");
    }

    refuses.store(false, Ordering::SeqCst);
    let again = || crawl_command(&work, &web).env("WEBFILL_BACKOFF_BLOCKED", "3600");
    again().finish().expect_code(0);
    assert_eq!(
        blocks.visits().pages().len(),
        asked,
        "nothing is tried unasked"
    );
    let retried = again().args(["--retry", "blocked,http_error"]);
    assert_eq!(
        retried
            .finish()
            .expect_code(0)
            .summary()
            .outcome_count("ok"),
        42
    );
}

#[test]
fn a_backoff_outlives_a_killed_dispatcher() {
    let web = Web::start();
    let site = web.site("backoff.example");
    let first = Arc::new(AtomicBool::new(true));
    site.serve_with("/robots.txt", move |_| {
        match first.swap(false, Ordering::SeqCst) {
            true => status(500).into(),
            false => status(404).into(),
        }
    });
    site.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let mut running = crawl_command(&work, &web)
        .env("WEBFILL_BACKOFF_ROBOTS", "3,3")
        .args(page_urls(&site, 10))
        .start();
    let refused = web
        .log()
        .wait_until("robots.txt was asked for", |visits| !visits.is_empty());
    running.wait_until("the site backs off", |_| work.has_logged("site_backs_off"));
    running.kill_role("dispatcher");
    running.finish().expect_code(0);
    let visits = site.visits();
    let rest = visits.0[1].started_at - refused.0[0].started_at;
    assert!(rest >= Duration::from_secs(3), "asked again after {rest:?}");
    assert_all_ok(&work, 10);
}

/// The stored states of sites in trouble.
fn sites_in_trouble(work: &Workplace) -> Vec<String> {
    let sql = "SELECT concat_ws(' ', _id, state, reason, status_code, url) FROM site_states
               WHERE since < until AND updated_at >= since AND sign <> '' ORDER BY _id";
    work.stored().query_texts(sql)
}

#[test]
fn the_store_lists_sites_that_back_off_until_they_recover() {
    let web = Web::start();
    let site = web.site("ill.example");
    let is_well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&is_well);
    site.serve_with("/robots.txt", move |_| {
        match answers.load(Ordering::SeqCst) {
            true => status(404).into(),
            false => status(503).into(),
        }
    });
    site.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let mut running = crawl_command(&work, &web)
        .env("WEBFILL_BACKOFF_ROBOTS", "2,2,2,2,2,2,2,2,2")
        .args(page_urls(&site, 3))
        .start();
    web.log()
        .wait_until("robots.txt was asked for", |visits| !visits.is_empty());
    let expected = "ill.example backing_off robots 503 http://ill.example/robots.txt";
    running.wait_until("the store lists the backoff", |_| {
        sites_in_trouble(&work) == [expected]
    });
    running.kill_role("dispatcher");
    is_well.store(true, Ordering::SeqCst);
    running.finish().expect_code(0);
    assert_all_ok(&work, 3);
    assert_eq!(
        work.stored()
            .query_number("SELECT count(*) FROM site_states"),
        0
    );
}
