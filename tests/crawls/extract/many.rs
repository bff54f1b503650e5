//! Tests extraction from many stored pages: the command is interrupted, killed, and run with little memory.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;
use webfill_tests::Signal;
use webfill_tests::run::Running;
use webfill_tests::site::page;

use super::{HOST, Kept, change_mapping, parse_report};

/// Makes `pages` copies of the only page in a store, each with its body.
fn duplicate_page(folder: &Path, pages: u32) {
    let numbers = format!(
        "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {pages})"
    );
    for (file, table) in [("store.db", "pages"), ("store.db.bodies", "bodies")] {
        let store = Connection::open(folder.join(file)).unwrap();
        let columns: Vec<String> = {
            let mut names = store
                .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
                .unwrap();
            let names = names.query_map((), |row| row.get(0)).unwrap();
            names.map(Result::unwrap).collect()
        };
        let values = columns.iter().map(|column| match column.as_str() {
            "_id" => "'local/test/' || printf('%032x', i)".to_owned(),
            "url" => format!("'http://{HOST}/' || i"),
            "position" => "i + 1000".to_owned(),
            other => other.to_owned(),
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let columns = columns.join(", ");
        let sql = format!(
            "INSERT INTO {table} ({columns}) {numbers} SELECT {values} FROM (SELECT * FROM {table} LIMIT 1), n"
        );
        store.execute(&sql, ()).unwrap();
    }
}

fn crawl_many(pages: u32) -> Kept {
    let kept = Kept::new();
    let site = kept.web.site(HOST);
    let filler = "<p>lorem ipsum dolor sit amet</p>".repeat(100);
    let html = format!("<h1>Ada</h1><p class='name'>Ada</p><p class='town'>Ockham</p>{filler}");
    site.serve("/ada", page("Ada").html(html));
    kept.crawl()
        .args(["--keep-bodies", &site.url("/ada")])
        .finish()
        .expect_code(0);
    duplicate_page(&kept.work.path(""), pages);
    change_mapping(&kept.work);
    kept
}

const CHANGED: &str = "SELECT count(*) FROM pages WHERE fields LIKE '%Ockham%'";

/// Waits until the running extraction has written some pages. Then blocks further writes until the returned connection
/// is dropped.
fn block_writes_midway(kept: &Kept, running: &mut Running) -> Connection {
    let store = Connection::open(kept.work.path("store.db")).unwrap();
    running.wait_until("some pages are written", |_| {
        if store.execute_batch("BEGIN IMMEDIATE").is_err() {
            return false;
        }
        let written: i64 = store.query_row(CHANGED, (), |row| row.get(0)).unwrap();
        if written == 0 {
            store.execute_batch("ROLLBACK").unwrap();
        }
        written > 0
    });
    store
}

#[test]
fn a_killed_extraction_continues() {
    let kept = crawl_many(3_000);
    let mut running = kept.extract().start();
    let held = block_writes_midway(&kept, &mut running);
    running.signal(Signal::KILL);
    drop(running);
    drop(held);
    let written = kept.work.stored().query_number(CHANGED);
    assert!(
        (1..3_001).contains(&written),
        "{written} written before it was killed"
    );
    assert_eq!(kept.work.stored().integrity(), "ok");
    let read = kept.run_extract(&[]);
    assert_eq!(read["pages"]["read"], 3_001, "{read:#}");
    assert_eq!(read["pages"]["unchanged"], written, "{read:#}");
    assert_eq!(kept.work.stored().query_number(CHANGED), 3_001);
}

#[test]
fn an_interrupted_extraction_reports_its_progress() {
    let kept = crawl_many(3_000);
    let mut running = kept.extract().arg("--json").start();
    let held = block_writes_midway(&kept, &mut running);
    running.signal(Signal::INT);
    drop(held);
    let ended = running.finish().expect_code(11);
    let output: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        output["pages"]["written"],
        kept.work.stored().query_number(CHANGED),
        "{output:#}"
    );
}

#[test]
fn many_pages_are_read_in_little_memory() {
    let kept = crawl_many(10_000);
    let mut running = kept
        .extract()
        .args(["--json", "--dry-run"])
        .time_limit(Duration::from_secs(300))
        .start();
    let mut peak = 0;
    while running.exit_status().is_none() {
        for process in running.processes_of_role("extract") {
            peak = peak.max(process.peak_bytes());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let read = parse_report(running.finish());
    assert_eq!(read["pages"]["read"], 10_001, "{read:#}");
    assert!((1..100 << 20).contains(&peak), "{} MiB", peak >> 20);
}
