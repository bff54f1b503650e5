//! The messages between processes, named by their direction.
//!
//! They hold ids and URLs, never pages or records. Data shared by many tasks (a crawl's settings, the mappings) is
//! sent once to each peer. Once it is released, the shape of a message never changes, because the next release must
//! read it; a new message requires a new [`WIRE_VERSION`](crate::codec::WIRE_VERSION).
//! `crates/wire/tests/frozen_bytes.rs` checks both.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::report::SupervisorReport;
use crate::scripts::SiteScripts;
use crate::vocabulary::{Follow, Lane, Outcome};

/// Identifies a crawl within one dispatcher. A short number, because every task carries it.
pub type CrawlKey = u32;

/// The settings of a crawl that a worker needs to fetch and save its pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrawlSettings {
    pub key: CrawlKey,
    pub app_id: String,
    pub crawl_id: String,
    pub max_depth: u16,
    pub follow: Follow,
    /// The lane that its pages need.
    pub lane: Lane,
    /// The text for the user agent: see `PolitenessConfig::user_agent_of` in the worker.
    pub useragent: Option<String>,
    /// The application's own JSON object, copied to every page.
    pub attrs: Option<String>,
    /// Store the headers of each response with its page.
    pub headers: bool,
    /// Store the text of each page with it.
    pub body: bool,
    /// Further features it needs from its workers.
    pub features: Vec<Feature>,
}

impl CrawlSettings {
    /// Whether the crawl needs this feature from its workers.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }
}

/// A feature that a crawl may need from its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Feature {
    /// The content of pages is kept, for comparison with earlier versions.
    Changes,
    /// Stored pages are requested conditionally (RFC 9110, section 13).
    Conditional,
    /// The sitemaps and feeds of seeds' sites are read for links.
    Sitemaps,
    /// The bodies of pages are kept, so that they can be read again without fetching.
    KeepBodies,
}

/// Names a set of mappings: a hash of its content.
pub type MappingsVersion = String;

/// The text of a mapping file; each worker compiles the set itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingSource {
    pub name: String,
    pub text: String,
}

/// Identifies one delivery of a task. Of two deliveries of a task, the greater is the later one, regardless of the
/// machines' clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Delivery {
    /// The *epoch* in which it was made: a number that each start of a dispatcher gets, greater than those of all
    /// starts before. It distinguishes the deliveries of two copies of one frontier.
    pub epoch: u64,
    /// How many times the task has been delivered, including this time: 1 for the first.
    pub number: u32,
}

impl Delivery {
    pub const fn new(epoch: u64, number: u32) -> Delivery {
        Delivery { epoch, number }
    }
}

/// One URL to fetch. `task` and `delivery` together are the lease that the outcome must carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub task: u64,
    pub delivery: Delivery,
    pub crawl: CrawlKey,
    pub url: String,
    /// The site, as the dispatcher routes by it.
    pub site: String,
    pub depth: u16,
    /// The fetch must not start before this many milliseconds from now have passed.
    pub wait_ms: u32,
    /// How long ago the site's last request ended, if another worker may have made it. The delay counts from there.
    pub last_request_ago_ms: Option<u32>,
    /// The page that the link was found on.
    pub parent: Option<String>,
    /// The records whose missing fields this page may fill.
    pub records: Vec<String>,
    /// The application's own JSON object for this page; replaces the crawl's.
    pub attrs: Option<String>,
    /// 1 to 100, higher first.
    pub priority: u8,
    /// The delay between two requests to the site that the operator has set, in milliseconds. A longer
    /// `Crawl-delay` of robots.txt takes precedence.
    pub delay_ms: Option<u32>,
    /// Earlier attempts that failed in a way worth retrying, the oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
    /// The site is unreachable: the task ends with this outcome, and nothing is requested.
    pub unreachable: Option<Outcome>,
    pub address_bounds: AddressBounds,
}

/// Whether a task's requests count against the bounds of an address (`politeness.address_delay`,
/// `politeness.address_in_flight`), which the dispatcher keeps for all workers together. If they do, and the host's
/// name resolves to another address than the one given here, the worker gives the task back unstarted, with that
/// address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum AddressBounds {
    /// They do not.
    #[default]
    None,
    /// They do if the address is public. Has the address that the task was counted for; `None` if the dispatcher
    /// knows none yet.
    OfPublic(Option<IpAddr>),
    /// They do for every address.
    OfAny(Option<IpAddr>),
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

/// The scope of a recall: the unstarted tasks that meet all conditions. A condition that is `None` is
/// met by every task, so the default scope is all tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecallScope {
    pub crawl: Option<CrawlKey>,
    pub site: Option<String>,
    /// Only tasks with a lower priority than this.
    pub below: Option<u8>,
    /// Also reset the site's backoff and `Retry-After`. The time of its last request is kept, so its delay still
    /// holds.
    pub forget: bool,
}

