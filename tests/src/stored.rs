//! Reads the results of a crawl from its SQLite store.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Map, Value};

/// A store that is only opened for reading.
pub struct Stored {
    connection: Connection,
}

/// A row of the table `pages`.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPage {
    pub id: String,
    pub url: String,
    pub crawl_id: String,
    pub app_id: String,
    pub site: String,
    pub depth: u32,
    pub parent: Option<String>,
    pub outcome: String,
    pub status_code: Option<u16>,
    pub mapping: Option<String>,
    pub fields: Map<String, Value>,
    pub links: Vec<String>,
    pub content_type: Option<String>,
    pub bytes: i64,
    pub attempts: u32,
    pub worker: String,
}

/// A row of the table `records`.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    pub dataset: String,
    pub id: String,
    pub fields: Map<String, Value>,
    pub sources: Map<String, Value>,
    pub missing: Vec<String>,
    pub resolved: bool,
}

impl Stored {
    pub fn open(path: &Path) -> Stored {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
        Stored { connection }
    }

    /// The stored pages by their URLs. Panics if a URL is stored twice.
    pub fn pages(&self) -> BTreeMap<String, StoredPage> {
        let sql = "SELECT _id, url, crawl_id, app_id, site, depth, parent, outcome, status_code, \
                   mapping, fields, links, content_type, bytes, attempts, worker FROM pages";
        let mut pages = BTreeMap::new();
        for page in self.query_rows(sql, read_page) {
            let url = page.url.clone();
            assert!(pages.insert(url, page).is_none(), "a page is stored twice");
        }
        pages
    }

    /// The stored records by their ids. Panics if two datasets have the same id.
    pub fn records(&self) -> BTreeMap<String, StoredRecord> {
        let mut records = BTreeMap::new();
        for record in self.all_records() {
            let id = record.id.clone();
            let other = records.insert(id, record);
            assert!(other.is_none(), "two datasets have {other:?}");
        }
        records
    }

    /// The stored records of a dataset by their ids.
    pub fn records_of(&self, dataset: &str) -> BTreeMap<String, StoredRecord> {
        let records = self.all_records().into_iter();
        let records = records.filter(|record| record.dataset == dataset);
        records.map(|record| (record.id.clone(), record)).collect()
    }

    fn all_records(&self) -> Vec<StoredRecord> {
        let sql = "SELECT _id, dataset, record_id, fields, sources, missing, \
                   resolved_at IS NOT NULL FROM records";
        self.query_rows(sql, read_record)
    }

    pub fn record(&self, id: &str) -> StoredRecord {
        self.records()
            .remove(id)
            .unwrap_or_else(|| panic!("no record `{id}`"))
    }

    /// The outcomes of the stored pages by their URLs. Two crawls of the same web must have equal outcomes, because
    /// these depend neither on time nor on chance.
    pub fn outcomes(&self) -> BTreeMap<String, String> {
        self.pages()
            .into_iter()
            .map(|(url, page)| (url, page.outcome))
            .collect()
    }

    /// The result of SQLite's `integrity_check`, which is `ok` for an intact file.
    pub fn integrity(&self) -> String {
        let check = self
            .connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0));
        check.unwrap_or_else(|error| error.to_string())
    }

    /// The first column of the first row of any query.
    pub fn query_number(&self, sql: &str) -> i64 {
        let number = self.connection.query_row(sql, [], |row| row.get(0));
        number.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The first column of every row of any query.
    pub fn query_texts(&self, sql: &str) -> Vec<String> {
        self.query_rows(sql, |row| row.get(0))
    }

    fn query_rows<T>(&self, sql: &str, read: fn(&Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
        let mut statement = self
            .connection
            .prepare(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows = statement
            .query_map([], read)
            .expect("a query without parameters");
        rows.collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

fn read_page(row: &Row<'_>) -> rusqlite::Result<StoredPage> {
    Ok(StoredPage {
        id: row.get(0)?,
        url: row.get(1)?,
        crawl_id: row.get(2)?,
        app_id: row.get(3)?,
        site: row.get(4)?,
        depth: row.get(5)?,
        parent: row.get(6)?,
        outcome: row.get(7)?,
        status_code: row.get(8)?,
        mapping: row.get(9)?,
        fields: parse_object(row.get(10)?),
        links: parse_texts(row.get(11)?),
        content_type: row.get(12)?,
        bytes: row.get(13)?,
        attempts: row.get(14)?,
        worker: row.get(15)?,
    })
}

fn read_record(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    let (key, dataset, id): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    assert_eq!(key, format!("{dataset}/{id}"));
    Ok(StoredRecord {
        dataset,
        id,
        fields: parse_object(row.get(3)?),
        sources: parse_object(row.get(4)?),
        missing: parse_texts(row.get(5)?),
        resolved: row.get(6)?,
    })
}

/// Reads a column that contains a JSON object. An empty column yields an empty object.
fn parse_object(text: Option<String>) -> Map<String, Value> {
    let Some(text) = text else { return Map::new() };
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("not a JSON object ({error}): {text}"))
}

/// Reads a column that contains a JSON list of texts. An empty column yields an empty list.
fn parse_texts(text: Option<String>) -> Vec<String> {
    let Some(text) = text else { return Vec::new() };
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("not a JSON list ({error}): {text}"))
}
