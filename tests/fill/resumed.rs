//! A killed run is resumed by the same command, with the same outputs, and no page is asked twice.

use std::collections::BTreeMap;

use rustix::process::Signal;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{Oddities, books, fill, rows, serve, table, truth};

fn killed_after(pages: usize) {
    let (work, web) = (Workplace::new(), Web::start());
    serve(&web, &Oddities::default());
    work.write("books.csv", table(&BTreeMap::new()));
    let running = fill(&work, &web).instead("--delay", "0.05").start();
    web.log().wait_until("some pages were asked", |visits| {
        visits.pages().len() >= pages
    });
    for process in running.processes() {
        process.signal(Signal::KILL);
    }
    running.finish();
    assert!(web.visits().pages().len() < books());
    assert!(!work.path("books.filled.csv").exists());
    fill(&work, &web).finish().expect(0);
    for (book, row) in rows(&work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2..6], truth(book), "book {book}");
    }
    // Those under way when it was killed are asked again.
    let counts = web.visits().pages().counts();
    assert_eq!(counts.len(), books());
    let repeated = counts.values().filter(|count| **count > 1).count();
    assert!(repeated <= 8, "{repeated} were asked again");
}

#[test]
fn a_run_that_is_killed_while_sampling_is_resumed() {
    killed_after(10);
}

#[test]
fn a_run_that_is_killed_later_is_resumed() {
    killed_after(70);
}
