use webfill_wire::Delivery;

use super::*;
use crate::seen::tests::put_back_into_tables;

/// What version 6 had, and this one has otherwise.
const TO_VERSION_6: &str = "
    DROP TABLE seen_runs;
    CREATE TABLE seen_runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, state TEXT NOT NULL, slices INTEGER NOT NULL,
        keys INTEGER NOT NULL, last_task INTEGER NOT NULL, packed INTEGER NOT NULL DEFAULT 0) STRICT;
    CREATE TABLE seen_slices (id INTEGER PRIMARY KEY, entries BLOB NOT NULL) STRICT;
    PRAGMA user_version = 6;";

/// What version 5 had, and version 6 has otherwise. The others go back from there.
const TO_VERSION_5: &str = "
    ALTER TABLE crawl_sites DROP COLUMN taken;
    DROP INDEX tasks_ranked; DROP TABLE looks; DROP TABLE look_rates;
    ALTER TABLE task_rows RENAME COLUMN rank TO seen_at_ms;
    ALTER TABLE watches DROP COLUMN asked;
    DROP TABLE notices; DROP TABLE notice_bodies; DROP TABLE watch_told; DROP TABLE undelivered;
    PRAGMA user_version = 5;";

/// What version 4 had, and version 5 has otherwise.
const TO_VERSION_4: &str = "
    UPDATE task_rows SET url = (SELECT url FROM tasks WHERE tasks.id = task_rows.id);
    DROP VIEW tasks; ALTER TABLE task_rows RENAME TO tasks;
    ALTER TABLE seen_runs DROP COLUMN packed; ALTER TABLE crawls DROP COLUMN changed_at_ms;
    PRAGMA user_version = 4;";

/// What version 3 had, and version 4 has otherwise.
const TO_VERSION_3: &str = "
    DROP INDEX sites_due; DROP INDEX sites_of_unknown_delay; DROP INDEX sites_limited;
    DROP INDEX crawls_unfinished;
    ALTER TABLE tasks DROP COLUMN epoch; DROP TABLE epochs;
    ALTER TABLE crawls DROP COLUMN dataset;
    PRAGMA user_version = 3;";

/// What version 1 had, and this one has otherwise.
const TO_VERSION_1: &str = "
    DROP INDEX crawls_expiring; DROP INDEX sites_waiting; DROP INDEX crawl_sites_turns;
    DROP INDEX crawl_sites_queued; DROP INDEX crawl_sites_held; DROP INDEX tasks_queued;
    DROP INDEX tasks_to_retry; DROP INDEX tasks_to_retry_at; DROP TABLE tries;
    ALTER TABLE crawls DROP COLUMN paused; ALTER TABLE crawls DROP COLUMN expires_at_ms;
    ALTER TABLE crawls DROP COLUMN waiting;
    ALTER TABLE sites DROP COLUMN rule_delay_ms; ALTER TABLE sites DROP COLUMN block_until_ms;
    ALTER TABLE sites DROP COLUMN pages_left;
    ALTER TABLE crawl_sites DROP COLUMN queued; ALTER TABLE crawl_sites DROP COLUMN top_priority;
    ALTER TABLE crawl_sites DROP COLUMN turn;
    ALTER TABLE tasks DROP COLUMN not_before_ms; ALTER TABLE tasks DROP COLUMN attrs;
    DROP TABLE attrs; DROP INDEX sites_resting; DROP TABLE site_states;
    DROP TABLE unsaved_site_states;
    ALTER TABLE sites DROP COLUMN rest_until_ms; ALTER TABLE sites DROP COLUMN address;
    CREATE INDEX sites_waiting ON sites (top_priority, due_at_ms)
        WHERE queued > 0 AND in_window = 0;
    CREATE INDEX tasks_queued ON tasks (site, priority DESC) WHERE state = 0;
    PRAGMA user_version = 1;";

/// What version 2 had, and this one has otherwise.
const TO_VERSION_2: &str = "
    DROP INDEX sites_waiting; DROP INDEX sites_resting; DROP TABLE site_states;
    DROP TABLE unsaved_site_states;
    ALTER TABLE tries DROP COLUMN counts;
    ALTER TABLE sites DROP COLUMN rest_until_ms; ALTER TABLE sites DROP COLUMN address;
    CREATE INDEX sites_waiting ON sites (top_priority, max(due_at_ms, block_until_ms))
        WHERE top_priority > 0 AND in_window = 0;
    PRAGMA user_version = 2;";

