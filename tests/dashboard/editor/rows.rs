//! Tests how a rule for rows is made from start to end: pointing at two rows of a listing in a real browser, and saving
//! a rule that reads all rows.

use std::fmt::Write;

use serde_json::{Value, json};
use webfill_test_browser::Browser;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::bench::Bench;

const BOOKS: [(&str, Option<u8>); 6] = [
    ("Silent Orchard", Some(4)),
    ("Copper Lantern", None),
    ("Winter Ferry", Some(2)),
    ("Glass Harbour", Some(5)),
    ("Paper Bridge", None),
    ("Hollow Crown", Some(1)),
];

fn listing_html() -> String {
    let mut html = String::from(
        "<title>Books</title><h1>Books</h1><nav><ul><li><a href=/>Home</a></ul></nav><ul class=books>",
    );
    for (number, (title, stars)) in BOOKS.iter().enumerate() {
        if number == 3 {
            html += "<li class='book ad'><a href=/buy>Buy lamps</a></li>";
        }
        let stars = stars
            .map(|stars| format!("<b class=stars>{stars}</b>"))
            .unwrap_or_default();
        let _ = write!(
            html,
            "<li class=book><a href=/book/{number}>{title}</a> {stars}</li>"
        );
    }
    html + "</ul>"
}

fn no_arguments() -> Value {
    Value::from(Vec::<Value>::new())
}

/// The actions of a person who makes a rule for rows in the mapping editor.
struct Rows<'b>(&'b Browser);

impl Rows<'_> {
    fn choose_field(&self, what: &str) {
        let script = "const [what] = arguments; const choice = document.getElementById('field-choice');
            choice.value = what; choice.dispatchEvent(new Event('change', {bubbles: true})); return choice.value;";
        let is_there =
            || (self.0.run_script(script, Value::from(vec![json!(what)])) == what).then_some(());
        self.0.wait_until(what, is_there);
    }

    /// Clicks the innermost element with this text among the entries of the listing.
    fn click_element_with_text(&self, text: &str) {
        let script = "const [text] = arguments;
            const all = [...document.querySelectorAll('li, li *')].filter((one) => one.textContent.includes(text));
            if (all.length) all[all.length - 1].click();
            return all.length;";
        self.0.enter_frame(&self.0.wait_for("#frame"));
        self.0.wait_until(text, || {
            let found = self.0.run_script(script, json!([text]));
            found.as_u64().filter(|count| *count > 0).map(drop)
        });
        self.0.leave_frames();
    }

    fn wait_for_status(&self, reported: &str) {
        self.0.wait_until(reported, || {
            self.0
                .text_at("#status")
                .filter(|text| text.contains(reported))
                .map(drop)
        });
    }

    /// The texts of the marked elements in the copy of the page.
    fn marked_texts(&self) -> Vec<String> {
        self.0.enter_frame(&self.0.wait_for("#frame"));
        let script = "return [...document.querySelectorAll('li.found, li.right')].map((one) => one.textContent.trim())";
        let marked = self.0.run_script(script, no_arguments());
        self.0.leave_frames();
        serde_json::from_value(marked).unwrap()
    }

    /// Waits until the rule has this field, and renames it.
    fn rename_field(&self, before: &str, now: &str) {
        let script = "const [before, now] = arguments;
            const boxes = [...document.querySelectorAll('#editor [data-path^=\"rows.fields\"][data-path$=\".name\"]')];
            const box = boxes.find((one) => one.value === before);
            if (!box) return false;
            box.value = now;
            box.dispatchEvent(new Event('input', {bubbles: true}));
            box.dispatchEvent(new Event('change', {bubbles: true}));
            return true;";
        let is_renamed = || (self.0.run_script(script, json!([before, now])) == true).then_some(());
        self.0.wait_until(before, is_renamed);
    }
}

#[needs(chromedriver)]
#[test]
fn two_rows_are_pointed_at_and_all_are_read() {
    let (work, web) = (Workplace::new(), Web::start());
    std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
    let bench = Bench::start(&work, &web, &[]);
    let draft = bench.begin_draft("", "books");
    let uploaded = bench.upload(
        &draft,
        "books.html/https%3A%2F%2Fshelf.example%2Fbooks",
        &listing_html(),
    );
    assert_eq!(uploaded.status, 200, "{}", uploaded.body);
    let browser = Browser::start();
    let at = Rows(&browser);
    browser.open(&bench.url(&draft));
    at.choose_field("#rows");
    at.click_element_with_text("Orchard");
    at.wait_for_status("point at two or more rows");
    at.click_element_with_text("Ferry");
    at.wait_for_status("6 rows");
    let marked = at.marked_texts();
    for (title, _) in BOOKS {
        assert!(
            marked.iter().any(|text| text.starts_with(title)),
            "{title}: {marked:?}"
        );
    }
    assert!(
        !marked
            .iter()
            .any(|text| text.contains("lamps") || text.contains("Home")),
        "{marked:?}"
    );

    at.choose_field("#rows.field_1");
    at.click_element_with_text("Ferry");
    at.wait_for_status("6 rows");
    at.wait_for_status("found by");
    browser.wait_for("#results table");
    at.rename_field("field_1", "title");
    at.choose_field("#rows.field_2");
    at.click_element_with_text("2");
    browser.wait_until("two fields in the table", || {
        browser
            .text_at("#results table")
            .filter(|text| text.contains("field_2"))
            .map(drop)
    });
    at.rename_field("field_2", "stars");
    at.choose_field("#rows.stars");
    browser.screenshot("editor-rows");
    browser.wait_and_click("#save");
    at.wait_for_status("Saved");
    at.wait_for_status("1 golden cases kept");
    assert_eq!(browser.take_console(), Vec::<String>::new());
    drop(browser);

    let case = std::fs::read_dir(work.path("mappings/golden/books")).unwrap();
    let case = case
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|it| it == "json"));
    let case: Value = serde_json::from_slice(&std::fs::read(case.unwrap()).unwrap()).unwrap();
    let rows: Vec<Value> = BOOKS
        .iter()
        .map(
            |(title, stars)| json!({"title": title, "stars": stars.map(|stars| stars.to_string())}),
        )
        .collect();
    assert_eq!(
        case["rows"],
        json!([{"dataset": "books", "rows": rows}]),
        "{case:#}"
    );
    Run::new(["mapping", "check"])
        .arg(work.path("mappings"))
        .finish()
        .expect_code(0);
    Run::new(["mapping", "test", "--all"])
        .arg(work.path("mappings"))
        .finish()
        .expect_code(0);
}
