//! SQLite files of older versions, which are brought up to date when they are opened.

use std::path::Path;

use serde_json::{Map, Value, json};
use webfill_store::{
    Backends, ChangeFilter, CrawlId, Cursor, ExportFilter, ExportKind, Page, RecordFilter,
    RecordState, Save, StoreUri, UNNAMED_DATASET, Validators, open,
};
use webfill_wire::Outcome;

fn page(fields: Value) -> Page {
    let Value::Object(fields) = fields else {
        panic!("{fields} is no object");
    };
    let crawl = CrawlId::new("app", "c1");
    Page {
        fields,
        ..Page::new(&crawl, "https://example.com/1", "example.com", Outcome::Ok)
    }
}

async fn open_file(path: &Path) -> Backends {
    let uri = StoreUri::Sqlite(path.to_owned());
    open(&uri, None).await.unwrap()
}

/// The tables of version 1 that later versions have added to.
const VERSION_1: &str = "
CREATE TABLE records (_id TEXT PRIMARY KEY, fields TEXT NOT NULL, sources TEXT NOT NULL,
    missing TEXT NOT NULL, resolved_at TEXT) STRICT;
CREATE TABLE sites (_id TEXT PRIMARY KEY, last_start TEXT NOT NULL, delay_ms INTEGER NOT NULL,
    blocked_until TEXT, owner TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE crawls (key INTEGER PRIMARY KEY, _id TEXT NOT NULL UNIQUE, app_id TEXT NOT NULL,
    crawl_id TEXT NOT NULL);
CREATE TABLE crawl_records (record TEXT NOT NULL, crawl INTEGER NOT NULL,
    PRIMARY KEY (record, crawl)) STRICT, WITHOUT ROWID;
CREATE TABLE pages (_id TEXT PRIMARY KEY, app_id TEXT NOT NULL, crawl_id TEXT NOT NULL,
    url TEXT NOT NULL, final_url TEXT, site TEXT NOT NULL, depth INTEGER NOT NULL, parent TEXT,
    outcome TEXT NOT NULL, status_code INTEGER, mapping TEXT, content_type TEXT,
    bytes INTEGER NOT NULL, content_hash TEXT, started_at TEXT NOT NULL,
    elapsed_ms INTEGER NOT NULL, attempts INTEGER NOT NULL, worker TEXT NOT NULL, attrs TEXT,
    fields TEXT NOT NULL, links TEXT NOT NULL) STRICT;
INSERT INTO pages VALUES ('c1/1', 'app', 'c1', 'https://example.com/old', NULL, 'example.com', 0,
    NULL, 'ok', 200, NULL, NULL, 0, NULL, '2020-01-01T12:00:00.000Z', 0, 1, 'w', NULL, '{}', '[]');
INSERT INTO records VALUES ('r', '{\"a\":1}', '{}', '[\"b\"]', NULL);
INSERT INTO sites VALUES ('example.com', '2100-01-01T12:00:00.000Z', 1000, NULL, 'one');
PRAGMA application_id = 0x7762666c;
PRAGMA user_version = 1;
";

#[tokio::test]
async fn a_file_of_an_older_version_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(VERSION_1).unwrap();
    drop(old);
    for _ in 0..2 {
        let opened = open_file(&path).await;
        let mut records = Vec::new();
        let mut each = |row| {
            records.push(row);
            Ok(())
        };
        let everything = ExportFilter::default();
        let exported = opened
            .store
            .export(ExportKind::Records, &everything, &mut each);
        exported.await.unwrap();
        assert_eq!(records[0]["fields"], json!({"a": 1}));
        assert_eq!(records[0]["candidates"], json!({}));
        let sites = vec![String::from("example.com")];
        let clocks = opened.cache.sites(sites, 4_102_488_000_000).await.unwrap();
        assert_eq!(clocks[0].as_ref().unwrap().delay_ms, 1_000);
    }
    let store = open_file(&path).await.store;
    let saved = Save {
        page: page(json!({})),
        records: Vec::new(),
    };
    store.save(vec![saved]).await.remove(0).unwrap();
    let mut urls = Vec::new();
    let mut each = |_, page: Value| {
        urls.push(page["url"].clone());
        Ok(())
    };
    let (start, everything) = (Cursor::start(), ExportFilter::default());
    let read = store.changes(&start, &everything, &mut each).await;
    read.unwrap();
    assert_eq!(urls, ["https://example.com/old", "https://example.com/1"]);
    let mut found = 0;
    let mut each = |_| {
        found += 1;
        Ok(())
    };
    let old = vec![String::from("app/c1/1")];
    store.pages(old, &mut each).await.unwrap();
    assert_eq!(found, 1, "its key has its application in it");
}