/// The second record's key was what the first one's is now.
#[test]
fn records_of_version_3_are_in_the_dataset_of_those_without_a_name() {
    let mut fixture = fixture();
    fixture.feed_for(&["http://a.org/1"], &["a"], 0);
    fixture.feed_for(&["http://b.org/1"], &["unnamed/a"], 0);
    fixture.frontier.commit().unwrap();
    let Fixture {
        dir,
        frontier,
        spec,
        crawl,
    } = fixture;
    drop(frontier);
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.execute_batch(TO_VERSION_6).unwrap();
    db.execute_batch(TO_VERSION_5).unwrap();
    db.execute_batch(TO_VERSION_4).unwrap();
    db.execute_batch(TO_VERSION_3).unwrap();
    drop(db);
    let mut frontier = Frontier::open(dir.path(), FrontierConfig::default(), 0).unwrap();
    let dataset = frontier.dataset(crawl).unwrap();
    assert_eq!(dataset.as_deref(), Some(webfill_store::UNNAMED_DATASET));
    let newer = CrawlSpec::new("app", "newer");
    let newer = frontier.open_crawl(&newer).unwrap();
    assert_eq!(frontier.dataset(newer).unwrap(), None);
    let mut fixture = Fixture {
        dir,
        frontier,
        spec,
        crawl,
    };
    let mut records: Vec<Vec<String>> = fixture
        .lease_all()
        .into_iter()
        .map(|task| task.records)
        .collect();
    records.sort();
    assert_eq!(records, [["unnamed/a"], ["unnamed/unnamed/a"]]);
    fixture.assert_conserved();
}

#[test]
fn a_file_of_version_5_gets_an_outbox_and_keeps_its_tasks() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    fixture.frontier.commit().unwrap();
    let dir = fixture.dir;
    drop(fixture.frontier);
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.execute_batch(TO_VERSION_6).unwrap();
    db.execute_batch(TO_VERSION_5).unwrap();
    drop(db);
    let mut frontier = Frontier::open(dir.path(), FrontierConfig::default(), 0).unwrap();
    let waiting = frontier.beside(|db| outbox::of_watch(db, "w", 10)).unwrap();
    assert_eq!(waiting, (0, vec![]));
    let status = frontier.crawl_status(fixture.crawl).unwrap();
    assert_eq!(status.queued, 1);
}

#[test]
fn a_lease_of_version_3_stays_in_force() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let leased = fixture.lease_one();
    fixture.frontier.commit().unwrap();
    let dir = fixture.dir;
    drop(fixture.frontier);
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.execute_batch(TO_VERSION_6).unwrap();
    db.execute_batch(TO_VERSION_5).unwrap();
    db.execute_batch(TO_VERSION_4).unwrap();
    db.execute_batch(TO_VERSION_3).unwrap();
    drop(db);
    let mut frontier = Frontier::open(dir.path(), FrontierConfig::default(), 0).unwrap();
    let leases = frontier.leases().unwrap();
    assert_eq!(leases.len(), 1);
    let back = frontier.give_back(leased.task, leases[0].delivery, false, 0);
    assert!(matches!(back.unwrap(), GivenBack::Requeued(_)));
}

#[test]
fn a_frontier_of_version_2_goes_on_where_it_was() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://b.org/1"]);
    fixture.frontier.commit().unwrap();
    let dir = fixture.dir;
    drop(fixture.frontier);
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.execute_batch(TO_VERSION_6).unwrap();
    db.execute_batch(TO_VERSION_5).unwrap();
    db.execute_batch(TO_VERSION_4).unwrap();
    db.execute_batch(TO_VERSION_3).unwrap();
    db.execute_batch(TO_VERSION_2).unwrap();
    drop(db);
    let mut frontier = Frontier::open(dir.path(), FrontierConfig::default(), 0).unwrap();
    let sites = frontier.next_sites(i64::MAX, 9).unwrap();
    assert_eq!(sites.len(), 2);
    assert!(sites.iter().all(|site| site.rest_until_ms.is_none()));
}

#[test]
fn a_frontier_of_version_1_goes_on_where_it_was() {
    let mut fixture = fixture_with(|spec| spec.expires_at_ms = Some(5_000_000));
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://b.org/1"]);
    let leased = fixture.lease_all().remove(0);
    let back = fixture
        .frontier
        .give_back(leased.task, leased.delivery, false, 0);
    assert!(matches!(back.unwrap(), GivenBack::Requeued(_)));
    fixture.done(&fixture_task(&leased), &[]);
    fixture.frontier.commit().unwrap();
    let Fixture {
        dir,
        frontier,
        spec,
        crawl,
    } = fixture;
    drop(frontier);
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.execute_batch(TO_VERSION_6).unwrap();
    db.execute_batch(TO_VERSION_5).unwrap();
    db.execute_batch(TO_VERSION_4).unwrap();
    db.execute_batch(TO_VERSION_3).unwrap();
    db.execute_batch(TO_VERSION_1).unwrap();
    drop(db);

    let frontier = Frontier::open(dir.path(), FrontierConfig::default(), 0).unwrap();
    let mut fixture = Fixture {
        dir,
        frontier,
        spec,
        crawl,
    };
    fixture.assert_conserved();
    let pending = fixture.frontier.pending(fixture.crawl).unwrap();
    assert_eq!((pending.total, pending.sites.count), (1, 1));
    assert_eq!(
        (pending.low_priority, pending.high_priority),
        (Some(50), Some(50))
    );
    assert_eq!(
        fixture.frontier.expired_crawls(5_000_000, 9).unwrap(),
        [fixture.crawl]
    );
    assert_eq!(fixture.lease_one().url, leased.url);
    assert_eq!(
        fixture
            .feed(&["http://a.org/1", "http://a.org/new"])
            .accepted,
        1
    );
    fixture.assert_conserved();
}

