//! The demo's site, mappings and records fit together: crawled in memory, every record except one is
//! completed with the values on the pages.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use webfill_mapping::{Engine, Extraction, Limits, MappingSet, PageInput, PageKind, Wants};
use webfill_urls::Url;

const DEPTH: usize = 2;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../webfill/demo")
}

fn engine() -> Engine {
    let set = MappingSet::load_dir(&demo().join("mappings"));
    let set = set.unwrap_or_else(|errors| panic!("{errors}"));
    Engine::new(Arc::new(set), Limits::default())
}

/// The page at a URL as the demo serves it; none for what is missing or what robots.txt forbids.
fn fetch(url: &Url) -> Option<String> {
    let path = url.path().trim_matches('/');
    if path.starts_with("private/") {
        return None;
    }
    let name = if path.is_empty() { "index" } else { path };
    fs::read_to_string(demo().join("site").join(format!("{name}.html"))).ok()
}

fn extract(engine: &Engine, url: &str) -> Option<Extraction> {
    let url = Url::parse(url).unwrap();
    let text = fetch(&url)?;
    let page = PageInput {
        url: &url,
        kind: PageKind::Html,
        text: &text,
    };
    let wants = Wants {
        mapped_links: true,
        ..Wants::default()
    };
    let extraction = engine.extract(page, wants).unwrap();
    assert_eq!(extraction.warnings, [] as [&str; 0]);
    Some(extraction)
}

/// Fills the null fields of a record from its pages and those they link to.
fn resolve(engine: &Engine, record: &Value) -> Map<String, Value> {
    let mut fields = record["fields"].as_object().unwrap().clone();
    let seeds = record["urls"].as_array().unwrap().iter();
    let mut queue: VecDeque<(String, usize)> = seeds
        .map(|url| (url.as_str().unwrap().to_owned(), 0))
        .collect();
    while let Some((url, depth)) = queue.pop_front() {
        let Some(extraction) = extract(engine, &url) else {
            continue;
        };
        for (name, value) in fields.iter_mut().filter(|(_, value)| value.is_null()) {
            *value = extraction.fields.get(name).cloned().unwrap_or(Value::Null);
        }
        if depth < DEPTH {
            queue.extend(extraction.links.into_iter().map(|link| (link, depth + 1)));
        }
    }
    fields
}

#[test]
fn every_record_but_one_is_completed() {
    let engine = engine();
    let text = fs::read_to_string(demo().join("records.jsonl")).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let resolved: BTreeMap<&str, Map<String, Value>> = records
        .iter()
        .map(|record| (record["id"].as_str().unwrap(), resolve(&engine, record)))
        .collect();
    assert_eq!(resolved.len(), 12);
    let open = |fields: &Map<String, Value>| fields.values().any(Value::is_null);
    let left: Vec<&&str> = resolved
        .iter()
        .filter(|(_, fields)| open(fields))
        .map(|(id, _)| id)
        .collect();
    assert_eq!(
        left,
        [&"guild-05"],
        "its place is on a page that robots.txt forbids"
    );
    for (id, expected) in [
        (
            "guild-02",
            json!({"name": "Bruno Vale", "location": "Gull Island", "born": "1984-07-19", "occupation": "Boat builder"}),
        ),
        (
            "guild-04",
            json!({"name": "Otto Reyes", "location": "Port Amber", "born": "1969-10-05", "languages": ["Spanish", "English"]}),
        ),
        (
            "guild-05",
            json!({"name": "Greta Holm", "location": null, "occupation": "Sailmaker"}),
        ),
        (
            "guild-07",
            json!({"name": "Lena Fjord", "born": "1995-05-23", "occupation": "Weather observer"}),
        ),
        (
            "guild-11",
            json!({"name": "Viktor Santos", "location": "Port Amber", "languages": ["Portuguese"]}),
        ),
        (
            "guild-12",
            json!({"name": "Pia Marsh", "location": "Saltmarsh", "born": "2001-04-17", "occupation": "Radio operator", "languages": ["English", "German"]}),
        ),
    ] {
        assert_eq!(Value::Object(resolved[id].clone()), expected, "{id}");
    }
}

#[test]
fn every_profile_yields_all_that_it_shows() {
    let engine = engine();
    let mut profiles = 0;
    for folder in ["people", "members"] {
        for entry in fs::read_dir(demo().join("site").join(folder)).unwrap() {
            let name = entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned();
            let url = format!("http://profiles.example/{folder}/{name}");
            let extraction = extract(&engine, &url).unwrap();
            let missing = match name.as_str() {
                "bruno-vale" | "greta-holm" | "viktor-santos" => "location",
                "otto-reyes" => "born",
                _ => "",
            };
            for field in ["name", "location", "occupation", "born", "languages"] {
                assert_eq!(
                    extraction.fields.contains_key(field),
                    field != missing,
                    "{url} {field}"
                );
            }
            profiles += 1;
        }
    }
    assert_eq!(profiles, 12);
}

#[test]
fn a_page_that_is_forbidden_is_pointed_out_all_the_same() {
    let extraction = extract(&engine(), "http://profiles.example/people/greta-holm").unwrap();
    assert_eq!(
        extraction.links,
        ["http://profiles.example/private/greta-holm"]
    );
    let robots = fs::read_to_string(demo().join("site/robots.txt")).unwrap();
    assert!(robots.contains("Disallow: /private/"));
}
