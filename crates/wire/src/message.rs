//! The messages between processes, named by their direction.
//!
//! They hold ids and URLs, never pages or records. Data shared by many tasks (a crawl's settings, the mappings) is
//! sent once to each peer. Once a message is released, its shape never changes, because the next release must be able
//! to read it. A new message requires a new [`WIRE_VERSION`](crate::codec::WIRE_VERSION).
//! `crates/wire/tests/frozen_bytes.rs` checks both.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::report::SupervisorReport;
use crate::scripts::SiteScripts;
use crate::vocabulary::{Follow, Lane, Outcome};

/// Identifies a crawl within one dispatcher. The number is short, because every task carries it.
pub type CrawlKey = u32;

/// The settings of a crawl that a worker needs to fetch and save its pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrawlSettings {
    pub key: CrawlKey,
    pub app_id: String,
    pub crawl_id: String,
    pub max_depth: u16,
    pub follow: Follow,
    /// The lane that the crawl's pages need: with or without a browser.
    pub lane: Lane,
    /// A text that is added to the user agent; see `PolitenessConfig::user_agent_of` in the worker.
    pub useragent: Option<String>,
    /// The application's own JSON object, copied into every page.
    pub attrs: Option<String>,
    /// Whether the headers of each response are stored with its page.
    pub headers: bool,
    /// Whether the text of each page is stored with it.
    pub body: bool,
    /// Further features that the crawl needs from its workers.
    pub features: Vec<Feature>,
}

impl CrawlSettings {
    /// Whether the crawl needs this feature from its workers.
    pub fn needs_feature(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }
}

/// A feature that a crawl may need from its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Feature {
    /// The content of pages is kept, to compare it with later versions.
    Changes,
    /// Stored pages are requested only if they have changed (RFC 9110, section 13).
    Conditional,
    /// Links are also taken from sitemaps and feeds of the seeds' sites.
    Sitemaps,
    /// The bodies of pages are kept, so that they can be read again without fetching.
    KeepBodies,
}

/// Identifies a set of mappings: a hash of its content.
pub type MappingsVersion = String;

/// The text of one mapping file. Each worker compiles the set of mappings itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingSource {
    pub name: String,
    pub text: String,
}

/// Identifies one delivery of a task to a supervisor. Of two deliveries, the greater one is later, whatever the clocks
/// of the machines show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Delivery {
    /// The *epoch* of the delivery. Each start of a dispatcher gets a number greater than those of all earlier starts.
    /// The epoch distinguishes the deliveries of two copies of one frontier.
    pub epoch: u64,
    /// How many times the task has been delivered, including this time: 1 for the first.
    pub number: u32,
}

impl Delivery {
    pub const fn new(epoch: u64, number: u32) -> Delivery {
        Delivery { epoch, number }
    }
}

/// One URL to fetch. `task` and `delivery` together identify the lease (the permission to fetch it); the outcome
/// repeats them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub task: u64,
    pub delivery: Delivery,
    pub crawl: CrawlKey,
    pub url: String,
    /// The site of the URL. The dispatcher chooses the supervisor by it.
    pub site: String,
    pub depth: u16,
    /// How long to wait at least before the fetch, in milliseconds from now.
    pub wait_ms: u32,
    /// How long ago the last request to the site ended, if another worker may have made it. The delay between requests
    /// is counted from then.
    pub last_request_ago_ms: Option<u32>,
    /// The page where the link to this one was found.
    pub parent: Option<String>,
    /// The records whose missing fields this page may fill.
    pub records: Vec<String>,
    /// The application's own JSON object for this page. It replaces that of the crawl.
    pub attrs: Option<String>,
    /// A number from 1 to 100. Tasks of a higher priority are fetched first.
    pub priority: u8,
    /// The delay between two requests to the site that the operator has set, in milliseconds. A longer `Crawl-delay` of
    /// robots.txt takes precedence.
    pub delay_ms: Option<u32>,
    /// Earlier attempts that failed for a temporary reason, the oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
    /// Set if the site is unreachable. Then the task ends with this outcome, and nothing is requested.
    pub unreachable: Option<Outcome>,
    pub address_bounds: AddressBounds,
}

/// Whether a task's requests count towards the limits of an address (`politeness.address_delay`,
/// `politeness.address_in_flight`). The dispatcher enforces these limits for all workers together. If the requests
/// count, and the host resolves to another address than the one given here, the worker returns the task unstarted,
/// with that address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum AddressBounds {
    /// The requests do not count.
    #[default]
    None,
    /// The requests count if the address is public. Holds the address that the task was counted for; `None` if the
    /// dispatcher does not know one yet.
    OfPublic(Option<IpAddr>),
    /// The requests count for every address.
    OfAny(Option<IpAddr>),
}

/// An attempt at a task that failed for a temporary reason and was followed by a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// When the attempt ended, in milliseconds since the epoch.
    pub ended_at_ms: i64,
    pub outcome: Outcome,
    /// The HTTP status, if there was a response.
    pub status_code: Option<u16>,
}