/// Another task than the one that came back, which is not in force any more.
fn fixture_task(leased: &Leased) -> Leased {
    Leased {
        task: leased.task + 1,
        ..leased.clone()
    }
}

#[test]
fn a_frontier_of_version_2_keeps_what_its_tasks_have_tried() {
    let mut fixture = retrying::fixture_that_retries();
    fixture.feed(&["http://a.org/"]);
    let task = fixture.lease_one();
    assert!(retrying::fails(&mut fixture, &task, 1_000));
    fixture.frontier.commit().unwrap();
    let Fixture { dir, frontier, .. } = fixture;
    drop(frontier);
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    db.execute_batch(TO_VERSION_6).unwrap();
    db.execute_batch(TO_VERSION_5).unwrap();
    db.execute_batch(TO_VERSION_4).unwrap();
    db.execute_batch(TO_VERSION_3).unwrap();
    db.execute_batch(TO_VERSION_2).unwrap();
    drop(db);

    let mut fixture = retrying::fixture_that_retries_in(dir);
    fixture.frontier.requeue_due_retries(11_000).unwrap();
    let task = fixture.lease_all_at(11_000).remove(0);
    assert_eq!(task.failed_attempts.len(), 1);
    assert!(retrying::fails(&mut fixture, &task, 11_000));
    assert_eq!(
        fixture.frontier.next_retry_ms(),
        Some(111_000),
        "the second wait"
    );
    fixture.assert_conserved();
}

/// The tables and rows as version 4 has written them.
const OF_VERSION_4: &str = concat!(
    include_str!("../schema/frozen/v4.sql"),
    "INSERT INTO meta VALUES ('committed_at_ms', 1000), ('last_turn', 0),
         ('seen_secret', x'00112233445566778899aabbccddeeff');
     INSERT INTO epochs VALUES (1, 7);
     INSERT INTO crawls (id, app_id, crawl_id, spec, waiting, discovered, queued, leased, done, sites)
         VALUES (1, 'app', 'crawl', '{\"app_id\": \"app\", \"crawl_id\": \"crawl\"}', '{\"50\": 1}',
                 3, 1, 1, 1, 2);
     INSERT INTO outcomes VALUES (1, 'ok', 1);
     INSERT INTO sites (id, name, queued, top_priority) VALUES (1, 'a.org', 1, 50), (2, 'b.org', 0, 0);
     INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority)
         VALUES (1, 1, 2, 1, 50), (1, 2, 1, 0, 0);
     INSERT INTO tasks (id, state, crawl, site, priority, depth, attempt, outcome, status_code,
                        seen_at_ms, done_at_ms, url, epoch, parent)
         VALUES (1, 2, 1, 1, 50, 0, 1, 'ok', 200, 900, 950, 'https://www.a.org/done', 1, NULL),
                (2, 1, 1, 2, 50, 0, 1, NULL, NULL, 900, NULL, 'http://b.org/leased', 1, NULL),
                (3, 0, 1, 1, 50, 0, 0, NULL, NULL, 900, NULL, 'https://www.a.org/queued', 0, 1);
     PRAGMA application_id = 0x7762666c; PRAGMA user_version = 4;"
);

