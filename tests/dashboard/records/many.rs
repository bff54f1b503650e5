//! Tests that a screen of the grid takes as long whether a dataset has few records or many.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::{crawl_people, serve_people, start_dashboard};
use crate::fleet::Fleet;
use crate::http::Visitor;

/// Adds a dataset of `count` records, each with the URL of a page.
fn add_dataset(conn: &Connection, name: &str, count: u64) {
    let numbers = format!(
        "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers LIMIT {count})"
    );
    let fields = "json_object('name', CASE WHEN n % 3 THEN 'Name ' || n END, 'age', n % 90, 'note', hex(randomblob(150)))";
    let source = "json_object('name', json_object('url', 'http://s' || (n % 7) || '.example/' || n, 'mapping', 'm', 'at', '2026-01-01T12:00:00.000Z'))";
    conn.execute_batch(&format!(
        "BEGIN;
        INSERT INTO records (_id, dataset, record_id, resolved_at, missing, fields, sources, urls)
        {numbers} SELECT printf('{name}/r%08d', n), '{name}', printf('r%08d', n),
            CASE WHEN n % 3 THEN '2026-01-01T12:00:00.000Z' END, iif(n % 3, '[]', '[\"name\"]'), {fields},
            iif(n % 3, {source}, '{{}}'), json_array('http://s' || (n % 7) || '.example/' || n) FROM numbers;
        INSERT INTO crawl_records (record, crawl)
        {numbers} SELECT printf('{name}/r%08d', n), (SELECT min(key) FROM crawls) FROM numbers;
        COMMIT"
    ))
    .expect("the store takes them");
}

/// The shortest time that the dashboard takes to answer several requests for a page.
fn measure_shortest_time(records: &Visitor, path: &str) -> Duration {
    let attempt = |_| {
        let began = Instant::now();
        let answer = records.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        began.elapsed()
    };
    (0..7).map(attempt).min().expect("there are some")
}

/// Compares a small dataset with a large one. The environment variable `RECORDS` sets the size of the large one.
#[test]
fn a_screen_of_many_records_takes_as_long_as_one_of_few() {
    let many = std::env::var("RECORDS").ok();
    let many: u64 = many.map_or(200_000, |many| many.parse().expect("a number"));
    let fleet = Fleet::unstarted();
    serve_people(&fleet);
    crawl_people(&fleet, "first");
    let conn = Connection::open(fleet.work.path("store.db")).expect("a store");
    for (name, count) in [("few", 300), ("many", many)] {
        add_dataset(&conn, name, count);
    }
    drop(conn);
    let (dashboard, visitor) = start_dashboard(&fleet);
    let body = visitor.get("/dashboard/records").body;
    assert!(body.contains("many"), "{body}");
    let late = format!("&from=r{:08}", many - 60);
    for query in [
        "",
        "&records=open",
        "&records=resolved",
        "&state=filled",
        "&state=empty",
        "&site=s3.example",
        &late,
    ] {
        let of = |name: &str| {
            let few = query.replace(&late, "&from=r00000240");
            let query = if name == "few" { &few } else { query };
            measure_shortest_time(
                &visitor,
                &format!("/dashboard/records?dataset={name}{query}"),
            )
        };
        // A busy machine may slow down one of the two, so a comparison that fails is repeated.
        let takes_as_long = (0..5).any(|_| {
            let (few, many) = (of("few"), of("many"));
            println!("`{query}`: {few:?} of few, {many:?} of many");
            many <= 3 * few + Duration::from_millis(20)
        });
        assert!(takes_as_long, "`{query}`: see the times above");
    }
    // If a dataset has too many records to be sorted, the page says that it cannot be sorted.
    let few = visitor.get("/dashboard/records?dataset=few").body;
    let many = visitor.get("/dashboard/records?dataset=many").body;
    assert!(few.contains("sort=age") && !few.contains("cannot be sorted"));
    assert!(
        !many.contains("sort=age") && many.contains("cannot be sorted"),
        "{many}"
    );
    // A search without results stops after a while, and reports how far it has searched.
    let nowhere = visitor
        .get("/dashboard/records?dataset=many&site=nowhere.example")
        .body;
    assert!(
        nowhere.contains("searched here; the list continues"),
        "{nowhere}"
    );
    drop(dashboard);
}
