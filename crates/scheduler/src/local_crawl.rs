//! The requests of `webfill crawl` to the dispatcher that it started, and of the feeders of watches to theirs.
//!
//! They go over the same sockets as the public language ([`webfill_api`]), whose requests `webfill crawl` sends where
//! both say the same: `--retry` is the action `retry`. These are the others, and why the public language does not have
//! them. Only this user's processes can send them, and both ends are the same binary, so they change with the
//! dispatcher.
//!
//! | request | what an application may not send or receive |
//! |---|---|
//! | `open_crawl` | all settings of a crawl before its first URL, such as the time of its run; the answer has its key and the position in the input |
//! | `note_dataset`, `feed_seeds` | the records that a page may fill, which are in the store of the sender; the position in the input, durable with the seeds |
//! | `feed_requests` | what requests leave open is as in the sender's own crawl |
//! | `end_of_seeds` | that the input is complete: an application may feed its crawl at any time |
//! | `crawl_status` | the counters of several crawls as one, ten times a second, and whether something will still come of them; `info` is for one crawl, and reports why it waits |
//! | `failed_urls`, `dead_records` | failed URLs counted by site and outcome, and all dead records, slice by slice |
//! | `get_run`, `get_run_state`, `count_run` | a watch with its passwords, and changes to the record of its run |
//! | `end` | that the dispatcher ends; `drain` ends supervisors |

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use webfill_api::{CrawlSpec, Refusal};
use webfill_wire::CrawlKey;

use crate::frontier::{CrawlStatus, FeedTally, WaitingSites};

/// A request of `webfill crawl`. Each may be repeated without harm, because an answer may be lost
/// when the dispatcher dies.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum LocalRequest {
    /// Opens the command's own crawl or resumes it. The answer has its key, the position in the seed input up to
    /// which seeds are durable, whether reading starts over, and the dataset of its records, if it has had any.
    /// Refused if the crawl began with another scope, or with records of another dataset.
    OpenCrawl {
        spec: Box<CrawlSpec>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dataset: Option<ChosenDataset>,
    },
    /// The crawl has records, of this dataset.
    NoteDataset { crawl: CrawlKey, dataset: String },
    /// Seeds of an open crawl. The answer comes when they are durable.
    FeedSeeds {
        crawl: CrawlKey,
        seeds: Vec<SeedUrl>,
        /// The position in the input behind these seeds.
        fed_lines: u64,
    },
    /// Crawl requests among the seeds. They are parsed and applied like those of any application. Beyond the keys of
    /// a request, their crawls have the settings of the command's own crawl.
    FeedRequests {
        /// The command's own crawl.
        command: CrawlKey,
        requests: Vec<LineRequest>,
    },
    /// All seeds are in: the crawl is finished when nothing is queued or leased any more.
    EndOfSeeds { crawl: CrawlKey },
    /// The counters of crawls, summed up, and whether the rest of them can come to nothing: see [`Limits`]. Without
    /// limits, they are the last counters.
    CrawlStatus {
        crawls: Vec<CrawlKey>,
        limits: Option<Limits>,
    },
    /// Counts of permanently failed URLs of crawls, a slice after this position.
    FailedUrls { crawls: Vec<CrawlKey>, after: i64 },
    /// Records of crawls without a URL that could be had, the same way.
    DeadRecords { crawls: Vec<CrawlKey>, after: i64 },
    /// The needs of a watch's feeder: the watch, its crawl, and how far its seeds are durable.
    GetRun { watch: String, run: u64 },
    /// Whether the run is over.
    GetRunState { watch: String, run: u64 },
    /// The feeder's counts after the end of the run; they are added to the run's record.
    CountRun {
        watch: String,
        run: u64,
        counts: Map<String, Value>,
    },
    /// Hand out no more tasks, and end. Answered with the last counters of the crawls when all
    /// leased tasks are back.
    End { crawls: Vec<CrawlKey> },
}

