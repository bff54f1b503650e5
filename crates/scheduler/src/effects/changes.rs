//! Changes of pages that the core wants to know for notifications. It does not read the store: the process reads
//! what is asked here, sooner or later, and passes the answer to
//! [`Core::changes_answered`](crate::Core::changes_answered).

use serde_json::{Map, Value};
use webfill_notifications::ReadChanges;
use webfill_store::CrawlId;

/// What is to be read in the store for a watch.
#[derive(Debug, Clone)]
pub struct ChangesAsked {
    pub watch: String,
    pub crawl: CrawlId,
    pub question: ChangesQuestion,
}

#[derive(Debug, Clone, Copy)]
pub enum ChangesQuestion {
    /// The number of the last change of before a time, after which somebody is told: when the answer comes,
    /// pages may have changed since.
    Position { asked_ms: i64 },
    /// What has changed after a number.
    After(u64),
    /// What a run has found, once all of its looks are judged, and what has changed after a number.
    Run {
        number: u64,
        began_ms: i64,
        after: Option<u64>,
    },
}

impl ChangesAsked {
    pub fn is_replaced_by(&self, other: &ChangesAsked) -> bool {
        let is_same =
            std::mem::discriminant(&self.question) == std::mem::discriminant(&other.question);
        self.watch == other.watch && is_same
    }
}

/// What was read.
pub struct ChangesAnswer {
    pub asked: ChangesAsked,
    pub found: ChangesFound,
}

pub enum ChangesFound {
    Position(u64),
    Changes(ReadChanges),
    Run {
        counts: Map<String, Value>,
        changes: Option<ReadChanges>,
    },
    /// Of a run: the answer is not known for so long that its end is told without.
    Late,
}