/// Rows of a file of version 4. One id is the other's new key.
const ROWS_OF_VERSION_4: &str = "
INSERT INTO changes VALUES ('s', 0);
INSERT INTO crawls VALUES (5, 'app/c1', 'app', 'c1', '{}', 'running', '{}',
    '2020-01-01T12:00:00.000Z', '2020-01-01T12:00:00.000Z', NULL, 2, 1);
INSERT INTO records VALUES
    ('a', '{\"city\":\"London\"}', '{\"city\":{}}', '[]', '2020-01-01T12:00:00.000Z', '{}'),
    ('unnamed/a', '{\"city\":null}', '{}', '[\"city\"]', NULL, '{}');
INSERT INTO crawl_records VALUES ('a', 5), ('unnamed/a', 5);
INSERT INTO origins VALUES ('a', 5, '\"a\"', '[\"city\"]', 1);
PRAGMA application_id = 0x7762666c;
PRAGMA user_version = 4;
";

/// Creates frozen tables, and then what belongs to them, which stands before them in the file.
fn create_frozen(db: &rusqlite::Connection, frozen: &str) {
    let statements = frozen.trim_start_matches("CREATE ").split(";\nCREATE ");
    let (tables, others): (Vec<&str>, Vec<&str>) =
        statements.partition(|statement| statement.starts_with("TABLE"));
    for statement in tables.into_iter().chain(others) {
        db.execute_batch(&format!("CREATE {statement}")).unwrap();
    }
}

#[tokio::test]
async fn records_of_version_4_are_in_a_dataset_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v4.sql"));
    old.execute_batch(ROWS_OF_VERSION_4).unwrap();
    drop(old);
    let store = open_file(&path).await.store;
    let mut records = Vec::new();
    let mut each = |record: Value| {
        records.push(
            ["_id", "dataset", "record_id"].map(|name| record[name].as_str().unwrap().to_owned()),
        );
        Ok(())
    };
    let everything = ExportFilter::default();
    let exported = store.export(ExportKind::Records, &everything, &mut each);
    exported.await.unwrap();
    let expected = ["a", "unnamed/a"].map(|id| {
        let key = format!("{UNNAMED_DATASET}/{id}");
        [key, UNNAMED_DATASET.to_owned(), id.to_owned()]
    });
    assert_eq!(records, expected);
    // They are still in their crawl, and written back.
    let crawl = CrawlId::new("app", "c1");
    let unwritten = store.unwritten(&crawl, "db.people", 10).await.unwrap();
    assert_eq!(unwritten[0].record, "unnamed/a");
    let filling = Save {
        page: page(json!({"city": "Rome"})),
        records: vec![String::from("unnamed/unnamed/a")],
    };
    store.save(vec![filling]).await.remove(0).unwrap();
    let counts = store.record_counts(&crawl).await.unwrap();
    assert_eq!((counts.total, counts.resolved), (2, 2));
}

#[tokio::test]
async fn pages_of_version_5_do_not_say_which_version_of_a_mapping_has_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v5.sql"));
    old.execute_batch(
        "INSERT INTO changes VALUES ('s', 0);
        INSERT INTO pages (_id, app_id, crawl_id, url, site, depth, outcome, mapping, bytes,
            started_at, elapsed_ms, attempts, worker, tries, fields, links) VALUES ('app/c1/0',
            'app', 'c1', 'https://a.org/', 'a.org', 0, 'ok', 'people', 1,
            '2020-01-01T12:00:00.000Z', 1, 1, 'w', '[]', '{}', '[]');
        PRAGMA application_id = 0x7762666c;
        PRAGMA user_version = 5;",
    )
    .unwrap();
    drop(old);
    let store = open_file(&path).await.store;
    let save = Save {
        page: Page {
            mapping_version: Some("hash".into()),
            ..page(json!({}))
        },
        records: Vec::new(),
    };
    store.save(vec![save]).await.remove(0).unwrap();
    let mut versions = Vec::new();
    let mut each = |page: Value| {
        versions.push(page["mapping_version"].clone());
        Ok(())
    };
    let everything = ExportFilter::default();
    let exported = store.export(ExportKind::Pages, &everything, &mut each);
    exported.await.unwrap();
    assert_eq!(versions, [Value::Null, "hash".into()]);
}