/// The scope of a recall (a request to give back tasks): the unstarted tasks that meet all conditions. A `None`
/// condition is met by every task, so the default scope is all tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecallScope {
    pub crawl: Option<CrawlKey>,
    pub site: Option<String>,
    /// Only tasks with a lower priority than this.
    pub below: Option<u8>,
    /// Whether to reset the site's backoff and `Retry-After` too. The time of its last request is kept, so its delay
    /// still applies.
    pub forget: bool,
}

impl RecallScope {
    /// Whether a task of this crawl, site and priority is in the scope.
    pub fn contains_task(&self, crawl: CrawlKey, site: &str, priority: u8) -> bool {
        self.crawl.is_none_or(|wanted| wanted == crawl)
            && self.site.as_deref().is_none_or(|wanted| wanted == site)
            && self.below.is_none_or(|below| priority < below)
    }
}

/// A worker's report on one delivery of a task. After it, the dispatcher may retry the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDone {
    pub task: u64,
    pub delivery: Delivery,
    pub outcome: Outcome,
    /// The HTTP status, if there was a response.
    pub status_code: Option<u16>,
    /// How many bytes of the body were read, measured after decompression.
    pub body_bytes: u64,
    /// The number of field values stored with the page.
    pub fields: u32,
    /// How many rows the page lists, and how many of them were stored.
    pub rows: u32,
    pub rows_stored: u32,
    /// Discovered links, not necessarily in canonical form. The dispatcher decides which of them are fetched. In crawls
    /// with sitemaps, a link may carry its [`LinkKind`](crate::LinkKind), which says how to judge it.
    pub links: Vec<String>,
    /// The target of a redirect. The dispatcher treats it as a link with the depth of this task.
    pub redirect: Option<String>,
    /// Records that this page completes: none of their fields is missing any more.
    pub resolved: Vec<String>,
    pub clock: SiteClock,
    /// Evidence about the site, if the site may be the cause of a failed attempt. Without evidence, a `blocked`
    /// response is only suspected, and the task is retried. With the outcome `ok`, the evidence is an observation of
    /// the worker about the page ([`scripts`](crate::scripts), [`repeats`](crate::repeats),
    /// [`unmatched`](crate::unmatched)).
    pub evidence: Option<Evidence>,
}

/// Evidence that a site is failing or has refused the crawler. It is kept with the site, for users to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The URL that was requested: a page, or the site's robots.txt.
    pub url: String,
    /// The HTTP status, if there was a response.
    pub status_code: Option<u16>,
    /// What was found: an error, or the name of the sign that a block page was recognised by.
    pub sign: String,
    /// Whether the requesting machine may be the cause: it has no route to the site, or its name servers do not answer.
    pub no_route: bool,
}

/// When a site may be requested again, after a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SiteClock {
    /// How many milliseconds from now the next fetch may start.
    pub next_in_ms: u32,
    /// The delay between two fetches that applies to the site, in milliseconds; `None` if its robots.txt was not read.
    pub delay_ms: Option<u32>,
}

/// A leased task that is given back without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReturned {
    pub task: u64,
    pub delivery: Delivery,
    pub cause: ReturnCause,
    /// When the site may be requested again; set if requests for this task may have been sent.
    pub clock: Option<SiteClock>,
    /// The address of the task's host, if the task must be counted for it; see [`AddressBounds`].
    pub address: Option<IpAddr>,
}

/// Why a leased task is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReturnCause {
    /// The page was not requested, because the task was recalled, or the supervisor or worker drains or has lost its
    /// lease.
    Unstarted,
    /// The worker died. The page may have been requested.
    WorkerDied,
    /// The worker died while extracting this page.
    KilledWorker,
    /// The request was aborted, because the worker process had been suspended.
    CutShort,
}

/// How many tasks, and URLs of how many bytes, the dispatcher may send to a supervisor. The numbers are totals since
/// the hello (first message), so a repeated or lost message does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Credit {
    pub tasks: u64,
    pub url_bytes: u64,
}

/// The first message of a supervisor. Each hello begins a *session*, whose number is a fencing token: late messages of
/// an earlier session have another number and are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The supervisor's name, unique in the fleet.
    pub supervisor: String,
    /// Identifies the supervisor's state folder on this machine since its boot. Only one process at a time holds the
    /// folder's lock. So a second hello with the same instance comes from the same process or from the successor of a
    /// dead one.
    pub instance: u64,
    /// A number that grows with every hello of the same instance.
    pub session: u64,
    /// When the hello was sent, in milliseconds since the machine was booted.
    pub sent_ms: u64,
    pub lane: Lane,
    pub workers: u16,
    /// The longest time that a request of this supervisor may take, in milliseconds.
    pub longest_request_ms: u64,
    pub credit: Credit,
    /// Tasks, with their deliveries, that the supervisor still holds, or whose end the dispatcher has not acknowledged.
    pub held: Vec<(u64, Delivery)>,
}

