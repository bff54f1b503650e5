//! The frontier's arguments and results, as plain values.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde_json::{Map, Value, json};
use webfill_urls::Url;
use webfill_wire::{
    BackoffReason, CrawlKey, Delivery, Evidence, FailedAttempt, Lane, LinkKind, Outcome, Reason,
};

/// Added to each lease, because the clocks of two machines do not run equally fast.
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
    /// Canonical or not; a relative one is refused as invalid.
    pub url: &'a str,
    /// 0 for seeds.
    pub depth: u16,
    /// 1 to 100; `None`: follows from its crawl and depth.
    pub priority: Option<u8>,
    /// The task whose page holds the link.
    pub parent: Option<TaskId>,
    /// The records that its page may fill.
    pub records: &'a [String],
    /// The application's `attrs` object, for its page and all pages that are found from it.
    pub attrs: Option<AttrsId>,
}

/// The result of a batch of candidates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeedTally {
    /// How many became queued tasks.
    pub accepted: u64,
    /// How many finished tasks were queued again, because a further record wants their pages (their candidates are
    /// counted as duplicates) or because of a request.
    pub requeued: u64,
    /// How many were refused, by reason.
    pub skipped: BTreeMap<Reason, u64>,
    /// The candidates refused for another reason than `duplicate`, in order. Only [`feed`] fills
    /// it; refused links of pages are only counted.
    ///
    /// [`feed`]: super::Tasks::feed
    pub refused: Vec<Refused>,
    /// How many serve only records that are resolved already, or belong to a crawl that is over:
    /// they are neither judged nor counted as discovered.
    pub unwanted: u64,
    /// Pages that are done already and that a further record wants.
    pub backfills: Vec<Backfill>,
    /// Sites inside the window that got tasks.
    pub woken: Vec<Woken>,
}

/// A site inside the window has got tasks to hand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    pub site: SiteId,
    pub turn: Turn,
}

/// The crawl that is next at a site: one of those whose tasks there have the highest priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub priority: u8,
    pub crawl: CrawlKey,
    /// The lane that the crawl's pages need.
    pub lane: Lane,
}

/// A candidate that did not become a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// Its index in the batch.
    pub index: usize,
    pub reason: Reason,
    /// The fault, for people.
    pub why: String,
}

/// A stored page that is to be applied to a further record, which came to want it after the page
/// was handed out. There is no second fetch; the page's links are fed for the record at `depth +
/// 1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Backfill {
    pub task: TaskId,
    /// Canonical, as the page was stored.
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
    /// The page that the link was found on.
    pub parent: Option<String>,
    /// The records, resolved or not, that the page serves.
    pub records: Vec<String>,
    /// How many workers it has killed so far.
    pub deaths: u32,
    /// The application's `attrs` object, as JSON.
    pub attrs: Option<String>,
    /// Earlier attempts that failed and were retried, the oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
    /// Its site was unreachable: it ends with this outcome, without a request.
    pub unreachable: Option<Outcome>,
}

/// A lease in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLease {
    pub task: TaskId,
    pub delivery: Delivery,
    pub site: SiteId,
    pub priority: u8,
    pub crawl: CrawlKey,
}

/// The parts of a task for its stored page and log lines.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSketch {
    pub crawl: CrawlKey,
    pub url: String,
    pub site: String,
    pub depth: u16,
    /// The application's `attrs` object, as JSON.
    pub attrs: Option<String>,
}

/// The tasks of a site that were leased by one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaseBatch {
    pub tasks: Vec<Leased>,
    /// How many tasks the site still has queued, if some of them can be handed out now.
    pub left: u64,
    /// The turn that is next.
    pub next: Option<Turn>,
    /// Why the batch is empty though something can be handed out next.
    pub nothing: Option<NothingHandedOut>,
}

