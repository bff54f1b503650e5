//! Hostile pages: an extraction always ends in time, and within a stack of 2 MiB, the stack of test threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

const DEADLINE: Duration = Duration::from_secs(3);
/// How much later than its deadline an extraction may end. The time is long because a step cannot be interrupted, and
/// the machine may be busy.
const SLACK: Duration = Duration::from_secs(27);

/// Chains of processors that together use most processors, whatever the values.
fn chains() -> Vec<Value> {
    let step = |kind: &str, parameters: Value| json!({"type": kind, "parameters": parameters});
    let xpath = |expression: &str| step("xpath", json!({"expression": expression}));
    let css = |selector: &str| step("css", json!({"selector": selector}));
    vec![
        json!([
            xpath("//a/@href"),
            step("url", json!({})),
            step("unique", json!({}))
        ]),
        json!([
            xpath("//*"),
            step("html_to_text", json!({})),
            step("collapse_whitespace", json!({}))
        ]),
        json!([
            xpath("//div//div//a[contains(., 'x')]"),
            step("trim", json!({})),
            step("join", json!({}))
        ]),
        json!([
            xpath("//*[not(preceding::a/@href = @href)]"),
            step("uppercase", json!({}))
        ]),
        json!([
            xpath("string(/)"),
            step("split", json!({"separator": " "})),
            step("number", json!({}))
        ]),
        json!([
            css("div > * a"),
            step("decode_entities", json!({})),
            step("date", json!({}))
        ]),
        json!([
            css("*"),
            css("*::attr(href)"),
            step("validate", json!({"type": "url"}))
        ]),
        json!([
            css("p"),
            xpath("ancestor::*"),
            step("length_limit", json!({"characters": 10}))
        ]),
        json!([
            step("jsonpath", json!({"expression": "$..*..a"})),
            step("jsonpath", json!({"expression": "$"}))
        ]),
        json!([step("json_ld", json!({"type": "Person"}))]),
        json!([step("meta", json!({"name": "og:title"})), css("b")]),
        json!([
            step("html_to_text", json!({})),
            step("replace", json!({"find": "a", "with": "y".repeat(3000)}))
        ]),
        json!([step("regex", json!({"pattern": "(?:(?:a|aa)(?!x))+$"}))]),
        json!([
            step("regex", json!({"pattern": "(\\w+)\\s+\\1"})),
            step("lowercase", json!({}))
        ]),
        json!([
            step(
                "replace",
                json!({"find": "(.)", "with": "$1$1$1$1", "regex": true})
            ),
            css("a")
        ]),
        json!([
            step("split", json!({"separator": "<"})),
            step("prefix", json!({"text": "<"})),
            css("a")
        ]),
    ]
}

fn engine() -> Engine {
    let fields: Vec<Value> = chains()
        .into_iter()
        .enumerate()
        .map(|(number, chain)| json!({"name": format!("f{number}"), "multiple": true, "processors": chain}))
        .collect();
    let mapping = json!({
        "name": "everything",
        "url_patterns": [{"type": "host", "pattern": "hostile.example"}],
        "url_parsers": [{"processors": chains()[0]}],
        "fields": fields,
    });
    let source = Source {
        name: "test".into(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap_or_else(|errors| panic!("{errors}"));
    Engine::new(Arc::new(set), Limits::default())
}

/// Extracts everything from a page, and checks that it ends in time.
fn check_survival(name: &str, kind: PageKind, text: &str) {
    let engine = engine();
    let url = Url::parse("https://hostile.example/").unwrap();
    let page = PageInput {
        url: &url,
        kind,
        text,
    };
    let start = Instant::now();
    let wants = RequestedParts {
        mapped_links: true,
        row_links: true,
        all_links: true,
        feeds: true,
        shell: true,
        deadline: Some(start + DEADLINE),
        ..RequestedParts::default()
    };
    let result = engine.extract(page, wants);
    let took = start.elapsed();
    let outcome = match &result {
        Ok(extraction) => format!(
            "{} fields, {} warnings",
            extraction.fields.len(),
            extraction.warnings.len()
        ),
        Err(error) => error.to_string(),
    };
    println!("{name}: {took:?}, {outcome}");
    assert!(took < DEADLINE + SLACK, "{name} took {took:?}");
    if let Ok(extraction) = result {
        let size = serde_json::to_string(&extraction).unwrap().len();
        assert!(size < 256 << 20, "{name}: {size} bytes came out");
    }
}

#[test]
fn nested_elements_are_extracted_in_time() {
    check_survival(
        "200,000 nested div",
        PageKind::Html,
        &"<div>".repeat(200_000),
    );
    check_survival(
        "unclosed option and div",
        PageKind::Html,
        &"<option><div>".repeat(100_000),
    );
    check_survival(
        "nested tables",
        PageKind::Html,
        &"<table><tr><td>".repeat(50_000),
    );
    check_survival(
        "nested svg and template",
        PageKind::Html,
        &"<svg><template>".repeat(50_000),
    );
}

#[test]
fn formatting_elements_are_extracted_in_time() {
    let bold: String = (0..8000).map(|number| format!("<b x={number}>")).collect();
    check_survival(
        "adopted formatting",
        PageKind::Html,
        &format!("<p>{bold}{}", "x<p>x".repeat(8000)),
    );
}

#[test]
fn many_links_are_extracted_in_time() {
    let links: String = (0..200_000)
        .map(|number| format!("<a href=/{number}>x</a>"))
        .collect();
    check_survival("200,000 links", PageKind::Html, &links);
}

#[test]
fn many_attributes_are_extracted_in_time() {
    let attributes: String = (0..50_000).map(|number| format!(" a{number}=x")).collect();
    check_survival(
        "50,000 attributes",
        PageKind::Html,
        &format!("<a href=x {attributes}>x</a>"),
    );
}

#[test]
fn text_that_is_no_html_is_extracted_in_time() {
    check_survival("a's", PageKind::Html, &"a".repeat(2_000_000));
    check_survival("words", PageKind::Html, &"aa ".repeat(1_000_000));
    check_survival("references", PageKind::Html, &"a&amp;b ".repeat(200_000));
    check_survival("NUL", PageKind::Html, &"\0<a href=\0>\0".repeat(100_000));
    check_survival("less than", PageKind::Html, &"a < b ".repeat(200_000));
    check_survival(
        "unclosed comment",
        PageKind::Html,
        &format!("<!-- {}", "<a href=x>".repeat(100_000)),
    );
    check_survival("empty", PageKind::Html, "");
}

#[test]
fn hostile_json_is_read_within_limits() {
    check_survival("nested lists", PageKind::Json, &"[".repeat(1_000_000));
    check_survival(
        "many values",
        PageKind::Json,
        &format!("[{}0]", "0,".repeat(400_000)),
    );
    let deep = format!(
        "{}{}{}",
        "{\"a\":[".repeat(60),
        "1,".repeat(200_000) + "1",
        "]}".repeat(60)
    );
    check_survival("deep and wide", PageKind::Json, &deep);
    let script = format!(
        "<script type='application/ld+json'>{}</script>",
        "[{\"@type\":\"Person\"},".repeat(50_000)
    );
    check_survival("broken JSON-LD", PageKind::Html, &script);
}

#[test]
fn hostile_xml_is_extracted_in_time() {
    check_survival("nested elements", PageKind::Xml, &"<a>".repeat(200_000));
    let laughs =
        "<!DOCTYPE x [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]><x>&b;</x>";
    check_survival("entities", PageKind::Xml, laughs);
    check_survival("no XML", PageKind::Xml, &"<<>&;".repeat(100_000));
}
