//! Tests that a page with several values for one field does not decide the value of a cell alone.

use serde_json::Value;
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Reply, Web, page, status};
use webfill_tests::workplace::Workplace;

use super::made_web::{read_evidence, read_rows, true_values};

const THINGS: usize = 24;
/// The number of rows whose maker is known.
const KNOWN: usize = 12;

fn true_maker(thing: usize) -> String {
    true_values(thing)[1].clone()
}

/// Serves two pages of each thing: one with a number from 100 on, the other with a number from 200 on. Pages whose
/// numbers are in `torn` name a wrong maker after the true one.
fn serve_things(web: &Web, torn: &'static [usize]) {
    web.site("things.example").serve_otherwise(move |request| -> Reply {
        let number = request.path.strip_prefix("/thing/");
        let number: Option<usize> = number.and_then(|number| number.parse().ok());
        let Some(number) = number.filter(|number| *number >= 100) else {
            return page("Nothing here").status(404).into();
        };
        let other = match torn.contains(&number) {
            true => " <b class=maker>Someone Else</b>",
            false => "",
        };
        let text = format!(
            "<html><head><title>Things</title></head><body><h1>Thing {number}</h1><p><b class=maker>{}</b>{other}</p></body></html>",
            true_maker(number % 100)
        );
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
}

/// A table of all things. The things in `second` have a second link.
fn things_table(second: &[usize]) -> String {
    let mut text = String::from("id,link,second,maker\n");
    for thing in 0..THINGS {
        let link = |number: usize| format!("http://things.example/thing/{}", number + thing);
        let second = match second.contains(&thing) {
            true => link(200),
            false => String::new(),
        };
        let known = match thing < KNOWN {
            true => true_maker(thing),
            false => String::new(),
        };
        text += &format!("t{thing},{},{second},{known}\n", link(100));
    }
    text
}

fn fill_command(work: &Workplace, web: &Web) -> Run {
    Run::new(["fill", "books.csv", "--url", "link,second"])
        .args(["--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
}

/// Checks that all rows have their maker except for the rows in `conflicting`, which the evidence must call
/// conflicting.
fn assert_filled_except(work: &Workplace, conflicting: &[usize]) {
    for (thing, row) in read_rows(work, "books.filled.csv").iter().enumerate() {
        let expected = match conflicting.contains(&thing) {
            true => String::new(),
            false => true_maker(thing),
        };
        assert_eq!(row[3], expected, "thing {thing}");
    }
    let lines = read_evidence(work);
    let is_conflicting = |line: &&Value| line["state"] == "conflicting";
    let found: Vec<&str> = lines
        .iter()
        .filter(is_conflicting)
        .filter_map(|line| line["id"].as_str())
        .collect();
    let expected: Vec<String> = conflicting
        .iter()
        .map(|thing| format!("t{thing}"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_row_with_two_pages_is_filled_if_one_page_is_unambiguous() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_things(&web, &[120, 221]);
    work.write("books.csv", things_table(&[20, 21]));
    fill_command(&work, &web).finish().expect_code(0);
    assert_filled_except(&work, &[]);
}

#[test]
fn a_disputed_value_is_not_filled_however_little_precision_is_wanted() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_things(&web, &[118]);
    work.write("books.csv", things_table(&[]));
    fill_command(&work, &web)
        .args(["--precision", "0.5"])
        .finish()
        .expect_code(0);
    assert_filled_except(&work, &[18]);
}

#[test]
fn a_page_with_several_values_is_noticed_wherever_it_is_read() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_things(&web, &[115, 122]);
    work.write("books.csv", things_table(&[]));
    // All rows of the sample have a known maker, so nothing is learned from rows with gaps.
    let run = fill_command(&work, &web).args(["--sample", "8"]);
    run.finish().expect_code(0);
    assert_filled_except(&work, &[15, 22]);
}

#[test]
fn a_list_that_is_shorter_than_all_known_ones_is_not_filled() {
    let (work, web) = (Workplace::new(), Web::start());
    let parts = |thing: usize| format!("Part {thing} A; Part {thing} B");
    web.site("parts.example").serve_otherwise(move |request| -> Reply {
        let thing = request.path.strip_prefix("/thing/");
        let Some(thing) = thing.and_then(|number| number.parse().ok()) else {
            return page("Nothing here").status(404).into();
        };
        let items = parts(thing);
        let items = items.split("; ").take(if thing == 15 { 1 } else { 2 });
        let items: String = items.map(|part| format!("<li>{part}</li>")).collect();
        let text = format!("<html><body><h1>Thing</h1><h2>Parts</h2><ul class=\"parts\">{items}</ul></body></html>");
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
    let mut text = String::from("id,link,parts\n");
    for thing in 0..THINGS {
        let known = match thing < KNOWN {
            true => parts(thing),
            false => String::new(),
        };
        text += &format!("t{thing},http://parts.example/thing/{thing},{known}\n");
    }
    work.write("books.csv", text);
    fill_command(&work, &web)
        .replace_flag("--url", "link")
        .finish()
        .expect_code(0);
    for (thing, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        let expected = if thing == 15 {
            String::new()
        } else {
            parts(thing)
        };
        assert_eq!(row[2], expected, "thing {thing}");
    }
}
