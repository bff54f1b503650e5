//! Tests records that are rows of pages with many entries. The learned mapping reads all rows and nothing else.

use std::fmt::Write;

use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::{Web, status};
use webfill_tests::workplace::Workplace;

use super::{learn_command, parse_report, workplace};

const HOST: &str = "shelves.example";
const PAGES: usize = 3;
const ROWS: usize = 8;

fn row_title(page: usize, row: usize) -> String {
    let names = [
        "Orchard", "Lantern", "Ferry", "Harbour", "Bridge", "Crown", "Atlas", "Garden",
    ];
    format!("{} {}", names[row], ["One", "Two", "Three"][page])
}

/// The number of stars of a row; `None` for the rows without stars.
fn row_stars(page: usize, row: usize) -> Option<usize> {
    let all = page * ROWS + row;
    (all % 4 != 2).then_some(1 + all % 5)
}

fn page_path(page: usize) -> String {
    match page {
        0 => "/books".to_owned(),
        page => format!("/books?page={}", page + 1),
    }
}

fn page_html(number: usize) -> String {
    let mut html = String::from("<h1>Books</h1><table class=books><tr><th>Title<th>Stars</tr>");
    for row in 0..ROWS {
        if row == 4 {
            html += "<tr class=ad><td colspan=2><a href=/buy>Buy lamps</a></tr>";
        }
        let stars = row_stars(number, row)
            .map(|stars| stars.to_string())
            .unwrap_or_default();
        let title = row_title(number, row);
        let _ = write!(
            html,
            "<tr><td><a href=/book/{}>{title}</a><td>{stars}</tr>",
            number * ROWS + row
        );
    }
    html += "</table>";
    if number + 1 < PAGES {
        let _ = write!(
            html,
            "<a rel=next href='{}'>Next</a>",
            page_path(number + 1)
        );
    }
    html
}

/// Writes two pages with rows into a folder.
fn write_pages(work: &Workplace) {
    let mut list = String::new();
    for number in 0..2 {
        work.write(&format!("saved/{number}.html"), page_html(number));
        let url = format!("http://{HOST}{}", page_path(number));
        list += &format!(
            "{}\n",
            json!({"url": url, "file": format!("{number}.html"), "content_type": "text/html"})
        );
    }
    work.write("saved/pages.jsonl", list);
}

/// Writes records of the known rows. `url` returns the link of the record for the page with this number.
fn write_records(work: &Workplace, url: impl Fn(usize) -> String) {
    let mut csv = String::from("id,url,title,stars\n");
    for (number, row) in [(0, 0), (0, 2), (0, 5), (1, 1), (1, 4)] {
        let stars = row_stars(number, row)
            .map(|stars| stars.to_string())
            .unwrap_or_default();
        csv += &format!(
            "{number}-{row},{},{},{stars}\n",
            url(number),
            row_title(number, row)
        );
    }
    work.write("known.csv", csv);
}

fn assert_reads_all(work: &Workplace, web: &Web, mapping: &str) {
    let checked = Run::new(["mapping", "check"])
        .arg(work.path(mapping))
        .finish()
        .expect_code(0);
    assert!(
        !format!("{}{}", checked.stdout, checked.stderr).contains("warning"),
        "{}",
        checked.stdout
    );
    let url = format!("http://{HOST}{}", page_path(1));
    let shown = Run::new(["mapping", "test"])
        .arg(work.path(mapping))
        .arg(work.path("saved/1.html"))
        .args(["--url", &url, "--format", "text"])
        .finish()
        .expect_code(0);
    assert!(shown.stdout.contains("8 rows"), "{}", shown.stdout);
    let site = web.site(HOST);
    for number in 0..PAGES {
        let page = status(200)
            .header("content-type", "text/html")
            .body(page_html(number));
        site.serve(&page_path(number), page);
    }
    std::fs::create_dir_all(work.path("learned")).unwrap();
    std::fs::copy(work.path(mapping), work.path("learned/books.json")).unwrap();
    let seeds = work.write("seeds.txt", format!("http://{HOST}/books\n"));
    work.crawl_without_delay(web)
        .args(["--delay", "0", "--depth", "2"])
        .arg("--seeds")
        .arg(seeds)
        .replace_flag("--mappings", work.path("learned"))
        .finish()
        .expect_code(0);
    let store = format!("sqlite:{}", work.path("store.db").display());
    let exported = Run::new(["export", "records", "--dataset", "books", "--store", &store])
        .finish()
        .expect_code(0);
    let mut read: Vec<Value> = exported
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["fields"].clone())
        .collect();
    let rows = (0..PAGES).flat_map(|number| (0..ROWS).map(move |row| (number, row)));
    let mut expected: Vec<Value> = rows
        .map(|(number, row)| {
            json!({"title": row_title(number, row), "stars": row_stars(number, row).map(|stars| stars.to_string())})
        })
        .collect();
    let by_title = |row: &Value| row["title"].to_string();
    read.sort_by_key(by_title);
    expected.sort_by_key(by_title);
    assert_eq!(read, expected);
}

#[test]
fn records_whose_url_is_a_listing_become_rows() {
    let (work, web) = (workplace(), Web::start());
    write_pages(&work);
    write_records(&work, |number| {
        format!("http://{HOST}{}", page_path(number))
    });
    let run = learn_command(
        &work,
        &[
            "--records",
            "known.csv",
            "--pages",
            "saved",
            "--output",
            "books.json",
            "--dataset",
            "books",
            "--format",
            "json",
        ],
    );
    let reported = parse_report(&run.finish().expect_code(0));
    let rows = &reported["mappings"][0]["rows"];
    assert_eq!(rows["matched"], 5, "{reported:#}");
    assert_eq!(
        (&rows["key"], &rows["rows"]),
        (&json!(["title"]), &json!(16)),
        "{reported:#}"
    );
    assert_reads_all(&work, &web, "books.json");
}

#[test]
fn records_that_link_elsewhere_are_found_by_their_values() {
    let (work, web) = (workplace(), Web::start());
    write_pages(&work);
    write_records(&work, |number| format!("http://{HOST}/other/{number}"));
    let known = [
        "--records",
        "known.csv",
        "--pages",
        "saved",
        "--dataset",
        "books",
    ];
    let refused = learn_command(&work, &known).finish();
    assert_ne!(refused.status.code(), Some(0), "{}", refused.stderr);
    assert!(refused.stderr.contains("--rows"), "{}", refused.stderr);
    let run = learn_command(
        &work,
        &[&known[..], &["--rows", "--output", "books.json"]].concat(),
    );
    let output = run.finish().expect_code(0).stdout;
    assert!(output.contains("rows of books, key title"), "{output}");
    assert_reads_all(&work, &web, "books.json");
}
