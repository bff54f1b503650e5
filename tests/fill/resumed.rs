//! Tests that a killed run is resumed by the same command, with the same outputs, and that no page is requested twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use webfill_tests::run::Running;
use webfill_tests::site::Web;
use webfill_tests::stored::Stored;
use webfill_tests::waiting::wait_for;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, SITES, assert_same_outputs, book_count, example_oddities, fill_command,
    fill_on_one_machine, read_rows, serve_books, table_with_gaps, true_values,
};

/// Kills a run when this many pages have been answered, and resumes it. All later requests get no answer before the
/// kill, because the run could otherwise end before it is killed.
fn kill_after_and_resume(pages: usize) {
    let (work, web) = (Workplace::new(), Web::start());
    let answers = Arc::new(AtomicUsize::new(pages));
    let held = Oddities {
        answers: Some(Arc::clone(&answers)),
        ..Oddities::default()
    };
    serve_books(&web, &held);
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let running = fill_command(&work, &web)
        .replace_flag("--delay", "0.05")
        .start();
    web.log().wait_until("a page is kept waiting", |visits| {
        visits.pages().len() > pages
    });
    let frontier = work.path("books.webfill/state/dispatcher.db");
    wait_for("all that were answered are done", || {
        let done =
            Stored::open(&frontier).query_number("SELECT count(*) FROM task_rows WHERE state = 2");
        (done == pages as i64).then_some(())
    });
    for process in running.processes() {
        process.signal(Signal::KILL);
    }
    running.finish();
    assert!(!work.path("books.filled.csv").exists());
    answers.store(usize::MAX, Ordering::SeqCst);
    fill_command(&work, &web).finish().expect_code(0);
    for (book, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2..6], true_values(book), "book {book}");
    }
    // The requests that got no answer are repeated. There is at most one at each site.
    let counts = web.visits().pages().counts();
    assert_eq!(counts.len(), book_count());
    let repeated = counts.values().filter(|count| **count > 1).count();
    assert!(repeated <= SITES.len(), "{repeated} were asked again");
}

#[test]
fn a_run_that_is_killed_while_sampling_is_resumed() {
    kill_after_and_resume(10);
}

#[test]
fn a_run_that_is_killed_later_is_resumed() {
    kill_after_and_resume(70);
}

/// When a run is killed: at its start; when all runs together have fetched this many pages; or when the run begins this
/// step for the given time, counted from 1.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Start,
    Pages(usize),
    Step(&'static str, usize),
}

impl Moment {
    /// The moments when runs are killed. Each step is interrupted twice: while pages outside of the sample are missing,
    /// and when all pages are stored.
    const ALL: [Moment; 14] = [
        Moment::Start,
        Moment::Pages(5),
        Moment::Step("learn", 1),
        Moment::Step("read", 1),
        Moment::Step("judge", 1),
        Moment::Step("fetch", 2),
        Moment::Pages(70),
        Moment::Step("write", 1),
        Moment::Start,
        Moment::Step("learn", 1),
        Moment::Step("read", 1),
        Moment::Step("judge", 1),
        Moment::Step("fetch", 2),
        Moment::Step("write", 1),
    ];
    /// The times from the moment to the kill, in milliseconds.
    const LATER: [u64; 4] = [0, 15, 60, 200];

    fn wait(self, running: &mut Running, web: &Web) {
        match self {
            Moment::Start => {}
            Moment::Pages(pages) => running.wait_until("some pages were fetched", |_| {
                web.visits().pages().len() >= pages
            }),
            Moment::Step(step, times) => {
                let line = format!("\"step\":\"{step}\"");
                running.wait_until(&line, |running| {
                    running.stderr_so_far().matches(&line).count() >= times
                });
            }
        }
    }
}

#[test]
fn a_run_that_is_killed_at_any_moment_of_any_step_changes_nothing() {
    let alone = fill_on_one_machine();
    let (oddities, wrong) = example_oddities();
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &oddities);
    work.write("books.csv", table_with_gaps(&wrong));
    let filled = |work: &Workplace| std::fs::read_to_string(work.path("books.filled.csv"));
    let right = filled(&alone).unwrap();
    let (mut moments, mut killed) = (0, 0);
    for moment in Moment::ALL {
        for later in Moment::LATER {
            let run = fill_command(&work, &web).replace_flag("--progress", "json");
            let mut running = run.replace_flag("--delay", "0.02").start();
            moment.wait(&mut running, &web);
            std::thread::sleep(Duration::from_millis(later));
            moments += 1;
            // In every second run, all processes are killed, as on a machine without memory. In the other runs, only
            // the first process is killed, as a person would do it.
            match moments % 2 {
                0 => running.signal(Signal::KILL),
                _ => running
                    .processes()
                    .iter()
                    .for_each(|process| process.signal(Signal::KILL)),
            }
            killed += usize::from(running.finish().status.code().is_none());
            // The file of the filled table is either complete or does not exist.
            if let Ok(text) = filled(&work) {
                assert_eq!(text, right, "{moment:?} {later} ms later");
            }
        }
    }
    println!("{killed} of {moments} were killed before their end");
    // On a fast machine, some runs end before they are killed.
    assert!(killed * 2 >= moments, "{killed} of {moments}");
    fill_command(&work, &web).finish().expect_code(0);
    assert_same_outputs(&alone, &work);
    // Each kill during fetching costs at most one repeated request for each site.
    let counts = web.visits().pages().counts();
    let again: usize = counts.values().map(|count| count - 1).sum();
    assert!(again <= killed * SITES.len(), "{again} again: {counts:#?}");
}

/// The first run stands for one that was interrupted early: its mappings, learned from few pages, do not fit all pages.
#[test]
fn mappings_learned_from_few_pages_are_learned_again_when_many_are_there() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
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
    fill_command(&work, &web)
        .args(["--sample", "3"])
        .finish()
        .expect_code(0);
    assert!(learned_from().iter().all(|pages| *pages <= 3));
    fill_command(&work, &web).finish().expect_code(0);
    let many = learned_from();
    assert!(many.iter().all(|pages| *pages >= 12), "{many:?}");
    for (book, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2..6], true_values(book), "book {book}");
    }
    assert_eq!(web.visits().pages().counts().len(), book_count());
}

/// A killed run may leave unfinished files with hidden names. Only the files of the same table are removed, and none
/// that a running process is writing.
#[test]
fn partial_files_of_killed_runs_are_removed() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let (ended, running) = (ended.id(), std::process::id());
    let removed = [
        format!(".books.doubts.csv.part-{ended}"),
        format!(".books.html.part-{ended}"),
        format!("books.webfill/.overview.json.part-{ended}"),
        format!("books.webfill/mappings/.shelf.example.json.part-{ended}"),
        String::from(".books.filled.csv.part"),
    ];
    let kept = [
        format!(".books.doubts.csv.part-{running}"),
        format!(".others.doubts.csv.part-{ended}"),
    ];
    for name in removed.iter().chain(&kept) {
        work.write(name, "part");
    }
    fill_command(&work, &web).finish().expect_code(0);
    for name in &removed {
        assert!(!work.path(name).exists(), "{name}");
    }
    for name in &kept {
        assert!(work.path(name).exists(), "{name}");
    }
}
