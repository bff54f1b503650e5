//! The rows of a page, as an extraction returns them.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// The rows that one rule of a mapping found on a page.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Listing {
    /// The dataset that the rows belong to as records.
    pub dataset: String,
    /// The fields that identify a row.
    pub key: Vec<String>,
    /// The row fields whose values come from the record that the page was fetched for: the name of a row field, and the
    /// name of the record's field or [`crate::RECORD_ID`].
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub from_record: Map<String, Value>,
    /// Whether rows were left out because the page has too many, or too much text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The fields that the pages linked from the rows should fill.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub want: Vec<String>,
    /// Whether rows that the list no longer has count as gone, once it was read to its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
    pub rows: Vec<Row>,
}

impl Listing {
    /// The rows in the form of golden cases and of displays: `{"dataset", "rows": [{FIELD: VALUE}]}`. If rows link to
    /// pages of their own, `"links"` has a list of URLs for each row.
    pub fn to_json(&self) -> Value {
        let rows: Vec<&Map<String, Value>> = self.rows.iter().map(|row| &row.fields).collect();
        let mut json = json!({"dataset": self.dataset, "rows": rows});
        if self.rows.iter().any(|row| !row.links.is_empty()) {
            json["links"] = self.rows.iter().map(|row| row.links.as_slice()).collect();
        }
        json
    }
}

/// One row of a page. A field without a value is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The position among the selected elements, from 0. Elements without any value count as well.
    pub position: usize,
    /// Links to pages that may fill the row's record, absolute and canonical.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    pub fields: Map<String, Value>,
    /// Fields that have no value only because the text can be read in two ways.
    #[serde(skip)]
    pub undecided: Vec<String>,
}
