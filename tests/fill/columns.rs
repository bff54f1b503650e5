//! Tests `--fields`: columns that are named later than other columns, have a comma in their names, or do not exist.

use std::collections::BTreeMap;

use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, book_count, fill_command, read_rows, serve_books, table_with_gaps, true_values,
};

fn assert_all_filled(work: &Workplace) {
    for (book, row) in read_rows(work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2..6], true_values(book), "book {book}");
    }
}

#[test]
fn columns_that_are_named_later_are_learned_from_the_stored_pages() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let run = fill_command(&work, &web)
        .args(["--fields", "title"])
        .finish();
    assert!(run.stdout.contains("by field: title"), "{}", run.stdout);
    fill_command(&work, &web).finish().expect_code(0);
    assert_all_filled(&work);
    assert_eq!(web.visits().pages().counts().len(), book_count());
    assert_eq!(web.visits().pages().len(), book_count());
    // The next run completes only one column, and the run after it completes all columns again.
    fill_command(&work, &web)
        .args(["--fields", "year"])
        .finish()
        .expect_code(0);
    fill_command(&work, &web).finish().expect_code(0);
    assert_all_filled(&work);
}

#[test]
fn a_column_that_gets_its_first_known_values_later_is_learned() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let full = table_with_gaps(&BTreeMap::new());
    let without_publishers = |line: &str| {
        let mut cells: Vec<&str> = line.split(',').collect();
        cells[5] = "";
        cells.join(",") + "\n"
    };
    let mut lines = full.lines();
    let header = lines.next().unwrap().to_owned() + "\n";
    work.write(
        "books.csv",
        header + &lines.map(without_publishers).collect::<String>(),
    );
    let run = fill_command(&work, &web).finish();
    assert!(run.stdout.contains("publisher 0 of"), "{}", run.stdout);
    work.write("books.csv", full);
    fill_command(&work, &web).finish().expect_code(0);
    assert_all_filled(&work);
}

#[test]
fn a_column_may_have_a_comma_in_its_name() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let renamed =
        table_with_gaps(&BTreeMap::new()).replacen("title,author", "\"title, full\",author", 1);
    work.write("books.csv", renamed);
    fill_command(&work, &web)
        .args([
            "--fields",
            "year,Title, full,author",
            "--fields",
            "publisher",
        ])
        .finish()
        .expect_code(0);
    assert_all_filled(&work);
}

#[test]
fn columns_that_cannot_be_meant_are_refused() {
    let (work, web) = (Workplace::new(), Web::start());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    for (arguments, sentence) in [
        (
            ["--url", "title"],
            "the column `title` has no links: name another with --url",
        ),
        (
            ["--fields", "year,note"],
            "the column `note` is in --fields and in --keep: name it once",
        ),
        (
            ["--fields", "title,yeer"],
            "no column is named `yeer`: did you mean `year`?",
        ),
        (
            ["--sample", "2.5"],
            "invalid value '2.5' for '--sample <N>': not a whole number from 2 to 400",
        ),
        (
            ["--sample", "-3"],
            "invalid value '-3' for '--sample <N>': not a whole number from 2 to 400",
        ),
    ] {
        let run = fill_command(&work, &web)
            .args(arguments)
            .finish()
            .expect_code(2);
        assert!(run.stderr.contains(sentence), "{}", run.stderr);
    }
    assert!(!work.path("books.webfill").exists());
}
