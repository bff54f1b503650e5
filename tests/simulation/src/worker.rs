//! A simulated worker process. What is known of sites, when a request may start, whether a page may
//! be fetched, and which permits are in force is decided by the real code of `webfill-worker`; only
//! the runner around it is simulated: instead of waiting it says until when it would wait, and
//! instead of sending a request it names it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use webfill_store::SiteEntry;
use webfill_urls::Url;
use webfill_wire::{
    Outcome, RecallScope, ReturnCause, SiteClock, SupervisorToWorker, Task, TaskDone, TaskReturned,
    WorkerToSupervisor,
};
use webfill_worker::{
    Denied, Knowledge, Now, Permission, PermissionCheck, Permit, Permits, PolitenessConfig,
    RobotsFiles, RobotsResponse, Sites, Step, Turn, site_clock,
};

use crate::cache::{Away, SharedCache};
use crate::judge::{Judge, Process};
use crate::robots::hop_of;
use crate::sabotage::Sabotage;
use crate::web::{Request, Response};

/// Clocks go to the shared cache as often as the real worker writes them there.
const CLOCKS_EVERY_MS: u64 = 2_000;

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
    /// Pages that are being saved.
    pub(crate) saving: usize,
}

/// One site's runner, with the task that it has taken up.
struct Runner {
    task: Task,
    permit: Permit,
    stage: Stage,
    request: Option<Pending>,
}

enum Stage {
    /// It finds out whether the page may be fetched.
    Checking(Box<PermissionCheck>),
    /// It waits for the page's turn, or for the page.
    Permitted {
        delay: Duration,
        turn: Turn,
        decided_ms: u64,
    },
}

/// A request that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) request: Request,
    pub(crate) started: Now,
    pub(crate) started_ms: u64,
    pub(crate) response: Response,
}

/// A page, or a refusal to fetch it, on its way to the store.
#[derive(Debug, Clone)]
pub(crate) struct FinishedTask {
    pub(crate) task: Task,
    pub(crate) outcome: Outcome,
    pub(crate) status: Option<u16>,
    /// The earliest start of the site's next request, and the delay in force.
    next_start: Option<Instant>,
    delay: Option<Duration>,
}

/// What a runner does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It has nothing to do, or waits for an answer.
    Nothing,
    WakeAt(Instant),
    Ask(Request),
    GiveBack(TaskReturned),
    Finish(Box<FinishedTask>),
}

/// Whether a turn has come.
enum Waited {
    CalledBack,
    Until(Instant),
    Over,
}

/// What a worker finds around it at one moment.
pub(crate) struct Around<'a> {
    pub(crate) cache: &'a mut SharedCache,
    /// Sees what the shared cache answers.
    pub(crate) judge: &'a mut Judge,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) process: Process,
    pub(crate) now: Now,
    pub(crate) now_ms: u64,
    /// The machine's clock since its boot.
    pub(crate) boot_ms: u64,
    pub(crate) longest_request_ms: u64,
}

