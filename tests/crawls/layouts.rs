//! Tests layouts that lose fields, on small sites with very different pages. The alert names the fields, and comes on
//! the night promised in docs/explanation/health.md. Each night is a run of a watch, so no test waits for a day to
//! pass.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::wall_clock;
use webfill_tests::workplace::Workplace;

const HOST: &str = "shop.example";

const DAY_S: i64 = 86_400;

/// A page of the shop: the menu and the footer that all pages have, around this content.
fn shop_page(inner: &str) -> String {
    let menu: String = (0..12)
        .map(|at| format!("<li><a href='#{at}'>Part {at}</a></li>"))
        .collect();
    format!(
        "<html><head><title>Shop</title></head><body><header><nav><ul>{menu}</ul></nav></header>{inner}\
         <footer><p>Imprint</p></footer></body></html>"
    )
}

/// A goods page, which shows its fields in a table.
fn goods_page(number: usize, has_all: bool) -> String {
    let rows = match has_all {
        true => format!(
            "<tr><th>Name</th><td class=name>Thing {number}</td></tr><tr><th>Price</th><td class=price>{number}.50</td></tr>\
             <tr><th>Code</th><td class=code>AB-{number}</td></tr>"
        ),
        false => format!("<tr><td><b>Thing {number}</b></td><td><i>{number}.50</i></td></tr>"),
    };
    shop_page(&format!(
        "<main><section><h2>Goods</h2><table class=facts><tbody>{rows}</tbody></table><figure><img alt=it><figcaption>It</figcaption></figure>\
         </section></main>"
    ))
}

/// A story page. It has the same fields as a goods page, but in other places.
fn story_page(number: usize, has_all: bool) -> String {
    let facts = match has_all {
        true => format!(
            "<dl><dt>Name</dt><dd class=name>Story {number}</dd><dt>Price</dt><dd class=price>{number}.20</dd>\
             <dt>Code</dt><dd class=code>ST-{number}</dd></dl>"
        ),
        false => format!("<p>Story {number}, {number}.20</p>"),
    };
    shop_page(&format!(
        "<div class=page><article><h1>Story</h1>{facts}<blockquote><p>Once</p></blockquote><ol><li>One</li><li>Two</li></ol><pre>it</pre>\
         <aside><h3>More</h3><span>of it</span></aside></article></div>"
    ))
}

fn shop_mapping() -> Value {
    let field = |name: &str| {
        let expression = format!("//*[@class='{name}']/text()");
        json!({"name": name, "processors": [{"type": "xpath", "parameters": {"expression": expression}}]})
    };
    json!([{
        "name": "shop",
        "url_patterns": [{"type": "regex", "pattern": "^http://shop\\.example/\\d+$"}],
        "fields": [field("name"), field("price"), field("code")],
    }])
}

/// Whether the page with this number loses its fields after the change.
type Loses = fn(usize) -> bool;

/// Returns the HTML of the page with this number, with all of its fields or without them.
type Looks = fn(usize, bool) -> String;

struct Shop {
    web: Web,
    work: Workplace,
    pages: usize,
    is_listed: bool,
    more: Value,
    is_after: Arc<AtomicBool>,
    /// The number of past nights. In each night, the clock is a day ahead of the previous night.
    nights: AtomicI64,
}

impl Shop {
    fn new(pages: usize, is_listed: bool, looks: Looks, loses: Loses) -> Shop {
        let web = Web::start();
        let site = web.site(HOST);
        let is_after = Arc::new(AtomicBool::new(false));
        let listing = (0..pages).fold(page("All"), |list, at| list.link(&format!("/{at}")));
        site.serve("/list", listing);
        let after = Arc::clone(&is_after);
        site.serve_otherwise(move |request| {
            let number = request
                .path
                .trim_start_matches('/')
                .parse()
                .unwrap_or_default();
            let has_all = !(after.load(Ordering::SeqCst) && loses(number));
            page("").html(looks(number, has_all)).into()
        });
        let work = Workplace::new();
        work.write_json("mappings/shop.json", &shop_mapping());
        let _ = fs::remove_file(work.path("mappings/profile.json"));
        Shop {
            web,
            work,
            pages,
            is_listed,
            more: json!({}),
            is_after,
            nights: AtomicI64::new(0),
        }
    }

    fn run_night(&self) {
        let resolve = self.web.resolve_args();
        let resolve: Vec<&String> = resolve.iter().filter(|one| *one != "--resolve").collect();
        let urls: Vec<String> = match self.is_listed {
            true => vec![format!("http://{HOST}/list")],
            false => (0..self.pages)
                .map(|at| format!("http://{HOST}/{at}"))
                .collect(),
        };
        let mut watch = json!({
            "name": "shop",
            "urls": urls,
            "schedule": "0 2 * * *",
            "notify": [{"file": "notified.jsonl", "about": ["health", "silence"]}],
            "crawl": {
                "store": "sqlite:store.db", "state": "state", "mappings": "mappings", "delay": 0.01, "changes": false,
                "workers": 1, "allow_private_networks": true, "resolve": resolve, "follow": "all",
            },
        });
        for (name, value) in self.more.as_object().into_iter().flatten() {
            watch[name] = value.clone();
        }
        let file = self.work.write_json("watch.json", &watch);
        let run = Run::new(["watch", "run"]).arg(file);
        let run = run.args(["--once", "--progress", "none", "--summary", "json"]);
        let nights = self.nights.fetch_add(1, Ordering::SeqCst);
        let ended = wall_clock::with_clock_ahead(run, nights * DAY_S).finish();
        ended.expect_code(0);
    }

