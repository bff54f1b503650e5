//! Tests that wrong values of options are refused before the first request.

use std::collections::{BTreeMap, BTreeSet};

use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{Oddities, serve_books, table_with_gaps};

/// Options with values that are invalid, or that do not fit the table and the folder.
const WRONG: [&[&str]; 33] = [
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
    &["--refresh-after", "30"],
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

/// Whether an option has an effect on a file, on a collection, and on a file with a fleet.
type Effect = [bool; 3];

const ALWAYS: Effect = [true, true, true];
const COLLECTION: Effect = [false, true, false];
const THIS_MACHINE: Effect = [true, true, false];
const FLEET: Effect = [false, false, true];

/// All options with a value, except `--dispatcher`, `--help` and `--version`. Some values are wrong, so that the command
/// ends early.
const OPTIONS: [(&str, &str, Effect); 29] = [
    ("--records", "mongodb://127.0.0.1:1/a", COLLECTION),
    ("--records-collection", "books", COLLECTION),
    ("--records-query", "{", COLLECTION),
    ("--id", "link", ALWAYS),
    ("--url", "link", ALWAYS),
    ("--fields", "publisher", ALWAYS),
    ("--keep", "publisher", ALWAYS),
    ("--sample", "2", ALWAYS),
    ("--precision", "0.9", ALWAYS),
    ("--check", "none", ALWAYS),
    ("--doubts", "none.csv", ALWAYS),
    ("--report", "books.html", ALWAYS),
    ("--dry-run", "", ALWAYS),
    ("--config", "none.toml", ALWAYS),
    ("--keys", "none", FLEET),
    ("--store", "sqlite:none.db", FLEET),
    ("--app", "mine", FLEET),
    ("--contact", "https://example.org/", THIS_MACHINE),
    ("--delay", "0", THIS_MACHINE),
    ("--lane", "http", ALWAYS),
    ("--workers", "1", THIS_MACHINE),
    ("--ignore-robots", "", THIS_MACHINE),
    ("--allow-private-networks", "", THIS_MACHINE),
    ("--proxy", "http://127.0.0.1:1", THIS_MACHINE),
    ("--resolve", "a.example:80:127.0.0.1", THIS_MACHINE),
    ("--ca-file", "none.pem", THIS_MACHINE),
    ("--patience", "1s", ALWAYS),
    ("--refresh-after", "1d", ALWAYS),
    ("--progress", "none", ALWAYS),
];

/// The words of a command for each of the three uses. The query of the collection is wrong, so that the command ends
/// without a server.
const USES: [&[&str]; 3] = [
    &["books.csv", "--dry-run"],
    &[
        "--records",
        "mongodb://127.0.0.1:1/a",
        "--records-collection",
        "b",
        "--records-query",
        "{",
    ],
    &[
        "books.csv",
        "--dry-run",
        "--dispatcher",
        "tcp://127.0.0.1:1",
    ],
];

#[test]
fn an_option_without_effect_is_refused_before_anything_is_requested() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    for (number, words) in USES.iter().enumerate() {
        for (option, value, effect) in OPTIONS {
            if words.contains(&option) {
                continue;
            }
            let option_and_value = [option, value].into_iter().filter(|word| !word.is_empty());
            let run = Run::new(["fill"]).args(*words).args(option_and_value);
            let run = run.in_folder(work.path(".")).finish();
            let refusal = format!("webfill: {option} has no effect");
            let is_refused = run.stderr.starts_with(&refusal);
            assert_eq!(
                is_refused, !effect[number],
                "{words:?} {option}: {}",
                run.stderr
            );
            if is_refused {
                assert_eq!(run.status.code(), Some(2), "{option}");
                assert!(run.stderr.contains("leave it out"), "{}", run.stderr);
            }
        }
    }
    assert!(web.visits().is_empty());
    assert!(!work.path("books.webfill").exists());
}

#[test]
fn a_collection_in_the_environment_is_not_that_of_a_table() {
    let work = Workplace::new();
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let run = Run::new(["fill", "books.csv", "--dry-run"]).in_folder(work.path("."));
    let run = run
        .env("WEBFILL_RECORDS", "mongodb://127.0.0.1:1/a")
        .finish();
    assert!(run.expect_code(0).stdout.contains("books.csv: CSV"));
}

#[test]
fn the_effect_of_each_option_is_tested() {
    let help = Run::new(["fill", "--help"]).finish().expect_code(0);
    let words = help.stdout.lines().filter_map(|line| {
        let words = line
            .trim_start()
            .trim_start_matches("-h, ")
            .trim_start_matches("-V, ");
        words.starts_with("--").then(|| words.split(' ').next())?
    });
    let mut tested: BTreeSet<&str> = OPTIONS.iter().map(|(option, ..)| *option).collect();
    tested.extend(["--dispatcher", "--help", "--version"]);
    assert_eq!(words.collect::<BTreeSet<&str>>(), tested);
}

#[test]
fn a_table_that_cannot_be_completed_is_refused_with_what_to_do() {
    let work = Workplace::new();
    work.write("header.csv", "id,title,link\n");
    for (table, why) in [
        ("header.csv", "the table has no rows to complete"),
        (
            "https://shop.example/books.csv",
            "is a URL, and a table is a file: download it",
        ),
    ] {
        let run = Run::new(["fill", table, "--dry-run"]).in_folder(work.path("."));
        let run = run.finish().expect_code(2);
        assert!(run.stderr.contains(why), "{table}: {}", run.stderr);
    }
}
