use std::path::PathBuf;

use super::*;

const WRITE: &str = "UPDATE_COMMITTED";

/// The text of all tables and indexes, as SQLite keeps it.
fn schema_text(db: &Connection) -> String {
    let query = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
    let mut statement = db.prepare(query).unwrap();
    let texts = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    texts.map(|text| text.unwrap() + ";\n").collect()
}

#[test]
fn the_tables_belong_to_their_version() {
    let db = Connection::open_in_memory().unwrap();
    create_tables(&db).unwrap();
    let file = format!("src/sqlite/schema/frozen/v{SCHEMA_VERSION}.sql");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(&file);
    if std::env::var_os(WRITE).is_some() && !path.exists() {
        std::fs::write(&path, schema_text(&db)).unwrap();
    }
    let frozen = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        schema_text(&db),
        frozen,
        "the tables of a SQLite store (left) are not those of version {SCHEMA_VERSION} (right, \
         crates/store/{file}) any more: raise SCHEMA_VERSION in crates/store/src/sqlite/schema.rs, migrate \
         older files, then write the new copy with \
         `{WRITE}=1 cargo test -p webfill-store --lib schema` and commit it"
    );
}
