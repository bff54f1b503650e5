//! The messages, named by their direction. They are light: ids and URLs, never pages, records or
//! whole settings. What many tasks share (a crawl's settings, the mappings) is sent once per peer.

use serde::{Deserialize, Serialize};

use crate::vocabulary::{Follow, Lane, Outcome};

/// Names a crawl within one dispatcher; short, because every task carries it.
pub type CrawlKey = u32;

/// What a worker must know about a crawl to fetch and save its pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrawlSettings {
    pub key: CrawlKey,
    pub app_id: String,
    pub crawl_id: String,
    pub max_depth: u16,
    pub follow: Follow,
    /// What its pages need.
    pub lane: Lane,
    /// Sent instead of webfill's own user agent.
    pub useragent: Option<String>,
    /// The application's own JSON object, handed through to every page.
    pub attrs: Option<String>,
    /// The headers of each answer are kept with its page.
    pub headers: bool,
    /// The text of each page is kept with it.
    pub body: bool,
}

/// A mapping file as its author wrote it; every process compiles the set for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingSource {
    pub name: String,
    pub text: String,
}

/// One URL to fetch. `task` and `delivery` together are the lease that the outcome must carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub task: u64,
    /// How many times the task has been handed out, this time included: 1 for the first.
    pub delivery: u32,
    pub crawl: CrawlKey,
    pub url: String,
    /// The site, as the dispatcher routes by it.
    pub site: String,
    pub depth: u16,
    /// The fetch must not start before this many milliseconds from now have passed.
    pub wait_ms: u32,
    /// How long ago the site's last request ended, if another than the receiver may have made
    /// it: the delay counts from there.
    pub last_request_ago_ms: Option<u32>,
    /// The page that the link was found on.
    pub parent: Option<String>,
    /// The records whose missing fields this page may fill.
    pub records: Vec<String>,
    /// The application's own JSON object for this page, instead of the crawl's.
    pub attrs: Option<String>,
    /// 1 to 100, higher first.
    pub priority: u8,
    /// The delay that the operator wants between two requests to the site, in milliseconds; what
    /// robots.txt asks for is still the least.
    pub delay_ms: Option<u32>,
    /// Earlier attempts that failed in a way worth retrying, the oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
}

/// An attempt at a task that failed in a transient way and was followed by a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// When its outcome was known; milliseconds since the epoch.
    pub ended_at_ms: i64,
    pub outcome: Outcome,
    /// The HTTP status, if there was an answer.
    pub status_code: Option<u16>,
}

/// Which of the tasks that have not started are called back. What is left out makes no difference,
/// so the default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecallScope {
    pub crawl: Option<CrawlKey>,
    pub site: Option<String>,
    /// Only those of a lower priority than this.
    pub below: Option<u8>,
    /// What was learnt of the site is forgotten, too: back-off, and how long it wants to be left
    /// alone. When it was asked last is not.
    pub forget: bool,
}

impl RecallScope {
    pub fn holds(&self, crawl: CrawlKey, site: &str, priority: u8) -> bool {
        self.crawl.is_none_or(|wanted| wanted == crawl)
            && self.site.as_deref().is_none_or(|wanted| wanted == site)
            && self.below.is_none_or(|below| priority < below)
    }
}

/// How a task ended, with what the dispatcher needs to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDone {
    pub task: u64,
    pub delivery: u32,
    pub outcome: Outcome,
    /// The HTTP status, if there was an answer.
    pub status_code: Option<u16>,
    /// Decoded body bytes read.
    pub body_bytes: u64,
    /// Field values stored with the page.
    pub fields: u32,
    /// Discovered links, canonical or not; the intake judges them.
    pub links: Vec<String>,
    /// Where a redirect points; judged like a link, at the task's own depth.
    pub redirect: Option<String>,
    /// Records that are complete after this page.
    pub resolved: Vec<String>,
    pub clock: SiteClock,
}

/// What a worker knows of a site's clock after a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SiteClock {
    /// The next fetch may start after this many milliseconds from now.
    pub next_in_ms: u32,
    /// The delay in force between two fetches; `None` where the site has not been asked for it.
    pub delay_ms: Option<u32>,
}

/// A lease given back unfetched or unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReturned {
    pub task: u64,
    pub delivery: u32,
    pub cause: ReturnCause,
    /// The site's clock, where its robots.txt may have been asked for on behalf of this task.
    pub clock: Option<SiteClock>,
}

/// Why a lease came back without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReturnCause {
    /// Its page was not asked for: its supervisor or worker drains, or was cut off.
    Unstarted,
    /// Its worker died; the request may have been made.
    WorkerDied,
    /// Its worker died of this very page.
    KilledWorker,
    /// Its request was broken off, because the worker had been stopped meanwhile.
    CutShort,
}

/// How much a supervisor is ready to hold, counted since it said hello. Running totals instead
/// of increments: a repeated or lost message changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Credit {
    pub tasks: u64,
    pub url_bytes: u64,
}

