//! Tests the processes of browsers: they may die, must not outlive their crawl, and may fail to start.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::site::{Web, page, script};
use webfill_tests::workplace::Workplace;

use super::{DELAY, crawl_command, page_with_script, serve_people};

/// The processes of browsers whose profile folders are in this folder.
fn browser_pids(folder: &Path) -> Vec<u32> {
    let folder = folder.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&format!("--user-data-dir={folder}"))
    })
    .collect()
}

/// The main process of the browser. All other browser processes are its children.
fn main_browser_pid(folder: &Path) -> Option<u32> {
    let is_main = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !String::from_utf8_lossy(&line).contains("--type=")
    };
    browser_pids(folder).into_iter().find(is_main)
}

fn assert_no_browser_is_left(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !browser_pids(folder).is_empty() {
        assert!(
            Instant::now() < deadline,
            "left: {:?}",
            browser_pids(folder)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[needs(chromium)]
#[test]
fn a_browser_that_dies_costs_no_page() {
    // There are so many pages that, even if two browsers are killed right before they would be replaced, the third one
    // has more than five to render.
    const PAGES: usize = 18;
    let web = Web::start();
    let site = web.site("people.example");
    serve_people(&site, PAGES);
    let work = Workplace::new();
    let state = work.path("state");
    let urls = (1..=PAGES).map(|n| site.url(&format!("/people/{n}")));
    let mut run = crawl_command(&work, &web)
        .args(["--depth", "0"])
        .env("WEBFILL_BROWSER_PAGES", "5")
        .args(urls)
        .start();
    for kills in 0..2 {
        let seen = site.visits().pages().len();
        run.wait_until("it continues", |_| site.visits().pages().len() > seen + 2);
        run.wait_until("there is a browser", |_| main_browser_pid(&state).is_some());
        if let Some(pid) = main_browser_pid(&state) {
            webfill_tests::process::send_signal(pid, Signal::KILL);
        }
        println!("killed {}", kills + 1);
    }
    let run = run.finish().expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        PAGES as u64,
        "{}",
        run.summary().json
    );
    let pages = work.stored().pages();
    assert_eq!(pages.len(), PAGES);
    for n in 1..=PAGES {
        let page = &pages[&site.url(&format!("/people/{n}"))];
        assert_eq!(page.fields["title"], format!("Person {n}"));
    }
    site.visits().assert_polite(DELAY);
    let logs = work.logs();
    let started = logs
        .values()
        .flatten()
        .filter(|line| line["event"] == "browser_started");
    assert!(
        started.count() >= 4,
        "killed twice, and replaced after five pages"
    );
    assert_no_browser_is_left(&state);
}

#[needs(chromium)]
#[test]
fn no_browser_outlives_its_crawl() {
    let web = Web::start();
    let site = web.site("slow.example");
    site.serve("/", page_with_script("fetch('/never')"));
    site.serve("/never", script().hold_open());
    let work = Workplace::new();
    let state = work.path("state");
    let mut run = crawl_command(&work, &web).arg(site.url("/")).start();
    run.wait_until("a page is shown", |_| {
        site.visits().for_path("/never").len() == 1
    });
    assert!(main_browser_pid(&state).is_some());
    run.signal(Signal::KILL);
    run.finish();
    assert_no_browser_is_left(&state);
}

#[needs(chromium)]
#[test]
fn a_missing_browser_is_reported_immediately() {
    let web = Web::start();
    let site = web.site("a.example");
    let work = Workplace::new();
    let run = crawl_command(&work, &web)
        .arg(site.url("/"))
        .env("WEBFILL_BROWSER_COMMAND", "no-such-browser")
        .finish()
        .expect_code(2);
    let sentence = run.one_sentence();
    assert!(
        sentence.contains("browser.command") && sentence.contains("no-such-browser"),
        "{sentence}"
    );
    let run = crawl_command(&work, &web)
        .arg(site.url("/"))
        .env("WEBFILL_BROWSER_SANDBOX", "true");
    let run = run.finish().expect_code(2);
    assert!(
        run.one_sentence().contains("browser.sandbox"),
        "{}",
        run.one_sentence()
    );
    assert!(site.visits().is_empty());
    assert!(!work.path("state").exists(), "nothing was opened");

    let requests = [
        json!({"url": site.url("/shown"), "appid": "app", "crawlid": "c1", "spiderid": "browser"}),
        json!({"url": site.url("/plain"), "appid": "app", "crawlid": "c2", "spiderid": "link"}),
    ];
    let seeds = work.write_lines("seeds.jsonl", &requests);
    site.serve("/plain", page("plain"));
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let json = run.summary().json.to_string();
    assert!(json.contains("--lane browser"), "{json}");
    assert_eq!(site.visits().pages().paths(), ["a.example/plain"]);
}
