//! What clients may ask, on the control socket and by HTTP: JSON in, JSON out.
//!
//! A list is crawl requests, taken in or refused as a whole; an object with an `action` is an
//! action; any other object is one crawl request. A refusal says where and why, and nothing has
//! changed then. `webfill crawl` speaks with the dispatcher that it started by some actions of its
//! own ([`Request`]).

mod action;
mod batch;
mod crawl_request;
mod rule;
mod spider;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webfill_wire::CrawlKey;

use crate::crawl_spec::CrawlSpec;
use crate::frontier::{CrawlStatus, FeedTally};

pub use self::action::{Action, SiteAction, Subject};
pub use self::batch::{Batch, MOST_REQUESTS};
pub(crate) use self::batch::{Order, Seed};
pub(crate) use self::crawl_request::Judge;
pub use self::crawl_request::{SCHEMA, schema};
pub use self::spider::Spider;

/// A question or an order that has been read.
#[derive(Debug)]
pub enum Asked {
    /// Of `webfill crawl`.
    Own(Request),
    /// Crawl requests. `whole`: one that is refused has all of them refused.
    Feed {
        batch: Batch,
        whole: bool,
    },
    Act(Action),
}

/// What `webfill crawl` asks the dispatcher that it started.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Opens a crawl or resumes it. Answered with its key and how much of its seed input is
    /// durable already.
    OpenCrawl { spec: Box<CrawlSpec> },
    /// Seeds of an open crawl. The answer comes when they are durable.
    FeedSeeds {
        crawl: CrawlKey,
        seeds: Vec<SeedUrl>,
        /// How far the input has been read once these are in.
        fed_lines: u64,
    },
    /// All seeds are in: the crawl is finished when nothing is queued or leased any more.
    EndOfSeeds { crawl: CrawlKey },
    /// The counters of crawls, added up.
    CrawlStatus { crawls: Vec<CrawlKey> },
    /// Hand out no more, and end. Answered with the last counters of the crawls when everything
    /// is back.
    Drain { crawls: Vec<CrawlKey> },
}

/// One URL of a seed.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeedUrl {
    pub url: String,
    /// The record whose missing fields the page may fill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where in the request, as a JSON path.
    pub path: String,
    pub message: String,
}

impl Refusal {
    pub fn new(path: &str, message: impl ToString) -> Refusal {
        Refusal {
            path: path.to_owned(),
            message: message.to_string(),
        }
    }

    pub fn answer(&self) -> Value {
        json!({"error": {"path": self.path, "message": self.message}})
    }
}

/// The actions of [`Request`].
const OWN_ACTIONS: &[&str] = &[
    "open_crawl",
    "feed_seeds",
    "end_of_seeds",
    "crawl_status",
    "drain",
];

/// Reads what a client has sent.
pub fn read(text: &[u8], now_ms: i64) -> Result<Asked, Refusal> {
    let unreadable = |error: serde_json::Error| Refusal::new("$", error);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        let batch = batch::read_list(text, now_ms)?;
        return Ok(Asked::Feed { batch, whole: true });
    }
    let value: Value = serde_json::from_slice(text).map_err(unreadable)?;
    match value.get("action").map(|action| action.as_str()) {
        None => {
            let request = Judge::new(now_ms).judge(value, "$")?;
            let mut batch = Batch::default();
            batch.add(request, 0);
            Ok(Asked::Feed { batch, whole: true })
        }
        Some(Some(action)) if OWN_ACTIONS.contains(&action) => serde_json::from_value(value)
            .map(Asked::Own)
            .map_err(unreadable),
        Some(_) => read_action(value).map(Asked::Act),
    }
}

/// Reads an action that any client may ask for.
pub fn read_action(value: Value) -> Result<Action, Refusal> {
    match value.get("action").and_then(Value::as_str) {
        Some(action) => {
            let action = action.to_owned();
            action::read(&action, value)
        }
        None => Err(Refusal::new("$.action", "expected text")),
    }
}

/// The answer to fed seeds.
pub fn fed(tally: &FeedTally) -> Value {
    let refused: Vec<Value> = tally
        .refused
        .iter()
        .map(
            |refused| json!({"index": refused.index, "reason": refused.reason, "why": refused.why}),
        )
        .collect();
    json!({"accepted": tally.accepted, "refused": refused})
}

/// The answer to a question about a crawl. `finished`: nothing is left to do. `limit`: nothing
/// more is handed out because the crawl's page limit is reached.
pub fn status(
    status: &CrawlStatus,
    finished: bool,
    limit_reached: bool,
    supervisors: usize,
) -> Value {
    json!({
        "finished": finished,
        "limit_reached": limit_reached,
        "supervisors": supervisors,
        "fed_lines": status.fed_lines,
        "discovered": status.discovered,
        "queued": status.queued,
        "leased": status.leased,
        "done": status.done,
        "pages": status.pages,
        "fields": status.fields,
        "links": status.links,
        "bytes": status.bytes,
        "sites": status.sites,
        "outcomes": status.outcomes,
        "skipped": status.skipped,
    })
}
