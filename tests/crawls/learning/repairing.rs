//! Tests `webfill mapping repair`: a crawl notices that a layout has changed, and the mapping is learned again from
//! values that were extracted before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Page, Web, status};
use webfill_tests::workplace::Workplace;

use super::parse_report;

const HOST: &str = "shop.example";
const THINGS: usize = 120;

fn price(number: usize) -> String {
    format!("{}.{:02}", 10 + number * 3, number % 100)
}

fn html_page(main: String) -> Page {
    status(200)
        .header("content-type", "text/html; charset=utf-8")
        .body(format!(
            "<html><head><title>Shop</title></head><body><h1>The Shop</h1>{main}</body></html>"
        ))
}

fn old_page(number: usize) -> Page {
    html_page(format!(
        "<div class=\"thing\"><p class=\"name\">Thing {number}</p><p class=\"cost\">{}</p>\
         <p class=\"stock\">In stock</p></div>",
        price(number)
    ))
}

fn new_page(number: usize) -> Page {
    html_page(format!(
        "<section><h2 id=\"thing-name\">Thing {number}</h2><p>Today <b>only</b></p>\
         <table><tr><th>Price</th><td>{}</td></tr><tr><th>Weight</th><td>{} g</td></tr>\
         <tr><th>State</th><td>In stock</td></tr></table></section>",
        price(number),
        number + 500
    ))
}

fn css_chain(selector: &str) -> Value {
    json!([{"type": "css", "parameters": {"selector": selector}}, {"type": "trim"}])
}

fn shop_mapping() -> Value {
    json!({"name": "shop", "description": "Things.", "url_patterns": [{"type": "host", "pattern": HOST}],
    "fields": [
        {"name": "shop", "processors": css_chain("h1")},
        {"name": "name", "processors": css_chain("p.name")},
        {"name": "price", "description": "In pounds.", "processors": css_chain("p.cost")},
    ]})
}

/// Whether a thing is for sale. This is true for two things of three.
fn is_on_sale(number: usize) -> bool {
    !number.is_multiple_of(3)
}

fn old_page_with_sale(number: usize) -> Page {
    let sale = match is_on_sale(number) {
        true => format!("<p class=\"sale\">{}</p>", price(number)),
        false => String::new(),
    };
    html_page(format!(
        "<div class=\"thing\"><p class=\"name\">Thing {number}</p>{sale}</div>"
    ))
}

/// A page in the new layout. If the thing is not for sale, another price is in the place of the sale price.
fn new_page_with_sale(number: usize) -> Page {
    let shown = match is_on_sale(number) {
        true => number,
        false => number + 7,
    };
    html_page(format!(
        "<section><h2 id=\"thing-name\">Thing {number}</h2><div class=\"box\">{}</div></section>",
        price(shown)
    ))
}

struct Shop {
    work: Workplace,
    store: String,
    _web: Web,
}

impl Shop {
    /// Crawls all things, changes the layout, and crawls all things again.
    fn new() -> Shop {
        Shop::with_mapping(&shop_mapping())
    }

    fn with_mapping(mapping: &Value) -> Shop {
        Shop::with_pages(mapping, old_page, new_page)
    }

