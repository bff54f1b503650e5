//! Records that were read from documents of the user's dataset, and values still to be written back to those
//! documents.
//!
//! A crawl that writes back stores a [`SourceDocument`] with each record: the document's collection and id, and the
//! fields that the document lacked when the crawl first read it. Only these fields are ever written, and only with
//! values from pages. All other values belong to the user.
//!
//! For each such crawl, a record is in one of two states:
//!
//! - *written*: the dataset has every value from pages;
//! - *unwritten* ([`UnwrittenRecord`]): the record has changed since it was last written back.
//!
//! The mark "unwritten" is set in the same write as the change, and removed by
//! [`SourceDocuments::confirm_written`](crate::SourceDocuments::confirm_written) once the dataset has the values. So
//! after any crash the marked records are exactly those to be written, and an index finds them.

use serde_json::Value;

use crate::record::{Record, RecordState};

/// A record as a crawl reads it from the dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetRecord {
    pub record: Record,
    /// Which fields are refreshed although they have a value.
    pub refresh: Refresh,
    /// The URLs that the input names for the record.
    pub urls: Vec<String>,
    /// The document to write values back to, if the crawl writes back.
    pub source: Option<SourceDocument>,
    /// The position where the crawl has read the record in its input; `None` if no two positions of the input can be
    /// the same record.
    pub position: Option<u64>,
}

impl From<Record> for DatasetRecord {
    fn from(record: Record) -> DatasetRecord {
        DatasetRecord {
            record,
            refresh: Refresh::default(),
            urls: Vec::new(),
            source: None,
            position: None,
        }
    }
}

/// Which fields of a record are refreshed although they have a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refresh {
    /// Fields to refresh when the record enters the crawl.
    pub on_entry: Vec<String>,
    /// How old a page's value of a wanted field must be to be refreshed, in milliseconds. Applies whenever the record
    /// is put.
    pub after_ms: Option<u64>,
}

/// The result of putting a record into a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPut {
    pub state: RecordState,
    /// Another position of the input where the crawl has already read this record, if there is one.
    pub earlier: Option<u64>,
}

/// The document that a record was read from. A crawl stores this once, when it first reads the document, and never
/// changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDocument {
    /// The database and the collection, with a dot between them.
    pub collection: String,
    /// The document's `_id` with its type, as canonical extended JSON.
    pub id: String,
    /// The fields that may be written back.
    pub fields: Vec<String>,
    /// Whether the fields are written back to this document, not to one of another collection.
    pub is_target: bool,
}

/// A record with values that are not yet written back.
#[derive(Debug, Clone, PartialEq)]
pub struct UnwrittenRecord {
    /// The record's key.
    pub record: String,
    /// The document's `_id`; see [`SourceDocument::id`].
    pub document: String,
    pub fields: Vec<FilledField>,
    /// The record's revision when it was read. If the stored one is later, the record has changed since.
    pub(crate) revision: i64,
}

impl UnwrittenRecord {
    /// Values to write to a document that no crawl has read, given by its canonical `_id`.
    pub fn for_document(document: String, fields: Vec<FilledField>) -> UnwrittenRecord {
        UnwrittenRecord {
            record: document.clone(),
            document,
            fields,
            revision: 0,
        }
    }
}

/// A field of a record, with its present value.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledField {
    pub name: String,
    pub value: Value,
    /// Whether another value is wanted. If so, this value replaces no value in the dataset.
    pub is_asked_again: bool,
    /// Other values that may be in the dataset and that may be replaced there. These are the values that were written
    /// back, and those that were there when the user asked for another value. All other values are the user's.
    pub others: Vec<Value>,
}

/// Refuses a second document for a record. Ids such as 42 and "42" are different documents but the same record id.
pub(crate) fn check_same_document(
    known_id: &str,
    known_collection: &str,
    source: &SourceDocument,
) -> Result<(), String> {
    if known_collection != source.collection {
        return Err(format!(
            "a document of {known_collection} is the record of this id already, and this one is of {}: give \
             each collection a dataset of its own",
            source.collection
        ));
    }
    if known_id == source.id {
        return Ok(());
    }
    Err(format!(
        "the document {known_id:.80} is the record of this id already, and {:.80} is another",
        source.id
    ))
}
