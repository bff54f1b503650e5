//! A simulated worker process. The real code of `webfill-worker` decides what is known about sites, when a request may
//! start, whether a page may be fetched, and which permits are valid. Only the runner around this code is simulated.
//! Where the real runner waits or sends a request, the simulated one returns the time or the request.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use webfill_store::SiteClockEntry;
use webfill_urls::Url;
use webfill_wire::{
    Evidence, Outcome, RecallScope, ReturnCause, SiteClock, SupervisorToWorker, Task, TaskDone,
    TaskReturned, WorkerToSupervisor,
};
use webfill_worker::{
    Answer, Answered, Denied, Knowledge, Now, PageKey, Permission, PermissionCheck, Permit,
    Permits, PolitenessConfig, RobotsFiles, RobotsResponse, Sites, Step, Turn, address_to_count,
    site_clock,
};

use crate::cache::{CacheUnavailable, SharedCache};
use crate::faults::EgressFailure;
use crate::judge::Judge;
use crate::names::{PageOfCrawl, page_of, page_of_crawl, site_name, site_number};
use crate::request::{Process, Request, Response};
use crate::robots::hop_of;
use crate::sabotage::Sabotage;
use crate::shared_servers::server_addresses;

mod runner;

/// How often the worker writes the times of its last requests to the shared cache, as in the real worker.
const CLOCKS_EVERY_MS: u64 = 2_000;

/// A leased task: its number, and how often it was delivered.
pub(crate) type Lease = (i64, u32);

/// One worker process.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) index: u16,
    pub(crate) incarnation: u32,
    pub(crate) is_alive: bool,
    pub(crate) draining: bool,
    politeness: PolitenessConfig,
    sites: RefCell<Sites>,
    robots: RefCell<RobotsFiles>,
    permits: Permits,
    runners: BTreeMap<usize, Runner>,
    clocks_kept_ms: u64,
    /// The number of pages that are being saved.
    pub(crate) saving: usize,
}

/// The runner of one site, with its current task.
struct Runner {
    task: Task,
    permit: Permit,
    stage: RunnerStage,
    request: Option<Pending>,
    /// Whether the runner has sent a request.
    has_asked: bool,
}

enum RunnerStage {
    /// The runner checks whether the page may be fetched.
    Checking(Box<PermissionCheck>),
    /// The page may be fetched. The runner waits for the page's turn, or for the answer.
    Permitted {
        delay: Duration,
        turn: Turn,
        decided_ms: u64,
    },
}

/// A request in progress.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) request: Request,
    pub(crate) started: Now,
    pub(crate) started_ms: u64,
    pub(crate) response: Response,
}

/// A page that is being stored, or a refusal to fetch it.
#[derive(Debug, Clone)]
pub(crate) struct FinishedTask {
    pub(crate) task: Task,
    pub(crate) outcome: Outcome,
    pub(crate) status: Option<u16>,
    /// The earliest time for the next request to the site, and the site's current delay.
    next_start: Option<Instant>,
    delay: Option<Duration>,
    evidence: Option<Evidence>,
}

/// The next action of a runner.
#[derive(Debug)]
pub(crate) enum RunnerAction {
    /// The runner has no task, or waits for an answer.
    Nothing,
    WakeAt(Instant),
    Ask(Request),
    GiveBack(TaskReturned),
    Finish(Box<FinishedTask>),
}

/// The state of a runner that waits for the turn of its request.
enum TurnWait {
    CalledBack,
    Until(Instant),
    Over,
}

/// The surroundings of a worker at one moment, such as the shared cache and the time.
pub(crate) struct WorkerEnvironment<'a> {
    pub(crate) cache: &'a mut SharedCache,
    /// The judge, which observes the answers of the shared cache.
    pub(crate) judge: &'a mut Judge,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) process: Process,
    pub(crate) now: Now,
    pub(crate) now_ms: u64,
    /// The time on the machine's clock, which starts when the machine boots.
    pub(crate) boot_ms: u64,
    pub(crate) longest_request_ms: u64,
}

impl WorkerEnvironment<'_> {
    fn is_sabotaged_by(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }
}

impl Worker {
    pub(crate) fn start(&mut self, index: u16, politeness: PolitenessConfig, now_ms: u64) {
        *self = Worker {
            index,
            incarnation: self.incarnation + 1,
            is_alive: true,
            politeness,
            clocks_kept_ms: now_ms,
            ..Worker::default()
        };
    }

    pub(crate) fn build_message(
        &self,
        done: Vec<TaskDone>,
        returned: Vec<TaskReturned>,
        ready: bool,
    ) -> WorkerToSupervisor {
        WorkerToSupervisor {
            worker_index: self.index,
            incarnation: self.incarnation,
            done,
            returned,
            recalled: Vec::new(),
            waiting: Vec::new(),
            ready,
        }
    }

