//! Tests pages that are requested again: old pages, and pages that failed for a reason that no longer exists.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use webfill_tests::run::Run;
use webfill_tests::site::{Page, Reply, Web, page, status};
use webfill_tests::workplace::Workplace;

use super::made_web::read_rows;

const BOOKS: usize = 24;
/// A bit more than a second. After this time, earlier fetches are too old for `--refresh-after 1s`.
const SECOND: Duration = Duration::from_millis(1_100);

/// Serves a site whose pages depend on the day. The returned counter is the day, which a test can set. On day 1, it has
/// its first mottos. From day 2 on, some mottos are changed. On day 3, the page of the first book fails.
fn serve_mottos(web: &Web) -> Arc<AtomicUsize> {
    let day = Arc::new(AtomicUsize::new(1));
    let today = Arc::clone(&day);
    web.site("mottos.example").serve_otherwise(move |request| -> Reply {
        let day = today.load(Ordering::SeqCst);
        let book: Option<usize> = request
            .path
            .strip_prefix("/book/")
            .and_then(|number| number.parse().ok());
        let Some(book) = book else {
            return page("Nothing here").status(404).into();
        };
        if day == 3 && book == 0 {
            return page("Come again").status(503).into();
        }
        let text = format!(
            "<html><head><title>Mottos</title></head><body><h1>Book {book} of the series</h1><p class=\"motto\">{}</p></body></html>",
            motto_on_day(book, day)
        );
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
    day
}

fn is_gap(book: usize) -> bool {
    book.is_multiple_of(3)
}

/// The motto of a book on a day. Only the mottos that the table lacks are changed.
fn motto_on_day(book: usize, day: usize) -> String {
    match is_gap(book) && day > 1 {
        true => format!("Changed motto {}", book * 31),
        false => format!("Motto number {}", book * 31),
    }
}

fn fill_command(work: &Workplace, web: &Web) -> Run {
    Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .env("WEBFILL_RETRIES_HTTP_503", "")
        .env("WEBFILL_BACKOFF_BUSY", "")
        .args(web.resolve_args())
        .in_folder(work.path("."))
}

fn assert_filled(work: &Workplace, day: usize) {
    for (book, row) in read_rows(work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2], motto_on_day(book, day), "book {book}");
    }
}

#[test]
fn old_pages_are_fetched_again_and_failed_ones_keep_their_values() {
    let (work, web) = (Workplace::new(), Web::start());
    let day = serve_mottos(&web);
    let mut text = String::from("id,link,motto\n");
    for book in 0..BOOKS {
        let motto = if is_gap(book) {
            String::new()
        } else {
            motto_on_day(book, 1)
        };
        text += &format!("b{book},http://mottos.example/book/{book},{motto}\n");
    }
    work.write("books.csv", text);
    fill_command(&work, &web).finish().expect_code(0);
    assert_filled(&work, 1);
    day.store(2, Ordering::SeqCst);
    std::thread::sleep(SECOND);
    fill_command(&work, &web)
        .args(["--refresh-after", "1s"])
        .finish()
        .expect_code(0);
    assert_filled(&work, 2);
    day.store(3, Ordering::SeqCst);
    std::thread::sleep(SECOND);
    let run = fill_command(&work, &web)
        .args(["--refresh-after", "1s"])
        .finish();
    assert!(run.stdout.contains("next: 1 page failed"), "{}", run.stdout);
    assert_filled(&work, 2);
    day.store(4, Ordering::SeqCst);
    let before = web.visits().pages().len();
    let run = fill_command(&work, &web).finish().expect_code(0);
    assert!(!run.stdout.contains("failed"), "{}", run.stdout);
    assert_filled(&work, 2);
    let asked = web.visits().pages().paths().split_off(before);
    assert_eq!(asked, ["mottos.example/book/0"]);
}

