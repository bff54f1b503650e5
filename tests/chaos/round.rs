//! A round: crawls a generated web while the faults of a plan are injected, and checks the results.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fastrand::Rng;
use webfill_test_mongod::{Database, fresh_database};
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::run::Running;
use webfill_tests::site::AccessLog;
use webfill_tests::stored::StoredPage;
use webfill_tests::wall_clock;
use webfill_tests::workplace::Workplace;

use crate::crew::Crew;
use crate::egress;
use crate::graph::{self, Graph};
use crate::judge::{self, Failures};
use crate::plan::{Fault, Kind, PlannedFault};
use crate::points;
use crate::proxy::Weather;

const TICK: Duration = Duration::from_millis(20);

/// The longest time that a crawl may take after the last fault. If it takes longer, tasks must have been lost.
const PATIENCE: Duration = Duration::from_secs(120);

/// The kind of store where a round stores its pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Store {
    Sqlite,
    Mongodb,
}

/// The settings of a round (one crawl with its faults).
pub(crate) struct Round {
    pub(crate) kind: Kind,
    pub(crate) store: Store,
    pub(crate) sites: usize,
    pub(crate) pages: usize,
    /// Whether sites become unreachable after only two backoffs.
    pub(crate) gives_up: bool,
    /// The seed for generating the web.
    pub(crate) seed: u64,
    pub(crate) plan: Vec<PlannedFault>,
}

/// A fault that was injected, with its times.
#[derive(Debug, Clone)]
pub(crate) struct Injected {
    pub(crate) planned: PlannedFault,
    pub(crate) from: Instant,
    pub(crate) until: Instant,
    /// The URLs of the tasks that any process held when the fault began, while it lasted, or when it ended.
    pub(crate) held: BTreeSet<String>,
}

/// The result of a round.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The number of injected faults, by name.
    pub(crate) faults: BTreeMap<String, usize>,
    pub(crate) pages: usize,
    pub(crate) requests: usize,
    pub(crate) repeated: usize,
    /// The number of tasks that were tried by a machine without a route to the web.
    pub(crate) without_route: usize,
    pub(crate) robots: usize,
    pub(crate) elapsed: Duration,
    /// The violations that were found, each as a sentence.
    pub(crate) wrong: Vec<String>,
}

/// An action that ends a fault later.
enum PendingRepair {
    Continue(u32),
    Fair(usize),
    Remove(Running),
    Refused(Running, Vec<u32>),
    Recover(String),
    GiveWayBack(usize),
    Resume,
    NoLimit(String),
}

/// How and when a fault is to end. `fault` is its position among the injected ones.
struct Mend {
    at: Instant,
    fault: usize,
    repair: PendingRepair,
}

/// If an operator's action got no answer, it is repeated after this time.
const AGAIN_AFTER: Duration = Duration::from_millis(300);

struct Scene {
    crew: Crew,
    store: std::path::PathBuf,
    log: AccessLog,
    graph: Graph,
    mends: Vec<Mend>,
    injected: Vec<Injected>,
    wrong: Vec<String>,
    gives_up: bool,
}

/// Runs a round to the end of its crawl.
pub(crate) fn run(round: &Round) -> Report {
    let database = match round.store {
        Store::Sqlite => None,
        Store::Mongodb => Some(fresh_database()),
    };
    let started = Instant::now();
    let (web, work) = (egress::start_web(), Workplace::new());
    let mut rng = Rng::with_seed(round.seed);
    let graph = graph::serve(&web, round.sites, round.pages, &mut rng);
    work.write("seeds.txt", graph.roots.join("\n"));
    let store = match &database {
        Some(database) => database.uri().to_owned(),
        None => format!("sqlite:{}", work.path("store.db").display()),
    };
    let mut scene = Scene {
        crew: Crew::new(round, &work, &web, &store),
        store: work.path("store.db"),
        log: web.log().clone(),
        graph,
        mends: Vec::new(),
        injected: Vec::new(),
        wrong: Vec::new(),
        gives_up: round.gives_up,
    };
    scene.inject_plan(&round.plan);
    scene.finish();
    scene.crew.kill_all();
    let graph = &scene.graph;
    let pages = stored_pages(&work, database.as_ref());
    let failures = Failures {
        visits: &web.visits(),
        without_route: &scene.urls_without_route(),
        of_whole_hosts: round.gives_up,
    };
    let mut report = judge::build_report(graph, &failures, &scene.injected, &pages);
    report.without_route = egress::urls_without_route(&scene.crew.folder).len();
    report.wrong.append(&mut scene.wrong);
    let frontier = judge::check_frontier(&scene.crew.frontier_path(), graph);
    report.wrong.extend(frontier);
    report.elapsed = started.elapsed();
    if !report.wrong.is_empty() {
        keep_folder(work);
    }
    report
}

