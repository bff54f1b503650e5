//! Tests that an alert leads to the mapping editor, and that the repair there is only a proposal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use webfill_test_browser::{Browser, CONTROL, DOWN, ENTER, ESCAPE, Keyboard};
use webfill_test_needs::needs;
use webfill_tests::site::{Page, Web, status};
use webfill_tests::workplace::Workplace;

use super::bench::Bench;
use crate::looks;

const HOST: &str = "shop.example";
const THINGS: usize = 120;

fn price(number: usize) -> String {
    format!("{}.{:02}", 10 + number * 3, number % 100)
}

/// The price of a thing after the change of the layout. No page had this price before.
fn raised_price(number: usize) -> String {
    price(number + 1_000)
}

fn thing_page(number: usize, is_new: bool, new_price: fn(usize) -> String) -> Page {
    let main = match is_new {
        false => format!(
            "<p class=name>Thing {number}</p><p class=cost>{}</p>",
            price(number)
        ),
        true => format!(
            "<h2 id=thing-name>Thing {number}</h2><table><tr><th>Price</th><td>{}</td></tr></table>",
            new_price(number)
        ),
    };
    status(200)
        .header("content-type", "text/html; charset=utf-8")
        .body(format!("<html><body><h1>The Shop</h1>{main}</body></html>"))
}

fn mapping() -> Value {
    let css = |selector: &str| json!([{"type": "css", "parameters": {"selector": selector}}]);
    json!({"name": "shop", "url_patterns": [{"type": "host", "pattern": HOST}], "fields": [
        {"name": "shop", "processors": css("h1")},
        {"name": "name", "processors": css("p.name")},
        {"name": "price", "description": "In pounds.", "processors": css("p.cost")},
    ]})
}

/// A site whose layout has changed, and the mapping that reads only the former layout.
struct Broken {
    work: Workplace,
    web: Web,
    bench: Bench,
}

impl Broken {
    fn new() -> Broken {
        Broken::with_new_prices(price)
    }

    fn with_new_prices(new_price: fn(usize) -> String) -> Broken {
        let (work, web) = (Workplace::new(), Web::start());
        std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
        work.write_json("mappings/shop.json", &mapping());
        let is_new = Arc::new(AtomicBool::new(false));
        let layout = Arc::clone(&is_new);
        web.site(HOST).serve_otherwise(move |request| {
            let number = request
                .path
                .trim_start_matches('/')
                .parse()
                .unwrap_or_default();
            thing_page(number, layout.load(Ordering::SeqCst), new_price).into()
        });
        let urls: Vec<String> = (0..THINGS)
            .map(|number| format!("http://{HOST}/{number}"))
            .collect();
        let seeds = work.write("seeds.txt", urls.join("\n"));
        for (crawl, changes) in [("first", false), ("second", true)] {
            is_new.store(changes, Ordering::SeqCst);
            work.crawl_without_delay(&web)
                .args(["--delay", "0", "--keep-bodies"])
                .replace_flag("--crawl", crawl)
                .arg("--seeds")
                .arg(&seeds)
                .finish()
                .expect_code(0);
        }
        let store = format!("sqlite:{}", work.path("store.db").display());
        let bench = Bench::start(&work, &web, &["--store", &store]);
        Broken { work, web, bench }
    }