#[tokio::test]
async fn pages_of_version_6_are_of_no_template_and_health_begins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v6.sql"));
    old.execute_batch(
        "INSERT INTO changes VALUES ('abcd', 0, 0);
        INSERT INTO pages (_id, app_id, crawl_id, url, site, depth, outcome, mapping, bytes,
            started_at, elapsed_ms, attempts, worker, tries, fields, links) VALUES ('app/c1/0',
            'app', 'c1', 'https://a.org/', 'a.org', 0, 'ok', 'people', 1,
            '2020-01-01T12:00:00.000Z', 1, 1, 'w', '[]', '{\"name\": 1}', '[]');
        PRAGMA application_id = 0x7762666c;
        PRAGMA user_version = 6;",
    )
    .unwrap();
    drop(old);
    let store = open_file(&path).await.store;
    assert_eq!(store.health().await.unwrap(), []);
    let mut pages = Vec::new();
    let mut each = |_, page: Value| {
        pages.push(page);
        Ok(())
    };
    let all = ExportFilter {
        extractions: true,
        ..ExportFilter::default()
    };
    let start = Cursor::start();
    let read = store.changes(&start, &all, &mut each);
    read.await.unwrap();
    assert_eq!(pages[0]["fields"], json!({"name": 1}));
    assert_eq!(
        (&pages[0]["template"], &pages[0]["records"]),
        (&Value::Null, &json!([]))
    );
}

#[tokio::test]
async fn pages_of_version_6_are_no_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v6.sql"));
    old.execute_batch(
        "INSERT INTO changes VALUES ('s', 0, 0);
        INSERT INTO pages (_id, app_id, crawl_id, url, site, depth, outcome, mapping, bytes,
            started_at, elapsed_ms, attempts, worker, tries, fields, links) VALUES ('app/c1/0',
            'app', 'c1', 'https://a.org/', 'a.org', 0, 'ok', 'people', 1,
            '2020-01-01T12:00:00.000Z', 1, 1, 'w', '[]', '{}', '[]');
        PRAGMA application_id = 0x7762666c;
        PRAGMA user_version = 6;",
    )
    .unwrap();
    drop(old);
    let store = open_file(&path).await.store;
    let document = json!({"status": "no_text", "type": "pdf"});
    let save = Save {
        page: Page {
            document: document.as_object().cloned(),
            ..page(json!({}))
        },
        records: Vec::new(),
    };
    store.save(vec![save]).await.remove(0).unwrap();
    let mut documents = Vec::new();
    let mut each = |page: Value| {
        documents.push(page["document"].clone());
        Ok(())
    };
    let everything = ExportFilter::default();
    let exported = store.export(ExportKind::Pages, &everything, &mut each);
    exported.await.unwrap();
    assert_eq!(documents, [Value::Null, document]);
}

#[tokio::test]
async fn pages_of_version_7_are_asked_for_without_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v7.sql"));
    old.execute_batch(
        "INSERT INTO changes VALUES ('s', 0, 0);
        INSERT INTO pages (_id, app_id, crawl_id, url, site, depth, outcome, bytes, started_at,
            elapsed_ms, attempts, worker, tries, fields, links) VALUES ('app/c1/0', 'app', 'c1',
            'https://a.org/', 'a.org', 0, 'ok', 1, '2020-01-01T12:00:00.000Z', 1, 1, 'w', '[]',
            '{}', '[]');
        PRAGMA application_id = 0x7762666c;
        PRAGMA user_version = 7;",
    )
    .unwrap();
    drop(old);
    let store = open_file(&path).await.store;
    let mut page = page(json!({}));
    page.validators = Some(Validators {
        etag: Some("W/\"a\"".into()),
        last_modified: None,
        fetched_at_ms: 7,
        read_as: "a test".into(),
    });
    let (id, validators) = (page.id(), page.validators.clone());
    let save = |page| {
        let records = Vec::new();
        store.save(vec![Save { page, records }])
    };
    save(page.clone()).await.remove(0).unwrap();
    let ids = vec!["app/c1/0".to_owned(), id.clone(), "app/c1/none".to_owned()];
    let known = store.known_pages(ids.clone()).await.unwrap();
    assert_eq!((known.len(), &known[0].id), (1, &id));
    assert_eq!(Some(&known[0].validators), validators.as_ref());
    // It has ended otherwise since.
    page.validators = None;
    page.started_at_ms += 1;
    save(page).await.remove(0).unwrap();
    assert_eq!(store.known_pages(ids).await.unwrap(), []);
}

#[tokio::test]
async fn a_store_of_version_7_keeps_its_cursors_and_gets_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v7.sql"));
    old.execute_batch(
        "INSERT INTO changes VALUES ('abcd', 4, 2);
        INSERT INTO pages (position, _id, app_id, crawl_id, url, site, depth, outcome, bytes,
            started_at, elapsed_ms, attempts, worker, tries, fields, links) VALUES (5, 'app/c1/0',
            'app', 'c1', 'https://a.org/', 'a.org', 0, 'ok', 1,
            '2020-01-01T12:00:00.000Z', 1, 1, 'w', '[]', '{}', '[]');
        PRAGMA application_id = 0x7762666c;
        PRAGMA user_version = 7;",
    )
    .unwrap();
    drop(old);
    let store = open_file(&path).await.store;
    let mut pages = 0;
    let mut each = |_, _: Value| {
        pages += 1;
        Ok(())
    };
    let after: Cursor = "abcd-4".parse().unwrap();
    let everything = ExportFilter::default();
    let end = store.changes(&after, &everything, &mut each).await.unwrap();
    assert_eq!(end.to_string(), "abcd-5");
    assert_eq!(pages, 1);
    let cut: Cursor = "abcd-1".parse().unwrap();
    let mut none = |_, _: Value| Ok(());
    assert!(store.changes(&cut, &everything, &mut none).await.is_err());
    let all = ChangeFilter::default();
    assert_eq!(store.content_changes(&all, 0, 9).await.unwrap(), []);
}

