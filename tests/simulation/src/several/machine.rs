//! The supervisor of a dispatcher: its real core, and a simple worker that requests one page at a time from each site.
//! Politeness is not judged here, but in worlds with one dispatcher.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use webfill_supervisor::supervisor::{Supervisor, Terms};
use webfill_wire::{
    CrawlKey, Credit, Lane, RecallScope, ReturnCause, SupervisorToWorker, Task, TaskReturned,
    WorkerToSupervisor,
};

use crate::event::MessageToDispatcher;
use crate::names::site_number;

use super::message::CrawlNumber;
use super::plan::{CRAWLS, Plan};

pub(super) struct Machine {
    pub(super) core: Supervisor,
    /// Identifies the machine's connection to the dispatcher. After a new connection, the dispatcher sees a new peer.
    pub(super) connection: u64,
    /// Messages that could not be sent while the dispatcher was away.
    pub(super) unsent: Vec<MessageToDispatcher>,
    /// When the supervisor's next message is due.
    pub(super) speaks_at_ms: u64,
    pub(super) worker: Worker,
}

#[derive(Debug, Default)]
pub(super) struct Worker {
    lease_until_ms: u64,
    crawls: BTreeMap<CrawlKey, CrawlNumber>,
    /// For each site, the tasks that have not started, each with the time when it may start.
    waiting: BTreeMap<usize, VecDeque<(u64, Task)>>,
    /// The sites with a request in progress.
    asked: BTreeSet<usize>,
    /// When each site may be requested again.
    free_ms: BTreeMap<usize, u64>,
}

/// What a site's worker does next.
#[derive(Debug)]
pub(super) enum SiteAction {
    Nothing,
    WaitsUntil(u64),
    Fetch(CrawlNumber, Task),
    GiveBack(TaskReturned),
}

impl Machine {
    pub(super) fn new(number: usize, plan: &Plan) -> Machine {
        let mut core = Supervisor::new(Terms {
            id: format!("v{number}"),
            instance: number as u64,
            lane: Lane::Http,
            workers: 1,
            longest_request_ms: plan.longest_request_ms,
            limit: Credit {
                tasks: plan.queue,
                url_bytes: 1_000_000,
            },
        });
        core.note_worker_start(0, 1, None);
        core.handle_worker_message(WorkerToSupervisor {
            ready: true,
            ..empty_message()
        });
        Machine {
            core,
            connection: 0,
            unsent: Vec::new(),
            speaks_at_ms: 0,
            worker: Worker::default(),
        }
    }
}

/// An empty message of the worker.
pub(super) fn empty_message() -> WorkerToSupervisor {
    WorkerToSupervisor {
        worker_index: 0,
        incarnation: 1,
        done: Vec::new(),
        returned: Vec::new(),
        recalled: Vec::new(),
        waiting: Vec::new(),
        ready: false,
    }
}

fn unstarted_return(task: &Task) -> TaskReturned {
    TaskReturned {
        task: task.task,
        delivery: task.delivery,
        cause: ReturnCause::Unstarted,
        clock: None,
        address: None,
    }
}

impl Worker {
    /// Handles a message to the worker. Returns the sites that got tasks, and the worker's message to the supervisor.
    pub(super) fn handle(
        &mut self,
        message: SupervisorToWorker,
        now_ms: u64,
    ) -> (BTreeSet<usize>, WorkerToSupervisor) {
        let (mut sites, mut answer) = (BTreeSet::new(), empty_message());
        match message {
            SupervisorToWorker::LeaseUntil { boot_ms } => self.lease_until_ms = boot_ms,
            SupervisorToWorker::Crawl(settings) => {
                let number = CRAWLS.iter().position(|id| *id == settings.crawl_id);
                self.crawls
                    .insert(settings.key, number.expect("a crawl of ours"));
            }
            SupervisorToWorker::Tasks(tasks) => {
                for task in tasks {
                    let site = site_number(&task.site);
                    let may_start_ms = now_ms + u64::from(task.wait_ms);
                    let waiting = self.waiting.entry(site).or_default();
                    waiting.push_back((may_start_ms, task));
                    sites.insert(site);
                }
            }
            SupervisorToWorker::Recall { recall, scope } => {
                answer.returned = self.recall(&scope);
                answer.recalled.extend((recall > 0).then_some(recall));
            }
            SupervisorToWorker::Mappings(_)
            | SupervisorToWorker::SiteScripts(_)
            | SupervisorToWorker::ForgetCrawls
            | SupervisorToWorker::Inherited { .. }
            | SupervisorToWorker::Drain => {}
        }
        (sites, answer)
    }

    fn recall(&mut self, scope: &RecallScope) -> Vec<TaskReturned> {
        let mut returned = Vec::new();
        for waiting in self.waiting.values_mut() {
            waiting.retain(|(_, task)| {
                let is_recalled = scope.contains_task(task.crawl, &task.site, task.priority);
                returned.extend(is_recalled.then(|| unstarted_return(task)));
                !is_recalled
            });
        }
        returned
    }

    pub(super) fn next_action(&mut self, site: usize, now_ms: u64) -> SiteAction {
        let waiting = self.waiting.entry(site).or_default();
        let Some((may_start_ms, _)) = waiting.front() else {
            return SiteAction::Nothing;
        };
        let free_ms = self.free_ms.get(&site).copied().unwrap_or(0);
        let may_start_ms = free_ms.max(*may_start_ms);
        if self.asked.contains(&site) {
            return SiteAction::Nothing;
        }
        if may_start_ms > now_ms {
            return SiteAction::WaitsUntil(may_start_ms);
        }
        let Some((_, task)) = waiting.pop_front() else {
            return SiteAction::Nothing;
        };
        if now_ms >= self.lease_until_ms {
            return SiteAction::GiveBack(unstarted_return(&task));
        }
        self.asked.insert(site);
        SiteAction::Fetch(self.crawls[&task.crawl], task)
    }

    /// Notes that a site has answered.
    pub(super) fn on_answer(&mut self, site: usize, free_ms: u64) {
        self.asked.remove(&site);
        self.free_ms.insert(site, free_ms);
    }
}
