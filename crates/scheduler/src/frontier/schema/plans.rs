//! Checks how SQLite executes the frontier's statements. None may scan a whole table that grows with the number of
//! URLs or sites, because that takes seconds.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, OptionalExtension};

/// The statements that this process has executed.
static RUN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Tables that may be scanned as a whole, because they are small or all of their rows are needed.
const SMALL: [&str; 17] = [
    "CONSTANT ROW",
    "crawls",
    "doubtful_pages",
    "epochs",
    "json_each",
    "listed_rows",
    "notifications",
    "seen_runs",
    "site_rules",
    "site_states",
    "supervisors",
    "taken_back",
    "undelivered",
    "unsaved",
    "unsaved_crawls",
    "unsaved_site_states",
    "watches",
];

/// Statements that have to visit all sites.
const OF_ALL_SITES: [&str; 1] = ["UPDATE sites SET last_start_ms = ?1,"];

/// The beginning of statements that select tasks to hand out. None of them may sort the queue of a site.
const OF_A_TURN: &str = "SELECT t.id, t.attempt, t.depth";

/// Records the statements of a connection from now on.
pub(in super::super) fn record_statements(db: &mut Connection) {
    let keep = |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(statement, _) = event {
            let mut run = RUN.lock().unwrap_or_else(PoisonError::into_inner);
            run.insert(statement.sql().into_owned());
        }
    };
    db.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(keep))
        .unwrap();
}

/// The statements that scan a whole table, each with the line of its plan.
pub(in super::super) fn take_scanning_statements(db: &Connection) -> Vec<String> {
    let run = std::mem::take(&mut *RUN.lock().unwrap_or_else(PoisonError::into_inner));
    let judged = run.iter().filter(|sql| {
        let verb = sql.split_whitespace().next().unwrap_or_default();
        ["SELECT", "UPDATE", "INSERT", "DELETE", "WITH"].contains(&verb)
            && !OF_ALL_SITES.iter().any(|start| sql.starts_with(start))
    });
    judged.flat_map(|sql| find_table_scans(db, sql)).collect()
}

fn find_table_scans(db: &Connection, sql: &str) -> Vec<String> {
    // A test may have dropped a table.
    let Ok(mut explain) = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")) else {
        return Vec::new();
    };
    let mut rows = explain.raw_query();
    let mut scans = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let step: String = row.get("detail").unwrap();
        if step.starts_with("USE TEMP B-TREE") && sql.starts_with(OF_A_TURN) {
            scans.push(format!("{step}: {sql}"));
        }
        let Some(scanned) = step.strip_prefix("SCAN ") else {
            continue;
        };
        if !is_small(db, scanned) {
            scans.push(format!("{step}: {sql}"));
        }
    }
    scans
}

/// Whether a step such as `sites USING INDEX sites_backing_off` visits few rows. The rows of a partial index count as
/// few, because they are exactly the wanted ones.
fn is_small(db: &Connection, scanned: &str) -> bool {
    let mut words = scanned.split(' ');
    let table = words.next().unwrap_or_default();
    if table.starts_with('(') || SMALL.iter().any(|small| scanned.starts_with(small)) {
        return true;
    }
    let is_derived = "SELECT count(*) = 0 FROM sqlite_schema WHERE name = ?1";
    let is_aliased = ["t", "task_rows", "late", "served", "other", "r", "parent"].contains(&table);
    let is_derived: bool = db.query_row(is_derived, [table], |row| row.get(0)).unwrap();
    if is_derived && !is_aliased {
        return true;
    }
    let Some(index) = words.skip_while(|word| *word != "INDEX").nth(1) else {
        return false;
    };
    let partial = "SELECT sql LIKE '%WHERE%' FROM sqlite_schema WHERE name = ?1 AND sql NOT NULL";
    let partial = db.query_row(partial, [index], |row| row.get(0)).optional();
    partial.unwrap().unwrap_or(false)
}

#[test]
fn a_walk_of_a_whole_table_is_noticed() {
    let (_dir, db) = super::super::tests::empty_database();
    for sql in [
        "SELECT id FROM tasks WHERE url = ?1",
        "SELECT t.id FROM tasks t JOIN sites ON sites.id = t.site",
        "UPDATE sites SET owner = NULL WHERE owner = ?1",
        "SELECT t.id, t.attempt, t.depth FROM tasks t WHERE site = ?1 AND crawl = ?2 AND state = 0
         AND not_before_ms = 0 ORDER BY t.url",
    ] {
        let mut statement = db.prepare(sql).unwrap();
        let mut rows = statement.raw_query();
        rows.next().unwrap();
        drop(rows);
        assert_eq!(take_scanning_statements(&db).len(), 1, "{sql}");
    }
    let small = "SELECT id FROM task_rows INDEXED BY tasks_leased WHERE state = 1";
    db.execute_batch(small).unwrap();
    assert_eq!(take_scanning_statements(&db), Vec::<String>::new());
}