#[tokio::test]
async fn pages_of_version_8_do_not_say_which_alternatives_have_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v8.sql"));
    old.execute_batch(
        "INSERT INTO changes VALUES ('s', 0, 0);
        INSERT INTO pages (_id, app_id, crawl_id, url, site, depth, outcome, bytes, started_at,
            elapsed_ms, attempts, worker, tries, fields, links) VALUES ('app/c1/0', 'app', 'c1',
            'https://a.org/', 'a.org', 0, 'ok', 1, '2020-01-01T12:00:00.000Z', 1, 1, 'w', '[]',
            '{}', '[]');
        PRAGMA application_id = 0x7762666c;
        PRAGMA user_version = 8;",
    )
    .unwrap();
    drop(old);
    let store = open_file(&path).await.store;
    let mut page = page(json!({"name": "Ada"}));
    page.alternatives = Map::from_iter([("name".to_owned(), json!(2))]);
    let records = Vec::new();
    store
        .save(vec![Save { page, records }])
        .await
        .remove(0)
        .unwrap();
    let mut served = Vec::new();
    let mut each = |_: Cursor, page: Value| {
        served.push(page["alternatives"].clone());
        Ok(())
    };
    let all = ExportFilter::default();
    let start = Cursor::start();
    store.changes(&start, &all, &mut each).await.unwrap();
    assert_eq!(served, [Value::Null, json!({"name": 2})]);
}

/// What a process of version 9 writes a record by, which has the file open while it is brought up to date.
const PUT_BY_VERSION_9: &str = "
INSERT INTO records (_id, dataset, record_id, fields, sources, missing, resolved_at, candidates, history)
VALUES (?1, 'd', ?2, '{}', '{}', '[\"n\"]', NULL, '{}', '{}')
ON CONFLICT (_id) DO UPDATE SET fields = excluded.fields, history = excluded.history";

#[tokio::test]
async fn records_of_version_9_have_no_urls_and_it_may_go_on_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v9.sql"));
    old.execute_batch(
        "INSERT INTO changes VALUES ('s', 0, 0);
        PRAGMA application_id = 0x7762666c;
        PRAGMA user_version = 9;",
    )
    .unwrap();
    let mut put_by_old = old.prepare(PUT_BY_VERSION_9).unwrap();
    put_by_old.execute(["d/1", "1"]).unwrap();
    let opened = open_file(&path).await;
    opened.browse.prepare().await.unwrap();
    let record = opened.browse.record("d/1").await.unwrap().unwrap();
    assert_eq!(record.document["urls"], json!([]));
    for (key, id) in [("d/1", "1"), ("d/2", "2")] {
        put_by_old.execute([key, id]).unwrap();
    }
    let open = RecordFilter {
        dataset: Some("d".into()),
        state: Some(RecordState::Open),
        ..RecordFilter::default()
    };
    let listed = opened.browse.records(&open, None, 10).await.unwrap();
    assert_eq!(
        listed.rows.len(),
        2,
        "indexes follow what older processes write"
    );
}

#[tokio::test]
async fn site_clocks_of_version_10_know_no_accepted_pace_and_it_may_go_on_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    create_frozen(&old, include_str!("../src/sqlite/schema/frozen/v10.sql"));
    old.execute_batch(
        "INSERT INTO changes VALUES ('s', 0, 0);
        PRAGMA application_id = 0x7762666c;
        PRAGMA user_version = 10;",
    )
    .unwrap();
    let put = "INSERT INTO sites (_id, last_start, delay_ms, blocked_until, owner)
        VALUES (?1, '2100-01-01T12:00:00.000Z', 1000, NULL, 'one')";
    let mut put_by_old = old.prepare(put).unwrap();
    put_by_old.execute(["a.example"]).unwrap();
    let opened = open_file(&path).await;
    put_by_old.execute(["b.example"]).unwrap();
    for site in ["a.example", "b.example"] {
        let found = opened.cache.site(site, 4_102_488_000_000).await.unwrap();
        let entry = found.expect(site);
        assert_eq!((entry.delay_ms, entry.accepted_ms), (1_000, None));
    }
}
