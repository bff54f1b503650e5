//! What the frontier is handed and what it answers, in plain values.

use std::collections::BTreeMap;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use webfill_wire::{CrawlKey, FailedAttempt, Lane, Outcome, Reason};

/// Names a task within one frontier; older tasks have lower ids.
pub type TaskId = u64;

/// Names a site within one frontier.
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

/// Names an application's own object within one frontier.
pub type AttrsId = i64;

/// A URL to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Canonical or not; a relative one is refused as invalid.
    pub url: &'a str,
    /// 0 for seeds.
    pub depth: u16,
    /// 1 to 100; `None`: by its crawl and depth.
    pub priority: Option<u8>,
    /// The task whose page holds the link.
    pub parent: Option<TaskId>,
    /// The records that its page may fill.
    pub records: &'a [String],
    /// What its application handed over with it, for its page and all pages that follow from it.
    pub attrs: Option<AttrsId>,
}

/// What became of a batch of candidates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeedTally {
    /// Became queued tasks.
    pub accepted: u64,
    /// Were refused, by reason.
    pub skipped: BTreeMap<Reason, u64>,
    /// Those refused for anything but being a duplicate, in order. Only [`feed`] fills it: the
    /// links of pages are too many to be told apart.
    ///
    /// [`feed`]: super::Frontier::feed
    pub refused: Vec<Refused>,
    /// Serve only records that are resolved already, or belong to a crawl that is over: neither
    /// judged nor counted as discovered.
    pub unwanted: u64,
    /// Pages that are done already and are now wanted for a further record.
    pub backfills: Vec<Backfill>,
    /// Sites inside the window that got something.
    pub woken: Vec<Woken>,
}

/// A site inside the window has something more to hand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    pub site: SiteId,
    pub turn: Turn,
}

/// Whose turn it is at a site: one of the crawls whose tasks there have the highest priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub priority: u8,
    pub crawl: CrawlKey,
    /// What its pages need.
    pub lane: Lane,
}

/// A candidate that did not become a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// Its place in the batch.
    pub index: usize,
    pub reason: Reason,
    /// For people: what is wrong with it.
    pub why: String,
}

/// A page that was fetched before a further record asked for it. The stored page serves the
/// record without a second fetch, and the page's links go on for that record at `depth + 1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Backfill {
    pub task: TaskId,
    /// Canonical, as the page was stored.
    pub url: String,
    pub depth: u16,
    pub record: String,
}

/// A task that was handed out. `task` and `attempt` together are the lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    pub task: TaskId,
    /// 1 for the first time that it is handed out.
    pub delivery: u32,
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
    /// The application's own object, as JSON.
    pub attrs: Option<String>,
    /// Earlier attempts that were followed by another, the oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
}

/// A lease in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLease {
    pub task: TaskId,
    pub delivery: u32,
    pub site: SiteId,
    pub priority: u8,
}

/// What names a task to people.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSketch {
    pub crawl: CrawlKey,
    pub url: String,
    pub site: String,
    pub depth: u16,
    /// The application's own object, as JSON.
    pub attrs: Option<String>,
}

/// What a site has to hand out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaseBatch {
    pub tasks: Vec<Leased>,
    /// How many the site still has queued, if some of them can be handed out now. An empty batch
    /// with some left means that many tasks of ended crawls were closed on the way: ask again.
    pub left: u64,
    /// Whose turn is next.
    pub next: Option<Turn>,
}

/// What an outcome led to.
#[derive(Debug, Clone, PartialEq)]
pub enum Completion {
    /// The lease was not in force any more: nothing was changed.
    Stale,
    /// The task is to be tried again, and waits for that in the queue.
    WillRetry {
        site: SiteId,
    },
    Counted(CompletionTally),
}

/// What a counted outcome led to.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionTally {
    pub crawl: CrawlKey,
    pub site: SiteId,
    /// Canonical, as the page was stored.
    pub url: String,
    pub depth: u16,
    /// Unresolved records that came to want the page after it was handed out: the stored page
    /// is still to be applied to them.
    pub backfill_records: Vec<String>,
    /// What became of the links and the redirect.
    pub links: FeedTally,
}

/// What became of a task that came back without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenBack {
    Requeued(Turn),
    /// Its crawl was over by then, and so is the task.
    Ended,
    /// It has killed three workers and ended in `crashed`.
    Quarantined,
    /// The lease was not in force any more: nothing was changed.
    Stale,
}

/// The kept clock of a site.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Clock {
    /// No fetch may start before; milliseconds since the epoch.
    pub due_at_ms: i64,
    /// Between two fetches; `None` until the site was asked (the default delay then holds).
    pub delay_ms: Option<u32>,
    /// When the last fetch started, as far as is known; milliseconds since the epoch.
    pub last_start_ms: Option<i64>,
    /// The supervisor that the site's tasks go to.
    pub owner: Option<String>,
}

/// A site with queued tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteDue {
    pub id: SiteId,
    pub name: String,
    pub clock: Clock,
    pub rule: SiteRule,
    pub queued: u64,
    /// Whose turn it is; `None` if nothing can be handed out.
    pub next: Option<Turn>,
}

/// What holds for a site because somebody has said so. Where nothing is said, the default holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteRule {
    /// Between two requests, in milliseconds, instead of the default; what robots.txt asks for is
    /// still the least.
    pub delay_ms: Option<u32>,
    /// No request starts before; milliseconds since the epoch.
    pub block_until_ms: Option<i64>,
    /// So many tasks may still be handed out, over all crawls; what is queued then waits.
    pub pages_left: Option<u64>,
}

/// What a crawl has queued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pending {
    pub total: u64,
    /// The lowest and the highest priority of it.
    pub low_priority: Option<u8>,
    pub high_priority: Option<u8>,
    /// Sites with something queued.
    pub sites: u64,
}

/// The counters of a crawl. At every moment
/// `discovered == queued + leased + done + the sum of skipped`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CrawlStatus {
    /// How much of the seed input is durable; see [`set_fed`](super::Frontier::set_fed).
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
    /// Field values stored.
    pub fields: u64,
    /// Links found on pages.
    pub links: u64,
    /// Decoded body bytes.
    pub bytes: u64,
    /// Sites with at least one task.
    pub sites: u64,
}

impl CrawlStatus {
    /// Adds the counters of another crawl.
    pub fn add(&mut self, other: &CrawlStatus) {
        self.fed_lines += other.fed_lines;
        self.discovered += other.discovered;
        self.queued += other.queued;
        self.leased += other.leased;
        self.done += other.done;
        self.pages += other.pages;
        self.fields += other.fields;
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
