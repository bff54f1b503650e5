use std::path::PathBuf;

use super::super::bodies_file;
use super::*;

const WRITE: &str = "UPDATE_COMMITTED";

/// The format of one of a store's SQLite files.
struct Format {
    tables: &'static str,
    version: i32,
    application_id: i32,
    open: fn(&Path) -> Result<Db, StoreError>,
    /// The name of the file in the test data that holds the tables of this format.
    name: &'static str,
    raised_in: &'static str,
}

const FORMATS: [Format; 2] = [
    Format {
        tables: TABLES,
        version: SCHEMA_VERSION,
        application_id: APPLICATION_ID,
        open: |path| open(path, OpenMode::MustExist),
        name: "store",
        raised_in: "SCHEMA_VERSION in crates/store/src/sqlite/schema.rs",
    },
    Format {
        tables: bodies_file::TABLES,
        version: bodies_file::VERSION,
        application_id: bodies_file::APPLICATION_ID,
        open: bodies_file::open,
        name: "bodies",
        raised_in: "VERSION in crates/store/src/sqlite/bodies_file.rs",
    },
];

/// The SQL of all tables, then of their indexes and triggers, as SQLite stores it.
fn schema_text(db: &Connection) -> String {
    let query =
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type != 'table', type, name";
    let mut statement = db.prepare(query).unwrap();
    let texts = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    texts.map(|text| text.unwrap() + ";\n").collect()
}

fn frozen_path(format: &Format, version: i32) -> PathBuf {
    let file = format!("src/sqlite/schema/frozen/{}-v{version}.sql", format.name);
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[test]
fn changed_tables_need_a_new_format_version() {
    for format in &FORMATS {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(format.tables).unwrap();
        let version = format.version;
        let path = frozen_path(format, version);
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, schema_text(&db)).unwrap();
        }
        let frozen = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            schema_text(&db),
            frozen,
            "the tables of a SQLite file (left) are not those of its format {version} ({}, right) any more. If a \
             release has this format, its files must stay readable: raise {} and bring files of format {version} up \
             to date when they are opened. Then write the copy with \
             `{WRITE}=1 cargo test -p webfill-store --lib schema` and commit it",
            path.display(),
            format.raised_in
        );
    }
}

/// Checks files of the present format, and of the format before, if there is one.
#[test]
fn files_with_the_frozen_tables_are_opened() {
    for format in &FORMATS {
        for version in 1.max(format.version - 1)..=format.version {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("webfill.db");
            let old = Connection::open(&path).unwrap();
            let frozen = std::fs::read_to_string(frozen_path(format, version)).unwrap();
            old.execute_batch(&frozen).unwrap();
            for (pragma, value) in [
                ("application_id", format.application_id),
                ("user_version", version),
            ] {
                old.pragma_update(None, pragma, value).unwrap();
            }
            (format.open)(&path).unwrap();
            let now: i32 = old
                .pragma_query_value(None, "user_version", |row| row.get(0))
                .unwrap();
            assert_eq!(now, format.version, "{}", format.name);
        }
    }
}
