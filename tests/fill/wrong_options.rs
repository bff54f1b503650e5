//! Tests that wrong values of options are refused before the first request.

use std::collections::BTreeMap;

use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{Oddities, serve_books, table_with_gaps};

/// Options with values that are invalid, or that do not fit the table and the folder.
const WRONG: [&[&str]; 32] = [
    &["--id", "none"],
    &["--url", "none"],
    &["--url", "note"],
    &["--fields", "none"],
    &["--keep", "none"],
    &["--sample", "1"],
    &["--precision", "1"],
    &["--check", "some"],
    &["--doubts", "none.csv"],
    &["--doubts", "books.csv"],
    &["--report", "books.txt"],
    &["--report", "folder.html"],
    &["--report", "books.csv/books.html"],
    &["--config", "none.toml"],
    &["--config", "books.csv"],
    &["--dispatcher", "nowhere"],
    &["--dispatcher", "tcp://127.0.0.1:1", "--keys", "none"],
    &["--dispatcher", "tcp://127.0.0.1:1", "--store", "none"],
    &["--dispatcher", "tcp://127.0.0.1:1", "--app", "a/b"],
    &["--contact", "none"],
    &["--delay", "-1"],
    &["--lane", "none"],
    &["--workers", "0"],
    &["--proxy", "ftp://127.0.0.1"],
    &["--resolve", "bad"],
    &["--resolve", "a:b:c"],
    &["--ca-file", "none.pem"],
    &["--ca-file", "books.csv"],
    &["--patience", "soon"],
    &["--refresh-after", "-1d"],
    &["--progress", "some"],
    &[
        "--records",
        "mongodb://127.0.0.1:1/a",
        "--records-collection",
        "b",
        "--records-query",
        "{",
    ],
];

#[test]
fn wrong_options_are_refused_before_anything_is_requested() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    std::fs::create_dir(work.path("folder.html")).unwrap();
    for wrong in WRONG {
        let command = match wrong[0] {
            "--records" => Run::new(["fill", "--allow-private-networks"]),
            "--dispatcher" => Run::new(["fill", "books.csv"]),
            _ => {
                Run::new(["fill", "books.csv", "--allow-private-networks"]).args(web.resolve_args())
            }
        };
        let refused = command.args(wrong).in_folder(work.path(".")).finish();
        let (code, said) = (refused.status.code(), &refused.stderr);
        assert_eq!(code, Some(2), "{wrong:?}: {said}");
        let is_named = wrong
            .iter()
            .any(|word| said.contains(word.trim_start_matches('-')));
        assert!(is_named, "{wrong:?}: {said}");
        assert!(web.visits().is_empty(), "{wrong:?}");
        assert!(!work.path("books.filled.csv").exists(), "{wrong:?}");
    }
}
