//! Tests the dashboard's pages about tables of `webfill fill`: which visitors see the doubts, and which of them may
//! answer.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use webfill_test_browser::Browser;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::workplace::Workplace;

use crate::http::Visitor;

const CHIEF: &str = "chief-0123456789abcdef0123456789abcdef";
const READER: &str = "reader-0123456789abcdef0123456789abcdef";
const SHOP: &str = "shop-0123456789abcdef0123456789abcdef";

const REVIEW: &str = "/dashboard/table/books/review";

fn log_in(place: &str, token: &str) -> Visitor {
    let mut visitor = Visitor::of(place);
    let answer = visitor.post("/dashboard/login", &[("token", token)]);
    assert_eq!(answer.status, 303, "{}", answer.body);
    visitor.cookie = answer.cookie();
    visitor
}

#[test]
fn only_visitors_who_may_change_everything_answer_doubts() {
    let work = Workplace::new();
    let tokens = format!("chief {CHIEF}\nreader {READER} read-only\nshop {SHOP} apps=shop\n");
    let heading = "# webfill: tokens for HTTP, one `NAME TOKEN` per line";
    work.write("tokens", format!("{heading}\n{tokens}"));
    fs::set_permissions(work.path("tokens"), fs::Permissions::from_mode(0o400)).unwrap();
    let doubt = json!({"key": "a", "row": 2, "id": "b1", "column": "year", "known": "1901", "page": "1910",
        "confidence": 0.9, "url": null, "excerpt": null, "doubt": {"id": "b1"}});
    work.write("books.webfill/table.txt", "books.csv");
    let review = json!({"total": 1, "doubts": [doubt]});
    work.write("books.webfill/review.json", review.to_string());
    let [.., high, low] = std::process::id().to_be_bytes();
    let place = format!("127.247.{high}.{low}:8081");
    let mut dashboard = Run::new(["dashboard", "--listen", &place, "--fill"])
        .arg(work.path("books.webfill"))
        .arg("--state")
        .arg(work.path("state"))
        .env("WEBFILL_DISPATCHER_HTTP_TOKENS", work.path("tokens"))
        .start();
    dashboard.wait_for_stderr("ready");
    let answers = || -> Vec<Value> {
        let text = fs::read_to_string(work.path("books.webfill/review.jsonl"));
        let text = text.unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let nobody = Visitor::of(&place);
    assert_ne!(nobody.get(REVIEW).status, 200);
    let take = |visitor: &Visitor| {
        let token = visitor.get("/dashboard/").form_token();
        let fields = [("token", &*token), ("key", "a"), ("answer", "accept")];
        visitor.post(REVIEW, &fields).status
    };
    let reader = log_in(&place, READER);
    let page = reader.get(REVIEW);
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("1910"));
    assert_eq!(take(&reader), 403);
    // A table does not belong to any application, so a visitor limited to an application must not see its doubts.
    let shop = log_in(&place, SHOP);
    let doubts = reader.get("/dashboard/doubts").body;
    assert!(
        doubts.contains("1910") && doubts.contains(REVIEW),
        "{doubts}"
    );
    for path in [
        "/dashboard/tables",
        "/dashboard/table/books",
        "/dashboard/doubts",
        REVIEW,
    ] {
        let page = shop.get(path);
        assert_eq!(page.status, 403, "{path}: {}", page.body);
        assert!(!page.body.contains("1910"), "{path}");
    }
    assert_eq!(take(&shop), 403);
    assert!(answers().is_empty());
    let chief = log_in(&place, CHIEF);
    assert_eq!(take(&chief), 303);
    let answered = answers();
    assert_eq!(answered.len(), 1, "{answered:?}");
    assert_eq!(
        (&answered[0]["answer"], &answered[0]["by"]),
        (&json!("accept"), &json!("chief"))
    );
    let doubts = chief.get("/dashboard/doubts").body;
    assert!(!doubts.contains("1910"), "answered: {doubts}");
    dashboard.signal(Signal::TERM);
    dashboard.finish().expect_code(0);
}

/// Writes a table with this many rows, with the files that `webfill fill` would leave beside it.
fn write_table(work: &Workplace, rows: usize) {
    let (mut table, mut evidence) = (String::from("id,title,year\n"), String::new());
    for n in 0..rows {
        let title = format!("Title {n}");
        table += &format!("b{n},{title},{}\n", 1900 + n % 120);
        let line = json!({"row": n + 2, "id": format!("b{n}"), "column": "title", "state": "filled",
            "url": format!("http://s{}.example/{n}", n % 7), "value": title});
        evidence += &format!("{line}\n");
    }
    work.write("books.csv", table);
    work.write("books.evidence.jsonl", evidence);
    work.write("books.webfill/table.txt", "books.csv");
}

#[needs(chromedriver)]
#[test]
fn the_first_rows_of_a_large_table_are_shown_while_its_index_is_made() {
    let work = Workplace::new();
    write_table(&work, 150_000);
    let [.., high, low] = std::process::id().to_be_bytes();
    let place = format!("127.248.{high}.{low}:8081");
    let mut dashboard = Run::new(["dashboard", "--listen", &place, "--fill"])
        .arg(work.path("books.webfill"))
        .start();
    dashboard.wait_for_stderr("ready");
    let rows = "/dashboard/table/books/rows";
    let first = Visitor::of(&place).get(rows).body;
    assert!(
        first.contains("The first 50 rows.") && first.contains("Title 49"),
        "{first}"
    );
    assert!(!first.contains("Title 50"), "{first}");
    assert!(first.contains("class=\"c-filled\""), "{first}");
    // A filter needs the index of the table. The page says so as long as the index is being made.
    let filtered = Visitor::of(&place).get(&format!("{rows}?state=filled"));
    assert!(filtered.body.contains("are being prepared"));
    let browser = Browser::start();
    browser.open(&format!("http://{place}{rows}"));
    // When the index exists, the complete grid replaces the first rows by itself.
    browser.wait_until("the index is made", || {
        let text = browser.text_at("[aria-rowcount='150001']")?;
        text.contains("Title 49").then_some(())
    });
    browser.wait_and_click("[role=gridcell] a");
    browser.wait_for("#pane:not([aria-busy]) #evidence");
    assert_eq!(browser.take_console(), Vec::<String>::new());
}