/// Why a site had nothing to hand out, though something of it is queued and not held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NothingHandedOut {
    /// Tasks of crawls that are over have ended instead, as many as one call may end.
    CrawlsOver,
    /// Crawls that hand nothing out were passed over, as many as one call may pass.
    CrawlsHeld,
    /// The site was unreachable, and backs off for later tasks.
    BackoffBegins,
    /// The crawl that is next needs a supervisor of another lane.
    OtherLane,
    /// The site backs off, which the dispatch did not know.
    BackingOff,
    /// The stored priorities promised a task, and there was none.
    NotFound,
}

impl NothingHandedOut {
    /// Failures that the next call corrects, or that reveal an error.
    pub const UNEXPECTED: [NothingHandedOut; 3] = [
        NothingHandedOut::OtherLane,
        NothingHandedOut::BackingOff,
        NothingHandedOut::NotFound,
    ];

    /// Whether the call has changed something, so that the next finds something else.
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

/// The results of an outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum Completion {
    /// The lease was not in force any more: nothing was changed.
    Stale,
    /// The task is queued again and waits for its retry.
    WillRetry,
    /// The page says nothing without its scripts: the task is queued again, for a browser.
    HandedOn,
    /// The failure is the site's, which backs off: the task is queued again.
    SiteBackoffs(Turn),
    Counted(CompletionTally),
}

/// The results of a counted outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionTally {
    pub crawl: CrawlKey,
    /// Canonical, as the page was stored.
    pub url: String,
    pub depth: u16,
    /// Unresolved records that came to want the page after it was handed out: they need a backfill.
    pub backfill_records: Vec<String>,
    /// The results of the links and the redirect.
    pub links: FeedTally,
}

/// A site has begun to back off, or is unreachable.
#[derive(Debug, Clone, PartialEq)]
pub struct BackoffBegun {
    pub site: SiteId,
    pub name: String,
    /// The crawl of the task that met the failure.
    pub crawl: CrawlKey,
    pub reason: BackoffReason,
    /// [`UNTIL_WOKEN_MS`](crate::site_state::UNTIL_WOKEN_MS): until a person wakes it. `None`: it is unreachable.
    pub until_ms: Option<i64>,
    pub evidence: Evidence,
}

/// The result of a task that came back without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenBack {
    Requeued(Turn),
    /// Its crawl was over by then, so the task has ended, too.
    Ended,
    /// It has killed three workers and ended in `crashed`.
    Quarantined,
    /// The lease was not in force any more: nothing was changed.
    Stale,
}

/// The stored clock of a site.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Clock {
    /// No fetch may start before this time; milliseconds since the epoch.
    pub due_at_ms: i64,
    /// The delay between two fetches; `None` until it is known (the default delay then holds).
    pub delay_ms: Option<u32>,
    /// When the last known fetch started; milliseconds since the epoch.
    pub last_start_ms: Option<i64>,
    /// The supervisor that the site's tasks go to.
    pub owner: Option<String>,
    /// The address that the site's requests are counted for.
    pub address: Option<IpAddr>,
}

/// A site with queued tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteDue {
    pub id: SiteId,
    pub name: String,
    pub clock: Clock,
    pub rule: SiteRule,
    /// The site backs off until then; after it, one task is to go first. `None`: the site is open.
    pub backoff_until_ms: Option<i64>,
    /// Its tasks end without a request, until only later ones are left.
    pub is_unreachable: bool,
    pub queued: u64,
    /// The turn that is next; `None` if nothing can be handed out.
    pub next: Option<Turn>,
}

/// A site's rule, set by hand. Where a field is `None`, the default holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteRule {
    /// The delay between two requests, in milliseconds, instead of the default; robots.txt's delay
    /// is the minimum.
    pub delay_ms: Option<u32>,
    /// No request starts before this time; milliseconds since the epoch.
    pub block_until_ms: Option<i64>,
    /// How many tasks may still be handed out, over all crawls; the others stay queued.
    pub pages_left: Option<u64>,
}