#[test]
fn a_file_of_version_4_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    // SQLite makes its own tables itself, and indexes need their tables.
    let mut statements: Vec<&str> = OF_VERSION_4.split_inclusive(";\n").collect();
    statements.retain(|statement| !statement.starts_with("CREATE TABLE sqlite_"));
    statements.sort_by_key(|statement| !statement.starts_with("CREATE TABLE"));
    db.execute_batch(&statements.concat()).unwrap();
    drop(db);
    let mut fixture = fixture_in(dir, FrontierConfig::default(), |spec| spec.max_depth = 3);
    fixture.assert_conserved();
    let held = fixture.frontier.leases().unwrap();
    assert_eq!((held[0].task, held[0].delivery), (2, Delivery::new(7, 1)));
    let queued = fixture.lease_one();
    assert_eq!(queued.url, "https://www.a.org/queued");
    assert_eq!(queued.parent.as_deref(), Some("https://www.a.org/done"));
    let known = ["https://www.a.org/done", "http://b.org/leased"];
    assert_eq!(fixture.feed(&known).accepted, 0);
    assert_eq!(fixture.feed(&["https://www.a.org/new"]).accepted, 1);
    assert_eq!(fixture.lease_one().url, "https://www.a.org/new");
    let reopened = fixture.frontier.reopen(&[1], 0).unwrap();
    assert_eq!(reopened.len(), 0, "its site is not in the window");
    assert_eq!(fixture.lease_one().url, "https://www.a.org/done");
    fixture.frontier.give_space_back().unwrap();
    fixture.assert_conserved();
    let db = Connection::open(fixture.dir.path().join(FILE_NAME)).unwrap();
    let auto_vacuum = db.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0));
    assert_eq!(auto_vacuum.unwrap(), 2, "it gives space back from now on");
}

/// The last release has made tables of watches in files of version 5, earlier ones have not.
#[test]
fn a_file_of_version_5_goes_on_with_watches_and_without() {
    for has_watches in [true, false] {
        let mut fixture = fixture_with(|spec| spec.run_began_ms = Some(1));
        fixture.feed(&["http://a.org/1", "http://a.org/2"]);
        let watch = KeptWatch {
            json: "{}".into(),
            paused: true,
            since_ms: 7,
            asked: false,
        };
        fixture.frontier.keep_watch("w", &watch).unwrap();
        fixture.frontier.commit().unwrap();
        let Fixture { dir, frontier, .. } = fixture;
        drop(frontier);
        let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
        db.execute_batch(TO_VERSION_6).unwrap();
        db.execute_batch(TO_VERSION_5).unwrap();
        if !has_watches {
            db.execute_batch("DROP TABLE watches; DROP TABLE watch_runs;")
                .unwrap();
        }
        drop(db);
        let mut fixture = fixture_in(dir, FrontierConfig::default(), |spec| {
            spec.max_depth = 3;
            spec.run_began_ms = Some(1);
        });
        let kept = fixture.frontier.watches().unwrap();
        let expected = has_watches.then(|| ("w".to_owned(), watch.clone()));
        assert_eq!(kept, Vec::from_iter(expected));
        assert_eq!(fixture.feed(&["http://a.org/2"]).accepted, 0);
        assert_eq!(
            fixture.lease_all().len(),
            2,
            "what has no rank goes as well"
        );
        fixture.frontier.commit().unwrap();
        let db = Connection::open(fixture.dir.path().join(FILE_NAME)).unwrap();
        let sql = "SELECT count(*) FROM task_rows WHERE rank = 1";
        let first: i64 = db.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(first, 2, "what was left before comes first");
        fixture.assert_conserved();
    }
}

#[test]
fn the_runs_of_version_6_become_files_and_are_not_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let config = FrontierConfig {
        seen_memory_bytes: 256 << 10,
        ..FrontierConfig::default()
    };
    let open = || Frontier::open(dir.path(), config.clone(), 0).unwrap();
    let urls: Vec<String> = (0..3_000).map(|n| format!("http://a.org/{n}")).collect();
    let feed = |frontier: &mut Frontier| {
        let crawl = frontier
            .open_crawl(&CrawlSpec::new("app", "crawl"))
            .unwrap();
        let fed = urls.chunks(100).map(|urls| {
            let candidate = |url| Candidate {
                url,
                depth: 0,
                priority: None,
                parent: None,
                records: &[],
                attrs: None,
            };
            let candidates: Vec<_> = urls.iter().map(String::as_str).map(candidate).collect();
            let fed = frontier.feed(crawl, &candidates, 0).unwrap().accepted;
            frontier.commit().unwrap();
            fed
        });
        fed.sum::<u64>()
    };
    assert_eq!(feed(&mut open()), 3_000);
    let db = Connection::open(dir.path().join(FILE_NAME)).unwrap();
    let before = put_back_into_tables(&db, TO_VERSION_6);
    assert!(!before.is_empty());
    // Of which nobody would know if the index was built anew.
    db.execute_batch("UPDATE task_rows SET url = 'http://elsewhere.org/' || id WHERE id < 1000")
        .unwrap();
    drop(db);
    let mut frontier = open();
    let mut select = frontier
        .db
        .prepare("SELECT last_task FROM seen_runs ORDER BY id")
        .unwrap();
    let after: Vec<u64> = select
        .query_map([], |row| Ok(row.get::<_, i64>(0)? as u64))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    drop(select);
    assert_eq!(after, before);
    assert_eq!(feed(&mut frontier), 0, "all are seen still");
}
