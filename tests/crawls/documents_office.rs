//! Office documents that other programs have written: what is in each cell is a table (tests/office/cells.json),
//! which Python's libraries put into files of each kind.

use std::process::Command;

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::workplace::Workplace;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A document by `tests/office/tables.py`.
fn written(kind: &str) -> Vec<u8> {
    let python = format!("{REPOSITORY}/.cache/office-tools/venv/bin/python");
    let script = format!("{REPOSITORY}/tests/office/tables.py");
    let written = Command::new(python).args([&script, kind]).output();
    let written = written.expect("Python");
    assert!(written.status.success(), "{written:?}");
    written.stdout
}

/// The lines of its text.
fn lines_of(kind: &str) -> Vec<String> {
    let work = Workplace::new();
    let lines = json!({"type": "regex", "parameters": {"pattern": "(?m)^.+$"}});
    let text = json!({"name": "lines", "multiple": true, "processors": [lines]});
    let everywhere = json!({"type": "prefix", "pattern": "https://office.example/"});
    let mapping = json!({"name": "all", "url_patterns": [everywhere], "fields": [text]});
    work.write_json("mapping.json", &mapping);
    let name = format!("document.{kind}");
    work.write(&name, written(kind));
    let files = [work.path("mapping.json"), work.path(&name)];
    let run = Run::new(["mapping", "test"]).args(files);
    let ended = run.args(["--url", "https://office.example/"]).finish();
    let tried: Value = serde_json::from_str(&ended.expect(0).stdout).expect("JSON");
    serde_json::from_value(tried["fields"]["lines"].clone()).expect("lines")
}

#[needs(office_tools)]
#[test]
fn cells_are_as_they_are_stored() {
    let cells = std::fs::read(format!("{REPOSITORY}/tests/office/cells.json")).unwrap();
    let cells: Vec<Value> = serde_json::from_slice(&cells).unwrap();
    assert!(cells.len() > 100, "{}", cells.len());
    for kind in ["xlsx", "xls", "ods"] {
        let lines = lines_of(kind);
        for (index, cell) in cells.iter().enumerate() {
            let text = cell["text"].as_str().unwrap();
            let number = index + 1;
            assert_eq!(
                lines[number],
                format!("cell {number}\t\t{text}"),
                "{kind}: {cell}"
            );
        }
        let rest = [&lines[..1], &lines[cells.len() + 1..]].concat();
        let rest: Vec<&str> = rest.iter().map(|line| line.trim()).collect();
        let expected = ["Cells", "Second", "away from the corner"];
        assert_eq!(rest, expected, "{kind}");
    }
}

#[needs(office_tools)]
#[test]
fn a_letter_is_read_with_what_is_around_it() {
    let expected = [
        "Page header",
        "Call 555-1234, 1-24 hours",
        "Cooperation",
        "one tab",
        "next line",
        "name\t\tprice",
        "x\tmiddle",
        "over two\t\tlast",
        "after the table",
        "Page footer",
    ];
    assert_eq!(lines_of("docx"), expected);
}