/// For how long a command waits.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// While everything that is left backs off; `None`: until it does not, because the dispatcher has a
    /// patience.
    pub backoffs_ms: Option<u64>,
    /// While this machine does not reach the web.
    pub cut_off_ms: u64,
}

/// The dataset that the records of a command are of.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenDataset {
    pub name: String,
    /// A flag or a setting names it; else it has the name of the source that the records are read from.
    pub is_given: bool,
}

/// One URL of a seed.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeedUrl {
    pub url: String,
    /// The records whose missing fields the page may fill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
}

/// One crawl request of a seeds file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LineRequest {
    /// Its line number, from 1.
    pub line: u64,
    pub request: Value,
}

/// The `action` of every [`LocalRequest`].
const ACTIONS: &[&str] = &[
    "open_crawl",
    "note_dataset",
    "feed_seeds",
    "feed_requests",
    "end_of_seeds",
    "crawl_status",
    "failed_urls",
    "dead_records",
    "get_run",
    "get_run_state",
    "count_run",
    "end",
];

impl LocalRequest {
    /// Whether a message has one of these actions.
    pub(crate) fn is_named_in(message: &Value) -> bool {
        let action = message.get("action").and_then(Value::as_str);
        action.is_some_and(|action| ACTIONS.contains(&action))
    }

    /// Whether only the feeders that the dispatcher has started may ask it: its answers hold passwords,
    /// and it changes the records of runs.
    pub(crate) fn is_of_feeders(&self) -> bool {
        matches!(
            self,
            LocalRequest::GetRun { .. }
                | LocalRequest::GetRunState { .. }
                | LocalRequest::CountRun { .. }
        )
    }

    pub(crate) fn parse(message: Value) -> Result<LocalRequest, Refusal> {
        serde_json::from_value(message).map_err(|error| Refusal::new("$", error))
    }
}

/// The answer to fed seeds.
pub(crate) fn fed(tally: &FeedTally) -> Value {
    let refused: Vec<Value> = tally
        .refused
        .iter()
        .map(
            |refused| json!({"index": refused.index, "reason": refused.reason, "why": refused.why}),
        )
        .collect();
    json!({"accepted": tally.accepted, "refused": refused})
}

/// The sites of the crawls that back off.
#[derive(Debug, Default)]
pub(crate) struct Backoffs {
    /// Everything left backs off beyond the given time, until then; milliseconds since the epoch.
    pub(crate) all_until_ms: Option<i64>,
    /// How many sites with queued tasks back off.
    pub(crate) sites: u64,
    /// The first of them by the end of their backoffs.
    pub(crate) first: Vec<Value>,
    /// How long the slowest of the sites in memory takes at least, at its delay.
    pub(crate) least_time_left_ms: i64,
    /// The sites from which nothing can be requested for a while.
    pub(crate) waiting: WaitingSites,
    /// This machine is offline: since when, and the evidence.
    pub(crate) cut_off: Option<Value>,
}

/// The answer to a question about crawls. `finished`: nothing is left to do. `limit_reached`: no
/// further task is handed out because a crawl's page limit is reached.
pub(crate) fn status(
    status: &CrawlStatus,
    backoff: &Backoffs,
    finished: bool,
    limit_reached: bool,
    supervisors: usize,
) -> Value {
    let mut answer = json!({
        "finished": finished,
        "limit_reached": limit_reached,
        "backoff_until_ms": backoff.all_until_ms,
        "backing_off": backoff.sites,
        "backing_off_first": backoff.first,
        "least_time_left_ms": backoff.least_time_left_ms,
        "waiting": {"by": backoff.waiting.by, "first_ms": backoff.waiting.first_ms},
        "cut_off": backoff.cut_off,
        "supervisors": supervisors,
        "fed_lines": status.fed_lines,
        "discovered": status.discovered,
        "leased": status.leased,
        "done": status.done,
    });
    if let Value::Object(answer) = &mut answer {
        answer.extend(status.counts());
    }
    answer
}
