//! Tests a site that has no values in the table. Rules learned from the table's other sites fill its gaps if they are
//! certain enough. Otherwise they lead to questions.

use std::collections::BTreeSet;

use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    BOOKS, Oddities, SITES, book_count, book_url, fill_command, read_rows, serve_books, true_values,
};

const FIELDS: [&str; 4] = ["title", "author", "year", "publisher"];

/// The number of the site about which the table knows nothing.
const UNKNOWN: usize = 3;

/// A table without any values for the unknown site. For the other sites, every third value is missing.
fn table_with_unknown_site() -> String {
    let mut text = String::from("id,link,title,author,year,publisher,note\n");
    for book in 0..book_count() {
        let cells: Vec<String> = (0..4)
            .map(
                |field| match book / BOOKS == UNKNOWN || (book + field) % 3 == 0 {
                    true => String::new(),
                    false => true_values(book)[field].clone(),
                },
            )
            .collect();
        text += &format!("b{book},{},{},mine\n", book_url(book), cells.join(","));
    }
    text
}

fn first_unknown_book() -> usize {
    UNKNOWN * BOOKS
}

/// Returns the fields that are filled on the unknown site. Checks that the filled table contains no wrong value.
fn check_and_list_filled(work: &Workplace) -> BTreeSet<usize> {
    let mut filled = BTreeSet::new();
    for (book, row) in read_rows(work, "books.filled.csv").iter().enumerate() {
        for (field, value) in true_values(book).iter().enumerate() {
            let written = &row[2 + field];
            assert!(
                written.is_empty() || written == value,
                "book {book}: {written} instead of {value}"
            );
            if book >= first_unknown_book() && !written.is_empty() {
                filled.insert(field);
            }
        }
    }
    filled
}

/// The questions in the file of doubts. Each has the number of its field, and its line.
fn read_questions(work: &Workplace) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let mut asked = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let field = FIELDS.iter().position(|field| *field == cells[2]).unwrap();
        assert_eq!(cells[3], "", "nothing is known: {line}");
        assert!(cells[6].contains(SITES[UNKNOWN]), "{line}");
        let book: usize = cells[1][1..].parse().unwrap();
        assert_eq!(cells[4], true_values(book)[field], "{line}");
        asked.push((field, line.to_owned()));
    }
    asked
}

fn write_answers(work: &Workplace, lines: &[String], answer: &str) {
    let text = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let mut answered = vec![text.lines().next().unwrap().to_owned()];
    answered.extend(lines.iter().map(|line| format!("{line}{answer}")));
    work.write("answered.csv", answered.join("\n") + "\n");
}

#[test]
fn rules_of_other_sites_fill_a_site_without_known_values() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_unknown_site());
    fill_command(&work, &web).finish().expect_code(0);
    let filled = check_and_list_filled(&work);
    assert!(filled.len() >= 2, "{filled:?}");
    // Each filled value has evidence: the page, and the chain of processors that reads the value.
    let evidence = std::fs::read_to_string(work.path("books.evidence.jsonl")).unwrap();
    for line in evidence.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let is_there = line["url"]
            .as_str()
            .is_some_and(|url| url.contains(SITES[UNKNOWN]));
        if is_there && line["state"] == "filled" {
            assert!(line["confidence"].as_f64().unwrap() >= 0.95, "{line}");
            assert!(
                line["chain"].is_array() && line["excerpt"].is_string(),
                "{line}"
            );
        }
    }
    // A second run gives the same result without any request.
    let before = web.visits().len();
    fill_command(&work, &web).finish().expect_code(0);
    assert_eq!(web.visits().len(), before);
    assert_eq!(check_and_list_filled(&work), filled);
}

#[test]
fn proposed_values_of_low_precision_become_questions_and_answers_decide() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_unknown_site());
    let strict = |args: &[&str]| {
        let run = fill_command(&work, &web)
            .args(["--precision", "0.9999"])
            .args(args);
        run.finish().expect_code(0)
    };
    strict(&[]);
    assert_eq!(check_and_list_filled(&work), BTreeSet::new());
    let proposed = read_questions(&work);
    let fields: BTreeSet<usize> = proposed.iter().map(|(field, _)| *field).collect();
    assert!(fields.len() >= 2, "{proposed:?}");
    for field in &fields {
        let few = proposed.iter().filter(|(of, _)| of == field);
        assert!(few.count() <= 3, "{proposed:?}");
    }
    // If a proposed value is rejected, no values of its field are proposed again.
    let field = *fields.first().unwrap();
    let first = proposed.iter().find(|(of, _)| *of == field).unwrap();
    write_answers(&work, std::slice::from_ref(&first.1), "reject");
    let before = web.visits().len();
    strict(&["--doubts", "answered.csv"]);
    assert_eq!(web.visits().len(), before);
    let left = read_questions(&work);
    assert!(left.iter().all(|(of, _)| *of != field), "{left:?}");
    // Accepted values count as known, so the field can be learned from them.
    let other = *fields.last().unwrap();
    let lines: Vec<String> = left
        .iter()
        .filter(|(of, _)| *of == other)
        .map(|(_, line)| line.clone())
        .collect();
    write_answers(&work, &lines, "accept");
    fill_command(&work, &web)
        .args(["--doubts", "answered.csv"])
        .finish()
        .expect_code(0);
    let filled = read_rows(&work, "books.filled.csv");
    let there =
        (first_unknown_book()..book_count()).filter(|book| !filled[*book][2 + other].is_empty());
    assert_eq!(there.count(), BOOKS);
    assert!(!check_and_list_filled(&work).contains(&field));
}
