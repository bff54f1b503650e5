//! Tests how a mapping is made from start to end: pointing at a page in a real browser, saving the mapping, and
//! crawling with it.

use serde_json::Value;
use webfill_test_browser::{Browser, DOWN, ENTER, RIGHT};
use webfill_test_needs::needs;
use webfill_tests::site::{Page, Web, status};
use webfill_tests::stored::Stored;
use webfill_tests::workplace::Workplace;

use super::bench::Bench;
use crate::looks;

const HOST: &str = "menschen.example";

const NAMES: [&str; 5] = [
    "Ada Lovelace",
    "Grace Hopper",
    "Emmy Noether",
    "Donaudampfschifffahrtsgesellschaftskapitänswitwe Müller-Lüdenscheidt",
    "Sofja Kowalewskaja",
];

const TOWNS: [&str; 5] = ["London", "New York", "Göttingen", "Wien", "Stockholm"];

fn person_page(number: usize) -> Page {
    let (name, town) = (NAMES[number], TOWNS[number]);
    let next = (number + 1) % NAMES.len();
    status(200)
        .header("content-type", "text/html; charset=utf-8")
        .body(format!(
            "<html><head><title>{name}</title></head><body><nav><a href=/>Alle</a></nav>\
             <h1 class=person><span>{name}</span></h1><dl><dt>Wohnort</dt><dd>{town}</dd>\
             <dt>Nummer</dt><dd>{}</dd></dl><p><a class=next href=/person/{next}>weiter</a></p></body></html>",
            1_000 + number
        ))
}

#[needs(chromedriver, axe)]
#[test]
fn from_pointing_to_a_saved_mapping_that_crawls() {
    let (work, web) = (Workplace::new(), Web::start());
    std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
    let site = web.site(HOST);
    for number in 0..NAMES.len() {
        site.serve(&format!("/person/{number}"), person_page(number));
    }
    let bench = Bench::start(&work, &web, &[]);
    let browser = Browser::start();
    let at = Pointing { browser: &browser };

    browser.open(&bench.url("/dashboard/editor"));
    let name = browser.wait_for("#new-name");
    browser.fill(&name, "menschen");
    browser.press(&[ENTER]);
    for number in 0..3 {
        at.add_page(&format!("http://{HOST}/person/{number}"));
    }
    assert_eq!(site.visits().pages().len(), 3, "each page was fetched once");

    // Point at the heading with the mouse.
    at.name_field("name");
    browser.enter_frame(&browser.wait_for("#frame"));
    browser.wait_and_click("h1.right, h1");
    browser.leave_frames();
    at.use_first_candidate("name");
    // Point at the town with keys alone. Arrow keys walk through the page in the frame.
    at.name_field("town");
    browser.run_script(
        "document.getElementById('frame').focus()",
        Value::from(Vec::<Value>::new()),
    );
    browser.enter_frame(&browser.wait_for("#frame"));
    browser.run_script(
        "document.getElementById('page').focus()",
        Value::from(Vec::<Value>::new()),
    );
    at.walk_to("dd: London");
    browser.press(&[ENTER]);
    browser.leave_frames();
    at.use_first_candidate("town");
    browser.screenshot("editor");

    browser.wait_and_click("#try");
    at.wait_for_results("Values on all pages");
    for reported in ["Ada Lovelace", "Grace Hopper", "Göttingen"] {
        assert!(
            browser.page_text().contains(reported),
            "{reported}: {}",
            browser.page_text()
        );
    }
    browser.screenshot("editor-trial");
    looks::check_editor(&browser, "editor-trial");
    browser.wait_and_click("#trace");
    at.wait_for_results("Each step on this page");
    browser.screenshot("editor-trace");
    looks::check_editor(&browser, "editor-trace");
    browser.wait_and_click("#save");
    browser.wait_until("the save", || at.status().contains("Saved").then_some(()));
    assert!(
        at.status().contains("3 golden cases kept"),
        "{}",
        at.status()
    );
    assert_eq!(browser.take_console(), Vec::<String>::new());
    drop(browser);

    let seeds: Vec<String> = (0..NAMES.len())
        .map(|number| format!("http://{HOST}/person/{number}"))
        .collect();
    let seeds = work.write("seeds.txt", seeds.join("\n"));
    work.crawl(&web)
        .arg("--seeds")
        .arg(&seeds)
        .finish()
        .expect_code(0);
    for page in Stored::open(&work.path("store.db")).pages().values() {
        let number: usize = page.url.rsplit('/').next().unwrap().parse().unwrap();
        assert_eq!(page.mapping.as_deref(), Some("menschen"));
        assert_eq!(page.fields["name"], NAMES[number]);
        assert_eq!(page.fields["town"], TOWNS[number]);
    }
}

