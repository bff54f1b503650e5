//! Tests that the buttons and forms of the dashboard take effect. After clicks in a real Chromium, the access log of
//! the sites, the store and the audit log are checked.

use std::sync::atomic::Ordering;

use serde_json::json;
use webfill_test_browser::Browser;
use webfill_test_needs::needs;
use webfill_tests::site::page;

use crate::fleet::{APP, wait_for};
use crate::http::percent_encode;
use crate::scene::{BLOCKS, CRAWL, LONG_CRAWL, LONG_SITE, Scene, WATCH};

/// Submits the form that contains the field (a CSS selector), and waits until the next page shows a message.
fn submit_form(browser: &Browser, field: &str) {
    forget_messages(browser);
    browser.wait_and_click(&format!("form:has({field}) button"));
    browser.wait_for("main .message");
}

/// Removes messages of earlier actions, so that they are not mistaken for the result of the next action.
fn forget_messages(browser: &Browser) {
    let forget = "document.querySelectorAll('main .message').forEach(one => one.remove())";
    browser.run_script(forget, json!([]));
}

/// Clicks the button with this label, and waits until the next page reports the result. Returns the text of the report.
fn click_and_read_message(browser: &Browser, label: &str) -> String {
    let find = "const all = [...document.querySelectorAll('main button, main summary')];
        const one = all.find(one => one.textContent.trim().startsWith(arguments[0]));
        one?.click();
        return one !== undefined";
    let message = ".message:not(.fault), .message.fault[role=alert]";
    forget_messages(browser);
    let found = browser.run_script(find, json!([label]));
    assert_eq!(found, true, "no button says {label}");
    let text = browser.wait_for_text(message);
    assert!(!text.contains("Nothing changed"), "{label}: {text}");
    text
}

/// Checks that the audit log contains the action, and that the dashboard performed it.
fn assert_audited(scene: &Scene, action: &str) {
    wait_for("the audit log has it", || {
        let audit = scene.fleet.audit_log();
        let line = audit.iter().rfind(|line| line["action"] == action)?;
        assert_eq!(line["by"], "dashboard", "{line}");
        Some(())
    });
}

#[needs(chromedriver)]
#[test]
fn clicks_take_effect() {
    let scene = Scene::new();
    let browser = Browser::start();
    check_pause_and_resume(&scene, &browser);
    check_retry(&scene, &browser);
    check_site_rules(&scene, &browser);
    check_wake(&scene, &browser);
    check_run_watch(&scene, &browser);
    check_stop(&scene, &browser);
}

fn check_pause_and_resume(scene: &Scene, browser: &Browser) {
    let site = scene.fleet.web.site(LONG_SITE);
    let path = format!("/dashboard/crawl/{APP}/{}", percent_encode(LONG_CRAWL));
    browser.open(&scene.fleet.url(&path));
    click_and_read_message(browser, "Pause");
    assert_audited(scene, "pause");
    assert!(
        browser.page_text().contains("it is paused"),
        "{}",
        browser.page_text()
    );
    let so_far = site.visits().len();
    click_and_read_message(browser, "Resume");
    assert_audited(scene, "resume");
    wait_for("the crawl continues", || {
        (site.visits().len() > so_far + 2).then_some(())
    });
}

/// Retries all pages of a crawl that have the outcome `http_error`, with the button on their list.
fn check_retry(scene: &Scene, browser: &Browser) {
    let site = scene.fleet.web.site("vereine.example");
    site.serve("/1", page("Doch da"));
    let so_far = |path: &str| site.visits().for_path(path).len();
    let (first, second) = (so_far("/1"), so_far("/2"));
    let path = format!("/dashboard/crawl/{APP}/{}", percent_encode(CRAWL));
    browser.open(&scene.fleet.url(&path));
    browser.wait_and_click("a[href*='outcome=http_error']");
    browser.wait_for("select#outcome");
    click_and_read_message(browser, "Retry all with http_error");
    assert_audited(scene, "retry");
    wait_for("they are requested again", || {
        (so_far("/1") > first && so_far("/2") > second).then_some(())
    });
    wait_for("the list has one less", || {
        browser.reload();
        let rows = browser.find_all("tbody tr").len();
        (rows == 2).then_some(())
    });
}

fn check_site_rules(scene: &Scene, browser: &Browser) {
    browser.open(&scene.fleet.url("/dashboard/site/l%C3%A4uft.example"));
    let delay = browser.wait_for("#delay");
    browser.fill(&delay, "2.5");
    submit_form(browser, "#delay");
    assert_audited(scene, "site");
    let rule = |member: &str| {
        scene.run_action(json!({"action": "site", "site": "läuft.example"}))[member].clone()
    };
    assert_eq!(rule("delay"), 2.5);
    click_and_read_message(browser, "Remove the delay");
    assert_eq!(rule("delay"), json!(null));
    submit_form(browser, "#block");
    wait_for("it is blocked", || rule("block_until").as_f64());
    assert_eq!(rule("state"), "backing_off");
    click_and_read_message(browser, "Allow requests");
    assert_eq!(rule("block_until"), json!(null));
}

fn check_wake(scene: &Scene, browser: &Browser) {
    scene.refuses.store(false, Ordering::SeqCst);
    let site = scene.fleet.web.site(BLOCKS);
    let so_far = site.visits().len();
    browser.open(&scene.fleet.url(&format!("/dashboard/site/{BLOCKS}")));
    click_and_read_message(browser, "Wake");
    wait_for("it is asked again", || {
        (site.visits().len() > so_far).then_some(())
    });
    wait_for("it is open", || {
        let answer = scene.run_action(json!({"action": "site", "site": BLOCKS}));
        (answer["state"] == "open").then_some(())
    });
}

fn check_run_watch(scene: &Scene, browser: &Browser) {
    let site = scene.fleet.web.site("preise.example");
    let so_far = site.visits().len();
    browser.open(&scene.fleet.url(&format!("/dashboard/watch/{WATCH}")));
    click_and_read_message(browser, "Run now");
    assert_audited(scene, "watch_run");
    wait_for("its pages are asked for", || {
        (site.visits().len() >= so_far + 3).then_some(())
    });
    let state =
        || scene.run_action(json!({"action": "watch_show", "name": WATCH}))["state"].clone();
    click_and_read_message(browser, "Pause");
    assert_audited(scene, "watch_pause");
    wait_for("it is paused", || (state() == "paused").then_some(()));
    browser.reload();
    click_and_read_message(browser, "Resume");
    assert_audited(scene, "watch_resume");
    assert_eq!(state(), "waiting");
}

fn check_stop(scene: &Scene, browser: &Browser) {
    let path = format!("/dashboard/crawl/{APP}/{}", percent_encode(LONG_CRAWL));
    browser.open(&scene.fleet.url(&path));
    browser.wait_and_click(".ask summary");
    click_and_read_message(browser, "Stop crawl");
    assert_audited(scene, "stop");
    let text = browser.page_text();
    assert!(text.contains("stopped"), "{text}");
    let stored = webfill_tests::stored::Stored::open(&scene.fleet.work.path("store.db"));
    let state = format!("SELECT state FROM crawls WHERE crawl_id = '{LONG_CRAWL}'");
    wait_for("the store knows it", || {
        (stored.query_texts(&state) == ["stopped"]).then_some(())
    });
}
