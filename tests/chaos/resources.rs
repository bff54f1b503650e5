//! Damaged files, full disks, short time limits, and pages that kill the workers.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::isolation::{mount_small_disk, run_isolated};
use webfill_tests::process::Process;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Site, Web, page};
use webfill_tests::workplace::{Workplace, files_under};

const DELAY: Duration = Duration::from_millis(200);
const PAGES: usize = 8;

/// Serves a site with a root page that links to some leaf pages.
fn serve_small_site(web: &Web, host: &str) -> Site {
    let site = web.site(host);
    site.serve_otherwise(|request| page(&request.path).into());
    let leaves = 1..PAGES;
    let root = leaves.fold(page("/"), |page, leaf| {
        page.mapped_link(&format!("/{leaf}"))
    });
    site.serve("/", root);
    site
}

fn crawl_command(work: &Workplace, web: &Web, urls: &[String]) -> Run {
    work.crawl(web).args(urls)
}

/// Damages a database between two runs of a crawl by `spoil`. The second run must end with the exit code `code`, name
/// the file, and leave it unchanged.
fn check_damaged_file(file: &str, code: i32, spoil: impl Fn(&mut [u8])) {
    let web = Web::start();
    let urls = [
        serve_small_site(&web, "a.example").url("/"),
        serve_small_site(&web, "b.example").url("/"),
    ];
    let work = Workplace::new();
    let running = crawl_command(&work, &web, &urls).start();
    web.log()
        .wait_until("it is under way", |visits| visits.pages().len() > 4);
    running.signal(Signal::INT);
    running.finish().expect_code(11);
    let path = work.path(file);
    let intact = fs::read(&path).expect("a database");
    let mut bytes = intact.clone();
    spoil(&mut bytes);
    fs::write(&path, &bytes).expect("our own folder");

    let run = crawl_command(&work, &web, &urls).finish().expect_code(code);
    assert!(run.one_sentence().contains(file), "{}", run.stderr);
    assert!(
        fs::read(&path).expect("it is still there") == bytes,
        "it was written to"
    );

    // After the intact file is put back, the crawl continues.
    remove_logs_of(&path);
    fs::write(&path, intact).expect("our own folder");
    crawl_command(&work, &web, &urls).finish().expect_code(0);
    assert_eq!(work.stored().pages().len(), 2 * PAGES);
    web.visits().assert_polite(DELAY);
}

fn remove_logs_of(database: &Path) {
    for end in ["db-wal", "db-shm"] {
        // The file may be missing, because the write-ahead log exists only while a process has the database open.
        let _ = fs::remove_file(database.with_extension(end));
    }
}

fn spoil_all(bytes: &mut [u8]) {
    bytes.fill(b'?');
}

/// Overwrites everything after the header, which identifies the file as SQLite.
fn spoil_after_header(bytes: &mut [u8]) {
    bytes[100..].fill(0xA5);
}

#[test]
fn a_frontier_file_without_its_header_is_left_unchanged() {
    // Without its header, the file is not recognised as SQLite. Then the state folder counts as the wrong folder.
    check_damaged_file("state/dispatcher.db", 2, spoil_all);
}

#[test]
fn a_frontier_file_with_damaged_pages_is_left_unchanged() {
    check_damaged_file("state/dispatcher.db", 17, spoil_after_header);
}

#[test]
fn a_store_file_with_damaged_pages_is_left_unchanged() {
    check_damaged_file("store.db", 17, spoil_after_header);
}

#[needs(namespaces)]
#[test]
fn a_full_disk_for_logs_stops_no_crawl() {
    run_isolated("resources::a_full_disk_for_logs_stops_no_crawl", || {
        let web = Web::start();
        let urls = [serve_small_site(&web, "a.example").url("/")];
        let work = Workplace::new();
        let logs = work.path("state/logs");
        fs::create_dir_all(&logs).expect("our own folder");
        mount_small_disk(&logs, 16, false);
        let run = crawl_command(&work, &web, &urls).env("WEBFILL_LOG_LEVEL", "trace");
        run.finish().expect_code(0);
        let written: u64 = files_under(&logs)
            .iter()
            .filter_map(|file| file.metadata().ok())
            .map(|file| file.len())
            .sum();
        assert!(written > 8 << 10, "the disk was not full: {written} bytes");
        assert_eq!(work.stored().pages().len(), PAGES);
        web.visits().assert_polite(DELAY);
    });
}

/// Serves a page that takes long in any worker: its tree is deep and wide, and its mapping compares each part with all
/// other parts.
fn serve_slow_page(web: &Web, work: &Workplace) -> String {
    let site = web.site("burner.test");
    let (depth, width) = (100, 20_000);
    site.serve(
        "/",
        page("burner").html("<div>".repeat(depth) + &"<p>x</p>".repeat(width)),
    );
    work.write_json("mappings/burner.json", &slow_mapping());
    site.url("/")
}

fn slow_mapping() -> Value {
    let expression = "count(//*//*//*//*[count(.//*) > count(preceding::*)])";
    let processors = json!([{"type": "xpath", "parameters": {"expression": expression}}]);
    json!({
        "name": "burner",
        "url_patterns": [{"type": "regex", "pattern": "^http://burner\\.test/"}],
        "fields": [{"name": "all", "processors": processors}],
    })
}