/// A supervisor introduces itself. Each hello begins a *session*: what belongs to an earlier one
/// and arrives late is told apart by its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Its name, unique in the fleet.
    pub supervisor: String,
    /// Identifies the supervisor's state folder on this machine since its boot. Only one process at
    /// a time holds the folder's lock, so a second hello with the same instance comes from the same
    /// process or from the successor of a dead one.
    pub instance: u64,
    /// Grows with every hello from the same instance.
    pub session: u64,
    /// When this was sent, by the supervisor's own clock.
    pub sent_ms: u64,
    pub lane: Lane,
    pub workers: u16,
    /// The longest that one of its requests may take.
    pub longest_request_ms: u64,
    pub credit: Credit,
    /// Leases still held, or ended without a word from the dispatcher that it knows: tasks with
    /// their deliveries.
    pub held: Vec<(u64, u32)>,
}

/// A supervisor is alive, and this far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorHeartbeat {
    pub session: u64,
    /// When this was sent, by the supervisor's own clock; comes back in the answer.
    pub sent_ms: u64,
    pub credit: Credit,
    /// The last of the session's numbered messages up to which all have arrived.
    pub received: u64,
    /// The number of the last outcomes sent in this session.
    pub outcomes_sent: u64,
}

/// On the tasks socket, upwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SupervisorToDispatcher {
    Hello(Hello),
    Credit {
        session: u64,
        credit: Credit,
    },
    Heartbeat(SupervisorHeartbeat),
    /// Drained: nothing is held any more once the outcomes up to this number are there.
    Goodbye {
        session: u64,
        outcomes_sent: u64,
    },
}

/// On the tasks socket, downwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DispatcherToSupervisor {
    /// The answer to hello. Tasks follow.
    Welcome {
        session: u64,
        /// The hello's own `sent_ms`.
        heard_ms: u64,
        /// How long, from a message that the dispatcher has heard, fetches may be started.
        lease_ms: u64,
        mappings: Vec<MappingSource>,
    },
    /// Another supervisor of this name may still be alive: ask again later.
    NameTaken { session: u64 },
    /// Numbered within the session, from 1 on, so that a lost one is noticed.
    Tasks {
        session: u64,
        number: u64,
        /// The crawls among the tasks' that the supervisor was not told of yet.
        crawls: Vec<CrawlSettings>,
        tasks: Vec<Task>,
    },
    /// The crawls told of so far in this session may be forgotten, but for those of tasks that are
    /// held: they will be told again with their next task.
    ForgetCrawls { session: u64 },
    /// Give back what has not started of these, and say when none of it can start any more; see
    /// [`SupervisorOutcomes::recalled`]. Numbered like tasks.
    Recall {
        session: u64,
        number: u64,
        recall: u64,
        scope: RecallScope,
    },
    /// The answer to a heartbeat.
    Heartbeat {
        session: u64,
        /// The newest `sent_ms` heard in this session.
        heard_ms: u64,
        /// The session's outcomes up to this number are durable.
        outcomes_heard: u64,
    },
    /// The dispatcher does not know this session, or messages of it are missing: say hello again.
    SayHello { session: u64 },
    /// Give back what has not started, finish what has, say goodbye.
    Drain,
}

/// On the outcomes socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupervisorOutcomes {
    pub supervisor: String,
    pub session: u64,
    /// Counts the session's outcome messages, from 1 on.
    pub number: u64,
    pub done: Vec<TaskDone>,
    pub returned: Vec<TaskReturned>,
    /// Recalls that are carried out: nothing that they mean starts any more. What waited in a queue
    /// is given back here or was before; what was about to start may follow.
    pub recalled: Vec<u64>,
}

/// From a supervisor to one of its workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SupervisorToWorker {
    Mappings(Vec<MappingSource>),
    Crawl(CrawlSettings),
    /// The crawls told of so far may be forgotten, but for those of tasks that are held.
    ForgetCrawls,
    /// Sites that the slot's former worker may have been asking when it died.
    Inherited {
        sites: Vec<String>,
    },
    /// Requests may be started until then, by the machine's clock since its boot.
    LeaseUntil {
        boot_ms: u64,
    },
    Tasks(Vec<Task>),
    /// Give back what has not started of these. Confirmed by number, unless that is 0.
    Recall {
        recall: u64,
        scope: RecallScope,
    },
    /// Give back what has not started, finish what has, and exit.
    Drain,
}

/// From a worker to its supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerToSupervisor {
    pub slot: u16,
    /// Counts the restarts of this slot, so that a dead worker's last words are told apart.
    pub incarnation: u32,
    pub done: Vec<TaskDone>,
    pub returned: Vec<TaskReturned>,
    /// Recalls that are carried out, as in [`SupervisorOutcomes`].
    pub recalled: Vec<u64>,
    /// Said once, when the worker is ready for tasks.
    pub ready: bool,
}