    /// Handles a message to the worker. Returns the sites whose runners must be advanced, and the immediate reply.
    pub(crate) fn handle(
        &mut self,
        message: SupervisorToWorker,
        now: Now,
    ) -> (Vec<usize>, WorkerToSupervisor) {
        let mut says = self.build_message(Vec::new(), Vec::new(), false);
        let default_delay = self.politeness.delay();
        let mut touched: BTreeSet<usize> = BTreeSet::new();
        match message {
            SupervisorToWorker::Mappings(_)
            | SupervisorToWorker::Crawl(_)
            | SupervisorToWorker::SiteScripts(_)
            | SupervisorToWorker::ForgetCrawls => {}
            SupervisorToWorker::LeaseUntil { boot_ms } => self.permits.extend_lease(boot_ms),
            SupervisorToWorker::Inherited { sites } => {
                self.sites.borrow_mut().inherit(sites, default_delay, now);
            }
            SupervisorToWorker::Tasks(tasks) => {
                for task in tasks {
                    touched.insert(site_number(&task.site));
                    self.sites.borrow_mut().add(task, default_delay, now);
                }
            }
            SupervisorToWorker::Recall { recall, scope } => {
                self.permits.recall(&scope);
                if let Some(site) = scope.site.as_deref().filter(|_| scope.forget) {
                    self.sites.borrow_mut().forget_back_off(site);
                }
                says.returned = self.take_recalled_tasks(&scope);
                says.recalled.push(recall);
                touched.extend(self.runners.keys());
            }
            SupervisorToWorker::Drain => {
                self.draining = true;
                says.returned = self.take_recalled_tasks(&RecallScope::default());
                touched.extend(self.runners.keys());
            }
        }
        (touched.into_iter().collect(), says)
    }

    /// Removes the queued tasks that a recall affects. They are sorted, so that the same seed always yields the same
    /// order.
    fn take_recalled_tasks(&self, scope: &RecallScope) -> Vec<TaskReturned> {
        let mut queued = self.sites.borrow_mut().take_queued(scope);
        queued.sort_by_key(|task| task.task);
        queued
            .iter()
            .map(|task| unstarted_return(task, None))
            .collect()
    }

    /// Notes that the request of [`RunnerAction::Ask`] was sent.
    pub(crate) fn on_request_sent(&mut self, number: usize, pending: Pending) {
        if let Some(runner) = self.runners.get_mut(&number) {
            runner.permit.note_request(true);
            runner.has_asked = true;
            runner.request = Some(pending);
        }
    }

    /// Writes the times of the last requests to sites to the shared cache, and forgets idle sites. Does nothing if this
    /// is not due, except when the process ends.
    pub(crate) fn write_clocks(&mut self, owner: &str, around: &mut WorkerEnvironment<'_>) {
        if around.now_ms < self.clocks_kept_ms + CLOCKS_EVERY_MS && !self.has_drained() {
            return;
        }
        self.clocks_kept_ms = around.now_ms;
        let mut sites = self.sites.borrow_mut();
        let moved: Vec<SiteClockEntry> = sites.take_moved_clocks(owner, around.now);
        if around.cache.put_sites(moved.clone()).is_err() {
            sites.mark_clocks_unsaved(moved);
        }
    }

    /// Whether a request is in progress and has reached the site, because the machine had a connection to the web.
    pub(crate) fn has_reached_site(&self, site: usize) -> bool {
        let pending = self
            .runners
            .get(&site)
            .and_then(|runner| runner.request.as_ref());
        pending.is_some_and(|pending| !pending.response.is_lost)
    }

    /// The current task of a site's runner.
    pub(crate) fn task(&self, site: usize) -> Option<&Task> {
        Some(&self.runners.get(&site)?.task)
    }

    /// The lease of the current task of a site's runner.
    pub(crate) fn lease(&self, site: usize) -> Option<Lease> {
        let task = self.task(site)?;
        Some((task.task as i64, task.delivery.number))
    }

    /// Drops the answers to requests in progress. Returns the pages of their tasks.
    pub(crate) fn drop_answers(&mut self) -> Vec<PageOfCrawl> {
        let mut lost = Vec::new();
        for runner in self.runners.values_mut() {
            if let Some(pending) = &mut runner.request {
                pending.response = EgressFailure::Silence.response();
                lost.push(page_of_crawl(&runner.task));
            }
        }
        lost
    }

    /// The sites with a request in progress.
    pub(crate) fn sites_with_requests(&self) -> Vec<usize> {
        let asking = |runner: &Runner| runner.request.is_some();
        let runners = self.runners.iter().filter(|(_, runner)| asking(runner));
        runners.map(|(number, _)| *number).collect()
    }

    /// Whether the worker has drained: nothing is in progress any more.
    pub(crate) fn has_drained(&self) -> bool {
        self.draining && self.saving == 0 && self.runners.is_empty()
    }
}

impl FinishedTask {
    /// The message that reports the end of a task. A page that completes all of its records needs no links to be
    /// followed.
    pub(crate) fn to_message(
        &self,
        links: Vec<String>,
        resolved: Vec<String>,
        now: Now,
    ) -> TaskDone {
        let records = &self.task.records;
        let is_complete = !records.is_empty() && resolved.len() >= records.len();
        TaskDone {
            task: self.task.task,
            delivery: self.task.delivery,
            outcome: self.outcome,
            status_code: self.status,
            body_bytes: 1,
            fields: 0,
            rows: 0,
            rows_stored: 0,
            links: if is_complete { Vec::new() } else { links },
            redirect: None,
            resolved,
            clock: site_clock(self.next_start, self.delay, now),
            evidence: self.evidence.clone(),
        }
    }
}

fn unstarted_return(task: &Task, clock: Option<SiteClock>) -> TaskReturned {
    TaskReturned {
        task: task.task,
        delivery: task.delivery,
        cause: ReturnCause::Unstarted,
        clock,
        address: None,
    }
}

fn page_number(task: &Task) -> usize {
    page_of(&task.url)
}