#[test]
fn a_page_that_failed_is_asked_again_by_the_next_run() {
    let (work, web) = (Workplace::new(), Web::start());
    let day = serve_mottos(&web);
    day.store(3, Ordering::SeqCst);
    let mut text = String::from("id,link,motto\n");
    for book in 0..BOOKS {
        let motto = if is_gap(book) {
            String::new()
        } else {
            motto_on_day(book, 3)
        };
        text += &format!("b{book},http://mottos.example/book/{book},{motto}\n");
    }
    work.write("books.csv", text);
    fill_command(&work, &web).finish();
    assert_eq!(read_rows(&work, "books.filled.csv")[0][2], "");
    day.store(4, Ordering::SeqCst);
    fill_command(&work, &web).finish().expect_code(0);
    assert_filled(&work, 4);
}

fn table_on_first_day() -> String {
    let mut text = String::from("id,link,motto\n");
    for book in 0..BOOKS {
        let motto = match is_gap(book) {
            true => String::new(),
            false => motto_on_day(book, 1),
        };
        text += &format!("b{book},http://mottos.example/book/{book},{motto}\n");
    }
    text
}

#[test]
fn a_site_whose_robots_txt_cannot_be_fetched_is_unreachable_and_refuses_nothing() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_mottos(&web);
    web.site("mottos.example").serve("/robots.txt", status(503));
    work.write("books.csv", table_on_first_day());
    let run = fill_command(&work, &web).args(["--patience", "1s"]);
    let run = run.finish().expect_code(0);
    let unreachable = format!("not filled: {} page unreachable", BOOKS / 3);
    assert!(run.stdout.contains(&unreachable), "{}", run.stdout);
    assert_eq!(web.visits().pages().len(), 0);
}

#[test]
fn pages_at_private_addresses_are_requested_once_these_are_allowed() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_mottos(&web);
    work.write("books.csv", table_on_first_day());
    let refused = Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
        .args(["--contact", "https://example.org/crawler.html"])
        .args(web.resolve_args())
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
    let advice = format!(
        "next: {BOOKS} pages not requested, at private addresses; if the sites are yours, run the same command with --allow-private-networks"
    );
    assert!(refused.stdout.contains(&advice), "{}", refused.stdout);
    assert_eq!(web.visits().pages().len(), 0);
    let run = fill_command(&work, &web).finish().expect_code(0);
    assert!(run.stdout.contains("next: nothing"), "{}", run.stdout);
    assert_filled(&work, 1);
}

/// If a site fails for longer than the patience of a run, its remaining pages are not requested.
#[test]
fn pages_that_were_not_requested_because_their_site_failed_are_requested_the_next_time() {
    let (work, web) = (Workplace::new(), Web::start());
    let answers = Arc::new(AtomicUsize::new(8));
    let left = Arc::clone(&answers);
    web.site("mottos.example").serve_otherwise(move |request| -> Reply {
        let book = request.path.strip_prefix("/book/");
        let Some(book) = book.and_then(|number| number.parse::<usize>().ok()) else {
            return page("Nothing here").status(404).into();
        };
        let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
        if taken.is_err() {
            return page("Come again").status(503).into();
        }
        let text = format!(
            "<html><body><h1>Book {book} of the series</h1><p class=\"motto\">{}</p></body></html>",
            motto_on_day(book, 1)
        );
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
    let mut text = String::from("id,link,motto\n");
    for book in 0..BOOKS {
        let motto = if is_gap(book) {
            String::new()
        } else {
            motto_on_day(book, 1)
        };
        text += &format!("b{book},http://mottos.example/book/{book},{motto}\n");
    }
    work.write("books.csv", text);
    let fill = || {
        Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
            .arg("--allow-private-networks")
            .args(web.resolve_args())
            .in_folder(work.path("."))
    };
    let run = fill().args(["--patience", "1s"]).finish().expect_code(0);
    assert!(run.stdout.contains("page unreachable"), "{}", run.stdout);
    assert!(
        run.stdout
            .contains("failed for reasons that may be temporary"),
        "{}",
        run.stdout
    );
    answers.store(1_000, Ordering::SeqCst);
    fill().finish().expect_code(0);
    assert_filled(&work, 1);
}
