//! A page as it is stored: what became of one URL in one crawl.

use std::sync::Arc;

use serde_json::{Map, Value};
use webfill_wire::{FailedAttempt, Outcome};

/// No page or record is larger than this, on any backend: a MongoDB document ends at 16 MiB.
pub const MAX_ENTRY_BYTES: usize = 15 << 20;

/// What became of one URL in one crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub app_id: String,
    pub crawl_id: String,
    /// The task's URL, canonical.
    pub url: String,
    /// The URL that answered, where it is another.
    pub final_url: Option<String>,
    pub site: String,
    /// Links followed from a seed to here.
    pub depth: u16,
    /// The page that the link was found on.
    pub parent: Option<String>,
    pub outcome: Outcome,
    /// The HTTP status, if there was an answer.
    pub status_code: Option<u16>,
    /// The name of the mapping that extracted the fields.
    pub mapping: Option<String>,
    /// The extracted fields.
    pub fields: Map<String, Value>,
    /// The discovered links.
    pub links: Vec<String>,
    pub content_type: Option<String>,
    /// Decoded body bytes.
    pub bytes: u64,
    pub content_hash: Option<String>,
    /// Start of the fetch, milliseconds since the epoch. Of two saves of a page the later wins.
    pub started_at_ms: i64,
    pub elapsed_ms: u64,
    /// Which delivery of the task brought this outcome, from 1; stored as `attempts`.
    pub delivery: u32,
    /// The worker that fetched it.
    pub worker: String,
    /// The application's own object, handed through.
    pub attrs: Option<Value>,
    /// Earlier attempts that failed and were retried, the oldest first; stored as `tries`.
    pub failed_attempts: Vec<FailedAttempt>,
    /// The answer's headers, `{name: [value]}`, if its crawl wants them kept.
    pub headers: Option<Map<String, Value>>,
    /// The page's text, if its crawl wants it kept.
    pub body: Option<Arc<str>>,
}

impl Page {
    /// The key: crawl id, "/", hash of the canonical URL.
    pub fn id(&self) -> String {
        page_id(&self.crawl_id, &self.url)
    }

    /// When the page was done, milliseconds since the epoch.
    pub(crate) fn ended_at_ms(&self) -> i64 {
        let elapsed_ms = i64::try_from(self.elapsed_ms).unwrap_or(i64::MAX);
        self.started_at_ms.saturating_add(elapsed_ms)
    }
}

/// The key of a page: crawl id, "/", hash of the canonical URL.
pub fn page_id(crawl_id: &str, url: &str) -> String {
    let hash = webfill_urls::page_hash(url);
    let mut id = String::with_capacity(crawl_id.len() + 1 + hash.len());
    id.push_str(crawl_id);
    id.push('/');
    id.push_str(&hash);
    id
}
