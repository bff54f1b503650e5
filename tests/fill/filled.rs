//! Tests that `webfill fill` completes a table with gaps.

use std::collections::BTreeMap;

use serde_json::Value;
use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, book_count, book_url, fill_command, gap_count, is_gap, read_evidence, read_rows,
    serve_books, table_with_gaps, true_values,
};

#[test]
fn gaps_are_filled_with_what_the_pages_have() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let run = fill_command(&work, &web).finish().expect_code(0);
    assert!(
        run.stdout
            .contains(&format!("gaps: {}, filled: {0} (100.0 %)", gap_count())),
        "{}",
        run.stdout
    );
    let filled = read_rows(&work, "books.filled.csv");
    assert_eq!(filled.len(), book_count());
    for (book, row) in filled.iter().enumerate() {
        assert_eq!(row[2..6], true_values(book), "book {book}");
        assert_eq!(row[6], "mine");
    }
    // The input file is unchanged.
    assert_eq!(
        std::fs::read_to_string(work.path("books.csv")).unwrap(),
        table_with_gaps(&BTreeMap::new())
    );
    let of_state = |state: &str| {
        read_evidence(&work)
            .iter()
            .filter(|line| line["state"] == state)
            .count()
    };
    assert_eq!(of_state("filled"), gap_count());
    // A second run requests nothing, because there is nothing left to do.
    let before = web.visits().len();
    let first = std::fs::read(work.path("books.evidence.jsonl")).unwrap();
    let again = fill_command(&work, &web).finish().expect_code(0);
    assert_eq!(web.visits().len(), before);
    assert!(
        again.stdout.contains("4 sites, no pages of rows to fetch"),
        "{}",
        again.stdout
    );
    // A run crawls in several rounds with different seeds. This must not be reported as a change of the seeds.
    assert!(!run.stderr.contains("seeds have changed"), "{}", run.stderr);
    assert_eq!(
        std::fs::read(work.path("books.evidence.jsonl")).unwrap(),
        first
    );
    assert_eq!(web.visits().pages().len(), book_count());
}

#[test]
fn a_dry_run_plans_and_does_nothing_else() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let run = fill_command(&work, &web)
        .args(["--dry-run"])
        .replace_flag("--delay", "10")
        .finish()
        .expect_code(0);
    assert!(web.visits().is_empty());
    assert!(!work.path("books.webfill").exists() && !work.path("books.filled.csv").exists());
    let planned = format!("plan: {} gaps, 4 sites, at most", gap_count());
    assert!(run.stdout.contains(&planned), "{}", run.stdout);
    work.write(
        "one.csv",
        "id,link,title,year\na,http://shelf.example/book/1000,,1950\n",
    );
    let run = fill_table_command(&work, &web, "one.csv")
        .arg("--dry-run")
        .finish()
        .expect_code(0);
    let planned = "plan: 1 gap, 1 site, at most 1 page of rows to fetch, without a delay\n";
    assert!(run.stdout.ends_with(planned), "{}", run.stdout);
    assert!(run.stdout.contains("shelf.example"), "{}", run.stdout);
}

#[test]
fn a_page_of_two_rows_fills_neither_and_the_evidence_says_why() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let (own, shared) = (book_url(9), book_url(8));
    let text = table_with_gaps(&BTreeMap::new()).replace(&format!("{own},"), &format!("{shared},"));
    work.write("books.csv", text);
    fill_command(&work, &web).finish().expect_code(0);
    let lines = read_evidence(&work);
    let of_page: Vec<&Value> = lines
        .iter()
        .filter(|line| line["url"] == shared.as_str())
        .collect();
    let gaps = [8, 9].map(|book| (0..4).filter(|&field| is_gap(book, field)).count());
    assert_eq!(of_page.len(), gaps[0] + gaps[1]);
    for line in of_page {
        assert_eq!(line["state"], "refused", "{line}");
        let refusal = line["refusal"].as_str().unwrap();
        assert!(refusal.contains("several rows have this page"), "{line}");
    }
}

#[test]
fn words_between_two_links_of_a_cell_are_no_part_of_them() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let mut text = table_with_gaps(&BTreeMap::new());
    for book in 0..book_count() {
        let (url, other) = (book_url(book), format!("{}?from=list", book_url(book)));
        text = text.replace(&format!(",{url},"), &format!(",{other} and {url} (new),"));
    }
    work.write("books.csv", text);
    fill_command(&work, &web).finish().expect_code(0);
    let odd = |path: &String| path.contains("and") || path.contains("new");
    assert_eq!(web.visits().paths().into_iter().find(odd), None);
    let filled = read_rows(&work, "books.filled.csv");
    let is_complete = |row: &Vec<String>| row.iter().all(|cell| !cell.is_empty());
    assert!(filled.iter().all(is_complete), "{filled:?}");
}

/// A gap stays open if the page does not have the value, or if the page is gone.
#[test]
fn a_page_without_the_value_leaves_the_gap() {
    let (work, web) = (Workplace::new(), Web::start());
    let odd = Oddities {
        lack_publisher: (0..book_count()).filter(|book| book % 6 == 1).collect(),
        gone: (0..book_count()).filter(|book| book % 12 == 5).collect(),
        ..Oddities::default()
    };
    serve_books(&web, &odd);
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    fill_command(&work, &web).finish().expect_code(0);
    let states: BTreeMap<(String, String), String> = read_evidence(&work)
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            ((text("id"), text("column")), text("state"))
        })
        .collect();
    let mut wrong = Vec::new();
    for (book, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        for (field, title) in ["title", "author", "year", "publisher"].iter().enumerate() {
            if !is_gap(book, field) {
                assert_eq!(row[2 + field], true_values(book)[field]);
                continue;
            }
            let state = states
                .get(&(format!("b{book}"), (*title).to_owned()))
                .map(String::as_str);
            let is_lacking = field == 3 && odd.lack_publisher.contains(&book);
            let (value, expected) = match (odd.gone.contains(&book), is_lacking) {
                (true, _) => (String::new(), "page unreachable"),
                (_, true) => (String::new(), "not on the page"),
                _ => (true_values(book)[field].clone(), "filled"),
            };
            if row[2 + field] != value || state != Some(expected) {
                wrong.push(format!(
                    "book {book} {title}: {} {state:?}, expected {value} {expected}",
                    row[2 + field]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_table_that_cannot_be_filled_is_refused_with_a_reason() {
    let (work, web) = (Workplace::new(), Web::start());
    work.write("books.csv", "id,title\nb1,A\nb2,\n");
    let run = fill_table_command(&work, &web, "books.csv")
        .finish()
        .expect_code(2);
    assert!(run.stderr.contains("name it with --url"), "{}", run.stderr);
    // The folder `books.webfill` belongs to books.csv, so another table of this name cannot use it.
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    fill_command(&work, &web).finish().expect_code(0);
    work.write(
        "books.jsonl",
        "{\"link\": \"http://shelf.example/book/1000\", \"title\": null}\n",
    );
    let run = fill_table_command(&work, &web, "books.jsonl")
        .finish()
        .expect_code(2);
    assert!(
        run.stderr.contains("belongs to books.csv"),
        "{}",
        run.stderr
    );
}

fn fill_table_command(work: &Workplace, web: &Web, table: &str) -> Run {
    Run::new(["fill", table, "--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
}
