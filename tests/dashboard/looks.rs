//! Tests every view in a real Chromium: it shows no errors, sends requests only to the dashboard, and is accessible, in
//! light and dark and on a narrow screen. Screenshots are kept in `target/dashboard-screenshots/`, so that people can
//! inspect them.

use serde_json::json;
use webfill_test_browser::Browser;
use webfill_test_browser::looks::{Tables, check_and_screenshot};
use webfill_test_needs::needs;

use crate::fleet::{APP, Fleet};
use crate::scene::{
    BLOCKS, CLOSED, CRAWL, DATASET, DEAD, LONG, LONG_CRAWL, RECORDS_CRAWL, SCRIPTED, Scene, WATCH,
};

/// The number of tests among which the views are divided, because checking all of them takes minutes.
const PARTS: usize = 3;

#[needs(chromedriver, axe)]
#[test]
fn every_place_is_shown_whole_to_everybody() {
    check_views(0);
}

#[needs(chromedriver, axe)]
#[test]
fn every_place_is_shown_whole_to_everybody_second_part() {
    check_views(1);
}

#[needs(chromedriver, axe)]
#[test]
fn every_place_is_shown_whole_to_everybody_third_part() {
    check_views(2);
}

fn check_views(part: usize) {
    let scene = Scene::new();
    let browser = Browser::start();
    browser.set_time_zone("Europe/Berlin");
    let own = scene.fleet.url("/");
    for (name, path) in view_paths(&scene).into_iter().skip(part).step_by(PARTS) {
        browser.open(&scene.fleet.url(&path));
        check_page(&browser, &path);
        check_on_all_screens(&browser, &format!("place-{name}"));
    }
    for url in browser.requested_urls() {
        assert!(
            url.starts_with(&own) || url.starts_with("data:"),
            "{url} was asked"
        );
    }
}

/// Checks the accessibility of the open page on each screen, and keeps pictures.
pub(crate) fn check_on_all_screens(browser: &Browser, name: &str) {
    check_and_screenshot(browser, name, Tables::Fit);
}

/// Like [`check_on_all_screens`], but for the mapping editor. Its results may scroll sideways, because the user decides
/// on their columns.
pub(crate) fn check_editor(browser: &Browser, name: &str) {
    check_and_screenshot(browser, name, Tables::Scroll);
}

