//! A generated library whose true content is known. Its shelves list copies of books. Most copies have a link to the
//! page of their book, which has more values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::run::Run;
use crate::site::{Page, Site, Web, page, status};

pub const HOST: &str = "library.example";
pub const SHELVES: usize = 4;
/// The number of copies on each shelf.
const SIZE: usize = 5;
const COPIES: usize = SHELVES * SIZE;

/// The number of the book that this is a copy of. Each book has two copies, possibly on different shelves.
fn book_of_copy(copy: usize) -> usize {
    copy / 2
}

fn has_link(copy: usize) -> bool {
    copy % 7 != 5
}

/// Whether the page of the shelf alone shows all wanted values of a copy, so that the page of its book is not needed.
fn is_complete(copy: usize) -> bool {
    book_of_copy(copy) % 5 == 1
}

/// The number of the book whose page is missing.
const LOST: usize = 3;
/// The number of the book whose page lacks a value.
const POOR: usize = 4;

pub fn shelf_url(shelf: usize) -> String {
    format!("http://{HOST}/shelves/{shelf}")
}

fn book_url(book: usize) -> String {
    format!("http://{HOST}/books/{book}")
}

fn shelf_page(number: usize) -> Page {
    let mut html = String::from("<table>");
    for copy in number * SIZE..(number + 1) * SIZE {
        let title = format!("Title {}", book_of_copy(copy));
        let title = match has_link(copy) {
            true => format!("<a href=\"/books/{}\">{title}</a>", book_of_copy(copy)),
            false => title,
        };
        let more = if is_complete(copy) {
            "<i>Own press</i><u>2000</u>"
        } else {
            ""
        };
        html += &format!("<tr class=\"copy\"><td><b>c{copy}</b></td><td>{title}{more}</td></tr>");
    }
    page("Shelf").html(html + "</table>")
}

fn book_page(number: usize) -> Page {
    if number == LOST {
        return status(404);
    }
    let year = (number != POOR).then(|| format!("<p class=\"year\">{}</p>", 1900 + number));
    let html = format!(
        "<p class=\"publisher\">Press {number}</p>{}",
        year.unwrap_or_default()
    );
    page("Book").html(html)
}

pub fn serve(web: &Web) -> Site {
    let site = web.site(HOST);
    site.serve_robots("");
    for number in 0..SHELVES {
        site.serve(&format!("/shelves/{number}"), shelf_page(number));
    }
    for number in 0..=book_of_copy(COPIES) {
        site.serve(&format!("/books/{number}"), book_page(number));
    }
    site
}

/// The files of two mappings: one for shelves, which replaces the default mapping of a workplace, and one for books.
pub fn mappings() -> [(&'static str, Value); 2] {
    let css = |selector: &str| json!({"type": "css", "parameters": {"selector": selector}});
    let pattern =
        |path: &str| json!([{"type": "prefix", "pattern": format!("http://{HOST}{path}")}]);
    let shelves = json!({
        "name": "shelves",
        "url_patterns": pattern("/shelves/"),
        "rows": {
            "dataset": "copies",
            "select": [css("tr.copy")],
            "fields": [
                {"name": "copy", "processors": [css("b"), {"type": "trim"}]},
                {"name": "publisher", "processors": [css("i"), {"type": "trim"}]},
                {"name": "year", "processors": [css("u"), {"type": "number"}]},
            ],
            "key": ["copy"],
            "links": [{"processors": [css("a::attr(href)")]}],
            "want": ["publisher", "year"],
        },
    });
    let books = json!({
        "name": "books",
        "url_patterns": pattern("/books/"),
        "fields": [
            {"name": "publisher", "processors": [css("p.publisher"), {"type": "trim"}]},
            {"name": "year", "processors": [css("p.year"), {"type": "number"}]},
        ],
    });
    [("profile", shelves), ("books", books)]
}

/// For each copy, the values that its record must have at the end.
pub fn expected_values() -> BTreeMap<String, Value> {
    let of_copy = |copy: usize| {
        let number = book_of_copy(copy);
        let source = book_url(number);
        let shelf = shelf_url(copy / SIZE);
        let known = match number {
            _ if is_complete(copy) => {
                json!({"publisher": ["Own press", shelf], "year": [2000, shelf], "missing": []})
            }
            _ if !has_link(copy) || number == LOST => {
                json!({"publisher": [null, null], "year": [null, null], "missing": ["publisher", "year"]})
            }
            POOR => {
                json!({"publisher": [format!("Press {number}"), source], "year": [null, null], "missing": ["year"]})
            }
            _ => {
                json!({"publisher": [format!("Press {number}"), source], "year": [1900 + number, source], "missing": []})
            }
        };
        (format!("c{copy}"), known)
    };
    (0..COPIES).map(of_copy).collect()
}

/// The number of copies whose records are complete at the end.
pub fn resolved_count() -> usize {
    let all = expected_values();
    all.values()
        .filter(|one| one["missing"] == json!([]))
        .count()
}

pub fn copy_count() -> usize {
    COPIES
}

/// The book pages that are needed to complete the records of copies, as `host/path`.
pub fn needed_pages() -> BTreeSet<String> {
    let needs = |copy: &usize| has_link(*copy) && !is_complete(*copy);
    let path = |copy: usize| format!("{HOST}/books/{}", book_of_copy(copy));
    (0..COPIES).filter(needs).map(path).collect()
}

/// All book pages that a shelf links to.
pub fn linked_pages() -> BTreeSet<String> {
    let path = |copy: usize| format!("{HOST}/books/{}", book_of_copy(copy));
    (0..COPIES)
        .filter(|copy| has_link(*copy))
        .map(path)
        .collect()
}

/// The needed book pages that lack some wanted values. The next crawl requests them again.
pub fn pages_needed_again() -> BTreeSet<String> {
    let path = |book: usize| format!("{HOST}/books/{book}");
    BTreeSet::from([path(LOST), path(POOR)])
}

/// The book pages that were requested.
pub fn requested_pages(web: &Web) -> BTreeSet<String> {
    let mut paths = web.visits().pages().paths();
    paths.retain(|path| path.contains("/books/"));
    let asked: BTreeSet<String> = paths.iter().cloned().collect();
    assert_eq!(
        asked.len(),
        paths.len(),
        "a page was fetched twice: {paths:?}"
    );
    asked
}

/// The values of the records in a store, in the same form as [`expected_values`].
pub fn stored_records(store: &str) -> BTreeMap<String, Value> {
    let export = Run::new(["export", "records", "--dataset", "copies", "--store", store]);
    let text = export.finish().expect_code(0).stdout;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).expect("a record as JSON");
        let field = |name: &str| json!([record["fields"][name], record["sources"][name]["url"]]);
        let mut missing: Vec<&str> = record["missing"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        missing.sort_unstable();
        let known =
            json!({"publisher": field("publisher"), "year": field("year"), "missing": missing});
        let id = record["record_id"].as_str().expect("an id").to_owned();
        assert!(found.insert(id, known).is_none(), "twice: {record}");
    }
    found
}