impl Around<'_> {
    fn suffers(&self, sabotage: Sabotage) -> bool {
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

    pub(crate) fn says(
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
            ready,
        }
    }

    /// Takes a message. Returns the sites to look at, and what is said at once.
    pub(crate) fn take(
        &mut self,
        message: SupervisorToWorker,
        now: Now,
    ) -> (Vec<usize>, WorkerToSupervisor) {
        let mut says = self.says(Vec::new(), Vec::new(), false);
        let default_delay = self.politeness.delay();
        let mut touched: BTreeSet<usize> = BTreeSet::new();
        match message {
            SupervisorToWorker::Mappings(_)
            | SupervisorToWorker::Crawl(_)
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
                says.returned = self.call_back(&scope);
                says.recalled.push(recall);
                touched.extend(self.runners.keys());
            }
            SupervisorToWorker::Drain => {
                self.draining = true;
                says.returned = self.call_back(&RecallScope::default());
                touched.extend(self.runners.keys());
            }
        }
        (touched.into_iter().collect(), says)
    }

    /// In an order that a seed repeats.
    fn call_back(&self, scope: &RecallScope) -> Vec<TaskReturned> {
        let mut queued = self.sites.borrow_mut().take_queued(scope);
        queued.sort_by_key(|task| task.task);
        queued.iter().map(|task| unstarted(task, None)).collect()
    }

    /// What a site's runner does now; call again until there is nothing.
    pub(crate) fn advance(&mut self, number: usize, around: &mut Around<'_>) -> Next {
        let mut runner = match self.runners.remove(&number) {
            Some(runner) => runner,
            None => {
                let task = self.sites.borrow_mut().next_task(&site_name(number));
                let Some(task) = task else {
                    return Next::Nothing;
                };
                if self.draining {
                    return Next::GiveBack(unstarted(&task, None));
                }
                self.take_up(task, around)
            }
        };
        let next = self.go_on(&mut runner, around);
        if !matches!(next, Next::GiveBack(_) | Next::Finish(_)) {
            self.runners.insert(number, runner);
        }
        next
    }

    fn take_up(&self, task: Task, around: &mut Around<'_>) -> Runner {
        self.look_up_clock(&task.site, around);
        let url = Url::parse(&task.url).expect("a URL of ours");
        let check = PermissionCheck::begin(&task, &url, false, self.known(), around.now);
        Runner {
            permit: self.permits.permit(&task),
            task,
            stage: Stage::Checking(Box::new(check)),
            request: None,
        }
    }

    fn look_up_clock(&self, site: &str, around: &mut Around<'_>) {
        let mut sites = self.sites.borrow_mut();
        if !sites.begin_clock_lookup(site) {
            return;
        }
        match around.cache.site(site, around.now.wall_ms) {
            Ok(Some(entry)) => sites.take_shared_clock(&entry, around.now),
            Ok(None) => {}
            Err(Away) => sites.clock_lookup_failed(site),
        }
    }

    /// Goes on until there is something to wait for, or the task is over.
    fn go_on(&self, runner: &mut Runner, around: &mut Around<'_>) -> Next {
        if runner.request.is_some() {
            return Next::Nothing;
        }
        let (task, permit) = (&runner.task, &runner.permit);
        loop {
            match &mut runner.stage {
                Stage::Checking(check) => match check.step() {
                    Step::LookUp => self.look_up_robots(check, &task.site, around),
                    Step::AwaitTurn => match self.wait(Turn::Robots, task, permit, around) {
                        Waited::CalledBack => return Next::GiveBack(unstarted(task, None)),
                        Waited::Until(instant) => return Next::WakeAt(instant),
                        Waited::Over => check.turn_came(self.known(), around.now),
                    },
                    Step::Request(url) => match self.permits.check(permit, around.boot_ms) {
                        Ok(()) => {
                            let hop = hop_of(url.path());
                            return Next::Ask(Request::Robots { hop });
                        }
                        Err(denied) => check.answered(Err(denied), self.known(), around.now),
                    },
                    Step::Decided(permission) => {
                        if let Some(entry) = check.take_fetched() {
                            around.cache.put_robots(entry);
                        }
                        match self.decided(permission, task, around) {
                            Ok(stage) => runner.stage = stage,
                            Err(next) => return next,
                        }
                    }
                },
                Stage::Permitted {
                    delay,
                    turn,
                    decided_ms,
                } => {
                    let clock = || self.sites.borrow().clock(&task.site, *delay, around.now);
                    let give_back = || Next::GiveBack(unstarted(task, Some(clock())));
                    return match self.wait(*turn, task, permit, around) {
                        Waited::CalledBack => give_back(),
                        Waited::Until(instant) => Next::WakeAt(instant),
                        Waited::Over => match self.permits.check(permit, around.boot_ms) {
                            Ok(()) => Next::Ask(Request::Page {
                                crawl: task.crawl,
                                page: page_number(task),
                                decided_ms: *decided_ms,
                            }),
                            Err(_) => give_back(),
                        },
                    };
                }
            }
        }
    }

    fn look_up_robots(&self, check: &mut PermissionCheck, site: &str, around: &mut Around<'_>) {
        let wall_ms = around.now.wall_ms;
        let found = around.cache.robots(check.origin(), wall_ms);
        let mut entry = found.ok().flatten();
        if let Some(entry) = &mut entry {
            let answer = (entry.status, entry.body.as_slice());
            let times = (around.now_ms, (entry.expires_at_ms - wall_ms) as u64);
            around
                .judge
                .cached(site_number(site), around.process, answer, times);
            if around.suffers(Sabotage::CachedRobotsDoNotExpire) {
                entry.expires_at_ms = i64::MAX;
            }
        }
        check.looked_up(entry.as_ref(), self.known(), around.now);
    }

    /// What follows from a permission: the page's turn is awaited, or the task is over.
    fn decided(
        &self,
        permission: Permission,
        task: &Task,
        around: &Around<'_>,
    ) -> Result<Stage, Next> {
        match permission {
            Permission::Allowed { delay, turn } => Ok(Stage::Permitted {
                delay,
                turn,
                decided_ms: around.now_ms,
            }),
            Permission::Refused(outcome) => {
                let sites = self.sites.borrow();
                Err(Next::Finish(Box::new(FinishedTask {
                    task: task.clone(),
                    outcome,
                    status: None,
                    next_start: sites.next_start_after_refusal(&task.site, outcome),
                    delay: None,
                })))
            }
            Permission::NotAsked => Err(Next::GiveBack(unstarted(task, None))),
            Permission::CutShort => Err(Next::GiveBack(self.cut_short(
                task,
                self.politeness.delay(),
                around,
            ))),
        }
    }

    fn wait(&self, turn: Turn, task: &Task, permit: &Permit, around: &Around<'_>) -> Waited {
        if self.draining || permit.is_recalled() {
            return Waited::CalledBack;
        }
        match self.sites.borrow().next_start(&task.site, turn) {
            Some(next) if next > around.now.instant => Waited::Until(next),
            _ => Waited::Over,
        }
    }

    fn cut_short(&self, task: &Task, delay: Duration, around: &Around<'_>) -> TaskReturned {
        let mut sites = self.sites.borrow_mut();
        let clock = sites.request_cut_short(&task.site, delay, around.now);
        TaskReturned {
            cause: ReturnCause::CutShort,
            ..unstarted(task, Some(clock))
        }
    }

    fn known(&self) -> Knowledge<'_> {
        Knowledge {
            politeness: &self.politeness,
            sites: &self.sites,
            robots: &self.robots,
        }
    }

    /// A request that [`Next::Ask`] named has been sent.
    pub(crate) fn sent(&mut self, number: usize, pending: Pending) {
        if let Some(runner) = self.runners.get_mut(&number) {
            runner.permit.note_request(true);
            runner.request = Some(pending);
        }
    }

    /// The answer to a site's request is looked at. Returns what is over by that, if anything.
    pub(crate) fn answered(&mut self, number: usize, around: &mut Around<'_>) -> Option<Next> {
        let mut runner = self.runners.remove(&number)?;
        let Some(pending) = runner.request.take() else {
            self.runners.insert(number, runner);
            return None;
        };
        runner.permit.note_request(false);
        let took_ms = around.now_ms - pending.started_ms;
        let is_cut_short = took_ms > around.longest_request_ms;
        if !is_cut_short {
            let (request, response) = (pending.request, &pending.response);
            let (process, now_ms) = (around.process, around.now_ms);
            around
                .judge
                .answered(number, request, process, response, now_ms);
        }
        let over = match &mut runner.stage {
            Stage::Checking(check) => {
                let response = match is_cut_short {
                    true => Err(Denied::CutShort),
                    false => Ok(robots_response(pending.response, around)),
                };
                check.answered(response, self.known(), around.now);
                None
            }
            Stage::Permitted { delay, .. } => {
                let delay = *delay;
                Some(match is_cut_short {
                    true => Next::GiveBack(self.cut_short(&runner.task, delay, around)),
                    false => Next::Finish(Box::new(self.fetched(
                        &runner.task,
                        delay,
                        &pending,
                        around,
                    ))),
                })
            }
        };
        if around.suffers(Sabotage::BackOffIsForgotten) {
            self.sites.borrow_mut().forget_back_off(&runner.task.site);
        }
        if over.is_none() {
            self.runners.insert(number, runner);
        }
        over
    }

    fn fetched(
        &self,
        task: &Task,
        delay: Duration,
        pending: &Pending,
        around: &Around<'_>,
    ) -> FinishedTask {
        let mut sites = self.sites.borrow_mut();
        let pace = self.politeness.pace(delay);
        let (at, answer) = (around.now.instant, pending.response.answer);
        sites.page_answered(&task.site, pending.started.wall_ms, at, answer, pace);
        FinishedTask {
            task: task.clone(),
            outcome: pending.response.outcome,
            status: pending.response.status,
            next_start: sites.next_start(&task.site, Turn::Page(delay)),
            delay: Some(delay),
        }
    }

    /// Writes the clocks that moved to the shared cache, and forgets idle sites, if it is time to, or
    /// the process ends.
    pub(crate) fn keep_clocks(&mut self, owner: &str, around: &mut Around<'_>) {
        if around.now_ms < self.clocks_kept_ms + CLOCKS_EVERY_MS && !self.has_drained() {
            return;
        }
        self.clocks_kept_ms = around.now_ms;
        let mut sites = self.sites.borrow_mut();
        let moved: Vec<SiteEntry> = sites.moved_clocks(owner, around.now);
        if around.cache.put_sites(moved.clone()).is_err() {
            sites.write_again(moved);
        }
    }

    /// Sites with a request under way.
    pub(crate) fn asking(&self) -> Vec<usize> {
        let asking = |runner: &Runner| runner.request.is_some();
        let runners = self.runners.iter().filter(|(_, runner)| asking(runner));
        runners.map(|(number, _)| *number).collect()
    }

    /// Drained: nothing is under way any more.
    pub(crate) fn has_drained(&self) -> bool {
        self.draining && self.saving == 0 && self.runners.is_empty()
    }
}