/// The paths of all views, each with a name for its picture.
fn view_paths(scene: &Scene) -> Vec<(&'static str, String)> {
    let part = |text: &str| crate::http::percent_encode(text);
    let crawl = |id: &str| format!("/dashboard/crawl/{APP}/{}", part(id));
    let record = |id: &str| format!("/dashboard/record/{DATASET}/{}", part(id));
    let page = |site: &str, sql: &str| page_path(&scene.fleet, site, sql);
    let vereine = page("vereine.example", "outcome = 'ok' AND url LIKE '%name=%'");
    let feindlich = page("mitglieder.example", "url LIKE '%feindlich'");
    vec![
        ("first-snapshot", "/dashboard/".into()),
        ("crawl", crawl(CRAWL)),
        ("crawl-running", crawl(LONG_CRAWL)),
        ("crawl-records", crawl(RECORDS_CRAWL)),
        ("crawl-pages", format!("{}/pages", crawl(CRAWL))),
        (
            "crawl-pages-failed",
            format!(
                "{}/pages?outcome=http_error&site=vereine.example",
                crawl(CRAWL)
            ),
        ),
        (
            "crawl-changes",
            format!("/dashboard/crawl/{APP}/{WATCH}/changes"),
        ),
        ("changes", "/dashboard/changes".into()),
        ("doubts", "/dashboard/doubts".into()),
        ("pages-of-all", "/dashboard/pages".into()),
        ("pages-none", "/dashboard/pages?site=niemand.example".into()),
        ("page", vereine.clone()),
        ("page-hostile", feindlich.clone()),
        ("page-body", format!("{feindlich}/body")),
        (
            "find",
            format!("/dashboard/find?url={}", part("http://vereine.example/1")),
        ),
        ("find-empty", "/dashboard/find".into()),
        ("find-no-url", "/dashboard/find?url=http%3A%2F%2F".into()),
        ("sites", "/dashboard/sites".into()),
        ("sites-all", "/dashboard/sites?state=all".into()),
        ("site", format!("/dashboard/site/{BLOCKS}")),
        ("site-dead", format!("/dashboard/site/{DEAD}")),
        ("site-scripted", format!("/dashboard/site/{SCRIPTED}")),
        ("site-closed", format!("/dashboard/site/{CLOSED}")),
        ("crawl-dead", format!("{}/dead", crawl(CRAWL))),
        ("site-pages", "/dashboard/site/vereine.example/pages".into()),
        ("records", "/dashboard/records".into()),
        (
            "records-open",
            format!("/dashboard/records?dataset={DATASET}&state=open"),
        ),
        (
            "records-none",
            format!("/dashboard/records?dataset={DATASET}&id=niemand"),
        ),
        ("record", record("1815")),
        ("record-open", record(&format!("{LONG}/{LONG} & Söhne?"))),
        ("record-hostile", record("feindlich")),
        ("watches", "/dashboard/watches".into()),
        ("watch", format!("/dashboard/watch/{WATCH}")),
        ("mappings", "/dashboard/mappings".into()),
        ("mapping", "/dashboard/mapping/profile".into()),
        ("mapping-pages", "/dashboard/mapping/profile/pages".into()),
        ("crawls", "/dashboard/crawls".into()),
        ("machines", "/dashboard/machines".into()),
        ("audit", "/dashboard/audit".into()),
        ("editor", "/dashboard/editor".into()),
        ("nowhere", "/dashboard/record/niemand/1".into()),
    ]
}

/// The path of the view of a stored page, which is found by an SQL condition.
pub(crate) fn page_path(fleet: &Fleet, site: &str, sql: &str) -> String {
    let stored = webfill_tests::stored::Stored::open(&fleet.work.path("store.db"));
    let ids = stored.query_texts(&format!(
        "SELECT _id FROM pages WHERE site = '{site}' AND {sql} LIMIT 1"
    ));
    let id = ids
        .first()
        .unwrap_or_else(|| panic!("no page of {site} where {sql}"));
    let parts: Vec<String> = id.split('/').map(crate::http::percent_encode).collect();
    format!("/dashboard/page/{}", parts.join("/"))
}

/// Checks everything about the open page that does not depend on the size of the screen.
fn check_page(browser: &Browser, path: &str) {
    assert_eq!(
        browser.find_all("h1").len(),
        1,
        "{path}: {}",
        browser.page_text()
    );
    assert!(browser.find("main#content, main").is_some(), "{path}");
    let faults = browser.take_console();
    // If a page is about something missing, its status is 404. Browsers log this as an error, which is left out here.
    let faults: Vec<&String> = faults
        .iter()
        .filter(|line| !line.contains("status of 404"))
        .collect();
    assert!(faults.is_empty(), "{path}: {faults:?}");
    let was_run = browser.run_script("return window.wasRun === undefined", json!([]));
    assert_eq!(
        was_run, true,
        "{path}: what a page says was taken for markup"
    );
    let text = browser.page_text();
    for wrong in [
        "undefined",
        "none of the",
        "[object",
        "{{",
        "Cannot show this page",
    ] {
        assert!(!text.contains(wrong), "{path} says `{wrong}`: {text}");
    }
    assert!(
        !text.contains(" UTC"),
        "{path}: times are the reader's: {text}"
    );
    let unzoned = "return [...document.querySelectorAll('time')].filter(time => time.textContent.includes('UTC')).length";
    assert_eq!(
        browser.run_script(unzoned, json!([])),
        0,
        "{path}: times are the reader's"
    );
}
