//! Tests pages other than HTML in the mapping editor. They are shown as text, and mappings read them as in a crawl.

use serde_json::{Value, json};
use webfill_tests::office::pdf;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::bench::Bench;

fn field_json(name: &str, kind: &str, parameters: Value) -> Value {
    json!({"name": name, "processors": [{"type": kind, "parameters": parameters}]})
}

fn mapping_body(fields: &[Value]) -> Value {
    json!({"mapping": {
        "name": "papers",
        "url_patterns": [{"type": "host", "pattern": "page.invalid"}],
        "fields": fields,
    }})
}

/// Uploads a page into a new draft. Returns the values that are read from it, by field.
fn read_uploaded_page(
    bench: &Bench,
    name: &str,
    body: &str,
    fields: &[Value],
) -> Vec<(String, String)> {
    let draft = bench.begin_draft("", "papers");
    let answer = bench.upload(&draft, name, body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let tried = bench.request_ok(&draft, "trial", &mapping_body(fields));
    let rows = tried["rows"].as_array().expect("rows").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = rows.map(|row| (text(&row["field"]), text(&row["read"])));
    let mut read: Vec<(String, String)> = read.collect();
    read.sort();
    let traced = bench.request_ok(&draft, "trace", &json!({"page": 0}));
    assert_eq!(
        traced["fields"].as_array().expect("fields").len(),
        fields.len()
    );
    read
}

fn owned_pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = expected
        .iter()
        .map(|(one, other)| ((*one).to_owned(), (*other).to_owned()));
    owned.collect()
}

#[test]
fn json_is_read_by_a_mapping() {
    let (work, web) = (Workplace::new(), Web::start());
    let bench = Bench::start(&work, &web, &[]);
    let body = r#"{"person": {"name": "Ada", "towns": ["London"]}}"#;
    let fields = [
        field_json("name", "jsonpath", json!({"expression": "$.person.name"})),
        field_json(
            "town",
            "jsonpath",
            json!({"expression": "$.person.towns[0]"}),
        ),
    ];
    let read = read_uploaded_page(&bench, "ada.json", body, &fields);
    assert_eq!(read, owned_pairs(&[("name", "Ada"), ("town", "London")]));
}

#[test]
fn a_pdf_is_shown_as_text_and_read_by_a_mapping() {
    let (work, web) = (Workplace::new(), Web::start());
    let bench = Bench::start(&work, &web, &[]);
    let body = String::from_utf8(pdf("A paper", "Contract number 4711 of the year"));
    let body = body.expect("it is plain");
    let fields = [
        field_json("number", "regex", json!({"pattern": "number (\\d+)"})),
        field_json("title", "meta", json!({"name": "title"})),
    ];
    let read = read_uploaded_page(&bench, "paper.pdf", &body, &fields);
    assert_eq!(
        read,
        owned_pairs(&[("number", "4711"), ("title", "A paper")])
    );
    let draft = bench.begin_draft("", "papers");
    bench.upload(&draft, "paper.pdf", &body);
    let copy = bench.visitor.get(&format!("{draft}/copy/0"));
    assert_eq!(copy.status, 200, "{}", copy.body);
    assert!(copy.body.contains("Contract number 4711"), "{}", copy.body);
}

#[test]
fn unreadable_pages_show_the_reason() {
    let (work, web) = (Workplace::new(), Web::start());
    let bench = Bench::start(&work, &web, &[]);
    let fields = [field_json("title", "css", json!({"selector": "h1"}))];
    for (name, body, why) in [
        ("broken.pdf", "%PDF-1.7 x", "because it is broken"),
        (
            "picture.png",
            "\u{1}\u{2}\u{0}\u{3}PNG",
            "nor a known kind of document",
        ),
    ] {
        let draft = bench.begin_draft("", "papers");
        bench.upload(&draft, name, body);
        let refused = bench.request_refused(&draft, "trial", &mapping_body(&fields));
        assert!(refused.contains(why), "{name}: {refused}");
    }
}
