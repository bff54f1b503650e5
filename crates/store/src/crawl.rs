//! A stored crawl: an application's request, and the crawl's state and counts.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

/// The key of a crawl within a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CrawlId {
    pub app_id: String,
    pub crawl_id: String,
}

impl CrawlId {
    pub fn new(app_id: impl Into<String>, crawl_id: impl Into<String>) -> CrawlId {
        CrawlId {
            app_id: app_id.into(),
            crawl_id: crawl_id.into(),
        }
    }
}

impl fmt::Display for CrawlId {
    /// The stored key: app id, "/", crawl id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.app_id, self.crawl_id)
    }
}

/// One crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct Crawl {
    pub id: CrawlId,
    /// The request as it was accepted.
    pub request: Value,
    pub state: CrawlState,
    /// The counts of the crawl's summary, as of `updated_at_ms`.
    pub counts: Map<String, Value>,
    /// When the crawl was first started. Resuming it does not change this.
    pub started_at_ms: i64,
    /// When this crawl was last written to the store.
    pub updated_at_ms: i64,
    /// When the state became final.
    pub finished_at_ms: Option<i64>,
}

/// The state of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrawlState {
    Running,
    Paused,
    /// The crawl was ended by a signal or a crash. It can be resumed.
    Interrupted,
    /// A limit of pages or time was reached.
    LimitReached,
    /// The application stopped the crawl.
    Stopped,
    /// The crawl's expiry passed.
    Expired,
    /// Every task reached an outcome.
    Finished,
}

impl CrawlState {
    /// Every state.
    pub const ALL: [CrawlState; 7] = [
        CrawlState::Running,
        CrawlState::Paused,
        CrawlState::Interrupted,
        CrawlState::LimitReached,
        CrawlState::Stopped,
        CrawlState::Expired,
        CrawlState::Finished,
    ];

    /// The stable name, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            CrawlState::Running => "running",
            CrawlState::Paused => "paused",
            CrawlState::Interrupted => "interrupted",
            CrawlState::LimitReached => "limit_reached",
            CrawlState::Stopped => "stopped",
            CrawlState::Expired => "expired",
            CrawlState::Finished => "finished",
        }
    }
}

impl fmt::Display for CrawlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CrawlState {
    type Err = String;

    fn from_str(text: &str) -> Result<CrawlState, String> {
        CrawlState::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no state of a crawl"))
    }
}
