//! Tests with real sites that a site has few templates, and that another layout gets another template.

use std::fs;
use std::path::Path;

use serde_json::{Map, json};
use webfill_document::{Document, Limits};
use webfill_health::{GoodPage, MappingHealth, is_similar};
use webfill_test_needs::needs;

/// The layout sketches of the pages in a folder, of those files whose names begin with `begins`.
fn sketches(folder: &str, begins: &str) -> Vec<String> {
    let mut paths: Vec<_> = fs::read_dir(Path::new(folder))
        .expect("the package is installed")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or("");
            name.starts_with(begins) && name.ends_with(".html")
        })
        .collect();
    paths.sort();
    let sketch = |path| {
        let page = String::from_utf8_lossy(&fs::read(path).expect("a readable page")).into_owned();
        Document::parse_html(&page, &Limits::default()).sketch()
    };
    paths.iter().filter_map(sketch).collect()
}

/// The number of pages of each template, largest first.
fn template_sizes(sketches: &[String]) -> Vec<u64> {
    let mut health = MappingHealth::new("m");
    let fields = Map::from_iter([(String::from("name"), json!("x"))]);
    for (number, sketch) in sketches.iter().enumerate() {
        let id = number.to_string();
        health.note_page(&GoodPage {
            id: &id,
            url: &id,
            at: "2026-01-01T00:00:00.000Z",
            at_ms: 0,
            mapping_version: None,
            template: Some(sketch),
            source: &id,
            content_hash: None,
            attempts: 1,
            site: "shop.example",
            fields: &fields,
            rows: &[],
            alternatives: &Map::new(),
            known_values: &[],
        });
    }
    let report = health.report();
    let templates = report["templates"].as_array().expect("a list").iter();
    let mut pages: Vec<u64> = templates.filter_map(|one| one["pages"].as_u64()).collect();
    pages.sort_unstable_by_key(|pages| std::cmp::Reverse(*pages));
    pages
}

fn assert_few_templates(folder: &str, begins: &str, most: usize, share: f64) -> Vec<String> {
    let sketches = sketches(folder, begins);
    let found = template_sizes(&sketches);
    println!(
        "{folder} {begins}*: {} pages, templates of {found:?}",
        sketches.len()
    );
    assert!(found.len() <= most, "{found:?}");
    assert!(
        found[0] as f64 >= share * sketches.len() as f64,
        "{found:?}"
    );
    sketches
}

#[needs(python3_doc)]
#[test]
fn pages_of_the_python_library_are_of_few_templates() {
    let pages = assert_few_templates("/usr/share/doc/python3-doc/html/library", "", 8, 0.8);
    // A page of another design: similar content in other elements.
    let other = "<table><tr><td><div><p>x<dl><dt>y<dd>z</dl></div><td><ul><li>a</ul></table><div><hr></div>";
    let other = Document::parse_html(other, &Limits::default())
        .sketch()
        .unwrap();
    assert!(pages.iter().all(|page| !is_similar(page, &other)));
}

#[needs(postgresql_doc)]
#[test]
fn pages_of_postgresql_commands_are_of_few_templates() {
    assert_few_templates("/usr/share/doc/postgresql-doc-15/html", "sql-", 8, 0.8);
}

#[needs(sqlite3_doc)]
#[test]
fn pages_of_sqlite_functions_are_of_few_templates() {
    assert_few_templates("/usr/share/doc/sqlite3/c3ref", "", 8, 0.8);
    assert_few_templates("/usr/share/doc/sqlite3/releaselog", "", 8, 0.8);
}
