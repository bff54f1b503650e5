//! A killed run is resumed by the same command, with the same outputs, and no page is asked twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use webfill_tests::site::Web;
use webfill_tests::stored::Stored;
use webfill_tests::waiting::wait_for;
use webfill_tests::workplace::Workplace;

use super::made_web::{Oddities, SITES, books, fill, rows, serve, table, truth};

/// Kills a run when this many pages were answered. All further ones are kept waiting: otherwise a busy machine might
/// end the run before it is killed.
fn killed_after(pages: usize) {
    let (work, web) = (Workplace::new(), Web::start());
    let answers = Arc::new(AtomicUsize::new(pages));
    let held = Oddities {
        answers: Some(Arc::clone(&answers)),
        ..Oddities::default()
    };
    serve(&web, &held);
    work.write("books.csv", table(&BTreeMap::new()));
    let running = fill(&work, &web).instead("--delay", "0.05").start();
    web.log().wait_until("a page is kept waiting", |visits| {
        visits.pages().len() > pages
    });
    let frontier = work.path("books.webfill/state/dispatcher.db");
    wait_for("all that were answered are done", || {
        let done = Stored::open(&frontier).number("SELECT count(*) FROM task_rows WHERE state = 2");
        (done == pages as i64).then_some(())
    });
    for process in running.processes() {
        process.signal(Signal::KILL);
    }
    running.finish();
    assert!(!work.path("books.filled.csv").exists());
    answers.store(usize::MAX, Ordering::SeqCst);
    fill(&work, &web).finish().expect(0);
    for (book, row) in rows(&work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2..6], truth(book), "book {book}");
    }
    // Those that were kept waiting are asked again, one at each site.
    let counts = web.visits().pages().counts();
    assert_eq!(counts.len(), books());
    let repeated = counts.values().filter(|count| **count > 1).count();
    assert!(repeated <= SITES.len(), "{repeated} were asked again");
}

#[test]
fn a_run_that_is_killed_while_sampling_is_resumed() {
    killed_after(10);
}

#[test]
fn a_run_that_is_killed_later_is_resumed() {
    killed_after(70);
}

/// As after a run that was cut short: what few pages show is not all.
#[test]
fn mappings_learned_from_few_pages_are_learned_again_when_many_are_there() {
    let (work, web) = (Workplace::new(), Web::start());
    serve(&web, &Oddities::default());
    work.write("books.csv", table(&BTreeMap::new()));
    let learned_from = || -> Vec<usize> {
        let folder = work.path("books.webfill/learned");
        let names = SITES.map(|site| folder.join(format!("{site}.json")));
        let pages = |text: String| {
            let origin: serde_json::Value = serde_json::from_str(&text).unwrap();
            origin["pages"].as_array().unwrap().len()
        };
        let texts = names.map(|file| std::fs::read_to_string(file).unwrap());
        texts.map(pages).to_vec()
    };
    fill(&work, &web).args(["--sample", "3"]).finish().expect(0);
    assert!(learned_from().iter().all(|pages| *pages <= 3));
    fill(&work, &web).finish().expect(0);
    let many = learned_from();
    assert!(many.iter().all(|pages| *pages >= 12), "{many:?}");
    for (book, row) in rows(&work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2..6], truth(book), "book {book}");
    }
    assert_eq!(web.visits().pages().counts().len(), books());
}
