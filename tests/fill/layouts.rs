//! Tests sites that are harder to read: values behind a link, and pages in a layout that the sample does not contain.

use std::collections::BTreeMap;

use webfill_tests::run::Run;
use webfill_tests::site::{Page, Reply, Web, page, status};
use webfill_tests::workplace::Workplace;

use super::made_web::{is_gap, read_rows, true_values};

const HOST: &str = "one.example";
const BOOKS: usize = 60;

/// Parts of pages that surround the values, and whose frequency distinguishes the layouts.
const REVIEWS: &str = "<div class=\"review\"><h4>A reader</h4><p>Read it <em>twice</em>.</p><span>5 stars</span></div>";
const EDITIONS: &str = "<dl class=\"edition\"><dt>Binding</dt><dd>Cloth</dd><dt>Pages</dt><dd><code>300</code></dd></dl><hr><blockquote>An \
     excerpt</blockquote>";

/// A page that contains `around` many times. Layouts are distinguished by the frequent parts of their pages.
fn html_page(main: &str, around: &str) -> Page {
    let around = around.repeat(8);
    let text = format!(
        "<!DOCTYPE html><html><head><title>Books</title></head><body><div id=\"nav\"><a href=\"/\">Home</a> \
         <a href=\"/about\">About</a></div>{main}<div class=\"around\">{around}</div><p class=\"foot\">Since 1899</p></body></html>"
    );
    let page = status(200).header("content-type", "text/html; charset=utf-8");
    page.body(text)
}

fn escaped_values(book: usize) -> [String; 4] {
    true_values(book).map(|value| value.replace('&', "&amp;"))
}

fn serve_answers(web: &Web, answer: impl Fn(&str) -> Option<Page> + Send + Sync + 'static) {
    web.site(HOST).serve_otherwise(move |request| -> Reply {
        let page = answer(&request.path).unwrap_or_else(|| page("Nothing here").status(404));
        page.into()
    });
}

fn table_of_books(path: impl Fn(usize) -> String, is_gap: impl Fn(usize, usize) -> bool) -> String {
    let mut text = String::from("id,link,title,author,year,publisher\n");
    for book in 0..BOOKS {
        let cells = true_values(book).into_iter().enumerate();
        let cells: Vec<String> = cells
            .map(|(field, value)| {
                if is_gap(book, field) {
                    String::new()
                } else {
                    value
                }
            })
            .collect();
        text += &format!("b{book},http://{HOST}{},{}\n", path(book), cells.join(","));
    }
    text
}

fn fill_command(work: &Workplace, web: &Web) -> Run {
    Run::new([
        "fill",
        "books.csv",
        "--delay",
        "0",
        "--progress",
        "none",
        "--workers",
        "2",
    ])
    .arg("--allow-private-networks")
    .args(web.resolve_args())
    .in_folder(work.path("."))
}

fn assert_complete(work: &Workplace) {
    for (book, row) in read_rows(work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2..6], true_values(book), "book {book}");
    }
}

#[test]
fn values_behind_a_link_are_found() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_answers(&web, |path| {
        let mut parts = path.strip_prefix("/b/")?.split('/');
        let number: usize = parts.next()?.parse().ok()?;
        let [title, author, year, publisher] = escaped_values(number.checked_sub(500)? / 3);
        match parts.next() {
            None => Some(html_page(
                &format!(
                    "<h1>{title}</h1><p>by <b class=\"author\">{author}</b></p><p><a class=\"more\" \
                 href=\"/b/{number}/details\">All details</a> <a href=\"/similar/{number}\">Similar</a></p>"
                ),
                REVIEWS,
            )),
            Some("details") => Some(html_page(
                &format!(
                    "<table class=\"t\"><tr><th>First published</th><td>{year}</td></tr>\
                 <tr><th>Publisher</th><td>{publisher}</td></tr></table>"
                ),
                EDITIONS,
            )),
            Some(_) => None,
        }
    });
    work.write(
        "books.csv",
        table_of_books(|book| format!("/b/{}", 500 + book * 3), is_gap),
    );
    fill_command(&work, &web).finish().expect_code(0);
    assert_complete(&work);
    let before = web.visits().len();
    let counts: BTreeMap<String, usize> = web.visits().pages().counts();
    assert!(counts.values().all(|count| *count == 1), "{counts:#?}");
    // A few links of each kind are tried to find the kind that leads to the values, so at most five lead elsewhere.
    let tried = counts.keys().filter(|url| url.contains("similar")).count();
    assert!(tried <= 5, "{counts:#?}");
    // A page with details is needed only if the year or the publisher of its book is missing.
    let details = counts.keys().filter(|url| url.contains("details")).count();
    let lacking = (0..BOOKS)
        .filter(|&book| is_gap(book, 2) || is_gap(book, 3))
        .count();
    assert!(details <= lacking + 5, "{details} {lacking}");
    fill_command(&work, &web).finish().expect_code(0);
    assert_eq!(web.visits().len(), before);
}

