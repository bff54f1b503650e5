//! Actions in the views take effect: checked in the access log of the sites, in the store and in the audit log, after
//! clicks in a real Chromium.

use std::sync::atomic::Ordering;

use serde_json::json;
use webfill_test_browser::Browser;
use webfill_test_needs::needs;
use webfill_tests::site::page;

use crate::fleet::{APP, wait_for};
use crate::http::encoded;
use crate::scene::{BLOCKS, CRAWL, LONG_CRAWL, LONG_SITE, Scene, WATCH};

/// Sends the form of a field, and waits for the page after it.
fn send(browser: &Browser, field: &str) {
    forget_messages(browser);
    browser.click_at(&format!("form:has({field}) button"));
    browser.wait_for("main .message");
}

/// Removes earlier messages, so that they are not taken for the result of the next action.
fn forget_messages(browser: &Browser) {
    let forget = "document.querySelectorAll('main .message').forEach(one => one.remove())";
    browser.run_script(forget, json!([]));
}

/// Clicks the button with this label, and waits until the next page reports the result.
fn click(browser: &Browser, label: &str) -> String {
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
        let audit = scene.fleet.audit();
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
    pauses_and_goes_on(&scene, &browser);
    check_retry(&scene, &browser);
    check_site_rules(&scene, &browser);
    wakes_a_site(&scene, &browser);
    runs_a_watch(&scene, &browser);
    check_stop(&scene, &browser);
}

fn pauses_and_goes_on(scene: &Scene, browser: &Browser) {
    let site = scene.fleet.web.site(LONG_SITE);
    let path = format!("/dashboard/crawl/{APP}/{}", encoded(LONG_CRAWL));
    browser.open(&scene.fleet.url(&path));
    click(browser, "Pause");
    assert_audited(scene, "pause");
    assert!(
        browser.page_text().contains("it is paused"),
        "{}",
        browser.page_text()
    );
    let so_far = site.visits().len();
    click(browser, "Resume");
    assert_audited(scene, "resume");
    wait_for("the crawl continues", || {
        (site.visits().len() > so_far + 2).then_some(())
    });
}

/// Retries all pages of a crawl with one outcome, from their list.
fn check_retry(scene: &Scene, browser: &Browser) {
    let site = scene.fleet.web.site("vereine.example");
    site.serve("/1", page("Doch da"));
    let so_far = |path: &str| site.visits().for_path(path).len();
    let (first, second) = (so_far("/1"), so_far("/2"));
    let path = format!("/dashboard/crawl/{APP}/{}", encoded(CRAWL));
    browser.open(&scene.fleet.url(&path));
    browser.click_at("a[href*='outcome=http_error']");
    browser.wait_for("select#outcome");
    click(browser, "Retry all with http_error");
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
    send(browser, "#delay");
    assert_audited(scene, "site");
    let rule = |member: &str| {
        scene.ask(json!({"action": "site", "site": "läuft.example"}))[member].clone()
    };
    assert_eq!(rule("delay"), 2.5);
    click(browser, "Remove the delay");
    assert_eq!(rule("delay"), json!(null));
    send(browser, "#block");
    wait_for("it is blocked", || rule("block_until").as_f64());
    assert_eq!(rule("state"), "backing_off");
    click(browser, "Allow requests");
    assert_eq!(rule("block_until"), json!(null));
}

fn wakes_a_site(scene: &Scene, browser: &Browser) {
    scene.refuses.store(false, Ordering::SeqCst);
    let site = scene.fleet.web.site(BLOCKS);
    let so_far = site.visits().len();
    browser.open(&scene.fleet.url(&format!("/dashboard/site/{BLOCKS}")));
    click(browser, "Wake");
    wait_for("it is asked again", || {
        (site.visits().len() > so_far).then_some(())
    });
    wait_for("it is open", || {
        let answer = scene.ask(json!({"action": "site", "site": BLOCKS}));
        (answer["state"] == "open").then_some(())
    });
}

fn runs_a_watch(scene: &Scene, browser: &Browser) {
    let site = scene.fleet.web.site("preise.example");
    let so_far = site.visits().len();
    browser.open(&scene.fleet.url(&format!("/dashboard/watch/{WATCH}")));
    click(browser, "Run now");
    assert_audited(scene, "watch_run");
    wait_for("its pages are asked for", || {
        (site.visits().len() >= so_far + 3).then_some(())
    });
    let state = || scene.ask(json!({"action": "watch_show", "name": WATCH}))["state"].clone();
    click(browser, "Pause");
    assert_audited(scene, "watch_pause");
    wait_for("it is paused", || (state() == "paused").then_some(()));
    browser.reload();
    click(browser, "Resume");
    assert_audited(scene, "watch_resume");
    assert_eq!(state(), "waiting");
}

fn check_stop(scene: &Scene, browser: &Browser) {
    let path = format!("/dashboard/crawl/{APP}/{}", encoded(LONG_CRAWL));
    browser.open(&scene.fleet.url(&path));
    browser.click_at(".ask summary");
    click(browser, "Stop crawl");
    assert_audited(scene, "stop");
    let text = browser.page_text();
    assert!(text.contains("stopped"), "{text}");
    let stored = webfill_tests::stored::Stored::open(&scene.fleet.work.path("store.db"));
    let state = format!("SELECT state FROM crawls WHERE crawl_id = '{LONG_CRAWL}'");
    wait_for("the store knows it", || {
        (stored.query_texts(&state) == ["stopped"]).then_some(())
    });
}
