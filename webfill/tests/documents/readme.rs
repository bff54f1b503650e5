//! `README.md` is short, and the demo prints what it shows.

use crate::markdown::Document;
use crate::program::{text, webfill};

/// What people read before they decide; everything else has a page of its own.
const MOST_BYTES: usize = 12_288;

#[test]
fn it_is_short_enough_to_be_read() {
    let bytes = Document::read("README.md").text.len();
    assert!(
        bytes <= MOST_BYTES,
        "README.md has {bytes} bytes, {MOST_BYTES} are allowed: move something to docs/"
    );
}

#[test]
fn the_demo_prints_the_records_that_are_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ran = webfill(folder.path(), &["demo"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let printed = text(&ran.stdout);
    let readme = Document::read("README.md");
    let shown: Vec<&str> = readme
        .text
        .lines()
        .filter(|line| line.starts_with("\"guild-"))
        .collect();
    assert!(!shown.is_empty(), "README.md shows no record of the demo");
    for line in shown {
        assert!(
            printed.lines().any(|printed| printed == line),
            "{line}\nis not in\n{printed}"
        );
    }
}
