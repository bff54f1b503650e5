//! The core's questions about changes of pages, for notifications. The core does not read the store: the process
//! answers the questions, sooner or later, through [`Core::on_changes_answered`](crate::Core::on_changes_answered).

use serde_json::{Map, Value};
use webfill_notifications::ReadChanges;
use webfill_store::CrawlId;

/// A question to the store about a watch.
#[derive(Debug, Clone)]
pub struct ChangesRequest {
    pub watch: String,
    pub crawl: CrawlId,
    pub question: ChangesQuestion,
}

#[derive(Debug, Clone, Copy)]
pub enum ChangesQuestion {
    /// The number of the last change before this time. Later changes are reported, even those made before the answer
    /// arrives.
    Position { asked_ms: i64 },
    /// The changes after the change with this number.
    After(u64),
    /// The findings of a run, once all of its page checks are judged, and the changes after the change with the number
    /// `after`.
    Run {
        number: u64,
        began_ms: i64,
        after: Option<u64>,
    },
}

impl ChangesRequest {
    pub fn is_replaced_by(&self, other: &ChangesRequest) -> bool {
        let is_same =
            std::mem::discriminant(&self.question) == std::mem::discriminant(&other.question);
        self.watch == other.watch && is_same
    }
}

/// The answer to a question about changes.
pub struct ChangesAnswer {
    pub asked: ChangesRequest,
    pub found: ChangesResult,
}

pub enum ChangesResult {
    Position(u64),
    Changes(ReadChanges),
    Run {
        counts: Map<String, Value>,
        changes: Option<ReadChanges>,
    },
    /// The store took too long to find the results of the run, so its end is reported without them.
    Late,
}