    fn health(&self) -> Value {
        let store = format!("sqlite:{}", self.work.path("store.db").display());
        let reported = Run::new(["health", "--store", &store, "--json"]).finish();
        serde_json::from_str(&reported.expect_code(0).stdout).unwrap()
    }

    /// The number of notifications so far that contain this text.
    fn count_notifications(&self, text: &str) -> usize {
        let reported = fs::read_to_string(self.work.path("notified.jsonl")).unwrap_or_default();
        reported.lines().filter(|line| line.contains(text)).count()
    }

    /// The fields that the present alert names.
    fn fields_in_alert(&self) -> Vec<String> {
        let health = self.health();
        let fields = health["mappings"][0]["alert"]["fields"].as_array().cloned();
        let fields = fields.into_iter().flatten();
        let mut names: Vec<String> = fields
            .filter_map(|one| one["field"].as_str().map(str::to_owned))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn goods_or_story(number: usize, has_all: bool) -> String {
    match number % 2 {
        0 => goods_page(number, has_all),
        _ => story_page(number, has_all),
    }
}

/// A goods page that either has all of its fields or keeps only the name.
fn goods_or_name(number: usize, has_all: bool) -> String {
    match has_all {
        true => goods_page(number, true),
        false => shop_page(&format!(
            "<main><section><h2>Goods</h2><div class=card><b class=name>Thing {number}</b><em>{number}.50</em></div></section></main>"
        )),
    }
}

const ALL: &[&str] = &["code", "name", "price"];

#[needs(libfaketime)]
#[test]
fn two_layouts_are_two_templates_and_fields_missing_in_the_second_raise_an_alert() {
    // The last 22 of 46 pages are stories, which have no fields.
    let looks = |number: usize, _: bool| match number {
        0..24 => goods_page(number, true),
        _ => story_page(number, false),
    };
    let shop = Shop::new(46, false, looks, |_| false);
    shop.run_night();
    let health = shop.health();
    let mapping = &health["mappings"][0];
    let templates = mapping["templates"].as_array().unwrap();
    let pages: Vec<&Value> = templates.iter().map(|one| &one["pages"]).collect();
    assert_eq!(pages, [24, 22], "{templates:#?}");
    assert_eq!(shop.fields_in_alert(), ALL, "{mapping:#}");
    assert_eq!(shop.count_notifications("layout_changed"), 1);
}

/// A case: its name, the number of pages, whether a listing links to them, their HTML, and which pages lose fields.
/// Then the names of the lost fields, and within how many nights the loss must be reported.
type Loss = (
    &'static str,
    usize,
    bool,
    Looks,
    Loses,
    &'static [&'static str],
    usize,
);

const LOSSES: &[Loss] = &[
    (
        "20 pages lose two of three fields",
        20,
        false,
        goods_or_name,
        |_| true,
        &["code", "price"],
        1,
    ),
    (
        "20 pages behind a listing",
        20,
        true,
        goods_or_name,
        |_| true,
        &["code", "price"],
        1,
    ),
    (
        "6 pages behind a listing",
        6,
        true,
        goods_or_name,
        |_| true,
        &["code", "price"],
        2,
    ),
    (
        "one of two layouts, 46 pages",
        46,
        true,
        goods_or_story,
        |number| number % 2 == 1,
        ALL,
        1,
    ),
    (
        "one of two layouts, 20 pages",
        20,
        false,
        goods_or_story,
        |number| number % 2 == 0,
        ALL,
        1,
    ),
];

#[needs(libfaketime)]
#[test]
fn a_watch_of_few_pages_reports_lost_fields_on_the_nights_that_are_promised() {
    let mut late = Vec::new();
    for &(name, pages, is_listed, looks, loses, fields, most) in LOSSES {
        let shop = Shop::new(pages, is_listed, looks, loses);
        for _ in 0..3 {
            shop.run_night();
        }
        assert!(
            shop.fields_in_alert().is_empty(),
            "{name}: {:?}",
            shop.fields_in_alert()
        );
        shop.is_after.store(true, Ordering::SeqCst);
        let reported = (1..=most).find(|_| {
            shop.run_night();
            !shop.fields_in_alert().is_empty()
        });
        if reported.is_none()
            || shop.fields_in_alert() != fields
            || shop.count_notifications("layout_changed") != 1
        {
            late.push(format!(
                "{name}: night {reported:?}, {:?}",
                shop.fields_in_alert()
            ));
        }
    }
    assert!(late.is_empty(), "{}", late.join("\n"));
}

#[needs(libfaketime)]
#[test]
fn with_silent_after_1_the_first_night_without_fields_is_reported() {
    let looks = |number: usize, has_all: bool| match has_all {
        true => goods_page(number, true),
        false => story_page(number, false),
    };
    let mut shop = Shop::new(6, true, looks, |_| true);
    shop.more = json!({"silent_after": 1});
    for _ in 0..3 {
        shop.run_night();
    }
    assert_eq!(shop.count_notifications("\"silent\""), 0);
    shop.is_after.store(true, Ordering::SeqCst);
    shop.run_night();
    assert_eq!(shop.count_notifications("\"silent\""), 1, "the first night");
}