fn robots_response(response: Response, around: &Around<'_>) -> RobotsResponse {
    let allows_all = around.suffers(Sabotage::FailuresOfRobotsAllowEverything);
    let failed = response.status.is_none_or(|status| status >= 500);
    RobotsResponse {
        outcome: response.outcome,
        status: match allows_all && failed {
            true => Some(404),
            false => response.status,
        },
        body: response.body.into_bytes(),
        redirect: response.redirect,
        answered_at: around.now.instant,
        answer: response.answer,
    }
}

impl FinishedTask {
    /// The message about its end. A page that completes all of its records has no links to follow.
    pub(crate) fn done(&self, links: Vec<String>, resolved: Vec<String>, now: Now) -> TaskDone {
        let records = &self.task.records;
        let is_complete = !records.is_empty() && resolved.len() >= records.len();
        TaskDone {
            task: self.task.task,
            delivery: self.task.delivery,
            outcome: self.outcome,
            status_code: self.status,
            body_bytes: 1,
            fields: 0,
            links: if is_complete { Vec::new() } else { links },
            redirect: None,
            resolved,
            clock: site_clock(self.next_start, self.delay, now),
            evidence: None,
            address: None,
        }
    }
}

fn unstarted(task: &Task, clock: Option<SiteClock>) -> TaskReturned {
    TaskReturned {
        task: task.task,
        delivery: task.delivery,
        cause: ReturnCause::Unstarted,
        clock,
    }
}

pub(crate) fn site_name(number: usize) -> String {
    format!("s{number}.example")
}

pub(crate) fn url(site: usize, page: usize) -> String {
    format!("http://{}/{page}", site_name(site))
}

pub(crate) fn site_number(name: &str) -> usize {
    let number = name
        .strip_prefix('s')
        .and_then(|rest| rest.split('.').next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a site of ours")
}

/// The page that a URL of ours ends with.
pub(crate) fn page_of(url: &str) -> usize {
    let page = url.rsplit('/').next();
    page.and_then(|page| page.parse().ok())
        .expect("a page of ours")
}

/// The site and the page of a URL of ours.
pub(crate) fn place_of(url: &str) -> (usize, usize) {
    let host = url.split('/').nth(2).expect("a URL of ours");
    (site_number(host), page_of(url))
}

fn page_number(task: &Task) -> usize {
    page_of(&task.url)
}