/// A person's actions in the mapping editor.
struct Pointing<'b> {
    browser: &'b Browser,
}

impl Pointing<'_> {
    fn status(&self) -> String {
        self.browser.wait_for_text("#status")
    }

    fn wait_for_results(&self, title: &str) {
        self.browser.wait_until(title, || {
            let head = self.browser.text_at("#results-head")?;
            (head == title).then_some(())
        });
    }

    /// Adds a page to the draft by its URL.
    fn add_page(&self, url: &str) {
        let browser = self.browser;
        browser.wait_until("the script", || {
            let is_open = browser.find("#adding[open]").is_some();
            is_open.then_some(()).or_else(|| {
                browser.wait_and_click("#adding summary");
                None
            })
        });
        browser.fill(&browser.wait_for("#url"), url);
        browser.wait_and_click("#add-url button");
        let options = "return [...document.querySelectorAll('#page-choice option')].map((one) => one.text).join(' ')";
        browser.wait_until("the page", || {
            let shown = browser.run_script(options, Value::from(Vec::<Value>::new()));
            shown
                .as_str()
                .is_some_and(|text| text.contains(url))
                .then_some(())
        });
    }

    /// Adds a field with this name to the mapping, and selects it for pointing.
    fn name_field(&self, name: &str) {
        let browser = self.browser;
        browser.wait_for("#editor fieldset, #editor .rows");
        let script = "const [name] = arguments;
            const add = [...document.querySelectorAll('#editor .rows[data-path=fields] > button.add')].pop();
            add.click();
            const box = [...document.querySelectorAll('#editor [data-path^=fields][data-path$=\".name\"]')].pop();
            box.value = name;
            box.dispatchEvent(new Event('input', {bubbles: true}));
            box.dispatchEvent(new Event('change', {bubbles: true}));
            const choice = document.getElementById('field-choice');
            choice.value = name;
            choice.dispatchEvent(new Event('change', {bubbles: true}));
            return choice.value;";
        let chosen = browser.run_script(script, Value::from(vec![Value::from(name)]));
        assert_eq!(chosen, name);
    }

    /// Waits until candidates for a field are shown, and uses the first one.
    fn use_first_candidate(&self, field: &str) {
        let browser = self.browser;
        browser.wait_until("candidates", || {
            let head = browser.text_at("#candidates-head")?;
            let is_there = head == format!("Candidates for {field}");
            is_there
                .then(|| browser.find(".candidate button.main"))
                .flatten()
        });
        browser.wait_and_click(".candidate button.main");
        browser.wait_until("the check", || {
            let reported = self.status();
            reported
                .starts_with(&format!("{field} is read by"))
                .then_some(())
        });
        assert!(!self.status().contains("to fix"), "{}", self.status());
    }

    /// Moves through the copy of the page by arrow keys, until the frame's status line begins with `reported`.
    fn walk_to(&self, reported: &str) {
        let browser = self.browser;
        for _ in 0..60 {
            let here = browser.wait_for_text("#here");
            if here.starts_with(reported) {
                return;
            }
            // The right arrow enters an element, and the down arrow moves past it. An element is entered if it contains
            // the searched text.
            let holds = here.contains(reported.split(": ").nth(1).unwrap_or_default());
            browser.press(&[if holds || here.is_empty() || here.starts_with("div") {
                RIGHT
            } else {
                DOWN
            }]);
        }
        panic!("{reported} was not found by walking");
    }
}
