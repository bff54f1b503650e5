//! An alert opens in the mapping editor, and the repair is only a proposal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use webfill_tests::site::{Page, Web, status};
use webfill_tests::workplace::Workplace;

use super::bench::Bench;

const HOST: &str = "shop.example";
const THINGS: usize = 120;

fn price(number: usize) -> String {
    format!("{}.{:02}", 10 + number * 3, number % 100)
}

fn thing(number: usize, is_new: bool) -> Page {
    let main = match is_new {
        false => format!(
            "<p class=name>Thing {number}</p><p class=cost>{}</p>",
            price(number)
        ),
        true => format!(
            "<h2 id=thing-name>Thing {number}</h2><table><tr><th>Price</th><td>{}</td></tr></table>",
            price(number)
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

#[test]
fn an_alert_opens_with_pages_from_before_and_after_and_a_repair_is_applied_only_on_request() {
    let (work, web) = (Workplace::new(), Web::start());
    std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
    work.write_json("mappings/shop.json", &mapping());
    let is_new = Arc::new(AtomicBool::new(false));
    let layout = Arc::clone(&is_new);
    web.site(HOST).otherwise(move |request| {
        let number = request
            .path
            .trim_start_matches('/')
            .parse()
            .unwrap_or_default();
        thing(number, layout.load(Ordering::SeqCst)).into()
    });
    let urls: Vec<String> = (0..THINGS)
        .map(|number| format!("http://{HOST}/{number}"))
        .collect();
    let seeds = work.write("seeds.txt", urls.join("\n"));
    for (crawl, changes) in [("first", false), ("second", true)] {
        is_new.store(changes, Ordering::SeqCst);
        work.crawl_without_delay(&web)
            .args(["--delay", "0", "--keep-bodies"])
            .instead("--crawl", crawl)
            .arg("--seeds")
            .arg(&seeds)
            .finish()
            .expect(0);
    }
    let store = format!("sqlite:{}", work.path("store.db").display());
    let bench = Bench::start(&work, &web, &["--store", &store]);
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
    // More of them, with their earlier values, from the crawl.
    bench.done(
        &draft,
        "add",
        &json!({"add": {"crawl": {"app": "local", "crawl": "second", "count": 10}}}),
    );

    let answer = bench.done(&draft, "repair", &json!({}));
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
    let file = || -> Value {
        let text = std::fs::read_to_string(work.path("mappings/shop.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(file(), mapping(), "it is a proposal");

    bench.done(&draft, "save", &json!({"mapping": answer["mapping"]}));
    assert_eq!(file()["fields"][2]["description"], "In pounds.");
    assert_eq!(
        file()["fields"][0],
        mapping()["fields"][0],
        "what was whole stays"
    );
    work.crawl_without_delay(&web)
        .args(["--delay", "0"])
        .instead("--crawl", "third")
        .arg("--seeds")
        .arg(work.write("one.txt", format!("http://{HOST}/77")))
        .finish()
        .expect(0);
    let stored = webfill_tests::stored::Stored::open(&work.path("store.db"));
    let fields = stored.texts("SELECT fields FROM pages WHERE crawl_id = 'third'");
    let fields: Value = serde_json::from_str(&fields[0]).unwrap();
    assert_eq!(fields["price"], price(77));
}
