//! Compares both tokenizers on real pages.

use std::path::{Path, PathBuf};

use super::super::compare::assert_tokenizers_agree;

/// The paths of all pages (`.html`) below a folder of the project.
fn pages(folder: &str) -> Vec<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![project.join(folder)];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir() else {
            continue;
        };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "html") {
                pages.push(path);
            }
        }
    }
    pages
}

fn compare_all(pages: &[PathBuf]) {
    for path in pages {
        let bytes = std::fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert_tokenizers_agree(&text);
        // Compare the page with CRLF line ends, with NULs, and cut off at several positions.
        assert_tokenizers_agree(&text.replace('\n', "\r\n"));
        assert_tokenizers_agree(&text.replace("e ", "\0\r"));
        for part in 1..8 {
            assert_tokenizers_agree(&text[..text.floor_char_boundary(text.len() * part / 8)]);
        }
    }
}

#[test]
fn pages_of_the_project_are_read_as_html5ever_reads_them() {
    let pages: Vec<PathBuf> = ["etl-mappings", "webfill/demo", "crates/document/src/xpath"]
        .into_iter()
        .flat_map(pages)
        .collect();
    assert!(pages.len() >= 20, "only {} pages", pages.len());
    compare_all(&pages);
}

/// `tests/bench/extraction/fetch-pages` downloads the pages of this test.
#[test]
#[ignore = "needs the pages of the benchmark"]
fn pages_of_the_benchmark_are_read_as_html5ever_reads_them() {
    let pages = pages(".cache/pages");
    assert!(pages.len() >= 100, "only {} pages", pages.len());
    compare_all(&pages);
}
