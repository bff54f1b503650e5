//! The processor `pagination`: URLs of further pages from a count on the first.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{
    Engine, Extraction, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source,
};
use webfill_urls::Url;

fn load_mapping(parameters: Value) -> Result<MappingSet, String> {
    let mapping = json!({
        "name": "list",
        "url_patterns": [{"type": "host", "pattern": "shop.example"}],
        "url_parsers": [{"processors": [
            {"type": "css", "parameters": {"selector": "b"}},
            {"type": "number"},
            {"type": "pagination", "parameters": parameters},
        ]}],
    });
    let source = Source {
        name: "list.json".into(),
        text: mapping.to_string(),
    };
    MappingSet::from_sources(vec![source]).map_err(|errors| errors.to_string())
}

fn extract(parameters: Value, url: &str, text: &str) -> Extraction {
    let engine = Engine::new(
        Arc::new(load_mapping(parameters).unwrap()),
        Limits::default(),
    );
    let url = Url::parse(url).unwrap();
    let wants = RequestedParts {
        mapped_links: true,
        ..RequestedParts::default()
    };
    let kind = PageKind::Html;
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

fn links(parameters: Value, url: &str, text: &str) -> Vec<String> {
    extract(parameters, url, text).links
}

#[test]
fn pages_are_computed_from_a_number_of_hits() {
    let parameters = || json!({"parameter": "start", "step": 20});
    let first = "https://shop.example/search?q=lamps&sort=up";
    let found = links(parameters(), first, "<b>500 hits</b>");
    assert_eq!(found.len(), 24);
    assert_eq!(found[0], format!("{first}&start=20"));
    assert_eq!(found[23], format!("{first}&start=480"));
    let with_start = "https://shop.example/search?start=0&q=lamps";
    let found = links(parameters(), with_start, "<b>21</b>");
    assert_eq!(found, ["https://shop.example/search?start=20&q=lamps"]);
    for count in ["0", "20", "none", "-5", "99999999999999999999999"] {
        let found = links(parameters(), first, &format!("<b>{count}</b>"));
        assert_eq!(found, [""; 0], "{count}");
    }
}

#[test]
fn further_pages_yield_no_links() {
    let parameters = || json!({"parameter": "page", "size": 10});
    for url in [
        "https://shop.example/?page=2",
        "https://shop.example/?page=7",
        "https://shop.example/?page=x",
    ] {
        assert_eq!(links(parameters(), url, "<b>31</b>"), [""; 0], "{url}");
    }
    let found = links(parameters(), "https://shop.example/?page=1", "<b>31</b>");
    assert_eq!(found.len(), 3);
    let template = || json!({"template": "/list/page/{}/", "count": "pages"});
    let found = links(
        template(),
        "https://shop.example/list/",
        "<b>1</b><b>2</b><b>9</b>",
    );
    assert_eq!(found.len(), 8);
    assert_eq!(found[7], "https://shop.example/list/page/9/");
    let further = "https://shop.example/list/page/3/";
    assert_eq!(links(template(), further, "<b>9</b>"), [""; 0]);
}

#[test]
fn the_number_of_pages_is_limited() {
    let first = "https://shop.example/";
    let parameters = json!({"parameter": "p", "count": "pages", "max": 3});
    let found = extract(parameters, first, "<b>1000000000000</b>");
    assert_eq!(found.links.len(), 2);
    let warning = "url_parsers[0]: pagination: of 1000000000000 pages only 3 are taken";
    assert_eq!(found.warnings, [warning]);
    let parameters = json!({"parameter": "p", "count": "pages"});
    assert_eq!(extract(parameters, first, "<b>5000</b>").links.len(), 999);
}

#[test]
fn faulty_parameters_are_refused_with_their_path() {
    let path = "url_parsers[0].processors[2].parameters";
    for (parameters, expected) in [
        (
            json!({"step": 20}),
            "either `parameter` or `template` is needed".to_owned(),
        ),
        (
            json!({"parameter": "a", "template": "/{}", "step": 2}),
            "either `parameter` or `template` is needed".to_owned(),
        ),
        (
            json!({"parameter": "a"}),
            "to count hits, `size` is needed".to_owned(),
        ),
        (
            json!({"parameter": "a=b", "step": 2}),
            format!("{path}.parameter: a query parameter is made of"),
        ),
        (
            json!({"template": "page/{}", "step": 2}),
            format!("{path}.template: a template begins with"),
        ),
        (
            json!({"template": "/page/", "step": 2}),
            format!("{path}.template: exactly one `{{}}` is needed"),
        ),
        (
            json!({"parameter": "a", "count": "pages", "size": 2}),
            format!("{path}.size: has no effect"),
        ),
        (
            json!({"parameter": "a", "step": 0}),
            format!("{path}.step: expected a whole number"),
        ),
        (
            json!({"parameter": "a", "step": 2, "max": 1_000_000}),
            format!("{path}.max: expected a whole number"),
        ),
    ] {
        let refused = load_mapping(parameters.clone()).err().unwrap_or_default();
        assert!(refused.contains(&expected), "{parameters}: {refused}");
    }
}