fn stored_pages(work: &Workplace, database: Option<&Database>) -> BTreeMap<String, StoredPage> {
    match database {
        Some(database) => Documents::open(database.uri()).pages(),
        None => work.stored().pages(),
    }
}

/// Keeps the folder of a failed round, so that people can inspect it.
fn keep_folder(work: Workplace) {
    eprintln!("kept for inspection: {}", work.path(".").display());
    std::mem::forget(work);
}

impl Scene {
    /// Injects the faults of a plan until the crawl is finished.
    fn inject_plan(&mut self, plan: &[PlannedFault]) {
        let mut plan = plan.iter();
        let mut next = plan.next();
        let mut last = Instant::now();
        loop {
            let finished = self.crew.restart_dead(&self.graph.roots);
            self.note_held_tasks();
            self.undo_due_faults(Instant::now());
            if finished {
                break;
            }
            match next {
                Some(planned) if self.is_due(planned, last) => {
                    self.inject(*planned);
                    last = Instant::now();
                    next = plan.next();
                }
                None if last.elapsed() > PATIENCE => {
                    self.wrong.push("the crawl does not end".into());
                    break;
                }
                _ => std::thread::sleep(TICK),
            }
        }
        self.undo_due_faults(Instant::now() + Duration::from_secs(3_600));
    }

    /// Whether the next fault is due. A fault at a certain moment of a task is due only when pages are being fetched.
    /// On a busy machine, the processes take so long to start that the moment would be missed.
    fn is_due(&self, planned: &PlannedFault, last: Instant) -> bool {
        let is_of_task = matches!(planned.fault, Fault::KillAt(_));
        last.elapsed() > Duration::from_millis(planned.wait_ms)
            && (!is_of_task || !self.log.visits().pages().0.is_empty())
    }

    /// Lets the crawl finish without further faults. Tasks that failed because their site was in trouble are retried,
    /// as users would do. A task that failed for another reason is a violation.
    fn finish(&mut self) {
        let failed = self.crew.failed_urls();
        if failed.is_empty() || !self.wrong.is_empty() {
            return;
        }
        let failures = Failures {
            visits: &self.log.visits(),
            without_route: &self.urls_without_route(),
            of_whole_hosts: self.gives_up,
        };
        for url in failed.iter().filter(|url| !failures.can_explain(url)) {
            self.wrong
                .push(format!("{url} failed, and neither its site nor a way did"));
        }
        self.crew.retry();
        let deadline = Instant::now() + PATIENCE;
        while !self.crew.restart_dead(&self.graph.roots) {
            if Instant::now() > deadline {
                return self.wrong.push("what was tried again does not end".into());
            }
            std::thread::sleep(TICK);
        }
    }

    /// The URLs that a machine without a route has tried, or was fetching when it lost its route.
    fn urls_without_route(&self) -> BTreeSet<String> {
        let mut urls = egress::urls_without_route(&self.crew.folder);
        for fault in &self.injected {
            if let Fault::LosesWay(_) = fault.planned.fault {
                urls.extend(fault.held.iter().cloned());
            }
        }
        urls
    }

    /// While faults last, notes the tasks that processes hold.
    fn note_held_tasks(&mut self) {
        let now = Instant::now();
        if self.injected.iter().any(|fault| fault.until >= now) {
            let held = self.crew.held_urls();
            let lasting = self.injected.iter_mut().filter(|fault| fault.until >= now);
            lasting.for_each(|fault| fault.held.extend(held.iter().cloned()));
        }
    }

    fn inject(&mut self, planned: PlannedFault) {
        let from = Instant::now();
        let until = from + Duration::from_millis(planned.fault.duration_ms());
        let mut held = self.crew.held_urls();
        if self.try_inject(planned, until) {
            held.append(&mut self.crew.held_urls());
            let injected = Injected {
                planned,
                from,
                until: until.max(Instant::now()),
                held,
            };
            self.injected.push(injected);
        }
    }

