use std::path::PathBuf;

use super::super::{FILE_NAME, Frontier};
use super::*;

const WRITE: &str = "UPDATE_COMMITTED";

/// The SQL of all tables, and then of their indexes, views and triggers, as SQLite stores it.
fn schema_text(db: &Connection) -> String {
    let query = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
                 ORDER BY type != 'table', type, name";
    let mut statement = db.prepare(query).unwrap();
    let texts = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    texts.map(|text| text.unwrap() + ";\n").collect()
}

fn frozen_path(version: i64) -> PathBuf {
    let file = format!("src/frontier/schema/frozen/v{version}.sql");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[test]
fn changed_tables_need_a_new_format_version() {
    let db = Connection::open_in_memory().unwrap();
    create_tables(&db).unwrap();
    let path = frozen_path(VERSION);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, schema_text(&db)).unwrap();
    }
    let frozen = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        schema_text(&db),
        frozen,
        "the tables of dispatcher.db (left) are not those of format {VERSION} ({}, right) any more. If a release has \
         this format, its files must stay readable: raise VERSION in crates/scheduler/src/frontier/schema.rs and bring \
         files of format {VERSION} up to date when they are opened. Then write the copy with \
         `{WRITE}=1 cargo test -p webfill-scheduler --lib schema` and commit it",
        path.display()
    );
}

/// Opens files of the present format, and of the previous one once there is one.
#[test]
fn files_with_the_frozen_tables_are_opened() {
    for version in 1.max(VERSION - 1)..=VERSION {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let old = Connection::open(&path).unwrap();
        let frozen = std::fs::read_to_string(frozen_path(version)).unwrap();
        old.execute_batch(&frozen).unwrap();
        old.pragma_update(None, "application_id", APPLICATION_ID)
            .unwrap();
        old.pragma_update(None, "user_version", version).unwrap();
        drop(old);
        drop(Frontier::open(dir.path(), FrontierConfig::default(), 0).unwrap());
        let opened = Connection::open(&path).unwrap();
        check_format(&opened, &path).unwrap();
    }
}
