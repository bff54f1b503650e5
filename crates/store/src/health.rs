//! The health of mappings, as kept by [`Store`](crate::Store). The state is opaque to the store.

use crate::cursor::Cursor;

/// The state of one mapping, up to one page in the order of [`Changes::changes`](crate::Changes::changes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthState {
    /// Chosen by the owner, such as `mapping/people`.
    pub id: String,
    /// Counts the changes, from 1. A state replaces only the one with the previous revision. So if two processes
    /// judge the same pages, one of them fails, and no page counts twice.
    pub revision: u64,
    /// Identifies the writer: a writer whose answer was lost may repeat the write.
    pub writer: String,
    pub cursor: Cursor,
    /// JSON.
    pub state: String,
}
