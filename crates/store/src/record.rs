//! Records, and the rules for how pages fill their missing fields. The rules are the same for every backend.
//!
//! - A value of the user replaces any other, because the user knows better; see [`input`](self) for which values are
//!   the user's. The page's value, its source and the candidates are dropped.
//! - A page about another subject fills nothing; see [`identity`](self).
//! - Otherwise a field that has a value keeps it, except under the following rules.
//! - A wanted field without a value is *missing*, until a page or the user's input supplies a value. A page's value is
//!   stored with its source.
//! - A record is *resolved* while no wanted field is missing, and *open* otherwise.
//! - If two pages have different values for a field, the page whose mapping comes first in the [`MappingOrder`] wins,
//!   whatever the order of saving. If the mappings are equal, the page with more evidence wins, then the page that was
//!   saved first. The other value is stored as a *candidate*, with its source. Values from the user have no
//!   candidates, and no page replaces them.
//! - A refresh wants a new value for a field that has one. The field counts as missing, and keeps its value until
//!   another one comes. That value may come from the page that gave the present one, from a page of a better mapping,
//!   or from a page with a new value. So a failed refresh loses no value, and pages that disagree do not replace each
//!   other's values in turn.
//! - A value in another spelling does not replace the present one.
//! - A list that continues on further pages becomes a value once all of them are read; see [`gathered`](self).
//! - A person's decision about a value is final, until the user's input has another one; see [`deciding`](self).
//! - A value that is replaced by the user's input or by a refresh becomes *history*, with its source. The same applies
//!   if a page is read again without fetching: its values replace those from this fetch or earlier ones of the page.

use serde_json::{Map, Value};

use crate::dataset_name::{DatasetName, record_key};

mod candidates;
mod deciding;
mod doubts;
mod fill_rules;
mod gathered;
mod history;
mod identity;
mod input;
mod reread;
mod retraction;
mod row;
mod source;
mod spelling;
mod stored;
mod urls;

pub use deciding::{Decided, Decision, DecisionAnswer};
pub use fill_rules::{MappingOrder, MappingRules};

pub(crate) use doubts::{explain_doubts, reasons_with_mappings};
pub(crate) use fill_rules::{FillRules, Leads, PageValues};
pub(crate) use input::Entry;
pub(crate) use row::{RowLoss, RowValues};
pub use spelling::has_value;
pub(crate) use spelling::is_same_value as is_one_value;
pub(crate) use stored::StoredRecord;

/// The longest record id, in bytes.
pub const MAX_RECORD_ID_BYTES: usize = 1024;

/// One row of the user's dataset, as given.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub dataset: DatasetName,
    /// The record's id within the dataset.
    pub id: String,
    /// Known values; null means that the value is missing.
    pub fields: Map<String, Value>,
    /// The fields to be filled. Those that already have a value are not missing.
    pub want: Vec<String>,
}

impl Record {
    /// The record's key; see [`record_key`].
    pub fn key(&self) -> String {
        record_key(&self.dataset, &self.id)
    }
}

/// The state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    /// A wanted field is missing or is to be refreshed.
    Open,
    /// No wanted field is missing.
    Resolved,
}

/// How many records a crawl has, and how many of them are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordCounts {
    pub total: u64,
    pub resolved: u64,
}
