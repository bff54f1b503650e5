//! If a path or selector finds nothing, a trace suggests only others that do find something.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, Source, StepTrace};
use webfill_urls::Url;

const PAGE: &str = r#"<html><body>
    <div class="item big"><h2 id="Top">Ada</h2><a href="/ada" title="x">Ada</a></div>
    <div class="item"><b>born <i>1815</i></b></div>
    <table class="facts"><tr><th>Born<td>1815<tr><th>Died<td>1852</table>
    </body></html>"#;

/// The trace of a field with a single processor.
fn trace_step(kind: PageKind, page: &str, processor: &str, expression: &str) -> StepTrace {
    let parameter = match processor {
        "xpath" => "expression",
        "regex" => "pattern",
        _ => "selector",
    };
    let steps = json!([{"type": processor, "parameters": {parameter: expression}}]);
    trace_steps(kind, page, steps).swap_remove(0)
}

/// The trace of a field with these processors.
fn trace_steps(kind: PageKind, page: &str, steps: Value) -> Vec<StepTrace> {
    let mapping = json!({
        "name": "m", "url_patterns": [{"type": "host", "pattern": "a.example"}],
        "fields": [{"name": "f", "processors": steps}],
    });
    let source = Source {
        name: "m.json".to_owned(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap();
    let url = Url::parse("http://a.example/").unwrap();
    let input = PageInput {
        url: &url,
        kind,
        text: page,
    };
    let engine = Engine::new(Arc::new(set), Limits::default());
    let trace = engine.trace(None, input).unwrap();
    trace.fields[0].alternatives[0].clone()
}

fn hint(processor: &str, expression: &str) -> String {
    let step = trace_step(PageKind::Html, PAGE, processor, expression);
    step.reading.hint.unwrap_or_default()
}

#[test]
fn an_xpath_that_finds_nothing_is_reported_with_its_matching_part_and_a_suggestion() {
    for (expression, reported) in [
        (
            "//table/tr",
            "matches up to //table; did you mean //table/tbody/tr?",
        ),
        ("//TABLE", "not even //TABLE matches; did you mean //table?"),
        ("//div/i", "matches up to //div; did you mean //div//i?"),
        ("/div/b", "not even /div matches; did you mean //div/b?"),
        (
            "//div[@class='big']/h2",
            "matches up to //div; did you mean //div[contains(@class, 'big')]/h2?",
        ),
        (
            "//table//tr[3]/td",
            "matches up to //table//tr; did you mean //table//tr[2]/td?",
        ),
        (
            "//div[1]/b",
            "matches up to //div[1]; did you mean //div[2]/b?",
        ),
        (
            "//tabel//td",
            "not even //tabel matches; did you mean //table//td?",
        ),
        ("//a/@herf", "matches up to //a; did you mean //a/@href?"),
        (
            "//h2[@id='top']",
            "matches up to //h2; did you mean //h2[@id='Top']?",
        ),
        (
            "string(//table/tr)",
            "matches up to //table; did you mean string(//table/tbody/tr)?",
        ),
        // The expression has two faults.
        (
            "//table/tr/TD",
            "matches up to //table; did you mean //table/tbody/tr/td?",
        ),
        // Nothing on the page is similar to these expressions.
        ("//table/video", "matches up to //table"),
        ("//p | //q", "not even //p matches; not even //q matches"),
    ] {
        assert_eq!(hint("xpath", expression), reported, "{expression}");
    }
}

#[test]
fn a_table_without_tbody_in_xml_is_found_without_it() {
    let xml = "<table><tr><td>1</td></tr></table>";
    let step = trace_step(PageKind::Xml, xml, "xpath", "//table/tbody/tr");
    let hint = step.reading.hint.unwrap();
    assert_eq!(hint, "matches up to //table; did you mean //table/tr?");
}

#[test]
fn a_selector_that_finds_nothing_is_reported_with_its_matching_part_and_a_suggestion() {
    for (selector, reported) in [
        (
            "table > tr",
            "matches up to table; did you mean table > tbody > tr?",
        ),
        ("div > i", "matches up to div; did you mean div i?"),
        ("div.itm h2", "matches up to div; did you mean div.item h2?"),
        ("h2#top", "matches up to h2; did you mean h2#Top?"),
        (
            "a::attr(herf)",
            "matches up to a; did you mean a::attr(href)?",
        ),
        ("a[href=ada]", "matches up to a; did you mean a[href*=ada]?"),
        ("tabel td", "not even tabel matches; did you mean table td?"),
        ("table video", "matches up to table"),
    ] {
        assert_eq!(hint("css", selector), reported, "{selector}");
    }
}

#[test]
fn an_element_of_another_namespace_is_found_by_its_local_name() {
    let page = "<s:Envelope xmlns:s='urn:s' xmlns:m='urn:m'><m:price>5</m:price></s:Envelope>";
    let step = trace_step(PageKind::Xml, page, "xpath", "//price");
    assert_eq!(
        step.reading.hint.unwrap_or_default(),
        "not even //price matches; did you mean //*[local-name() = 'price']?"
    );
}

#[test]
fn expressions_that_find_something_or_are_no_path_have_no_hint() {
    for expression in [
        "//table",
        "count(//video)",
        "//video = 'x'",
        "//h2/text()",
        "not(//p)",
    ] {
        assert_eq!(hint("xpath", expression), "", "{expression}");
    }
    assert_eq!(hint("css", "div.item"), "");
    assert_eq!(
        hint("xpath", "//video[.='a\\'][@b='c']"),
        "not even //video matches"
    );
}

#[test]
fn a_step_without_input_has_no_hint() {
    let steps = json!([
        {"type": "css", "parameters": {"selector": "video"}},
        {"type": "xpath", "parameters": {"expression": ".//a"}},
    ]);
    let steps = trace_steps(PageKind::Html, PAGE, steps);
    assert_eq!(
        steps[0].reading.hint.as_deref(),
        Some("not even video matches")
    );
    assert_eq!(steps[1].reading.hint, None);
    let json = trace_step(PageKind::Json, "{}", "xpath", "//a");
    assert_eq!(json.reading.hint, None, "it has no elements at all");
}

#[test]
fn the_nodes_found_are_shown_with_their_paths() {
    let found = |processor, expression| {
        let nodes = trace_step(PageKind::Html, PAGE, processor, expression)
            .reading
            .nodes;
        let shown = nodes.into_iter().map(|node| (node.path, node.text));
        shown.collect::<Vec<_>>()
    };
    let pair = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    assert_eq!(
        found("xpath", "//td/text()"),
        [
            pair("/html/body/table/tbody/tr[1]/td/text()", "1815"),
            pair(
                "/html/body/table/tbody/tr[2]/td/text()",
                "1852\n    ".trim_end()
            ),
        ]
    );
    assert_eq!(
        found("css", "a::attr(href)"),
        [pair("/html/body/div[1]/a/@href", "/ada")]
    );
    assert_eq!(
        found("xpath", "normalize-space(//b)"),
        [pair("/html/body/div[2]/b", "born 1815")]
    );
    assert_eq!(found("css", "td, th").len(), 4);
}

#[test]
fn a_regular_expression_shows_what_matched_and_where() {
    let matches = trace_step(PageKind::Text, "né 1815, died 1852", "regex", r"(\d)\d+")
        .reading
        .matches;
    let shown: Vec<_> = matches
        .iter()
        .map(|one| (one.value, one.at, one.text.as_str()))
        .collect();
    assert_eq!(shown, [(1, 3, "1815"), (1, 14, "1852")]);
}