    /// Injects a fault. Returns false if no process exists that the fault could affect.
    fn try_inject(&mut self, planned: PlannedFault, until: Instant) -> bool {
        let pick = planned.pick;
        match planned.fault {
            Fault::Kill(role) => return self.signal(role, pick, Signal::KILL).is_some(),
            Fault::KillAll => {
                let everyone = self.crew.all_processes();
                everyone.iter().for_each(|one| one.signal(Signal::KILL));
                return !everyone.is_empty();
            }
            Fault::KillAt(point) => {
                return points::kill_at(point, &self.crew, &self.store, &self.log);
            }
            Fault::Stop(role, _) => match self.signal(role, pick, Signal::STOP) {
                Some(pid) => self.mend_at(until, PendingRepair::Continue(pid)),
                None => return false,
            },
            Fault::Cut(_) => self.set_weather(pick, Weather::Cut, until),
            Fault::Silence(_) => self.set_weather(pick, Weather::Silent, until),
            Fault::Slow(_) => self.set_weather(pick, Weather::Slow, until),
            Fault::Twice(_) => self.set_weather(pick, Weather::Twice, until),
            Fault::Swap(_) => self.set_weather(pick, Weather::Swapped, until),
            Fault::SameId(_) => {
                let intruder = self.crew.start_intruder(pick % self.crew.proxies.len());
                self.mend_at(until, PendingRepair::Remove(intruder));
            }
            Fault::SecondDispatcher => {
                let first = self.dispatcher_pids();
                let second = self.crew.start_second_dispatcher();
                self.mend_at(until, PendingRepair::Refused(second, first));
            }
            Fault::Clock(hours) => {
                self.crew.set_clock(hours);
                return wall_clock::library_path().is_some();
            }
            Fault::LosesWay(_) => match self.crew.ways.remove_route(pick) {
                Some(machine) => self.mend_at(until, PendingRepair::GiveWayBack(machine)),
                None => return false,
            },
            Fault::Site(trouble, _) => {
                let host = self.graph.pick_host(pick).to_owned();
                self.graph.troubles.begin(&host, trouble);
                self.mend_at(until, PendingRepair::Recover(host));
            }
            Fault::Pause(_) => {
                // The crawl may be paused even if no answer came, so it is always resumed later.
                self.crew.pause();
                self.mend_at(until, PendingRepair::Resume);
            }
            Fault::Limit(_) => {
                let host = self.graph.pick_host(pick).to_owned();
                self.crew.limit_pages(&host, Some(pick % 3));
                self.mend_at(until, PendingRepair::NoLimit(host));
            }
        }
        true
    }

    fn signal(&self, role: &str, pick: usize, signal: Signal) -> Option<u32> {
        let found = self.crew.processes_of_role(role);
        let victim = found.get(pick % found.len().max(1))?;
        victim.signal(signal);
        Some(victim.pid)
    }

    fn dispatcher_pids(&self) -> Vec<u32> {
        let found = self.crew.processes_of_role("dispatcher");
        found.iter().map(|process| process.pid).collect()
    }

    fn set_weather(&mut self, pick: usize, weather: Weather, until: Instant) {
        let number = pick % self.crew.proxies.len();
        self.crew.proxies[number].set_weather(weather);
        self.mend_at(until, PendingRepair::Fair(number));
    }

    /// Plans the end of the fault that is being injected.
    fn mend_at(&mut self, at: Instant, repair: PendingRepair) {
        let fault = self.injected.len();
        self.mends.push(Mend { at, fault, repair });
    }

    /// Ends the faults whose time is over. On a busy machine, a fault ends later than planned.
    fn undo_due_faults(&mut self, now: Instant) {
        let (due, later) = std::mem::take(&mut self.mends)
            .into_iter()
            .partition(|mend| mend.at <= now);
        self.mends = later;
        let due: Vec<Mend> = due;
        for Mend { fault, repair, .. } in due {
            let held = self.crew.held_urls();
            match self.try_mend(repair) {
                None => {
                    let ended = &mut self.injected[fault];
                    ended.until = ended.until.max(Instant::now());
                    ended.held.extend(held);
                }
                Some(repair) => {
                    let at = Instant::now() + AGAIN_AFTER;
                    self.mends.push(Mend { at, fault, repair });
                }
            }
        }
    }

    /// Ends a fault, or returns its repair if a command for it was not answered.
    fn try_mend(&mut self, repair: PendingRepair) -> Option<PendingRepair> {
        match repair {
            PendingRepair::Continue(pid) => webfill_tests::process::send_signal(pid, Signal::CONT),
            PendingRepair::Fair(number) => self.crew.proxies[number].set_weather(Weather::Fair),
            PendingRepair::Remove(intruder) => drop(intruder),
            PendingRepair::Refused(second, first) => self.check_second_dispatcher(second, &first),
            PendingRepair::Recover(host) => self.graph.troubles.end(&host),
            PendingRepair::GiveWayBack(machine) => self.crew.ways.restore_route(machine),
            PendingRepair::Resume if self.crew.resume() => {}
            PendingRepair::NoLimit(ref host) if self.crew.limit_pages(host, None) => {}
            unanswered @ (PendingRepair::Resume | PendingRepair::NoLimit(_)) => {
                return Some(unanswered);
            }
        }
        None
    }

    /// Checks that the second dispatcher was refused, provided that the first one was running all the time.
    fn check_second_dispatcher(&mut self, mut second: Running, first: &[u32]) {
        let lived = !first.is_empty() && self.dispatcher_pids() == first;
        match second.exit_status() {
            Some(status) if lived && status.code() != Some(1) => {
                let wrong = format!("a second dispatcher ended with {status}");
                self.wrong.push(wrong);
            }
            None if lived && second.processes_of_role("dispatcher").len() == 1 => {
                self.wrong.push("a second dispatcher lives".into());
            }
            _ => {}
        }
    }
}
