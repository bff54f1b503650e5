//! Tests `--report`: an HTML file for people. It loads no other files, and texts of pages and tables in it cannot act
//! as markup.

use std::collections::BTreeMap;

use webfill_test_browser::Browser;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Reply, Web, status};
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, book_count, fill_command, is_gap, serve_books, table_with_gaps, true_values,
};

/// Completes a table that has wrong values and missing pages. Returns its report.
fn fill_with_report() -> (Workplace, String) {
    let (work, web) = (Workplace::new(), Web::start());
    let odd = Oddities {
        lack_publisher: (0..book_count()).filter(|book| book % 12 == 1).collect(),
        gone: (0..book_count()).filter(|book| book % 24 == 5).collect(),
        ..Oddities::default()
    };
    serve_books(&web, &odd);
    let wrong: BTreeMap<(usize, usize), String> = (0..book_count())
        .filter(|book| book % 6 == 2 && !is_gap(*book, 1))
        .map(|book| ((book, 1), format!("Nobody <i>{book}</i>")))
        .collect();
    assert!(wrong.len() > 4);
    work.write("books.csv", table_with_gaps(&wrong));
    fill_command(&work, &web)
        .args(["--report", "books.html"])
        .finish()
        .expect_code(0);
    let page = std::fs::read_to_string(work.path("books.html")).unwrap();
    (work, page)
}

#[test]
fn the_report_shows_doubts_columns_sites_reasons_and_examples() {
    let (work, page) = fill_with_report();
    for part in [
        "<h2>Doubts</h2>",
        "your table</dt><dd><bdi>Nobody &lt;i&gt;",
        "<h2>By column</h2>",
        ">publisher</bdi>",
        "<h2>By site</h2>",
        ">shelf.example</bdi>",
        "not on the page",
        "page unreachable",
        "<h2>Examples of filled values</h2>",
        "<mark>",
        "href=\"http://shelf.example/book/",
    ] {
        assert!(page.contains(part), "{part} is not in the report");
    }
    let doubts = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let listed = doubts.lines().count() - 1;
    assert_eq!(page.matches("your table</dt>").count(), listed);
    // The doubts come before all other parts of the report, except for the numbers at its top.
    assert!(page.find("<h2>Doubts").unwrap() < page.find("<h2>By column").unwrap());
    for markup in [
        "<script", "<i>", "<img", "<link", "url(", "@import", " src=",
    ] {
        assert!(!page.contains(markup), "{markup} is in the report");
    }
    assert!(page.len() < 200_000, "{} bytes", page.len());
    // All pages are stored, so the same command creates the same report without a request.
    let again = Run::new([
        "fill",
        "books.csv",
        "--keep",
        "note",
        "--report",
        "books.html",
    ])
    .args(["--allow-private-networks", "--progress", "none"])
    .in_folder(work.path("."))
    .finish()
    .expect_code(0);
    assert!(again.stdout.contains(", books.html"), "{}", again.stdout);
    assert_eq!(
        std::fs::read_to_string(work.path("books.html")).unwrap(),
        page
    );
}

#[test]
fn pages_and_tables_cannot_write_into_the_report() {
    const EVIL: &str = "<img src=x onerror=alert(1)>";
    let (work, web) = (Workplace::new(), Web::start());
    let shown = EVIL.replace('<', "&lt;").replace('>', "&gt;");
    web.site("evil.example")
        .serve_otherwise(move |request| -> Reply {
            let book: usize = request.path.trim_matches('/').parse().unwrap_or(0);
            let [title, author, ..] = true_values(book);
            let text =
                format!("<h1>{title} {shown}</h1><p class=\"by\">{author} &quot;'{shown}</p>");
            let page: Page = status(200).header("content-type", "text/html").body(text);
            page.into()
        });
    let mut csv = format!("id,link,title,\"{EVIL} author\"\n");
    for book in 0..24 {
        let [title, author, ..] = true_values(book);
        let title = match book % 3 {
            0 => String::new(),
            _ => format!("{title} {EVIL}"),
        };
        csv +=
            &format!("{EVIL}{book},http://evil.example/{book},{title},\"{author} \"\"'{EVIL}\"\n");
    }
    work.write("books.csv", csv);
    let run = Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
        .args(["--allow-private-networks", "--report", "books.html"])
        .args(web.resolve_args())
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
    assert!(run.stdout.contains("filled: 8 (100.0 %)"), "{}", run.stdout);
    let page = std::fs::read_to_string(work.path("books.html")).unwrap();
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    assert!(!page.contains("<img"), "markup of others is in the report");
}

#[test]
fn a_report_cannot_take_the_place_of_the_table() {
    let work = Workplace::new();
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let run = Run::new(["fill", "books.csv", "--report", "books.csv"])
        .in_folder(work.path("."))
        .finish()
        .expect_code(2);
    assert!(run.stderr.contains("ends in .html"), "{}", run.stderr);
}

/// In a real Chromium, the report requests nothing, and nothing on it is wider than the screen of a telephone.
#[needs(chromedriver)]
#[test]
fn the_report_is_shown_whole_on_any_screen() {
    let (work, _) = fill_with_report();
    let file = format!("file://{}", work.path("books.html").display());
    let browser = Browser::start();
    for (width, is_dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
        browser.set_size(width, 900);
        browser.set_prefers_dark(is_dark);
        browser.open(&file);
        let text = browser.page_text();
        assert!(
            text.contains("Doubts") && text.contains("By site"),
            "{text}"
        );
        let script =
            "const root = document.documentElement; return root.scrollWidth - root.clientWidth";
        let beyond = browser.run_script(script, serde_json::json!([]));
        assert_eq!(beyond, 0, "at {width} px it is wider than the screen");
        let theme = if is_dark { "dark" } else { "light" };
        browser.screenshot(&format!("fill-report-{width}-{theme}"));
    }
    assert_eq!(browser.take_console(), Vec::<String>::new());
    for url in browser.requested_urls() {
        // Only the report itself may be requested. A data URL belongs to the page that the browser starts with.
        let is_own = url.starts_with("file:") || url.starts_with("data:");
        assert!(is_own, "{url} was requested");
    }
}