#[test]
fn a_page_that_takes_too_long_to_read_ends_and_delays_no_other() {
    let web = Web::start();
    let work = Workplace::new();
    let urls = [
        serve_slow_page(&web, &work),
        serve_small_site(&web, "a.example").url("/"),
    ];
    let run = crawl_command(&work, &web, &urls).env("WEBFILL_WORKER_PAGE_DEADLINE", "1");
    let run = run.finish().expect_code(0);
    let pages = work.stored().pages();
    assert_eq!(pages["http://burner.test/"].outcome, "extract_error");
    assert_eq!(
        pages.values().filter(|page| page.outcome == "ok").count(),
        PAGES
    );
    assert!(run.elapsed < Duration::from_secs(30), "{:?}", run.elapsed);
    web.visits().assert_polite(DELAY);
}

/// Kills all workers whenever one of them parses this URL, as the out-of-memory killer might do. Returns the number of
/// kills.
fn kill_workers_during(url: &str, run: &mut Running, work: &Workplace) -> usize {
    let mut deaths = 0;
    while run.exit_status().is_none() {
        let workers = run.processes_of_role("worker");
        let markers = files_under(&work.path("state"));
        let markers = markers.iter().filter(|file| {
            file.extension().is_some_and(|end| end == "crash-marker")
                && read_task_id(file)
                    .and_then(|task| url_of_task(task, work))
                    .as_deref()
                    == Some(url)
        });
        for _ in markers {
            workers
                .iter()
                .for_each(|worker| worker.signal(Signal::KILL));
            deaths += 1;
            run.wait_until("others take their place", |run| {
                let now = run.processes_of_role("worker");
                now.len() == workers.len() && now.iter().all(|worker| !workers.contains(worker))
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    deaths
}

fn read_task_id(file: &Path) -> Option<i64> {
    let bytes = fs::read(file).ok()?;
    let task = u64::from_ne_bytes(bytes.try_into().ok()?);
    i64::try_from(task).ok()
}

fn url_of_task(task: i64, work: &Workplace) -> Option<String> {
    let path = work.path("state/dispatcher.db");
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let sql = "SELECT url FROM tasks WHERE id = ?1";
    db.query_row(sql, [task], |row| row.get(0)).ok()
}

#[test]
fn a_page_that_kills_its_worker_each_time_is_set_aside_after_three_deaths() {
    let web = Web::start();
    let work = Workplace::new();
    let killer = serve_slow_page(&web, &work);
    let urls = [killer.clone(), serve_small_site(&web, "a.example").url("/")];
    let mut run = crawl_command(&work, &web, &urls)
        .env("WEBFILL_WORKER_PAGE_DEADLINE", "60")
        .start();
    let deaths = kill_workers_during(&killer, &mut run, &work);
    run.finish().expect_code(0);
    // A worker may die before it has written its crash marker. No page is blamed for this death.
    assert!(deaths >= 3, "{deaths}");
    let pages = work.stored().pages();
    assert_eq!(pages[&killer].outcome, "crashed");
    assert_eq!(
        pages.values().filter(|page| page.outcome == "ok").count(),
        PAGES
    );
    assert_eq!(web.visits().for_host("burner.test").pages().len(), 3);
    web.visits().assert_polite(DELAY);
}

/// Limits the memory of a process to slightly more than it uses now, so that it soon fails.
fn limit_memory(process: &Process) {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid));
    let status = status.expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let limit = (kib.expect("a size") + 1_024) * 1_024;
    let prlimit = Command::new("prlimit")
        .args([
            "--pid",
            &process.pid.to_string(),
            &format!("--data={limit}"),
        ])
        .status();
    assert!(prlimit.expect("prlimit of util-linux").success());
}

#[test]
fn workers_that_run_out_of_memory_are_replaced_and_their_pages_fetched_again() {
    let web = Web::start();
    let work = Workplace::new();
    let hosts = ["a.example", "b.example", "c.example"];
    let urls = hosts.map(|host| {
        let site = serve_small_site(&web, host);
        // The parsed tree of this page takes about twenty times as much memory as its text.
        site.serve("/7", page("/7").html("<p>x</p>".repeat(500_000)));
        site.url("/")
    });
    // By default, the allocator reserves a gigabyte at the start, so a limit set later would have no effect.
    let run = crawl_command(&work, &web, &urls).env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
    let mut run = run.start();
    web.log()
        .wait_until("it is under way", |visits| visits.pages().len() > 6);
    let squeezed = run.wait_for_role("worker", 2);
    squeezed.iter().for_each(limit_memory);
    run.wait_until("one of them is replaced", |run| {
        let now = run.processes_of_role("worker");
        now.len() == 2 && now.iter().any(|worker| !squeezed.contains(worker))
    });
    run.finish().expect_code(0);
    let pages = work.stored().pages();
    assert_eq!(pages.len(), hosts.len() * PAGES);
    for page in pages.values() {
        assert_eq!(page.outcome, "ok", "{}", page.url);
    }
    web.visits().assert_polite(DELAY);
}
