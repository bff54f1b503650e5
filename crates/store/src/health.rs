//! How the extractions of mappings are doing, as [`Store`](crate::Store) keeps it: the state is text of its
//! owner's, which the store does not read.

use crate::cursor::Cursor;

/// The state of one mapping, up to one page in the order of [`Store::changes`](crate::Store::changes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthState {
    /// Of the owner's choice, such as `mapping/people`.
    pub id: String,
    /// Counts the changes, from 1. A state replaces the one with the revision before, and no other: so of two
    /// processes that judge the same pages, one is told that it comes too late, and no page counts twice.
    pub revision: u64,
    /// Who has written it: a writer whose answer was lost may repeat itself.
    pub writer: String,
    pub cursor: Cursor,
    /// JSON.
    pub state: String,
}
