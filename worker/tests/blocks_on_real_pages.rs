//! Checks that no page of the manuals that Debian packages install is mistaken for a block. Each manual stands for a
//! site that is crawled in the order of its pages.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderMap;
use webfill_test_needs::needs;
use webfill_urls::Url;
use webfill_worker::blocks::{self, Inspected, RepeatedPages, Response, Sign};

/// How many pages of one manual are checked, which limits the time of the test.
const MOST_PAGES: usize = 600;

#[needs(python3_doc)]
#[test]
fn no_page_of_the_python_manual_is_taken_for_a_block() {
    assert_no_blocks("/usr/share/doc/python3-doc/html", 300);
}

#[needs(postgresql_doc)]
#[test]
fn no_page_of_the_postgresql_manual_is_taken_for_a_block() {
    assert_no_blocks("/usr/share/doc/postgresql-doc-15/html", 300);
}

#[needs(sqlite3_doc)]
#[test]
fn no_page_of_the_sqlite_manual_is_taken_for_a_block() {
    assert_no_blocks("/usr/share/doc/sqlite3", 300);
}

fn assert_no_blocks(folder: &str, least_pages: usize) {
    let pages = page_files(Path::new(folder));
    assert!(
        pages.len() >= least_pages,
        "{folder}: {} pages",
        pages.len()
    );
    let mut repeated = RepeatedPages::default();
    for path in pages.iter().take(MOST_PAGES) {
        let bytes = fs::read(path).expect("the page is readable");
        let text = String::from_utf8_lossy(&bytes);
        let below = path.strip_prefix(folder).expect("it was found there");
        let url = format!("https://manual.example/{}", below.display());
        let url = Url::parse(&url).expect("a file name makes a URL");
        assert_eq!(find_block(&mut repeated, &url, &text), None, "{url}");
    }
}

fn find_block(repeated: &mut RepeatedPages, url: &Url, body: &str) -> Option<Sign> {
    let response = Response {
        status: 200,
        headers: &HeaderMap::new(),
        url,
        redirect: None,
        body,
        is_html: true,
    };
    let inspected = Inspected::new(&response);
    blocks::find_block(&inspected)
        .or_else(|| repeated.note_answer("manual.example", &inspected, true))
}

/// All pages below a folder, in order of their names.
fn page_files(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "html") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}
