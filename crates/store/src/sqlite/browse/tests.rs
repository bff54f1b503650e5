//! Checks how SQLite executes the statements of lists. Each must follow an index in the wanted order, because a table
//! may have ten million rows.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use webfill_wire::Outcome;

use super::indexes::INDEXES;
use super::*;
use crate::browse::ListOrder;
use crate::open_mode::OpenMode;
use crate::record::RecordState;
use crate::sqlite::schema;

/// The SQL statements that the test has run.
static RUN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn record_statement(event: TraceEvent<'_>) {
    if let TraceEvent::Stmt(statement, _) = event {
        let mut run = RUN.lock().unwrap_or_else(PoisonError::into_inner);
        run.insert(statement.sql().into_owned());
    }
}

/// A connection to an empty file, with the indexes for browsing if `is_prepared`.
fn open_empty_file(is_prepared: bool) -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    drop(schema::open(&path, OpenMode::Create).unwrap());
    let conn = Connection::open(&path).unwrap();
    for (name, of) in INDEXES.into_iter().filter(|_| is_prepared) {
        conn.execute_batch(&format!("CREATE INDEX {name} ON {of}"))
            .unwrap();
    }
    (folder, conn)
}

fn crawl() -> CrawlId {
    CrawlId::new("app", "c1")
}

fn run_all_lists(conn: &Connection, from: Option<&Place>) {
    let some = |text: &str| Some(text.to_owned());
    for (crawl, site, mapping) in [
        (None, None, None),
        (Some(crawl()), None, None),
        (Some(crawl()), None, some("m")),
        (Some(crawl()), some("s"), some("m")),
        (None, some("s"), None),
    ] {
        let filter = PageFilter {
            crawl,
            site,
            mapping,
            outcomes: vec![Outcome::Blocked, Outcome::Timeout],
            apps: None,
        };
        pages::list(conn, &filter, from, 50).unwrap();
    }
    for (dataset, id_prefix) in [(None, None), (some("d"), None), (some("d"), some("p"))] {
        for state in [None, Some(RecordState::Open), Some(RecordState::Resolved)] {
            let filter = RecordFilter {
                dataset: dataset.clone(),
                state,
                id_prefix: id_prefix.clone(),
                from_id: some("q"),
                apps: some("app").map(|app| vec![app]),
            };
            records::list(conn, &filter, from, 50).unwrap();
            records::list_whole_records(conn, &filter, &RecordCondition::default(), from, 50)
                .unwrap();
        }
    }
    records::datasets(conn, 100, from, 50).unwrap();
    records::dataset(conn, "d".to_owned(), 100).unwrap();
    for crawl in [None, Some(crawl())] {
        let filter = ChangeListFilter {
            crawl,
            ..ChangeListFilter::default()
        };
        content_changes::list(conn, &filter, from, 50).unwrap();
    }
    site_states::list(conn, from, 50).unwrap();
}

/// The steps of query plans that visit more rows than they return.
fn inefficient_steps(conn: &Connection) -> Vec<String> {
    let run = std::mem::take(&mut *RUN.lock().unwrap_or_else(PoisonError::into_inner));
    assert!(run.len() > 8, "{run:?}");
    let mut detours = Vec::new();
    for sql in run.iter().filter(|sql| !sql.contains("sqlite_schema")) {
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut rows = explain.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let step: String = row.get("detail").unwrap();
            let is_detour = step.starts_with("SCAN ") && !step.starts_with("SCAN (subquery");
            if is_detour || step.contains("TEMP B-TREE") {
                detours.push(format!("{step}: {sql}"));
            }
        }
    }
    detours
}

#[test]
fn every_list_follows_an_index() {
    let places = [
        Place::newest_first(["5", "x"].map(String::from)),
        Place::by_key("people/1"),
    ];
    assert_eq!(places[1].order(), ListOrder::Key);
    for is_prepared in [true, false] {
        let (_folder, mut conn) = open_empty_file(is_prepared);
        conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(record_statement))
            .unwrap();
        for from in [None, Some(&places[0]), Some(&places[1])] {
            run_all_lists(&conn, from);
        }
        if is_prepared {
            crawls::list(&conn, &CrawlFilter::default(), None, 50).unwrap();
            crawls::crawl_counts(&conn, &crawl(), 100).unwrap();
        }
        records::whole_record(&conn, "people/1").unwrap();
        page_changes::find_page(&conn, "app/c1/x").unwrap();
        pages::hash(&conn, "app/c1/x").unwrap();
        pages::load_page_results(&conn, &["app/c1/x".to_owned()]).unwrap();
        conn.trace_v2(TraceEventCodes::empty(), None::<fn(TraceEvent<'_>)>)
            .unwrap();
        assert_eq!(inefficient_steps(&conn), Vec::<String>::new());
    }
}
