//! The requests of `webfill crawl` to the dispatcher that it started, and of the feeders of watches to the dispatcher
//! that started them.
//!
//! They use the same sockets as the public language ([`webfill_api`]). Where this language has a request for the same
//! purpose, `webfill crawl` sends it: `--retry` is the action `retry`. The table lists the other requests, and why the
//! public language does not have them. Only this user's processes can send them, and both ends are the same binary, so
//! they change with the dispatcher.
//!
//! | request | what an application may not send or receive |
//! |---|---|
//! | `open_crawl` | all settings of a crawl before its first URL, such as the time of its run; the answer has its key and the position in the input |
//! | `note_dataset`, `feed_seeds` | the records that a page may fill, which are in the store of the sender; the position in the input, durable with the seeds |
//! | `feed_requests` | what requests leave open is as in the sender's own crawl |
//! | `end_of_seeds` | that the input is complete: an application may feed its crawl at any time |
//! | `crawl_status` | the counters of several crawls as one, ten times a second, and whether something will still come of them; `info` is for one crawl, and reports why it waits |
//! | `failed_urls`, `dead_records` | failed URLs counted by site and outcome, and all dead records, page by page |
//! | `get_run`, `get_run_state`, `count_run` | a watch with its passwords, and changes to the record of its run |
//! | `end` | that the dispatcher ends; `drain` ends supervisors |

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use webfill_api::{CrawlSpec, Refusal};
use webfill_wire::CrawlKey;

use crate::frontier::{CrawlStatus, FeedTally, WaitingSites};

/// A request of `webfill crawl`. Each may be repeated without harm, because an answer is lost if the dispatcher dies.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum LocalRequest {
    /// Opens the command's own crawl or resumes it. The answer has its key, and the position in the seed input up to
    /// which seeds are durable. It also says whether reading starts over, and has the dataset of the crawl's records,
    /// if there were any. Refused if the crawl began with another scope, or with records of another dataset.
    OpenCrawl {
        spec: Box<CrawlSpec>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dataset: Option<ChosenDataset>,
    },
    /// Notes that the crawl has records of this dataset.
    NoteDataset { crawl: CrawlKey, dataset: String },
    /// Feeds seeds to an open crawl. The answer comes when they are durable.
    FeedSeeds {
        crawl: CrawlKey,
        seeds: Vec<SeedUrl>,
        /// The position in the input after these seeds.
        fed_lines: u64,
    },
    /// Feeds crawl requests that are among the seeds. They are parsed and applied like those of any application.
    /// Settings that a request cannot contain are those of the command's own crawl.
    FeedRequests {
        /// The command's own crawl.
        command: CrawlKey,
        requests: Vec<LineRequest>,
    },
    /// Notes that all seeds were fed. From then on the crawl is finished once none of its tasks is queued or leased.
    EndOfSeeds { crawl: CrawlKey },
    /// Asks for the counters of crawls, summed up, and whether waiting for the rest of them is pointless by these
    /// [`Limits`]. Without limits, the question is about the final counters.
    CrawlStatus {
        crawls: Vec<CrawlKey>,
        limits: Option<Limits>,
    },
    /// Asks for counts of the crawls' permanently failed URLs by site and outcome: the part of the list after this
    /// position.
    FailedUrls { crawls: Vec<CrawlKey>, after: i64 },
    /// Asks for the crawls' records without any URL that could be fetched: the part of the list after this position.
    DeadRecords { crawls: Vec<CrawlKey>, after: i64 },
    /// Asks, for the feeder of a watch (the process that reads its seeds), for the watch, its crawl, and how far its
    /// seeds are durable.
    GetRun { watch: String, run: u64 },
    /// Asks whether the run is over.
    GetRunState { watch: String, run: u64 },
    /// Adds the feeder's counts to the run's record, after the end of the run.
    CountRun {
        watch: String,
        run: u64,
        counts: Map<String, Value>,
    },
    /// Orders the dispatcher to hand out no more tasks, and to end. The answer comes when all leased tasks are back,
    /// and has the final counters of the crawls.
    End { crawls: Vec<CrawlKey> },
}

/// How long a command waits without progress.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// How long to wait while all remaining sites back off. `None`: no limit, because the dispatcher has its own
    /// patience.
    pub backoffs_ms: Option<u64>,
    /// How long to wait while this machine does not reach the web.
    pub offline_ms: u64,
}

/// The dataset (named set of records) that a command's records belong to.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenDataset {
    pub name: String,
    /// Whether a flag or a setting has named the dataset. Otherwise it is named after the source of the records.
    pub is_given: bool,
}

/// One URL among the seeds of a crawl.
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
    /// The line number of the request, from 1.
    pub line: u64,
    pub request: Value,
}

/// The `action` names of all [`LocalRequest`]s.
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
    /// Whether a message is a request of `webfill crawl`, by its action.
    pub(crate) fn is_local_action(message: &Value) -> bool {
        let action = message.get("action").and_then(Value::as_str);
        action.is_some_and(|action| ACTIONS.contains(&action))
    }

    /// Whether only feeders that the dispatcher has started may send the request, because the answer has passwords or
    /// the record of a run is changed.
    pub(crate) fn is_for_feeders_only(&self) -> bool {
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

/// The answer to a request that feeds seeds: how many were accepted, and which were refused.
pub(crate) fn feed_answer(tally: &FeedTally) -> Value {
    let refused: Vec<Value> = tally
        .refused
        .iter()
        .map(
            |refused| json!({"index": refused.index, "reason": refused.reason, "why": refused.why}),
        )
        .collect();
    json!({"accepted": tally.accepted, "refused": refused})
}

/// The crawls' sites that back off, and other sites that delay the end of the crawls.
#[derive(Debug, Default)]
pub(crate) struct Backoffs {
    /// If all remaining sites back off for longer than the client's limit: until when; milliseconds since the epoch.
    pub(crate) all_until_ms: Option<i64>,
    /// How many sites with queued tasks back off.
    pub(crate) sites: u64,
    /// The sites whose backoffs end first.
    pub(crate) first: Vec<Value>,
    /// The minimum time until the slowest site in memory has no queued tasks left, given its delay.
    pub(crate) least_time_left_ms: i64,
    /// The sites that cannot be requested for a while.
    pub(crate) waiting: WaitingSites,
    /// If this machine is offline: since when, and the evidence.
    pub(crate) offline: Option<Value>,
}

/// The answer to a question about crawls. `finished`: nothing is left to do. `limit_reached`: no further task is
/// handed out, because a crawl has reached its page limit.
pub(crate) fn status_answer(
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
        "offline": backoff.offline,
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
