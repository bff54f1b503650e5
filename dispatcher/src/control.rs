//! Requests on the control socket: JSON in, JSON out, one frame each. This is the part that
//! `webfill crawl` speaks with the dispatcher that it started.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webfill_wire::CrawlKey;

use crate::crawl_spec::CrawlSpec;
use crate::frontier::{CrawlStatus, FeedTally};

/// What a client may ask for.
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

/// Reads a request.
pub fn read(frame: &[u8]) -> Result<Request, Refusal> {
    serde_json::from_slice(frame).map_err(|error| Refusal::new("$", error))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rubbish_gets_an_error_that_says_what_is_wrong() {
        for rubbish in ["", "{", "[]", "\u{0}", r#"{"action": "dance"}"#] {
            let refusal = read(rubbish.as_bytes()).unwrap_err();
            assert!(!refusal.message.is_empty());
        }
        let refusal = read(br#"{"action": "drain", "crawls": [], "now": true}"#).unwrap_err();
        assert!(
            refusal.answer()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("now")
        );
    }
}
