//! The health of mappings, as kept by [`Store`](crate::Store). The state is opaque to the store.

use crate::cursor::Cursor;

/// The health of one mapping, judged up to one page in the order of [`Changes::changes`](crate::Changes::changes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthState {
    /// An id chosen by the code that owns the state, such as `mapping/people`.
    pub id: String,
    /// How often the state has been stored, from 1. A state replaces only the one with the previous revision. So if two
    /// processes judge the same pages, one of them fails, and no page counts twice.
    pub revision: u64,
    /// Identifies the process that stores the state. It may repeat the call if it got no answer.
    pub writer: String,
    pub cursor: Cursor,
    /// The state as JSON.
    pub state: String,
}
