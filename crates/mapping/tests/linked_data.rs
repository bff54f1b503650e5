//! JSON-LD as real pages have it: wrapped, with superfluous marks, with several values in one script. All readable
//! parts are read, and one warning names the oddities.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{
    Engine, Extraction, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source,
};
use webfill_urls::Url;

fn engine() -> Engine {
    let product = |expression: &str| json!([{"type": "json_ld", "parameters": {"type": "Product", "expression": expression}}]);
    let mapping = json!({
        "name": "products",
        "url_patterns": [{"type": "host", "pattern": "shop.example"}],
        "fields": [{"name": "name", "multiple": true, "processors": product("$.name")}],
    });
    let source = Source {
        name: "products.json".into(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap();
    Engine::new(Arc::new(set), Limits::default())
}

fn extract_from_scripts(engine: &Engine, scripts: &[&str]) -> Extraction {
    let url = Url::parse("https://shop.example/lamp").unwrap();
    let scripts = scripts
        .iter()
        .map(|script| format!("<script type=\"application/ld+json\">{script}</script>"));
    let page = PageInput {
        url: &url,
        kind: PageKind::Html,
        text: &scripts.collect::<String>(),
    };
    engine.extract(page, RequestedParts::default()).unwrap()
}

fn unescape(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        plain.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        plain.push_str(rest);
    }
    plain
}

#[test]
fn odd_linked_data_is_read_and_nothing_is_invented() {
    let engine = engine();
    let table = include_str!("data/linked_data.tsv");
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert!(rows.len() >= 100, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split('\t').collect();
        let [script, expected, warned] = cells[..] else {
            panic!("{row}");
        };
        let names: Vec<Value> = match expected.strip_prefix('=') {
            Some(json) => vec![serde_json::from_str(json).unwrap()],
            None => expected
                .split('|')
                .filter(|name| !name.is_empty())
                .map(Value::from)
                .collect(),
        };
        let read = extract_from_scripts(&engine, &[&unescape(script)]);
        let found = read
            .fields
            .get("name")
            .cloned()
            .unwrap_or_else(|| json!([]));
        if found != json!(names) || read.warnings.len() != usize::from(warned == "warned") {
            wrong.push(format!("{script}: {found} {:?}", read.warnings));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_oddity_of_many_scripts_is_one_warning() {
    let script = r#"{"@type":"Product","name":"Lamp"};"#;
    let read = extract_from_scripts(&engine(), &[script; 5]);
    assert_eq!(
        read.fields["name"],
        json!(["Lamp", "Lamp", "Lamp", "Lamp", "Lamp"])
    );
    assert_eq!(
        read.warnings,
        ["field name: JSON of the page is not pure: a mark follows it"]
    );
}