/// The queue of a crawl.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pending {
    pub total: u64,
    /// The lowest and the highest priority of it.
    pub low_priority: Option<u8>,
    pub high_priority: Option<u8>,
    /// Sites with something queued.
    pub sites: AtMost,
}

/// A count that stops at a number, so that no answer takes long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtMost {
    pub count: u64,
    /// There are more.
    pub has_more: bool,
}

impl AtMost {
    const MOST: i64 = 10_000;

    /// At most this many are checked.
    pub(super) const EXAMINED: i64 = AtMost::MOST + 1;

    pub(super) fn of(found: i64) -> AtMost {
        AtMost {
            count: found.min(AtMost::MOST) as u64,
            has_more: found > AtMost::MOST,
        }
    }
}

/// The counters of a crawl. At every moment
/// `discovered == queued + leased + done + the sum of skipped`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CrawlStatus {
    /// How many lines of the seed input are committed; see [`set_fed`](super::Crawls::set_fed).
    pub fed_lines: u64,
    /// No further seeds will come.
    pub seeds_ended: bool,
    /// URLs judged: seeds, links and redirects.
    pub discovered: u64,
    pub queued: u64,
    pub leased: u64,
    pub done: u64,
    /// Tasks by outcome; together they are `done`.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Candidates that did not become tasks.
    pub skipped: BTreeMap<Reason, u64>,
    /// Outcomes with an HTTP status.
    pub pages: u64,
    /// Pages that were read, and that no mapping is for.
    pub unmatched: u64,
    /// Field values stored.
    pub fields: u64,
    /// Rows that pages list, and of how many the values are stored.
    pub rows: u64,
    pub rows_stored: u64,
    /// Links found on pages.
    pub links: u64,
    /// Decoded body bytes.
    pub bytes: u64,
    /// Sites with at least one task.
    pub sites: u64,
}

impl CrawlStatus {
    /// The counters that the store, the records of runs and `webfill crawl` get, by their names in JSON.
    pub fn counts(&self) -> Map<String, Value> {
        let counts = [
            ("pages", json!(self.pages)),
            ("outcomes", json!(self.outcomes)),
            ("skipped", json!(self.skipped)),
            ("unmatched", json!(self.unmatched)),
            ("fields", json!(self.fields)),
            ("rows", json!(self.rows)),
            ("rows_stored", json!(self.rows_stored)),
            ("links", json!(self.links)),
            ("bytes", json!(self.bytes)),
            ("queued", json!(self.queued)),
            ("sites", json!(self.sites)),
        ];
        let named = counts.map(|(name, count)| (name.to_owned(), count));
        named.into_iter().collect()
    }

    /// Adds the counters of another crawl.
    pub fn add(&mut self, other: &CrawlStatus) {
        self.fed_lines += other.fed_lines;
        self.discovered += other.discovered;
        self.queued += other.queued;
        self.leased += other.leased;
        self.done += other.done;
        self.pages += other.pages;
        self.unmatched += other.unmatched;
        self.fields += other.fields;
        self.rows += other.rows;
        self.rows_stored += other.rows_stored;
        self.links += other.links;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.sites += other.sites;
        for (outcome, n) in &other.outcomes {
            *self.outcomes.entry(*outcome).or_default() += n;
        }
        for (reason, n) in &other.skipped {
            *self.skipped.entry(*reason).or_default() += n;
        }
    }
}

/// The context of a candidate: what its task inherits from the page that it was found on.
#[derive(Clone, Copy)]
pub(super) struct LinkContext<'a> {
    pub(super) kind: LinkKind,
    pub(super) depth: u16,
    pub(super) priority: u8,
    pub(super) redirects: u8,
    pub(super) parent: Option<TaskId>,
    /// The base of relative links.
    pub(super) base: Option<&'a Url>,
    /// Unresolved ones only.
    pub(super) records: &'a [i64],
    pub(super) attrs: Option<AttrsId>,
    /// It was found on a page that only repeats others.
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