impl RecallScope {
    /// Whether a task of this crawl, site and priority is in the scope.
    pub fn holds(&self, crawl: CrawlKey, site: &str, priority: u8) -> bool {
        self.crawl.is_none_or(|wanted| wanted == crawl)
            && self.site.as_deref().is_none_or(|wanted| wanted == site)
            && self.below.is_none_or(|below| priority < below)
    }
}

/// The outcome of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDone {
    pub task: u64,
    pub delivery: Delivery,
    pub outcome: Outcome,
    /// The HTTP status, if there was an answer.
    pub status_code: Option<u16>,
    /// Bytes of the body that were read, after decompression.
    pub body_bytes: u64,
    /// The number of field values stored with the page.
    pub fields: u32,
    /// How many rows the page lists, and how many of them are stored.
    pub rows: u32,
    pub rows_stored: u32,
    /// Discovered links, canonical or not; the intake decides about them. In crawls with sitemaps, each
    /// may carry how it is to be judged: [`LinkKind`](crate::LinkKind).
    pub links: Vec<String>,
    /// The target of a redirect; the intake treats it like a link at the task's own depth.
    pub redirect: Option<String>,
    /// Records that are complete after this page.
    pub resolved: Vec<String>,
    pub clock: SiteClock,
    /// The evidence, if the site may be the cause of a failed attempt. A `blocked` answer without evidence is only
    /// suspected, and the task is to be retried. With the outcome `ok`: what the worker noticed about the page
    /// ([`scripts`](crate::scripts), [`repeats`](crate::repeats), [`unmatched`](crate::unmatched)).
    pub evidence: Option<Evidence>,
}

/// The evidence that a site is failing or has refused the crawler, kept with the site for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The URL that was requested: a page, or the site's robots.txt.
    pub url: String,
    /// The HTTP status, if there was an answer.
    pub status_code: Option<u16>,
    /// The finding: the error, or the name of the sign by which a block was recognised.
    pub sign: String,
    /// The requesting machine may be the cause: it has no route to the site, or its name servers do not answer.
    pub no_route: bool,
}

/// The state of a site's clock after a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SiteClock {
    /// The next fetch may start after this many milliseconds from now.
    pub next_in_ms: u32,
    /// The delay in force between two fetches; `None` if the site's robots.txt was not read.
    pub delay_ms: Option<u32>,
}

/// A lease that is given back without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReturned {
    pub task: u64,
    pub delivery: Delivery,
    pub cause: ReturnCause,
    /// The site's clock, if requests for this task may have been sent.
    pub clock: Option<SiteClock>,
    /// The address that the task must be counted for; see [`AddressBounds`].
    pub address: Option<IpAddr>,
}

/// Why a lease is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReturnCause {
    /// Its page was not requested: the task was recalled, or its supervisor or worker drains or lost its
    /// lease.
    Unstarted,
    /// Its worker died; the request may have been made.
    WorkerDied,
    /// Its worker died while extracting this page.
    KilledWorker,
    /// Its request was aborted, because the worker process was suspended meanwhile.
    CutShort,
}

/// The credit that a supervisor grants, as totals since its hello. Totals instead of increments, so
/// that a repeated or lost message does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Credit {
    pub tasks: u64,
    pub url_bytes: u64,
}

/// The first message of a supervisor. Each hello begins a *session*. Its number is a fencing token:
/// late messages of an earlier session carry another number and are ignored.
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
    /// When this was sent, by the supervisor's machine's clock since boot.
    pub sent_ms: u64,
    pub lane: Lane,
    pub workers: u16,
    /// The longest time that one of its requests may take.
    pub longest_request_ms: u64,
    pub credit: Credit,
    /// Leases still held, or ended without an acknowledgement from the dispatcher: tasks with their deliveries.
    pub held: Vec<(u64, Delivery)>,
}

/// A sign of life of a supervisor, with its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorHeartbeat {
    pub session: u64,
    /// When this was sent, by the supervisor's machine's clock since boot; the answer returns it.
    pub sent_ms: u64,
    /// The same by its machine's wall clock, milliseconds since the epoch: to notice clocks that differ.
    pub wall_ms: i64,
    pub credit: Credit,
    /// All of the session's numbered messages up to this one have arrived.
    pub received: u64,
    /// The number of the last outcome message sent in this session.
    pub outcomes_sent: u64,
}

