//! Tests `webfill demo`: it fills a table from its own web, and the values are those that its pages are made from.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use webfill_tests::run::Run;
use webfill_tests::workplace::Workplace;

fn parse_csv_rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip(1);
    lines
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

fn read_demo_rows(name: &str) -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../webfill/demo");
    parse_csv_rows(&std::fs::read_to_string(folder.join(name)).unwrap())
}

#[test]
fn the_demo_fills_its_table_with_what_its_pages_have() {
    let work = Workplace::new();
    let folder = work.path("made");
    let files = || std::fs::read_dir(work.path(".")).unwrap().count();
    let before = files();
    let run = Run::new(["demo", "--folder"])
        .arg(&folder)
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (truth, given, filled) = (
        read_demo_rows("truth.csv"),
        read_demo_rows("books.csv"),
        parse_csv_rows(&read("books.filled.csv")),
    );
    let mut evidence: Vec<Value> = Vec::new();
    for line in read("books.evidence.jsonl").lines() {
        evidence.push(serde_json::from_str(line).unwrap());
    }
    let states = |row: usize, column: usize| {
        let title = ["id", "title", "author", "year", "publisher", "pages"][column];
        let its = evidence
            .iter()
            .find(|line| line["id"] == given[row][0] && line["column"] == title);
        its.map(|line| line["state"].as_str().unwrap().to_owned())
    };
    let (mut gaps, mut without_page, mut wrong) = (0, 0, BTreeSet::new());
    for (row, cells) in given.iter().enumerate() {
        let url = &cells[6];
        let expected = match () {
            () if url.contains("/reserve/") => Some("refused by robots"),
            () if url.ends_with("/1497") => Some("page unreachable"),
            () => None,
        };
        for column in 1..6 {
            let value = &filled[row][column];
            if !cells[column].is_empty() {
                assert_eq!(*value, cells[column], "known values stay");
                if cells[column] != truth[row][column] {
                    wrong.insert((cells[0].clone(), truth[row][column].clone()));
                }
                continue;
            }
            gaps += 1;
            match expected {
                Some(state) => {
                    without_page += 1;
                    assert_eq!(
                        (value.as_str(), states(row, column).as_deref()),
                        ("", Some(state))
                    );
                }
                None => assert_eq!(*value, truth[row][column], "{}", cells[0]),
            }
        }
    }
    assert!(gaps > 100 && without_page > 5, "{gaps} {without_page}");
    let said = format!("gaps: {gaps}, filled: {} (", gaps - without_page);
    assert!(run.stdout.contains(&said), "{}", run.stdout);
    let doubts = parse_csv_rows(&read("books.doubts.csv"));
    let doubts: BTreeSet<_> = doubts
        .iter()
        .map(|line| (line[1].clone(), line[4].clone()))
        .collect();
    assert_eq!(doubts, wrong);
    assert!(read("books.html").contains("<h2>Doubts</h2>"));
    // The web of the demo is gone, but its pages are stored, so the printed command still works.
    let command = run
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("$ webfill "));
    let arguments = command.unwrap().replace('\'', "");
    let again = Run::new(arguments.split(' '))
        .args(["--progress", "none"])
        .in_folder(&folder)
        .finish()
        .expect_code(0);
    assert!(again.stdout.contains(&said), "{}", again.stdout);
    assert_eq!(files(), before + 1, "the demo leaves nothing else behind");
}
