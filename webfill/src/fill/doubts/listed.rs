//! Doubts as they were listed for people, and the answers to them.

use serde::{Deserialize, Serialize};

/// The cells of a line in the file of doubts, as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShownCells {
    pub(super) id: String,
    pub(super) column: String,
    pub(super) known: String,
    pub(super) page: String,
    pub(super) url: String,
}

/// A doubt that was listed for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedDoubt {
    /// The id of the row. If there is none, the links identify the row, because row numbers change.
    pub(super) id: Option<String>,
    pub(super) links: Vec<String>,
    pub(super) column: String,
    pub(super) known: Vec<String>,
    pub(super) page: Vec<String>,
    pub(super) shown: ShownCells,
}

/// A person's answer to a doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) doubt: ListedDoubt,
    pub(super) is_accepted: bool,
}

impl ListedDoubt {
    pub(super) fn is_of_same_value(&self, other: &ListedDoubt) -> bool {
        (&self.id, &self.links, &self.column, &self.known)
            == (&other.id, &other.links, &other.column, &other.known)
    }
}
