//! Records out of a dataset of the user's, and the way back of what pages fill in them.
//!
//! A crawl that writes back keeps with each record which document it came from and which fields
//! that document lacked when the crawl first read it. Nothing else is ever written: what the
//! document had is the user's. Every change of such a record leaves a mark in the same write as the
//! change itself, and the mark goes once the values are confirmed to be in the dataset. So what is
//! still to be written is known after any crash, and costs no search.

use serde_json::Value;

use crate::record::{Record, StoredRecord, has_value};

/// A record of a dataset, on its way into a crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetRecord {
    pub record: Record,
    /// What the store has for the wanted fields is forgotten when the record enters the crawl.
    pub refresh: bool,
    /// Where its values are to be written back; none if nowhere.
    pub origin: Option<Origin>,
}

impl From<Record> for DatasetRecord {
    fn from(record: Record) -> DatasetRecord {
        DatasetRecord {
            record,
            refresh: false,
            origin: None,
        }
    }
}

/// The document that a record was read from. What a crawl was told first stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The document's `_id` with its type, as canonical extended JSON.
    pub document: String,
    /// The fields that may be written back.
    pub fields: Vec<String>,
}

/// A record with values that are not yet written back.
#[derive(Debug, Clone, PartialEq)]
pub struct Unwritten {
    /// The record's id.
    pub record: String,
    /// See [`Origin::document`].
    pub document: String,
    pub fields: Vec<FilledField>,
    /// Tells whether the record has changed since.
    pub(crate) revision: i64,
}

/// A value that a field of a record has now.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledField {
    pub name: String,
    pub value: Value,
    /// Other values that pages brought: one of them may have been written back before.
    pub others: Vec<Value>,
}

impl StoredRecord {
    /// Of the fields that may be written back, those that have a value.
    pub(crate) fn filled(&self, fields: &[String]) -> Vec<FilledField> {
        let filled = |name: &String| {
            let value = self.fields.get(name).filter(|value| has_value(value))?;
            Some(FilledField {
                name: name.clone(),
                value: value.clone(),
                others: self.candidate_values(name),
            })
        };
        fields.iter().filter_map(filled).collect()
    }
}

/// Two documents whose ids read the same, as 42 and "42" do, cannot both be records.
pub(crate) fn why_not_another(known: &str, origin: &Origin) -> Option<String> {
    (known != origin.document).then(|| {
        format!(
            "the document {known:.80} is the record of this id already, and {:.80} is another",
            origin.document
        )
    })
}