#[test]
fn a_layout_that_turns_up_late_is_learned() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_answers(&web, |path| {
        let name = path.strip_prefix("/book/")?;
        let number: usize = name.trim_start_matches("old-").parse().ok()?;
        let [title, author, year, publisher] = escaped_values(number);
        match name.starts_with("old-") {
            false => Some(html_page(
                &format!(
                    "<h1>{title}</h1><table><tr><th>Author</th><td>{author}</td></tr><tr><th>Year</th><td>{year}</td></tr>\
                 <tr><th>Publisher</th><td>{publisher}</td></tr></table>"
                ),
                REVIEWS,
            )),
            true => Some(html_page(
                &format!(
                    "<section><h3 class=\"name\">{title}</h3><ul class=\"list\"><li class=\"writer\">{author}</li>\
                 <li class=\"year\">{year}</li><li class=\"house\">{publisher}</li></ul><div>Printed <i>here</i></div></section>"
                ),
                EDITIONS,
            )),
        }
    });
    let is_old = |book: usize| book % 6 == 2;
    let path = move |book: usize| match is_old(book) {
        true => format!("/book/old-{book}"),
        false => format!("/book/{book}"),
    };
    // The sample has only rows with most of their values, and all of these link to pages in the new layout.
    let lacks = move |book: usize, field: usize| match is_old(book) {
        true => field == book % 4 || field == (book / 4) % 4,
        false => field == book % 4 && book > 25,
    };
    work.write("books.csv", table_of_books(path, lacks));
    fill_command(&work, &web)
        .args(["--sample", "12"])
        .finish()
        .expect_code(0);
    assert_complete(&work);
    let mapping =
        std::fs::read_to_string(work.path("books.webfill/mappings/one.example.json")).unwrap();
    assert!(mapping.contains("old"), "{mapping}");
    let before = web.visits().len();
    fill_command(&work, &web)
        .args(["--sample", "12"])
        .finish()
        .expect_code(0);
    assert_eq!(web.visits().len(), before);
}

/// Rows that were added later link to pages of another kind. Their mapping must not replace the first one.
#[test]
fn a_new_kind_of_url_is_learned_beside_the_first() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_answers(&web, |path| {
        let (kind, number) = path.strip_prefix('/')?.split_once('/')?;
        let [title, author, year, publisher] = escaped_values(number.parse().ok()?);
        match kind {
            "book" => Some(html_page(
                &format!(
                    "<h1>{title}</h1><table><tr><th>Author</th><td>{author}</td></tr><tr><th>Year</th><td>{year}</td></tr>\
                 <tr><th>Publisher</th><td>{publisher}</td></tr></table>"
                ),
                REVIEWS,
            )),
            "print" => Some(html_page(
                &format!(
                    "<section><h3 class=\"name\">{title}</h3><ul class=\"list\"><li class=\"writer\">{author}</li>\
                 <li class=\"year\">{year}</li><li class=\"house\">{publisher}</li></ul><div>Printed <i>here</i></div></section>"
                ),
                EDITIONS,
            )),
            _ => None,
        }
    });
    let all = table_of_books(
        |book| match book < BOOKS / 2 {
            true => format!("/book/{book}"),
            false => format!("/print/{book}"),
        },
        is_gap,
    );
    let first: Vec<&str> = all.lines().take(1 + BOOKS / 2).collect();
    work.write("books.csv", first.join("\n") + "\n");
    fill_command(&work, &web).finish().expect_code(0);
    assert_complete(&work);
    work.write("books.csv", &all);
    fill_command(&work, &web).finish().expect_code(0);
    assert_complete(&work);
    let before = web.visits().len();
    fill_command(&work, &web).finish().expect_code(0);
    assert_complete(&work);
    assert_eq!(web.visits().len(), before);
}

/// All links of the table redirect to another site, whose pages are read.
#[test]
fn links_that_redirect_to_another_site_are_filled() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_answers(&web, |path| {
        let [title, author, year, publisher] =
            escaped_values(path.strip_prefix("/book/")?.parse().ok()?);
        Some(html_page(
            &format!(
                "<h1>{title}</h1><table><tr><th>Author</th><td>{author}</td></tr><tr><th>Year</th><td>{year}</td></tr>\
             <tr><th>Publisher</th><td>{publisher}</td></tr></table>"
            ),
            REVIEWS,
        ))
    });
    web.site("short.example")
        .serve_otherwise(|request| -> Reply {
            let to = format!("http://{HOST}/book{}", request.path);
            status(302).header("location", &to).body("").into()
        });
    let text = table_of_books(|book| format!("/{book}"), is_gap).replace(HOST, "short.example");
    work.write("books.csv", text);
    fill_command(&work, &web)
        .args(["--sample", "12"])
        .finish()
        .expect_code(0);
    assert_complete(&work);
}

/// A mapping that a person has written is used without changes, even if it looks wrong.
#[test]
fn a_mapping_written_by_a_person_is_used_unchanged() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_answers(&web, |path| {
        let number: usize = path.strip_prefix("/book/")?.parse().ok()?;
        let [title, author, year, publisher] = escaped_values(number);
        Some(html_page(
            &format!(
                "<h1>{title}</h1><table><tr><th>Author</th><td>{author}</td></tr><tr><th>Year</th><td>{year}</td></tr>\
             <tr><th>Publisher</th><td>{publisher}</td></tr></table>"
            ),
            REVIEWS,
        ))
    });
    work.write(
        "books.csv",
        table_of_books(|book| format!("/book/{book}"), is_gap),
    );
    let mapping = serde_json::json!({"name": "mine", "url_patterns": [{"type": "host", "pattern": HOST}], "fields": [
        {"name": "title", "processors": [{"type": "xpath", "parameters": {"expression": "//h1"}}, {"type": "trim"}]}]});
    work.write_json("books.webfill/mappings/mine.json", &mapping);
    fill_command(&work, &web).finish().expect_code(0);
    for (book, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        for (field, value) in true_values(book).into_iter().enumerate() {
            let expected = if is_gap(book, field) && field > 0 {
                String::new()
            } else {
                value
            };
            assert_eq!(row[2 + field], expected, "book {book}");
        }
    }
    let files = std::fs::read_dir(work.path("books.webfill/mappings")).unwrap();
    assert_eq!(files.count(), 1);
}
