//! Reads the results of a crawl from MongoDB, with the tests' own client.

use std::collections::BTreeMap;

use bson::{Bson, Document, doc};
use mongodb::{Client, Database};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use crate::stored::{StoredPage, StoredRecord};

/// A database on a server, found by its URI.
pub struct Documents {
    runtime: Runtime,
    database: Database,
}

impl Documents {
    pub fn open(uri: &str) -> Documents {
        // The driver monitors its servers between calls, so its runtime needs a thread that always runs.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let client = runtime.block_on(Client::with_uri_str(uri));
        let client = client.unwrap_or_else(|error| panic!("cannot connect to {uri}: {error}"));
        let database = client.default_database();
        Documents {
            database: database.expect("the URI names a database"),
            runtime,
        }
    }

    /// All documents in a collection as extended JSON, in the order of their keys.
    pub fn all_documents(&self, collection: &str) -> Vec<Value> {
        self.aggregate(collection, vec![doc! {"$sort": {"_id": 1}}])
    }

    pub fn count(&self, collection: &str) -> u64 {
        let collection = self.database.collection::<Document>(collection);
        let counted = self
            .runtime
            .block_on(async { collection.count_documents(doc! {}).await });
        counted.unwrap_or_else(|error| panic!("cannot count: {error}"))
    }

    /// The result of an aggregation, as extended JSON.
    pub fn aggregate(&self, collection: &str, pipeline: Vec<Document>) -> Vec<Value> {
        let collection = self.database.collection::<Document>(collection);
        let read = self.runtime.block_on(async {
            let mut cursor = collection.aggregate(pipeline.clone()).await?;
            let mut rows = Vec::new();
            while cursor.advance().await? {
                let row = cursor.deserialize_current()?;
                rows.push(Bson::Document(row).into_relaxed_extjson());
            }
            Ok::<_, mongodb::error::Error>(rows)
        });
        read.unwrap_or_else(|error| panic!("{pipeline:?}: {error}"))
    }

    /// Runs a command on this database. Returns the answer.
    pub fn run(&self, command: Document) -> Document {
        let answer = self.try_run(command.clone());
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Runs a command on another database of the server.
    pub fn run_in(&self, database: &str, command: Document) -> Document {
        let database = self.database.client().database(database);
        let answer = self
            .runtime
            .block_on(async { database.run_command(command.clone()).await });
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Runs a command that the server may reject. Returns the error in this case.
    pub fn try_run(&self, command: Document) -> mongodb::error::Result<Document> {
        self.runtime
            .block_on(async { self.database.run_command(command).await })
    }

    /// The stored pages by their URLs. Panics if a URL is stored twice.
    pub fn pages(&self) -> BTreeMap<String, StoredPage> {
        let mut pages = BTreeMap::new();
        for stored in self.all_documents("pages") {
            let page = parse_page(&stored);
            let url = page.url.clone();
            assert!(pages.insert(url, page).is_none(), "a page is stored twice");
        }
        pages
    }

    /// The stored records by their ids.
    pub fn records(&self) -> BTreeMap<String, StoredRecord> {
        let records = self.all_documents("records").into_iter();
        records
            .map(|stored| {
                let record = parse_record(&stored);
                (record.id.clone(), record)
            })
            .collect()
    }

    pub fn record(&self, id: &str) -> StoredRecord {
        self.records()
            .remove(id)
            .unwrap_or_else(|| panic!("no record `{id}`"))
    }
}

fn parse_page(stored: &Value) -> StoredPage {
    let number = |name: &str| stored[name].as_u64().expect("a number");
    StoredPage {
        id: parse_text(&stored["_id"]),
        url: parse_text(&stored["url"]),
        crawl_id: parse_text(&stored["crawl_id"]),
        app_id: parse_text(&stored["app_id"]),
        site: parse_text(&stored["site"]),
        depth: number("depth") as u32,
        parent: stored["parent"].as_str().map(str::to_owned),
        outcome: parse_text(&stored["outcome"]),
        status_code: stored["status_code"].as_u64().map(|code| code as u16),
        mapping: stored["mapping"].as_str().map(str::to_owned),
        fields: parse_object(&stored["fields"]),
        links: parse_texts(&stored["links"]),
        content_type: stored["content_type"].as_str().map(str::to_owned),
        bytes: number("bytes") as i64,
        attempts: number("attempts") as u32,
        worker: parse_text(&stored["worker"]),
    }
}

fn parse_record(stored: &Value) -> StoredRecord {
    let (dataset, id) = (
        parse_text(&stored["dataset"]),
        parse_text(&stored["record_id"]),
    );
    assert_eq!(stored["_id"], format!("{dataset}/{id}"));
    StoredRecord {
        dataset,
        id,
        fields: parse_object(&stored["fields"]),
        sources: parse_object(&stored["sources"]),
        missing: parse_texts(&stored["missing"]),
        resolved: stored["resolved_at"].is_object(),
    }
}

fn parse_text(value: &Value) -> String {
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

fn parse_texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(parse_text)
        .collect()
}

fn parse_object(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}