/// A regular sign of life from a supervisor, with its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorHeartbeat {
    pub session: u64,
    /// When the heartbeat was sent, in milliseconds since the machine was booted. The answer returns it.
    pub sent_ms: u64,
    /// When the heartbeat was sent by the wall clock, in milliseconds since the epoch. It shows whether the clocks of
    /// the machines differ.
    pub wall_ms: i64,
    pub credit: Credit,
    /// All of the dispatcher's messages in this session up to this number have arrived.
    pub received: u64,
    /// The number of the last outcome message sent in this session.
    pub outcomes_sent: u64,
}

/// Sent by a supervisor to the dispatcher, on the tasks socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SupervisorToDispatcher {
    Hello(Hello),
    Credit {
        session: u64,
        credit: Credit,
    },
    Heartbeat(SupervisorHeartbeat),
    /// The supervisor stops and has finished its tasks. It holds none once its outcome messages up to this number have
    /// arrived.
    Goodbye {
        session: u64,
        outcomes_sent: u64,
    },
    /// The supervisor requests a set of mappings that the dispatcher has named but not sent.
    AskMappings {
        session: u64,
        mappings: MappingsVersion,
    },
    /// A report on the supervisor's state.
    Report(SupervisorReport),
}

/// Sent by the dispatcher to a supervisor, on the tasks socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DispatcherToSupervisor {
    /// The answer to a hello. Tasks follow it.
    Welcome {
        session: u64,
        /// The `sent_ms` of the hello that is answered.
        heard_ms: u64,
        /// How long the supervisor may start fetches, in milliseconds from when it sent the last message that the
        /// dispatcher has received.
        lease_ms: u64,
        /// The version of the mappings in force. A supervisor that does not have it requests it. Until the mappings
        /// arrive, its workers get no further tasks.
        mappings: MappingsVersion,
    },
    /// Another supervisor with this name may still be alive. Try again later.
    NameTaken { session: u64 },
    /// Tasks to fetch. These messages are numbered within the session from 1, so that lost ones are noticed.
    Tasks {
        session: u64,
        number: u64,
        /// The settings of the tasks' crawls that the supervisor does not have yet.
        crawls: Vec<CrawlSettings>,
        tasks: Vec<Task>,
    },
    /// The supervisor may forget all crawl settings sent in this session, except those of tasks that it holds. They are
    /// sent again with the crawl's next task.
    ForgetCrawls { session: u64 },
    /// A recall: give back the unstarted tasks in the scope, and confirm when none of them can start any more. See
    /// [`SupervisorOutcomes::recalled`]. It is numbered as `Tasks` is.
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
        /// The session's outcome messages up to this number are stored durably.
        outcomes_heard: u64,
    },
    /// The dispatcher does not know this session, or has missed some of its messages. The supervisor must send a new
    /// hello.
    SayHello { session: u64 },
    /// Give back the unstarted tasks, finish the started ones, and send `Goodbye`.
    Drain,
    /// Other mappings are in force from now on. It is numbered as `Tasks` is.
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
    /// Whether scripts fill the pages of a site, as far as workers have found out. It is sent before tasks of the site,
    /// and numbered as `Tasks` is.
    SiteScripts {
        session: u64,
        number: u64,
        scripts: SiteScripts,
    },
}

/// Sent by a supervisor to the dispatcher, on the outcomes socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupervisorOutcomes {
    pub supervisor: String,
    pub session: u64,
    /// The number of this outcome message in the session, from 1.
    pub number: u64,
    pub done: Vec<TaskDone>,
    pub returned: Vec<TaskReturned>,
    /// The recalls that are completed: no more tasks in their scopes will start. Queued tasks are given back in this
    /// message or an earlier one. Tasks that were about to start may follow.
    pub recalled: Vec<u64>,
}

/// Sent by a supervisor to one of its workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SupervisorToWorker {
    Mappings(Vec<MappingSource>),
    Crawl(CrawlSettings),
    /// The worker may forget all crawl settings sent so far, except those of tasks that it holds.
    ForgetCrawls,
    /// Sites that the worker's predecessor may have sent requests to before it died.
    Inherited {
        sites: Vec<String>,
    },
    /// Until when requests may be started, in milliseconds since the machine was booted.
    LeaseUntil {
        boot_ms: u64,
    },
    Tasks(Vec<Task>),
    /// Give back the unstarted tasks in the scope. Confirm the number of the recall unless it is 0.
    Recall {
        recall: u64,
        scope: RecallScope,
    },
    /// Give back the unstarted tasks, finish the started ones, and exit.
    Drain,
    /// Whether scripts fill the pages of a site, as far as workers have found out. It is sent before tasks of the site.
    SiteScripts(SiteScripts),
}

/// Sent by a worker to its supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerToSupervisor {
    pub worker_index: u16,
    /// How often the worker's process was started. It distinguishes late messages of a process that has died.
    pub incarnation: u32,
    pub done: Vec<TaskDone>,
    pub returned: Vec<TaskReturned>,
    /// The recalls that are completed; see [`SupervisorOutcomes::recalled`].
    pub recalled: Vec<u64>,
    /// Tasks, with their deliveries, that are waiting for a slow name lookup.
    pub waiting: Vec<(u64, Delivery)>,
    /// Set once, when the worker is ready for tasks.
    pub ready: bool,
}
