//! Tests a disk that fills up during a crawl. Without a floor (the free space that must remain), the crawl ends with a
//! special exit code, and everything that was written stays readable. Once there is room, the same command continues
//! the crawl. With a floor, the crawl pauses until there is room.

use std::io::Write;
use std::path::Path;

use webfill_test_needs::needs;
use webfill_tests::isolation::{mount_small_disk, run_isolated};
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Web, page};
use webfill_tests::stored::Stored;
use webfill_tests::workplace::{Workplace, files_under};

const SITES: usize = 4;
const PAGES_PER_SITE: usize = 12;

/// A page whose links take 200 KB in the store, and another 200 KB in the frontier (the dispatcher's database of
/// tasks).
fn heavy_page(number: usize) -> Page {
    let padding = "x".repeat(180);
    let links: String = (0..1_000)
        .map(|link| format!("<a href=\"/{number}/{link}/{padding}\">l</a>"))
        .collect();
    page(&number.to_string()).html(links)
}

fn crawl_command(work: &Workplace, web: &Web) -> Run {
    let urls = (0..SITES).flat_map(|site| {
        (0..PAGES_PER_SITE).map(move |number| format!("http://heavy{site}.example/{number}"))
    });
    work.crawl(web)
        .replace_flag("--delay", "0.05")
        .args(["--follow", "all", "--deny-regex", "/x+$"])
        .env("WEBFILL_DISK_FLOOR_MIB", "0")
        .args(urls)
}

#[needs(namespaces)]
#[test]
fn a_full_disk_ends_the_crawl_and_spoils_nothing() {
    run_isolated(
        "full_disk::a_full_disk_ends_the_crawl_and_spoils_nothing",
        || {
            let web = Web::start();
            for number in 0..SITES {
                let site = web.site(&format!("heavy{number}.example"));
                site.serve_otherwise(|request| {
                    heavy_page(request.path.trim_start_matches('/').parse().unwrap_or(0)).into()
                });
            }
            let folder = tempfile::tempdir().expect("a temporary folder");
            mount_small_disk(folder.path(), 6 << 10, false);
            let work = Workplace::in_folder(folder.path());
            let run = crawl_command(&work, &web).finish();
            let run = run.expect_code(17);
            let sentence = run.one_sentence();
            assert!(
                sentence.contains("full") || sentence.contains("space"),
                "{sentence}"
            );

            let databases = files_under(folder.path());
            let databases = databases
                .iter()
                .filter(|file| file.extension().is_some_and(|kind| kind == "db"));
            for database in databases {
                assert_eq!(
                    check_integrity_of_copy(database),
                    "ok",
                    "{}",
                    database.display()
                );
            }
            mount_small_disk(folder.path(), 200 << 10, true);
            let before = work.stored().pages().len();
            assert!(
                before < SITES * PAGES_PER_SITE,
                "the disk was large enough for everything"
            );
            crawl_command(&work, &web).finish().expect_code(0);
            let after = work.stored().outcomes();
            assert_eq!(after.len(), SITES * PAGES_PER_SITE);
            assert!(after.values().all(|outcome| outcome == "ok"), "{after:#?}");
        },
    );
}

/// The free space falls below the floor (the space that must stay free) while seeds are still being fed.
#[needs(namespaces)]
#[test]
fn below_the_floor_a_crawl_waits_for_room_and_continues() {
    run_isolated(
        "full_disk::below_the_floor_a_crawl_waits_for_room_and_continues",
        || {
            let web = Web::start();
            let site = web.site("floor.example");
            site.serve_otherwise(|request| page(&request.path).into());
            let folder = tempfile::tempdir().expect("a temporary folder");
            mount_small_disk(folder.path(), 64 << 10, false);
            let work = Workplace::in_folder(folder.path());
            let (seeds, mut pipe) = std::io::pipe().expect("a pipe");
            let mut feed = |range: std::ops::Range<usize>| {
                for number in range {
                    writeln!(pipe, "http://floor.example/{number}").expect("it reads");
                }
            };
            let crawl = work.crawl(&web).replace_flag("--delay", "0.05");
            let crawl = crawl.env("WEBFILL_DISK_FLOOR_MIB", "16");
            let mut running = crawl.args(["--seeds", "-"]).stdin(seeds).start();
            feed(0..100);
            running.wait_until("pages are fetched", |_| web.visits().pages().len() > 10);
            let ballast = folder.path().join("ballast");
            std::fs::write(&ballast, vec![1; 52 << 20]).expect("room for it");
            running.wait_for_stderr("paused: ");
            feed(100..150);
            drop(pipe);
            std::fs::remove_file(&ballast).expect("it is there");
            running.wait_for_stderr("resumed: ");
            running.finish().expect_code(0);
            assert_eq!(work.stored().pages().len(), 150);
        },
    );
}

/// The result of SQLite's integrity check. It runs on a copy of the database on another disk, because SQLite needs some
/// room even to read.
fn check_integrity_of_copy(database: &Path) -> String {
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let copy = elsewhere.path().join("copy.db");
    std::fs::copy(database, &copy).expect("room elsewhere");
    let log = database.with_extension("db-wal");
    if log.exists() {
        std::fs::copy(log, copy.with_extension("db-wal")).expect("room elsewhere");
    }
    Stored::open(&copy).integrity()
}