    fn with_pages(
        mapping: &Value,
        old_page: fn(usize) -> Page,
        new_page: fn(usize) -> Page,
    ) -> Shop {
        let (work, web) = (Workplace::new(), Web::start());
        std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
        work.write_json("mappings/shop.json", mapping);
        let is_new = Arc::new(AtomicBool::new(false));
        let layout = Arc::clone(&is_new);
        web.site(HOST).serve_otherwise(move |request| {
            let number = request
                .path
                .trim_start_matches('/')
                .parse()
                .unwrap_or_default();
            match layout.load(Ordering::SeqCst) {
                false => old_page(number).into(),
                true => new_page(number).into(),
            }
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
        Shop {
            work,
            store,
            _web: web,
        }
    }

    fn repair(&self, more: &[&str]) -> Run {
        Run::new([
            "mapping",
            "repair",
            "mappings/shop.json",
            "--store",
            &self.store,
        ])
        .args(more)
        .in_folder(self.work.path("."))
    }

    fn read_mapping(&self) -> Value {
        let text = std::fs::read_to_string(self.work.path("mappings/shop.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn test_all(&self) -> Finished {
        Run::new(["mapping", "test", "mappings", "--all"])
            .in_folder(self.work.path("."))
            .finish()
    }
}

#[test]
fn an_alert_names_the_repair_and_the_repair_reads_both_layouts() {
    let shop = Shop::new();
    let health = Run::new(["health", "--store", &shop.store, "--fail-on-alert"])
        .finish()
        .expect_code(1);
    assert!(
        health.stdout.contains("webfill mapping repair"),
        "{}",
        health.stdout
    );
    // The command shows the repaired mapping, but writes nothing.
    let before = shop.read_mapping();
    let shown = shop.repair(&["--crawl", "second"]).finish().expect_code(0);
    for reported in ["- ", "+ ", "price: nothing -> ", "nothing is written"] {
        assert!(
            shown.stdout.contains(reported),
            "{reported}: {}",
            shown.stdout
        );
    }
    assert_eq!(shop.read_mapping(), before);
    let reported = shop
        .repair(&["--crawl", "second", "--format", "json"])
        .finish()
        .expect_code(0);
    let reported = parse_report(&reported);
    let repaired = reported["repaired"].as_array().unwrap();
    let fields: Vec<&str> = repaired
        .iter()
        .filter_map(|one| one["field"].as_str())
        .collect();
    assert_eq!(fields, ["name", "price"]);
    for value in reported["values"].as_array().unwrap() {
        assert_eq!(
            (&value["old"], &value["new"]),
            (&Value::Null, &value["known"]),
            "{value}"
        );
    }
    shop.repair(&["--crawl", "second", "--apply"])
        .finish()
        .expect_code(0);
    let after = shop.read_mapping();
    assert_eq!(
        after["fields"][0], before["fields"][0],
        "what was whole stays"
    );
    assert_eq!(after["fields"][2]["description"], "In pounds.");
    let former = std::fs::read_to_string(shop.work.path("mappings/shop.json.1")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&former).unwrap(), before);
    for (number, page) in [(3, old_page(3)), (99, new_page(99))] {
        let file = shop.work.write("one.html", page.body);
        let tried = Run::new(["mapping", "test"])
            .arg(shop.work.path("mappings/shop.json"))
            .arg(file)
            .args(["--url", &format!("http://{HOST}/{number}")])
            .finish()
            .expect_code(0);
        let fields =
            json!({"shop": "The Shop", "name": format!("Thing {number}"), "price": price(number)});
        assert_eq!(parse_report(&tried)["fields"], fields);
    }
    let tested = shop.test_all().expect_code(0);
    assert!(
        tested.stdout.contains("6 golden cases, all as expected"),
        "{}",
        tested.stdout
    );
    let again = shop.repair(&["--crawl", "second"]).finish().expect_code(0);
    assert!(
        again.stdout.contains("nothing to repair"),
        "{}",
        again.stdout
    );
    // The golden cases fail with the mapping from before the repair.
    shop.work.write_json("mappings/shop.json", &before);
    shop.test_all().expect_code(1);
}

#[test]
fn the_pages_of_an_alert_suffice_and_missing_ones_are_reported() {
    let shop = Shop::new();
    let to = ["--output", "repaired.json", "--format", "json"];
    shop.repair(&to).finish().expect_code(0);
    let text = std::fs::read_to_string(shop.work.path("repaired.json")).unwrap();
    assert!(text.contains("alternatives"), "{text}");
    assert_eq!(shop.read_mapping(), shop_mapping());
    let none = shop.repair(&["--crawl", "third"]).finish().expect_code(1);
    assert!(
        none.stderr.contains("no crawl local/third"),
        "{}",
        none.stderr
    );
    let mut other = shop_mapping();
    other["name"] = json!("other");
    shop.work.write_json("mappings/shop.json", &other);
    let none = shop.repair(&[]).finish().expect_code(1);
    assert!(
        none.stderr.contains("mapping other has no alert"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_value_that_is_the_same_on_all_pages_is_not_repaired() {
    let mut mapping = shop_mapping();
    let stock = json!({"name": "stock", "processors": css_chain("p.stock")});
    mapping["fields"]
        .as_array_mut()
        .unwrap()
        .push(stock.clone());
    let shop = Shop::with_mapping(&mapping);
    let reported = shop
        .repair(&["--crawl", "second", "--apply", "--format", "json"])
        .finish()
        .expect_code(1);
    let reported = parse_report(&reported);
    let refused = reported["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 1, "{reported:#}");
    assert_eq!(refused[0]["field"], "stock");
    let why = refused[0]["why"].as_str().unwrap();
    assert!(why.contains("no evidence"), "{why}");
    assert_eq!(shop.read_mapping()["fields"][3], stock);
}

#[test]
fn pages_that_had_no_value_get_none_from_a_repair() {
    let mut mapping = shop_mapping();
    mapping["fields"] = json!([
        {"name": "name", "processors": css_chain("p.name")},
        {"name": "sale", "processors": css_chain("p.sale")},
    ]);
    let shop = Shop::with_pages(&mapping, old_page_with_sale, new_page_with_sale);
    let reported = shop
        .repair(&["--crawl", "second", "--apply", "--format", "json"])
        .finish()
        .expect_code(1);
    let reported = parse_report(&reported);
    let fields = |list: &str| -> Vec<String> {
        let all = reported[list].as_array().into_iter().flatten();
        all.filter_map(|one| Some(one["field"].as_str()?.to_owned()))
            .collect()
    };
    assert_eq!(fields("repaired"), ["name"], "{reported:#}");
    assert_eq!(fields("refused"), ["sale"], "{reported:#}");
    assert_eq!(shop.read_mapping()["fields"][1], mapping["fields"][1]);
}

/// Writes pages of people with two labelled years. The mapping reads the wrong one.
fn write_pages(work: &Workplace) -> (String, String) {
    let (mut list, mut records) = (String::new(), String::new());
    for number in 0..8 {
        let (born, died) = (1800 + number * 3, 1870 + number * 2);
        let html = format!(
            "<h1>Person {number}</h1><table><tr><th>Died:</th><td class=died>{died}</td></tr>\
             <tr><th>Born:</th><td class=born>{born}</td></tr></table>"
        );
        work.write(&format!("pages/{number}.html"), html);
        let url = format!("https://people.example/person/{number}");
        list.push_str(&format!(
            "{}\n",
            json!({"url": url, "file": format!("{number}.html")})
        ));
        records.push_str(&format!(
            "{}\n",
            json!({"id": number.to_string(), "urls": [url], "fields": {"born": born.to_string()}})
        ));
    }
    work.write("pages/pages.jsonl", list);
    let records = work.write("records.jsonl", records);
    (
        work.path("pages").display().to_string(),
        records.display().to_string(),
    )
}

#[test]
fn values_that_records_contradict_are_breaks_without_an_alert_or_a_store() {
    let work = Workplace::new();
    let (pages, records) = write_pages(&work);
    let mapping = json!({"name": "people", "url_patterns": [{"type": "host", "pattern": "people.example"}],
        "fields": [{"name": "born", "processors": [{"type": "css", "parameters": {"selector": "td"}}]}]});
    let file = work.write_json("people.json", &mapping);
    let repair = |more: &[&str]| {
        Run::new(["mapping", "repair"])
            .arg(&file)
            .args(["--pages", &pages, "--records", &records])
            .args(more)
            .in_folder(work.path("."))
            .finish()
    };
    let reported = repair(&["--format", "json"]).expect_code(0);
    let reported = parse_report(&reported);
    assert_eq!(reported["repaired"][0]["field"], "born", "{reported}");
    assert_eq!(reported["values"][0]["old"], json!(["1870"]), "{reported}");
    assert_eq!(reported["values"][0]["new"], json!(["1800"]), "{reported}");
    repair(&["--apply"]).expect_code(0);
    let again = repair(&[]).expect_code(0);
    assert!(
        again.stdout.contains("nothing to repair"),
        "{}",
        again.stdout
    );
}

const PEOPLE: usize = 50;
const FIELDS: [&str; 12] = [
    "name",
    "city",
    "street",
    "born",
    "phone",
    "mail",
    "role",
    "office",
    "height",
    "member_since",
    "motto",
    "team",
];

/// The value of a field on the page of a person.
fn value(field: usize, person: usize) -> String {
    const WORDS: [&str; 7] = [
        "amber", "birch", "cedar", "delta", "ember", "fjord", "grove",
    ];
    let (word, other) = (WORDS[person % 7], WORDS[(person / 7 + field) % 7]);
    match FIELDS[field] {
        "name" => format!("{word} {other} {person}"),
        "city" => format!("{other}ton"),
        "street" => format!("{} {word} street", person + 3),
        "born" => (1900 + person).to_string(),
        "phone" => format!("+44 20 7946 0{person:03}"),
        "mail" => format!("{word}.{other}{person}@people.example"),
        "role" => format!("{word} keeper"),
        "office" => format!("{}.{:02}", person % 5, person),
        "height" => format!("{} cm", 150 + person),
        "member_since" => format!("20{:02}-03-{:02}", person % 20, 1 + person % 28),
        "motto" => format!("ever {other}, never {word} {person}"),
        _ => format!("{other} {word} team"),
    }
}

/// The value of a field in the record of a person. For one person in twelve it is outdated and differs from the page.
fn recorded_value(field: usize, person: usize) -> String {
    match person % 12 == field {
        true => value(field, (person + 17) % PEOPLE),
        false => value(field, person),
    }
}

#[test]
fn values_that_are_out_of_date_keep_no_field_from_being_repaired() {
    let work = Workplace::new();
    let (mut list, mut records) = (String::new(), String::new());
    for person in 0..PEOPLE {
        let rows = (0..FIELDS.len()).map(|field| {
            let label = FIELDS[field].replace('_', " ");
            format!("<tr><th>{label}</th><td>{}</td></tr>", value(field, person))
        });
        let rows: String = rows.collect();
        let html = format!(
            "<html><body><div id=top>People</div><table>{rows}</table><p>Printed in {person} copies</body></html>"
        );
        work.write(&format!("pages/{person}.html"), html);
        let url = format!("https://people.example/person/{person}");
        let page = json!({"url": url, "file": format!("{person}.html")});
        list.push_str(&format!("{page}\n"));
        let fields = (0..FIELDS.len()).map(|field| {
            (
                FIELDS[field].to_owned(),
                recorded_value(field, person).into(),
            )
        });
        let fields: serde_json::Map<String, Value> = fields.collect();
        let record = json!({"id": person.to_string(), "urls": [url], "fields": fields});
        records.push_str(&format!("{record}\n"));
    }
    work.write("pages/pages.jsonl", list);
    work.write("records.jsonl", records);
    let fields =
        FIELDS.map(|name| json!({"name": name, "processors": css_chain(&format!("p.{name}"))}));
    let mapping = json!({"name": "people", "url_patterns": [{"type": "host", "pattern": "people.example"}],
        "fields": fields});
    let file = work.write_json("people.json", &mapping);
    let repair = Run::new(["mapping", "repair"]).arg(&file);
    let repair = repair.args(["--pages", "pages", "--records", "records.jsonl", "--apply"]);
    let reported = repair.in_folder(work.path(".")).finish().expect_code(0);
    for person in [0, 7, 23, 49] {
        let test = Run::new(["mapping", "test"])
            .args([&file, &work.path(&format!("pages/{person}.html"))]);
        let url = format!("https://people.example/person/{person}");
        let read = parse_report(&test.args(["--url", &url]).finish().expect_code(0));
        for (field, name) in FIELDS.iter().enumerate() {
            let expected = value(field, person);
            assert_eq!(
                read["fields"][name], *expected,
                "{name} of {person}: {}",
                reported.stdout
            );
        }
    }
}
