//! Makes files of older formats out of today's, for tests of what becomes of them.

use std::path::Path;

use rusqlite::Connection;

/// Replaces a SQLite file by one that has these tables and this version, with what fits into them,
/// and changes it as `then` says. Tables are in the form in which the crates freeze them.
pub fn make_older(path: &Path, tables: &str, version: i64, then: &str) {
    let older = path.with_extension("older");
    let application: i64 = {
        let today = Connection::open(path).expect("today's file");
        let pragma = today.pragma_query_value(None, "application_id", |row| row.get(0));
        pragma.expect("a number")
    };
    let db = Connection::open(&older).expect("a new file");
    let run = |sql: &str| {
        let ran = db.execute_batch(sql);
        ran.unwrap_or_else(|error| panic!("{sql}: {error}"));
    };
    create(&db, tables);
    run(&format!("ATTACH '{}' AS today", path.display()));
    for table in names(
        &db,
        "SELECT name FROM main.sqlite_schema WHERE type = 'table'",
    ) {
        // The index of seen URLs is not what it was, and can be built anew.
        if !table.starts_with("sqlite_") && !table.starts_with("seen_") {
            let columns = format!("SELECT name FROM pragma_table_info('{table}', 'main')");
            let columns = names(&db, &columns);
            let read = of_today(&columns);
            let columns = columns.join(", ");
            run(&format!(
                "INSERT INTO main.{table} ({columns}) SELECT {read} FROM today.{table}"
            ));
        }
    }
    run("DETACH today");
    run(then);
    run(&format!(
        "PRAGMA application_id = {application}; PRAGMA user_version = {version}"
    ));
    drop(db);
    std::fs::rename(&older, path).expect("our own folder");
    for end in ["-wal", "-shm"] {
        // What is left of today's file.
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
}

/// What today's columns are read as, so that they fit older ones.
fn of_today(columns: &[String]) -> String {
    let read = columns.iter().map(|column| match &**column {
        "seen_at_ms" => "0",
        column => column,
    });
    read.collect::<Vec<_>>().join(", ")
}

/// Frozen tables stand behind what belongs to them.
fn create(db: &Connection, frozen: &str) {
    let statements = frozen.trim_start_matches("CREATE ").split(";\nCREATE ");
    let statements = statements.filter(|statement| !statement.contains("sqlite_sequence"));
    let (tables, others): (Vec<&str>, Vec<&str>) =
        statements.partition(|statement| statement.starts_with("TABLE"));
    for statement in tables.into_iter().chain(others) {
        let created = db.execute_batch(&format!("CREATE {statement}"));
        created.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn names(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).expect("a query");
    let names = statement.query_map([], |row| row.get(0));
    names
        .expect("a query")
        .map(|name| name.expect("a name"))
        .collect()
}
