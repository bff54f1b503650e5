//! Pages that were read again without fetching.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use webfill_wire::Outcome;

use crate::listing::Listing;
use crate::record::{Leads, PageValues};
use crate::row_counts::RowCounts;
use crate::timestamp::iso_time;

/// The result of reading a stored page again. `attempts`, `started_at_ms` and `content_hash` identify the fetch that
/// was read. If the page has been fetched again meanwhile, nothing is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Reread {
    /// The key of the page; see [`crate::page_id`].
    pub page_id: String,
    pub url: String,
    pub attempts: u32,
    pub started_at_ms: i64,
    pub content_hash: String,
    /// Whether the following members differ from those of the page. If not, only the page's records are filled.
    pub is_changed: bool,
    pub outcome: Outcome,
    pub mapping: Option<String>,
    pub mapping_version: Option<String>,
    pub template: Option<String>,
    pub fields: Map<String, Value>,
    /// The fields with alternatives; see [`crate::Page::alternatives`].
    pub alternatives: Map<String, Value>,
    /// The rows of the page; see [`crate::Page::listings`].
    pub listings: Vec<Listing>,
    /// The counts of these rows; see [`crate::Page::row_counts`].
    pub row_counts: Vec<RowCounts>,
    /// The keys of the records that are stored with the page.
    pub records: Vec<String>,
    /// The page's discovered links and its depth, from its fetch.
    pub links: Vec<String>,
    pub depth: u16,
    /// When the page was read again, in milliseconds since the epoch.
    pub at_ms: i64,
}

/// The changes that storing a [`Reread`] has made, or would make.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RereadAnswer {
    /// Whether the page was fetched again meanwhile. If so, nothing is written.
    pub is_overtaken: bool,
    pub changes: Vec<ValueChange>,
}

/// A new or changed value of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueChange {
    /// The key of the record; see [`crate::record_key`].
    pub record: String,
    pub field: String,
    pub old: Option<Value>,
    pub new: Value,
}

/// For each field, how many values are new, and how many have changed.
pub type ValueCounts = BTreeMap<String, (u64, u64)>;

/// The change of a record's field; see [`ValueChange`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldChange {
    pub(crate) field: String,
    pub(crate) old: Option<Value>,
    pub(crate) new: Value,
}

impl RereadAnswer {
    pub(crate) fn overtaken_answer() -> RereadAnswer {
        RereadAnswer {
            is_overtaken: true,
            changes: Vec::new(),
        }
    }

    /// Adds the changes of a record.
    pub(crate) fn add(&mut self, record: &str, changes: Vec<FieldChange>) {
        let of_record = changes.into_iter().map(|change| ValueChange {
            record: record.to_owned(),
            field: change.field,
            old: change.old,
            new: change.new,
        });
        self.changes.extend(of_record);
    }
}

impl Reread {
    pub(crate) fn values<'a>(&'a self, leads: &'a Leads) -> PageValues<'a> {
        PageValues {
            fields: &self.fields,
            url: &self.url,
            mapping: self.mapping.as_deref(),
            started_at_ms: self.started_at_ms,
            ended_at_ms: self.at_ms,
            depth: Some(self.depth),
            leads,
            is_of_other: false,
            is_reread: true,
        }
    }

    pub(crate) fn started_at(&self) -> String {
        iso_time(self.started_at_ms)
    }
}