/// From a supervisor to the dispatcher, on the tasks socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SupervisorToDispatcher {
    Hello(Hello),
    Credit {
        session: u64,
        credit: Credit,
    },
    Heartbeat(SupervisorHeartbeat),
    /// The supervisor has drained. It holds no leases once the outcomes up to this number have arrived.
    Goodbye {
        session: u64,
        outcomes_sent: u64,
    },
    /// It needs this set of mappings, which the dispatcher has named.
    AskMappings {
        session: u64,
        mappings: MappingsVersion,
    },
    /// A report on its state.
    Report(SupervisorReport),
}

/// From the dispatcher to a supervisor, on the tasks socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DispatcherToSupervisor {
    /// The answer to hello. Tasks follow.
    Welcome {
        session: u64,
        /// The hello's own `sent_ms`.
        heard_ms: u64,
        /// How long the supervisor may start fetches after it sent a message that the dispatcher has
        /// received.
        lease_ms: u64,
        /// The mappings in force. A supervisor without them requests them, and its workers get no further tasks until
        /// it has them.
        mappings: MappingsVersion,
    },
    /// Another supervisor with this name may still be alive: try again later.
    NameTaken { session: u64 },
    /// Tasks to work on. Numbered within the session from 1, so that lost messages are noticed.
    Tasks {
        session: u64,
        number: u64,
        /// The settings of those crawls of the tasks that were not sent to this supervisor yet.
        crawls: Vec<CrawlSettings>,
        tasks: Vec<Task>,
    },
    /// The crawl settings sent so far in this session may be forgotten, except those of tasks that are
    /// held. They are sent again with the crawl's next task.
    ForgetCrawls { session: u64 },
    /// A recall: give back the unstarted tasks in the scope, and confirm when none of them can start any
    /// more; see [`SupervisorOutcomes::recalled`]. Numbered like tasks.
    Recall {
        session: u64,
        number: u64,
        recall: u64,
        scope: RecallScope,
    },
    /// The answer to a heartbeat.
    Heartbeat {
        session: u64,
        /// The newest `sent_ms` that was received in this session.
        heard_ms: u64,
        /// The session's outcome messages up to this number are durable.
        outcomes_heard: u64,
    },
    /// The dispatcher does not know this session, or messages of it are missing: say hello again.
    SayHello { session: u64 },
    /// Give back the unstarted tasks, finish the others, say goodbye.
    Drain,
    /// Other mappings are in force from now on. Numbered like tasks.
    MappingsChanged {
        session: u64,
        number: u64,
        mappings: MappingsVersion,
    },
    /// The answer to [`SupervisorToDispatcher::AskMappings`].
    Mappings {
        session: u64,
        version: MappingsVersion,
        sources: Vec<MappingSource>,
    },
    /// The findings about the scripts of a site's pages. Sent before tasks of the site, unless there are none.
    /// Numbered like tasks.
    SiteScripts {
        session: u64,
        number: u64,
        scripts: SiteScripts,
    },
}

/// From a supervisor to the dispatcher, on the outcomes socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupervisorOutcomes {
    pub supervisor: String,
    pub session: u64,
    /// Counts the session's outcome messages, from 1 on.
    pub number: u64,
    pub done: Vec<TaskDone>,
    pub returned: Vec<TaskReturned>,
    /// Completed recalls: no more tasks in their scopes start. Queued tasks are given back in this message or earlier
    /// ones; tasks that were about to start may follow.
    pub recalled: Vec<u64>,
}

/// From a supervisor to one of its workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SupervisorToWorker {
    Mappings(Vec<MappingSource>),
    Crawl(CrawlSettings),
    /// The crawl settings sent so far may be forgotten, except those of tasks that are held.
    ForgetCrawls,
    /// Sites that the worker's former process may have sent requests to when it died.
    Inherited {
        sites: Vec<String>,
    },
    /// The lease: requests may be started until then, by the machine's clock since boot.
    LeaseUntil {
        boot_ms: u64,
    },
    Tasks(Vec<Task>),
    /// Give back the unstarted tasks in the scope, and confirm the recall's number unless it is 0.
    Recall {
        recall: u64,
        scope: RecallScope,
    },
    /// Give back the unstarted tasks, finish the others, and exit.
    Drain,
    /// The findings about the scripts of a site's pages. Sent before tasks of the site.
    SiteScripts(SiteScripts),
}

/// From a worker to its supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerToSupervisor {
    pub worker_index: u16,
    /// How often the worker's process was started, so that late messages of a dead process are
    /// recognised.
    pub incarnation: u32,
    pub done: Vec<TaskDone>,
    pub returned: Vec<TaskReturned>,
    /// Completed recalls, as in [`SupervisorOutcomes`].
    pub recalled: Vec<u64>,
    /// Tasks, with their deliveries, that wait for a slow name lookup.
    pub waiting: Vec<(u64, Delivery)>,
    /// Set once, when the worker is ready for tasks.
    pub ready: bool,
}
