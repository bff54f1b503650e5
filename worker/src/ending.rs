//! What is known of a task while it comes to its end: filled by the fetch, then by the
//! extraction, then written to the store and told to the dispatcher.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use webfill_wire::{CrawlSettings, Outcome, SiteClock, Task, TaskDone};

use crate::fetch::Fetched;
use crate::kept::{self, KeptBody};

/// How a task ends.
#[derive(Debug)]
pub struct Ending {
    pub task: Task,
    pub crawl: Arc<CrawlSettings>,
    pub outcome: Outcome,
    /// What went wrong, for the log.
    pub error: Option<String>,
    pub status_code: Option<u16>,
    pub content_type: Option<String>,
    pub body_bytes: u64,
    pub content_hash: Option<String>,
    pub mapping: Option<String>,
    pub fields: serde_json::Map<String, serde_json::Value>,
    pub links: Vec<String>,
    /// The answer's headers, if the crawl wants them and there was an answer.
    pub headers: Option<serde_json::Map<String, serde_json::Value>>,
    /// The page's text, if the crawl wants it and it can be kept.
    pub body: Option<KeptBody>,
    pub redirect: Option<String>,
    pub started_at_ms: i64,
    pub elapsed: Duration,
    /// The earliest start of the site's next request, and the delay in force, if it is known.
    pub next_start: Option<Instant>,
    pub delay: Option<Duration>,
}

impl Ending {
    /// A task that ended without a request for its page.
    pub fn unfetched(task: Task, crawl: Arc<CrawlSettings>, outcome: Outcome) -> Ending {
        Ending {
            task,
            crawl,
            outcome,
            error: None,
            status_code: None,
            content_type: None,
            body_bytes: 0,
            content_hash: None,
            mapping: None,
            fields: serde_json::Map::new(),
            links: Vec::new(),
            headers: None,
            body: None,
            redirect: None,
            started_at_ms: now_ms(),
            elapsed: Duration::ZERO,
            next_start: None,
            delay: None,
        }
    }

    /// Takes over what the request yielded; the body goes its own way.
    pub fn fetched(mut self, fetched: &mut Fetched) -> Ending {
        self.outcome = fetched.outcome;
        self.error = fetched.error.take();
        self.status_code = fetched.status_code;
        self.content_type = fetched.content_type.take();
        self.redirect = fetched.redirect.take();
        self.body_bytes = fetched.body.len() as u64;
        if self.crawl.headers && fetched.status_code.is_some() {
            self.headers = Some(kept::headers(&fetched.headers));
        }
        self
    }

    /// The message to the dispatcher. `resolved` names the records that are complete now; a page
    /// whose records all are has no links worth following.
    pub fn done(self, resolved: Vec<String>, now: Instant) -> TaskDone {
        let next_in = self
            .next_start
            .map_or(Duration::ZERO, |next| next.saturating_duration_since(now));
        let complete = !self.task.records.is_empty() && resolved.len() >= self.task.records.len();
        TaskDone {
            task: self.task.task,
            delivery: self.task.delivery,
            outcome: self.outcome,
            status_code: self.status_code,
            body_bytes: self.body_bytes,
            fields: self.fields.len() as u32,
            links: if complete { Vec::new() } else { self.links },
            redirect: self.redirect,
            resolved,
            clock: SiteClock {
                next_in_ms: millis(next_in),
                delay_ms: self.delay.map(millis),
            },
        }
    }
}

/// Milliseconds, rounded up, so that a wait is never told too short.
pub fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// Milliseconds since the epoch by the wall clock.
pub fn now_ms() -> i64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
