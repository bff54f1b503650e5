//! The arguments and results of the frontier's calls, as plain values.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use webfill_urls::Url;
use webfill_wire::{
    BackoffReason, CrawlKey, Delivery, Evidence, FailedAttempt, Lane, LinkKind, Outcome, Reason,
};

/// Extra time for each lease, because the clocks of two machines do not run equally fast.
pub(crate) const CLOCK_SLACK_MS: i64 = 1_000;

/// Identifies a task within one frontier; older tasks have lower ids.
pub type TaskId = u64;

/// Identifies a site within one frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub(crate) i64);

impl ToSql for SiteId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.into())
    }
}

impl FromSql for SiteId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(SiteId)
    }
}

/// Identifies a stored `attrs` object within one frontier.
pub type AttrsId = i64;

/// A URL to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The URL as it was found, canonical or not. A relative URL is refused as invalid.
    pub url: &'a str,
    /// The number of links from a seed to this URL; 0 for seeds.
    pub depth: u16,
    /// From 1 to 100; `None`: follows from the crawl and the depth.
    pub priority: Option<u8>,
    /// The task on whose page the link was found.
    pub parent: Option<TaskId>,
    /// The records that the page may fill.
    pub records: &'a [String],
    /// The application's `attrs` object, for this page and all pages found from it.
    pub attrs: Option<AttrsId>,
}

/// The result of feeding a batch of candidates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeedTally {
    /// How many candidates became queued tasks.
    pub accepted: u64,
    /// How many finished tasks were queued again, by a request or because a further record needs their pages. (For a
    /// record, their candidates are counted as duplicates.)
    pub requeued: u64,
    /// How many candidates were refused, by reason.
    pub skipped: BTreeMap<Reason, u64>,
    /// The candidates that were refused for other reasons than `duplicate`, in order. Only [`feed`] fills this;
    /// refused links of pages are only counted.
    ///
    /// [`feed`]: super::Tasks::feed
    pub refused: Vec<Refused>,
    /// How many candidates serve only complete records, or belong to a crawl that is over. They are neither judged nor
    /// counted as discovered.
    pub unwanted: u64,
    /// Pages that are done already and are wanted by a further record.
    pub backfills: Vec<Backfill>,
    /// Sites that are in memory and got tasks.
    pub woken: Vec<WokenSite>,
}

/// A site that is in memory and has got tasks to hand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WokenSite {
    pub site: SiteId,
    pub turn: Turn,
}

/// The crawl that is next at a site. It is one of those whose tasks there have the highest priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub priority: u8,
    pub crawl: CrawlKey,
    /// The lane (`http` or `browser`) that the crawl's pages need.
    pub lane: Lane,
}

/// A candidate that did not become a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The candidate's index in the batch.
    pub index: usize,
    pub reason: Reason,
    /// Why the candidate was refused, for people.
    pub why: String,
}

/// A stored page to be applied to a further record, which did not need it yet when the page was handed out. The page is
/// not fetched again; its links are fed for the record at `depth + 1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Backfill {
    pub task: TaskId,
    /// The canonical URL the page was stored under.
    pub url: String,
    pub depth: u16,
    pub record: String,
}

/// A task that was handed out. `task` and `delivery` together identify the lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    pub task: TaskId,
    pub delivery: Delivery,
    pub crawl: CrawlKey,
    pub url: String,
    pub depth: u16,
    pub priority: u8,
    /// The URL of the page where the task's link was found.
    pub parent: Option<String>,
    /// The records that the page may fill, complete or not.
    pub records: Vec<String>,
    /// How many workers the task has killed so far.
    pub deaths: u32,
    /// The application's `attrs` object, as JSON.
    pub attrs: Option<String>,
    /// Earlier attempts that failed and were retried, oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
    /// For a task of an unreachable site: the outcome it ends with, without a request.
    pub unreachable: Option<Outcome>,
}

/// A lease in force: a task, and the site, crawl and priority that it counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLease {
    pub task: TaskId,
    pub delivery: Delivery,
    pub site: SiteId,
    pub priority: u8,
    pub crawl: CrawlKey,
}

/// The parts of a task that its stored page and log lines need.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSketch {
    pub crawl: CrawlKey,
    pub url: String,
    pub site: String,
    pub depth: u16,
    /// The application's `attrs` object, as JSON.
    pub attrs: Option<String>,
}

/// The tasks of a site that one call has leased.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaseBatch {
    pub tasks: Vec<Leased>,
    /// How many tasks the site still has queued; 0 if none of them can be handed out now.
    pub left: u64,
    /// The crawl that is next at the site.
    pub next: Option<Turn>,
    /// Why the batch is empty though something can be handed out next.
    pub nothing: Option<NothingHandedOut>,
}

/// Why a site had nothing to hand out, though some of its queued tasks seemed available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NothingHandedOut {
    /// Tasks of crawls that are over have ended instead.
    CrawlsOver,
    /// Crawls without tasks to hand out were skipped.
    CrawlsHeld,
    /// The site is unreachable, and now backs off for its later tasks.
    BackoffBegins,
    /// The next crawl needs a supervisor of another lane (`http` or `browser`).
    OtherLane,
    /// The site backs off, but the dispatch did not know it.
    BackingOff,
    /// The stored priorities promised a task, but there was none.
    NotFound,
}

impl NothingHandedOut {
    /// Reasons for an empty batch that the next call corrects, or that reveal an error.
    pub const UNEXPECTED: [NothingHandedOut; 3] = [
        NothingHandedOut::OtherLane,
        NothingHandedOut::BackingOff,
        NothingHandedOut::NotFound,
    ];

