//! Fields and links that mappings extract from pages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_mapping::{
    Engine, ExtractError, Extraction, Limits, MappingSet, PageInput, PageKind, RequestedParts,
    Source,
};
use webfill_urls::Url;

fn engine(mapping: &Value) -> Engine {
    engine_with_limits(mapping, Limits::default())
}

fn engine_with_limits(mapping: &Value, limits: Limits) -> Engine {
    let source = Source {
        name: "test.json".into(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap_or_else(|errors| panic!("{errors}"));
    Engine::new(Arc::new(set), limits)
}

/// A mapping for the host `people.example` with these fields and url_parsers.
fn mapping(fields: Value, url_parsers: Value) -> Value {
    json!({
        "name": "people",
        "url_patterns": [{"type": "host", "pattern": "people.example"}],
        "fields": fields,
        "url_parsers": url_parsers,
    })
}

fn step(kind: &str, parameters: Value) -> Value {
    json!({"type": kind, "parameters": parameters})
}

fn extract(engine: &Engine, kind: PageKind, text: &str) -> Extraction {
    let url = Url::parse("https://people.example/list/").unwrap();
    let wants = RequestedParts {
        mapped_links: true,
        row_links: true,
        all_links: true,
        feeds: true,
        ..RequestedParts::default()
    };
    engine
        .extract(
            PageInput {
                url: &url,
                kind,
                text,
            },
            wants,
        )
        .unwrap()
}

/// The values that a chain of processors gives a field with `multiple`.
fn values(processors: Value, kind: PageKind, text: &str) -> Value {
    let field = json!({"name": "f", "multiple": true, "processors": processors});
    let extraction = extract(&engine(&mapping(json!([field]), json!([]))), kind, text);
    assert_eq!(extraction.warnings, [] as [&str; 0]);
    extraction.fields.get("f").cloned().unwrap_or(Value::Null)
}

#[test]
fn nodes_stay_nodes_so_that_a_later_processor_can_search_them() {
    let page =
        "<ul><li><a href=/1>one</a><b>x</b></li><li><a href=/2>two</a></li></ul><a href=/3>no</a>";
    let chain = json!([
        step("css", json!({"selector": "li"})),
        step("xpath", json!({"expression": ".//a/@href"}))
    ]);
    assert_eq!(values(chain, PageKind::Html, page), json!(["/1", "/2"]));
    let chain = json!([
        step("xpath", json!({"expression": "//li"})),
        step("last", json!({})),
        step("css", json!({"selector": "a::attr(href)"})),
    ]);
    assert_eq!(values(chain, PageKind::Html, page), json!(["/2"]));
    let chain = json!([
        step("xpath", json!({"expression": "//li"})),
        step("filter", json!({"pattern": "x$"})),
        step("xpath", json!({"expression": "a"})),
    ]);
    assert_eq!(values(chain, PageKind::Html, page), json!(["one"]));
}

#[test]
fn a_field_takes_the_first_value_unless_it_has_multiple() {
    let processors = json!([step("css", json!({"selector": "b"}))]);
    let fields = json!([
        {"name": "one", "processors": processors},
        {"name": "all", "multiple": true, "processors": processors},
        {"name": "none", "processors": [step("css", json!({"selector": "i"}))]},
        {"name": "no_list", "multiple": true, "processors": [step("css", json!({"selector": "i"}))]},
    ]);
    let engine = engine(&mapping(fields, json!([])));
    let extraction = extract(&engine, PageKind::Html, "<b> </b><b></b><b>x</b><b>y</b>");
    let fields = Value::Object(extraction.fields);
    assert_eq!(fields, json!({"one": "x", "all": ["x", "y"]}));
}

#[test]
fn the_first_alternative_that_yields_something_wins() {
    let alternatives = json!([
        [
            step("css", json!({"selector": "h1"})),
            step("trim", json!({}))
        ],
        [step("meta", json!({"name": "og:title"}))],
        [step("css", json!({"selector": "title"}))],
    ]);
    let engine = engine(&mapping(
        json!([{"name": "t", "alternatives": alternatives}]),
        json!([]),
    ));
    // Returns the value, and the number of the alternative that yielded it; `None` for the first one.
    let title = |page: &str| {
        let extraction = extract(&engine, PageKind::Html, page);
        let of = |map: &serde_json::Map<String, Value>| map.get("t").cloned();
        (of(&extraction.fields), of(&extraction.alternatives))
    };
    let meta = "<meta property='og:title' content=meta><title>title</title>";
    let heading = title(&format!("{meta}<h1>heading</h1>"));
    assert_eq!(heading, (Some(json!("heading")), None));
    let of_meta = title(&format!("{meta}<h1>  </h1>"));
    assert_eq!(of_meta, (Some(json!("meta")), Some(json!(2))));
    let of_title = title("<title>title</title>");
    assert_eq!(of_title, (Some(json!("title")), Some(json!(3))));
    assert_eq!(title("<p>nothing"), (None, None));
}

#[test]
fn json_is_read_from_json_pages_data_scripts_and_values() {
    let chain = json!([
        step("jsonpath", json!({"expression": "$.a[*]"})),
        step("jsonpath", json!({"expression": "$.b"}))
    ]);
    let data = r#"{"a": [{"b": "x"}, {"b": 7}, {"b": null}, {"c": 1}, {"b": [1, {"d": true}]}]}"#;
    let expected = json!(["x", 7, r#"[1,{"d":true}]"#]);
    assert_eq!(values(chain.clone(), PageKind::Json, data), expected);
    let page = format!(
        "<script type='application/json; charset=utf-8'>{data}</script><script>{data}</script>"
    );
    assert_eq!(values(chain, PageKind::Html, &page), expected);
    let chain = json!([
        step("xpath", json!({"expression": "//div/@data-x"})),
        step("jsonpath", json!({"expression": "$..c"})),
    ]);
    assert_eq!(
        values(
            chain,
            PageKind::Html,
            r#"<div data-x='{"b": {"c": "<b>y</b>"}}'>"#
        ),
        json!(["<b>y</b>"])
    );
    let chain = json!([
        step("jsonpath", json!({"expression": "$.html"})),
        step("css", json!({"selector": "b"})),
    ]);
    assert_eq!(
        values(chain, PageKind::Json, r#"{"html": "a <b>y</b>"}"#),
        json!(["y"])
    );
}

#[test]
fn xml_pages_have_elements_and_text_pages_have_text() {
    let chain = json!([step("xpath", json!({"expression": "//item/pubDate"}))]);
    let feed =
        "<?xml version='1.0'?><rss><channel><item><pubDate>today</pubDate></item></channel></rss>";
    assert_eq!(values(chain, PageKind::Xml, feed), json!(["today"]));
    let chain = json!([step("regex", json!({"pattern": "(?m)^name: (.+)$"}))]);
    assert_eq!(
        values(chain, PageKind::Text, "id: 1\nname: Ada"),
        json!(["Ada"])
    );
}

#[test]
fn an_xpath_on_a_page_without_elements_yields_nothing_and_warns() {
    let fields =
        json!([{"name": "f", "processors": [step("xpath", json!({"expression": "//a"}))]}]);
    let extraction = extract(&engine(&mapping(fields, json!([]))), PageKind::Json, "{}");
    assert!(extraction.fields.is_empty());
    assert_eq!(
        extraction.warnings,
        ["field f: the page has no elements: it is neither HTML nor XML"]
    );
}

#[test]
fn links_are_absolute_canonical_and_given_once() {
    let parser = json!({"processors": [step("css", json!({"selector": "a.x::attr(href)"}))]});
    let engine = engine(&mapping(json!([]), json!([parser])));
    let page = "<base href='/b/'><a class=x href='1#top'></a><a class=x href=' ../b/1 '></a>\
        <a class=x href='mailto:a@b.example'></a><a href='HTTPS://Other.example'></a><a class=x href='//['>\
        </a><a class=x href=''></a>";
    let extraction = extract(&engine, PageKind::Html, page);
    assert_eq!(
        extraction.links,
        ["https://people.example/b/1", "mailto:a@b.example", "//["]
    );
    assert_eq!(
        extraction.all_links,
        [
            "https://people.example/b/1",
            "mailto:a@b.example",
            "https://other.example/",
            "//[",
            "https://people.example/b/"
        ]
    );
}

#[test]
fn all_links_are_the_same_with_and_without_a_tree() {
    let page = "<base href='/b/'><a href='1'></a><map><area href='2'></map><a href='3'><script>'<a href=no>'</script>";
    let parser = json!({"processors": [step("css", json!({"selector": "a"}))]});
    let with_tree = extract(
        &engine(&mapping(json!([]), json!([parser]))),
        PageKind::Html,
        page,
    );
    let without = extract(
        &engine(&mapping(json!([]), json!([]))),
        PageKind::Html,
        page,
    );
    let expected: Vec<String> = (1..4)
        .map(|n| format!("https://people.example/b/{n}"))
        .collect();
    assert_eq!(with_tree.all_links, expected);
    assert_eq!(without.all_links, expected);
}

#[test]
fn output_is_bounded_in_number_and_size() {
    let limits = Limits {
        values: 10,
        value_bytes: 100,
        links: 5,
        ..Limits::default()
    };
    let fields = json!([
        {"name": "many", "multiple": true, "processors": [step("css", json!({"selector": "a"}))]},
        {"name": "long", "processors": [step("css", json!({"selector": "p"}))]},
        {"name": "grown", "processors": [
            step("css", json!({"selector": "p"})),
            step("replace", json!({"find": "x", "with": "y".repeat(1000)})),
        ]},
    ]);
    let parser = json!({"processors": [step("css", json!({"selector": "a::attr(href)"}))]});
    let engine = engine_with_limits(&mapping(fields, json!([parser])), limits);
    let anchors: String = (0..50).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    let page = format!("{anchors}<p>{}</p>", "x".repeat(1_000_000));
    let extraction = extract(&engine, PageKind::Html, &page);
    assert_eq!(extraction.fields["many"].as_array().map(Vec::len), Some(10));
    assert_eq!(extraction.fields["long"].as_str().map(str::len), Some(100));
    assert_eq!(extraction.fields["grown"].as_str().map(str::len), Some(100));
    assert_eq!(extraction.links.len(), 5);
    assert_eq!(extraction.all_links.len(), 5);
    let warnings = extraction.warnings.join("\n");
    for part in [
        "field many: more than 10 values",
        "field long: a value was cut to 100 bytes",
        "links beyond the limits",
    ] {
        assert!(warnings.contains(part), "{part} not in\n{warnings}");
    }
}

#[test]
fn an_extraction_ends_at_its_deadline() {
    // The pattern takes quadratic time in any engine: from every letter, the search runs to the end of the text.
    let fields = json!([{"name": "slow", "processors": [step("regex", json!({"pattern": ".*[^A-Z]|[A-Z]"}))]}]);
    let limits = Limits {
        values: usize::MAX,
        ..Limits::default()
    };
    let engine = engine_with_limits(&mapping(fields, json!([])), limits);
    let url = Url::parse("https://people.example/").unwrap();
    let text = "A".repeat(2_000_000);
    let start = Instant::now();
    let wants = RequestedParts {
        deadline: Some(start + Duration::from_millis(100)),
        ..RequestedParts::default()
    };
    let page = PageInput {
        url: &url,
        kind: PageKind::Text,
        text: &text,
    };
    let expected = ExtractError::OutOfTime {
        mapping: "people".into(),
        subject: "field slow".into(),
    };
    assert_eq!(engine.extract(page, wants), Err(expected));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_page_of_no_mapping_yields_links_only_if_they_are_wanted() {
    let engine = engine(&mapping(json!([]), json!([])));
    let url = Url::parse("https://elsewhere.example/").unwrap();
    let page = PageInput {
        url: &url,
        kind: PageKind::Html,
        text: "<a href=x>x</a>",
    };
    assert_eq!(
        engine.extract(page, RequestedParts::default()),
        Ok(Extraction::default())
    );
    let wants = RequestedParts {
        all_links: true,
        ..RequestedParts::default()
    };
    assert_eq!(
        engine.extract(page, wants).unwrap().all_links,
        ["https://elsewhere.example/x"]
    );
}

#[test]
fn a_truncated_page_is_reported_with_the_reason() {
    let mut limits = Limits::default();
    limits.document.nodes = 100;
    let fields = json!([{"name": "f", "processors": [step("css", json!({"selector": "b"}))]}]);
    let engine = engine_with_limits(&mapping(fields, json!([])), limits);
    let extraction = extract(&engine, PageKind::Html, &"<b>x</b>".repeat(1000));
    assert_eq!(
        extraction.truncated.as_deref(),
        Some("the page exceeds the limit of nodes")
    );
    assert_eq!(extraction.fields["f"], "x");
}

#[test]
fn a_trace_shows_each_step_and_which_one_lost_the_value() {
    let fields = json!([
        {"name": "found", "processors": [step("css", json!({"selector": "b"})), step("uppercase", json!({}))]},
        {"name": "lost", "alternatives": [
            [step("css", json!({"selector": "h1"}))],
            [step("css", json!({"selector": "b"})), step("filter", json!({"pattern": "^z"})), step("trim", json!({}))],
            [step("css", json!({"selector": "i"})), step("trim", json!({}))],
        ]},
    ]);
    let parser =
        json!({"description": "people", "processors": [step("css", json!({"selector": "a"}))]});
    let engine = engine(&mapping(fields, json!([parser])));
    let url = Url::parse("https://people.example/list/").unwrap();
    let page = PageInput {
        url: &url,
        kind: PageKind::Html,
        text: "<b>x</b><b>y</b><i> </i>",
    };
    let trace = engine.trace(None, page).expect("the mapping matches");
    assert_eq!(trace.matching, ["people"]);
    assert_eq!(trace.fields[0].value, "X");
    let steps = &trace.fields[0].alternatives[0];
    assert_eq!(steps[0].input.shown, ["(the page, 24 bytes)"]);
    assert_eq!(steps[0].output.shown, ["<b>x</b>", "<b>y</b>"]);
    assert_eq!(steps[1].output.shown, ["X", "Y"]);
    assert_eq!(
        trace.fields[1].empty_because,
        [
            "step 1, css, found nothing in the page",
            "step 2, filter, dropped all 2 values of step 1",
            "step 2, trim, left only empty text",
        ]
    );
    assert_eq!(
        trace.url_parsers[0].empty_because.as_deref(),
        Some("step 1, css, found nothing in the page")
    );
    let json = serde_json::to_value(&trace).unwrap();
    assert_eq!(json["fields"][1]["value"], Value::Null);
    assert_eq!(
        json["fields"][0]["alternatives"][0][1]["processor"],
        "uppercase"
    );
}

#[test]
fn a_set_is_shared_by_threads_and_each_has_its_engine() {
    let fields = json!([{"name": "f", "processors": [step("css", json!({"selector": "b"}))]}]);
    let text = mapping(fields, json!([])).to_string();
    let source = Source {
        name: "test.json".into(),
        text,
    };
    let set = Arc::new(MappingSet::from_sources(vec![source]).unwrap());
    let threads = (0..4).map(|number| {
        let set = Arc::clone(&set);
        std::thread::spawn(move || {
            let page = format!("<b>{number}</b>");
            let engine = Engine::new(set, Limits::default());
            extract(&engine, PageKind::Html, &page).fields["f"].clone()
        })
    });
    let values: Vec<Value> = threads
        .collect::<Vec<_>>()
        .into_iter()
        .map(|t| t.join().unwrap())
        .collect();
    assert_eq!(values, [json!("0"), json!("1"), json!("2"), json!("3")]);
}

#[test]
fn a_chain_of_default_alone_is_a_constant() {
    let chain = json!([step("default", json!({"value": "shop"}))]);
    assert_eq!(values(chain, PageKind::Text, "some page"), json!(["shop"]));
}

#[test]
fn an_invisible_text_is_no_value_and_the_alternatives_are_tried() {
    let owner = |selector: &str| json!([step("css", json!({ "selector": selector }))]);
    let fields = json!([
        {"name": "owner", "alternatives": [owner("td.owner"), owner("b")]},
        {"name": "nobody", "processors": owner("td.owner")},
        {"name": "all", "multiple": true, "processors": owner("td")},
    ]);
    let engine = engine(&mapping(fields, json!([])));
    for blank in [
        "&nbsp;",
        "\u{200b}",
        " \u{3000}\u{feff} ",
        "&shy;",
        "\u{2800}",
        "&#8288;&zwnj;",
    ] {
        let page = format!("<table><td class=owner>{blank}<td>x</table><b>Ada</b>");
        let read = extract(&engine, PageKind::Html, &page);
        let expected = json!({"owner": "Ada", "all": ["x"]});
        assert_eq!(Value::Object(read.fields), expected, "{blank:?}");
        assert_eq!(read.alternatives["owner"], 2);
    }
}
