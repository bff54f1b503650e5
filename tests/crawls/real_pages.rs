//! Tests pages of real manuals under their public URLs. The fields that the mappings extract are compared with a simple
//! text search in the same files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::documentation::{POSTGRESQL, PYTHON, serve_folder};
use webfill_tests::run::Finished;
use webfill_tests::site::Web;
use webfill_tests::stored::StoredPage;
use webfill_tests::workplace::Workplace;

fn shipped_mappings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../etl-mappings")
}

fn run_crawl(web: &Web, work: &Workplace, url: &str, pages: &str) -> Finished {
    let run = work.crawl_without_delay(web);
    let run = run.replace_flag("--mappings", shipped_mappings());
    run.args(["--delay", "0.02", "--depth", "1", "--max-pages", pages])
        .arg(url)
        .finish()
}

/// The text of the first `<tag ...>` element in a file. Inner tags are removed and some entities are decoded.
fn first_text(html: &str, tag: &str) -> Option<String> {
    let start = html.find(&format!("<{tag}"))?;
    let inner = html[start..]
        .split_once('>')?
        .1
        .split(&format!("</{tag}>"))
        .next()?;
    let mut text = String::new();
    let mut inside_tag = false;
    for letter in inner.chars() {
        match letter {
            '<' => inside_tag = true,
            '>' => inside_tag = false,
            _ if !inside_tag => text.push(letter),
            _ => {}
        }
    }
    let text = text
        .replace("&#8212;", "\u{2014}")
        .replace("&amp;", "&")
        .replace("&nbsp;", "\u{a0}");
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn mapped_pages(work: &Workplace) -> BTreeMap<String, StoredPage> {
    let mut pages = work.stored().pages();
    pages.retain(|_, page| page.outcome == "ok" && page.mapping.is_some());
    pages
}

#[needs(python3_doc)]
#[test]
fn modules_of_the_python_library_are_extracted() {
    let web = Web::start_tls(&["docs.python.org"]);
    let site = web.site("docs.python.org");
    serve_folder(&site, "/3/", PYTHON);
    let work = Workplace::new();
    let run = run_crawl(
        &web,
        &work,
        "https://docs.python.org/3/library/index.html",
        "60",
    );
    assert!(matches!(run.status.code(), Some(0 | 12)), "{run:?}");
    let pages = mapped_pages(&work);
    assert!(pages.len() >= 40, "{} pages with a mapping", pages.len());
    let mut checked = 0;
    for (url, page) in &pages {
        let file = url.replace("https://docs.python.org/3", PYTHON);
        let html = std::fs::read_to_string(file).expect("the page that was served");
        let heading = first_text(&html, "h1").unwrap_or_default();
        // A heading reads like `json \u{2014} JSON encoder and decoder`, followed by a sign that links to the heading
        // itself.
        let Some((module, _)) = heading.split_once(" \u{2014} ") else {
            continue;
        };
        if let Some(found) = page.fields.get("module").and_then(|value| value.as_str()) {
            assert_eq!(found, module, "{url}");
            checked += 1;
        }
    }
    assert!(
        checked >= 30,
        "{checked} of {} pages name their module",
        pages.len()
    );
    web.visits().assert_polite(Duration::from_millis(20));
    assert!(
        web.visits()
            .0
            .iter()
            .all(|visit| visit.tls && visit.host == "docs.python.org")
    );
}

#[needs(postgresql_doc)]
#[test]
fn commands_of_the_postgresql_manual_are_extracted() {
    let web = Web::start_tls(&["www.postgresql.org"]);
    let site = web.site("www.postgresql.org");
    serve_folder(&site, "/docs/15/", POSTGRESQL);
    let work = Workplace::new();
    let run = run_crawl(
        &web,
        &work,
        "https://www.postgresql.org/docs/15/sql-commands.html",
        "60",
    );
    assert!(matches!(run.status.code(), Some(0 | 12)), "{run:?}");
    let pages = mapped_pages(&work);
    assert!(pages.len() >= 40, "{} pages with a mapping", pages.len());
    let mut checked = 0;
    for (url, page) in &pages {
        let file = url.replace("https://www.postgresql.org/docs/15", POSTGRESQL);
        let html = std::fs::read_to_string(file).expect("the page that was served");
        let title = first_text(&html, "title").unwrap_or_default();
        if let Some(found) = page.fields.get("command").and_then(|value| value.as_str()) {
            assert_eq!(found, title, "{url}");
            checked += 1;
        }
    }
    assert!(
        checked >= 30,
        "{checked} of {} pages name their command",
        pages.len()
    );
}