    /// Whether the call has changed something, so that the next call has a different result.
    pub fn is_progress(self) -> bool {
        !NothingHandedOut::UNEXPECTED.contains(&self)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            NothingHandedOut::CrawlsOver => "crawls_over",
            NothingHandedOut::CrawlsHeld => "crawls_held",
            NothingHandedOut::BackoffBegins => "backoff_begins",
            NothingHandedOut::OtherLane => "other_lane",
            NothingHandedOut::BackingOff => "backing_off",
            NothingHandedOut::NotFound => "not_found",
        }
    }
}

/// The result of reporting an outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum Completion {
    /// The lease was no longer in force, so nothing was changed.
    Stale,
    /// The task is queued again and waits for its retry.
    WillRetry,
    /// The page has no content without its scripts: the task is queued again, for a worker with a browser.
    HandedOn,
    /// The failure is the fault of the site, which backs off; the task is queued again.
    SiteBackoffs(Turn),
    Counted(CompletionTally),
}

/// The results of a counted outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionTally {
    pub crawl: CrawlKey,
    /// The canonical URL the page was stored under.
    pub url: String,
    pub depth: u16,
    /// The incomplete records that did not need the page yet when it was handed out. The stored page is to be applied
    /// to them.
    pub backfill_records: Vec<String>,
    /// The results of the links and the redirect.
    pub links: FeedTally,
}

/// A backoff that has begun, or a site that has become unreachable.
#[derive(Debug, Clone, PartialEq)]
pub struct BackoffBegun {
    pub site: SiteId,
    pub name: String,
    /// The crawl of the task that met the failure.
    pub crawl: CrawlKey,
    pub reason: BackoffReason,
    /// The end of the backoff; with [`UNTIL_WOKEN_MS`](crate::site_state::UNTIL_WOKEN_MS) only a person ends it.
    /// `None`: the site is unreachable.
    pub until_ms: Option<i64>,
    pub evidence: Evidence,
}

/// The result of giving back a task without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnResult {
    Requeued(Turn),
    /// The crawl is over, so the task has ended, too.
    Ended,
    /// The task has killed three workers and ended with `crashed`.
    Quarantined,
    /// The lease was no longer in force, so nothing was changed.
    Stale,
}

/// A site's clock, as stored: when it may be requested next, and by whom.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Clock {
    /// No fetch may start before this time; milliseconds since the epoch.
    pub due_at_ms: i64,
    /// The delay between two fetches; `None` until it is known (until then the default delay applies).
    pub delay_ms: Option<u32>,
    /// When the last known fetch started; milliseconds since the epoch.
    pub last_start_ms: Option<i64>,
    /// The supervisor that gets the site's tasks.
    pub owner: Option<String>,
    /// The address whose limits the site's requests count for.
    pub address: Option<IpAddr>,
}

/// A site with queued tasks, as the dispatcher loads it into memory.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteDue {
    pub id: SiteId,
    pub name: String,
    pub clock: Clock,
    pub rule: SiteRule,
    /// The end of the site's backoff. After that, a single task tests the site. `None`: the site is open.
    pub backoff_until_ms: Option<i64>,
    /// Whether the site's tasks end without a request, until only later ones are left.
    pub is_unreachable: bool,
    pub queued: u64,
    /// The crawl that is next at the site; `None` if nothing can be handed out.
    pub next: Option<Turn>,
}

/// A site's rule, set by hand. For a field that is `None`, the default applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteRule {
    /// The delay between two requests, in milliseconds, instead of the default. The delay in robots.txt is the
    /// minimum.
    pub delay_ms: Option<u32>,
    /// No request starts before this time; milliseconds since the epoch.
    pub block_until_ms: Option<i64>,
    /// How many tasks may still be handed out, over all crawls; further ones stay queued.
    pub pages_left: Option<u64>,
}

/// The queued tasks of a crawl.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueuedCounts {
    pub total: u64,
    /// The lowest and the highest priority of these tasks.
    pub low_priority: Option<u8>,
    pub high_priority: Option<u8>,
    /// The number of sites with queued tasks.
    pub sites: CappedCount,
}

/// A count that stops at a maximum, so that no answer takes long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CappedCount {
    pub count: u64,
    /// Whether the true count is higher.
    pub has_more: bool,
}

impl CappedCount {
    const MOST: i64 = 10_000;

    /// The maximum number of rows that are read for a count.
    pub(super) const EXAMINED: i64 = CappedCount::MOST + 1;

    pub(super) fn from_found(found: i64) -> CappedCount {
        CappedCount {
            count: found.min(CappedCount::MOST) as u64,
            has_more: found > CappedCount::MOST,
        }
    }
}

/// The data that a candidate's task inherits from the page where the candidate was found.
#[derive(Clone, Copy)]
pub(super) struct LinkContext<'a> {
    pub(super) kind: LinkKind,
    pub(super) depth: u16,
    pub(super) priority: u8,
    pub(super) redirects: u8,
    pub(super) parent: Option<TaskId>,
    /// The base URL of relative links.
    pub(super) base: Option<&'a Url>,
    /// The candidate's records that are not complete.
    pub(super) records: &'a [i64],
    pub(super) attrs: Option<AttrsId>,
    /// Whether the candidate was found on a page that only repeats others.
    pub(super) is_of_repetition: bool,
}

/// The crawl that is next at a site, and its priority there.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextCrawl {
    pub(super) priority: u8,
    pub(super) crawl: CrawlKey,
}

/// The counters of an application, over all its crawls.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AppTally {
    pub queued: u64,
    pub leased: u64,
    /// Crawls with queued or leased tasks.
    pub crawls: u64,
}