    fn mapping(&self) -> Value {
        let text = std::fs::read_to_string(self.work.path("mappings/shop.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Crawls one page with the mapping of the folder. Returns the fields that are read.
    fn crawl_and_read(&self, number: usize) -> Value {
        let seeds = format!("http://{HOST}/{number}");
        self.work
            .crawl_without_delay(&self.web)
            .args(["--delay", "0"])
            .replace_flag("--crawl", "third")
            .arg("--seeds")
            .arg(self.work.write("one.txt", seeds))
            .finish()
            .expect_code(0);
        let stored = webfill_tests::stored::Stored::open(&self.work.path("store.db"));
        let fields = stored.query_texts("SELECT fields FROM pages WHERE crawl_id = 'third'");
        serde_json::from_str(&fields[0]).unwrap()
    }
}

#[test]
fn an_alert_opens_with_pages_from_before_and_after_and_a_repair_is_applied_only_on_request() {
    let broken = Broken::new();
    let bench = &broken.bench;
    let start = bench.visitor.get("/dashboard/editor");
    assert!(
        start.body.contains("Repair shop"),
        "the alert is reported: {}",
        start.body
    );

    let draft = bench.begin_repair("shop");
    let pages = bench.state(&draft)["draft"]["pages"]
        .as_array()
        .unwrap()
        .clone();
    let is_former = |page: &&Value| page["is_former"] == true;
    assert!(
        pages.iter().any(|page| is_former(&page)),
        "pages of before: {pages:?}"
    );
    assert!(
        pages.iter().filter(|page| !is_former(page)).count() >= 3,
        "pages of after: {pages:?}"
    );
    // Adds further pages of the crawl to the draft, with the values that were read from them at that time.
    bench.request_ok(
        &draft,
        "add",
        &json!({"add": {"crawl": {"app": "local", "crawl": "second", "count": 10}}}),
    );

    let answer = bench.request_ok(&draft, "repair", &json!({}));
    let repaired: Vec<&str> = answer["fields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|field| field["accepted"] == true)
        .map(|field| field["field"].as_str().unwrap())
        .collect();
    assert_eq!(repaired, ["name", "price"], "{answer:#}");
    let lines = answer["difference"].as_array().unwrap();
    assert!(
        lines
            .iter()
            .any(|line| line[0] == "-" && line[1].as_str().unwrap().contains("p.cost"))
    );
    assert_eq!(broken.mapping(), mapping(), "it is a proposal");

    bench.request_ok(&draft, "save", &json!({"mapping": answer["mapping"]}));
    assert_eq!(broken.mapping()["fields"][2]["description"], "In pounds.");
    assert_eq!(
        broken.mapping()["fields"][0],
        mapping()["fields"][0],
        "what was whole stays"
    );
    assert_eq!(broken.crawl_and_read(77)["price"], price(77));
}

/// Follows the alert on the overview to the proposed repair, as a person without a mouse does. Returns the keyboard of
/// this person.
fn open_repair<'b>(broken: &Broken, browser: &'b Browser) -> Keyboard<'b> {
    browser.set_size(1440, 900);
    browser.open(&broken.bench.url("/dashboard/"));
    browser.wait_until("the alert", || {
        let text = browser.page_text();
        text.contains("Needs attention").then_some(())
    });
    let by = Keyboard::new(browser);
    by.skip_to_content();
    by.tab_to_and_enter("Repair shop");
    by.wait_for_page("Mapping shop");
    browser.wait_until("the proposal", || {
        let head = browser.text_at("#results-head")?;
        (head == "Proposed repair").then_some(())
    });
    by
}

fn wait_for_status(browser: &Browser, wanted: &str) {
    browser.wait_until(wanted, || {
        let status = browser.text_at("#status")?;
        status.contains(wanted).then_some(())
    });
}

/// Waits until the copy of the page has the keyboard focus.
fn wait_for_copy(browser: &Browser) {
    let focused = "return document.hasFocus() && document.activeElement.id === 'page'";
    browser.wait_until("the copy has the focus", || {
        browser.enter_frame(&browser.wait_for("#frame"));
        let is_focused = browser.run_script(focused, json!([]));
        browser.leave_frames();
        (is_focused == true).then_some(())
    });
}

/// Waits until the description of the focused element in the copy of the page contains `wanted`.
fn wait_for_element(browser: &Browser, wanted: &str) {
    browser.wait_until(wanted, || {
        browser.enter_frame(&browser.wait_for("#frame"));
        let here = browser.text_at("#here");
        browser.leave_frames();
        here?.contains(wanted).then_some(())
    });
}

#[needs(chromedriver, axe)]
#[test]
fn people_mend_a_broken_mapping_by_keys() {
    let broken = Broken::new();
    let browser = Browser::start();
    let by = open_repair(&broken, &browser);
    browser.screenshot("editor-repair");
    by.tab_to_and_enter("Apply and save");
    wait_for_status(&browser, "Saved");
    by.print_report("mend a broken mapping");
    assert_eq!(browser.take_console(), Vec::<String>::new());
    looks::check_editor(&browser, "editor-repair");
    let read = broken.crawl_and_read(77);
    assert_eq!(read["price"], price(77));
    assert_eq!(read["name"], "Thing 77");
}

#[needs(chromedriver, axe)]
#[test]
fn a_field_that_no_repair_finds_is_pointed_at_by_keys() {
    let broken = Broken::with_new_prices(raised_price);
    let browser = Browser::start();
    let by = open_repair(&broken, &browser);
    by.tab_to_and_enter("Apply and save");
    wait_for_status(&browser, "Saved");
    by.tab_to_and_enter("Point at price");
    wait_for_copy(&browser);
    // Typing a text moves the focus to the label that contains it. The element after the label has the value.
    by.type_text("price");
    wait_for_element(&browser, "th: Price");
    by.press(&[DOWN]);
    wait_for_element(&browser, "td: ");
    by.press_as_step(&[ENTER]);
    wait_for_status(&browser, "candidates for price");
    browser.screenshot("editor-by-keys");
    looks::check_editor(&browser, "editor-by-keys");
    by.press(&[ESCAPE]);
    by.tab_to_and_enter("Use candidate 1");
    wait_for_status(&browser, "price is read by");
    by.press_with_as_step(CONTROL, 's');
    wait_for_status(&browser, "Saved");
    by.print_report("mend a field that no repair finds");
    assert_eq!(browser.take_console(), Vec::<String>::new());
    let read = broken.crawl_and_read(77);
    assert_eq!(read["price"], raised_price(77));
    assert_eq!(read["name"], "Thing 77");
}

/// The marked texts in the frame whose title begins with `frame`, on the dashboard's page about a mapping.
fn marked_texts(browser: &Browser, frame: &str) -> Vec<String> {
    let frame = format!("iframe[title^='{frame}']");
    browser.run_script(
        "document.querySelector(arguments[0]).scrollIntoView()",
        json!([frame]),
    );
    browser.enter_frame(&browser.wait_for(&frame));
    browser.wait_for(".found");
    let texts =
        "return [...document.querySelectorAll('.found')].map((one) => one.textContent.trim())";
    let texts = browser.run_script(texts, json!([]));
    browser.leave_frames();
    serde_json::from_value(texts).unwrap()
}

#[needs(chromedriver)]
#[test]
fn pages_from_before_and_after_a_change_are_side_by_side() {
    let broken = Broken::new();
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&broken.bench.url("/dashboard/mapping/shop"));
    let before = marked_texts(&browser, "Before");
    assert_eq!(before.len(), 3, "{before:?}");
    assert_eq!(marked_texts(&browser, "After"), ["The Shop"]);
    browser.screenshot("mapping-broken");
}
