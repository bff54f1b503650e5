//! The events of workers, and their messages.

use webfill_wire::{CrawlKey, Lane, Outcome, SupervisorToWorker, WorkerToSupervisor};

use crate::client::CRAWLS;
use crate::judge::Process;
use crate::sites::PagePlan;
use crate::web::Request;
use crate::worker::{Around, FinishedTask, Next, Pending, Worker, page_of, site_number, url};
use crate::world::{Event, Place, World};

/// The same values as in the real supervisor.
const CHECK_MS: u64 = 100;
const BACKOFF_MS: u64 = 300;
const WORKER_SILENT_MS: u64 = 15_000;

impl World {
    // The worker, as its supervisor sees it.

    pub(crate) fn start_worker(
        &mut self,
        machine: usize,
        life: u32,
        slot: u16,
        blamed: Option<u64>,
    ) {
        if self.machines[machine].life != life || self.machines[machine].core.is_none() {
            return;
        }
        self.unstop(Place::Worker(machine, slot));
        let (politeness, now_ms) = (self.plan.politeness(), self.now_ms);
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        worker.start(slot, politeness, now_ms);
        let incarnation = worker.incarnation;
        self.with_supervisor(machine, |core, _| {
            core.worker_started(slot, incarnation, blamed);
        });
        let ready = Event::WorkerReady {
            machine,
            slot,
            incarnation,
        };
        self.later(50, ready);
    }

    /// Ends a worker that dies, possibly because of a page.
    pub(crate) fn kill_worker(&mut self, machine: usize, slot: u16, blamed: Option<u64>) {
        if !self.machines[machine].workers[usize::from(slot)].is_alive {
            return;
        }
        self.end_worker(machine, slot);
        let life = self.machines[machine].life;
        let noticed = Event::WorkerMissed {
            machine,
            life,
            slot,
            blamed,
        };
        self.later(CHECK_MS, noticed);
    }

    pub(crate) fn end_worker(&mut self, machine: usize, slot: u16) {
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        if std::mem::replace(&mut worker.is_alive, false) {
            for site in worker.asking() {
                self.web.judge.note_worker_gone(site, self.now_ms);
                self.web.shared_servers.note_worker_gone(site);
            }
        }
    }

    pub(crate) fn miss_worker(
        &mut self,
        machine: usize,
        life: u32,
        slot: u16,
        blamed: Option<u64>,
    ) {
        if self.machines[machine].life != life {
            return;
        }
        let mut is_draining = false;
        self.with_supervisor(machine, |core, _| {
            core.worker_died(slot);
            is_draining = core.is_draining();
            if is_draining {
                core.give_back_tasks_of_dead_worker(slot, blamed);
            }
        });
        if !is_draining {
            let starts = Event::WorkerStarts {
                machine,
                life,
                slot,
                blamed,
            };
            self.later(BACKOFF_MS, starts);
        }
    }

    /// Stops a worker, and kills it if that lasts too long.
    pub(crate) fn stop_worker(&mut self, machine: usize, slot: u16, for_ms: u64) {
        self.stop(Place::Worker(machine, slot), for_ms);
        let incarnation = self.machines[machine].workers[usize::from(slot)].incarnation;
        if for_ms > WORKER_SILENT_MS {
            let hangs = Event::WorkerHangs {
                machine,
                slot,
                incarnation,
            };
            self.later(WORKER_SILENT_MS, hangs);
        }
    }

    pub(crate) fn end_hanging_worker(&mut self, machine: usize, slot: u16, incarnation: u32) {
        let worker = &self.machines[machine].workers[usize::from(slot)];
        let hangs = self.is_stopped(Place::Worker(machine, slot));
        if worker.incarnation == incarnation && hangs && self.machines[machine].core.is_some() {
            self.kill_worker(machine, slot, None);
        }
    }

    pub(crate) fn send_to_worker(
        &mut self,
        machine: usize,
        slot: u16,
        message: SupervisorToWorker,
    ) {
        let incarnation = self.machines[machine].workers[usize::from(slot)].incarnation;
        let event = Event::ToWorker {
            machine,
            slot,
            incarnation,
            message,
        };
        self.later(1, event);
    }

    // The worker, as it sees itself.

    pub(crate) fn is_alive(&self, machine: usize, slot: u16, incarnation: u32) -> bool {
        let worker = &self.machines[machine].workers[usize::from(slot)];
        worker.is_alive && worker.incarnation == incarnation
    }

    pub(crate) fn report(&mut self, machine: usize, message: WorkerToSupervisor) {
        let life = self.machines[machine].life;
        let event = Event::FromWorker {
            machine,
            life,
            message,
        };
        self.later(1, event);
    }

    pub(crate) fn worker_is_ready(&mut self, machine: usize, slot: u16, incarnation: u32) {
        if self.is_alive(machine, slot, incarnation) {
            let worker = &self.machines[machine].workers[usize::from(slot)];
            let message = worker.says(Vec::new(), Vec::new(), true);
            self.report(machine, message);
        }
    }

    pub(crate) fn hand_to_worker(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        message: SupervisorToWorker,
    ) {
        let Some(message) = self.sabotaged(machine, message) else {
            return;
        };
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        self.keep_clocks(machine, slot);
        let now = self.now();
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        let (sites, says) = worker.take(message, now);
        if says.returned.len() + says.recalled.len() > 0 {
            self.report(machine, says);
        }
        for site in sites {
            self.work_on(machine, slot, incarnation, site);
        }
        self.end_if_drained(machine, slot);
    }

    /// A worker, and its present environment.
    fn worker_and_around(&mut self, machine: usize, slot: u16) -> (&mut Worker, Around<'_>) {
        let (now, boot_ms) = (self.now(), self.machines[machine].boot_ms(self.now_ms));
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        let around = Around {
            cache: &mut self.cache,
            judge: &mut self.web.judge,
            sabotage: self.sabotage,
            process: (machine, slot, worker.incarnation),
            now,
            now_ms: self.now_ms,
            boot_ms,
            longest_request_ms: self.plan.longest_request_ms,
        };
        (worker, around)
    }

    /// Writes a worker's clocks to the shared cache. This is done when something happens to the worker, and some time
    /// after each answer, instead of every two seconds.
    pub(crate) fn keep_clocks(&mut self, machine: usize, slot: u16) {
        let owner = self.machines[machine].name().to_owned();
        let (worker, mut around) = self.worker_and_around(machine, slot);
        if worker.is_alive {
            worker.keep_clocks(&owner, &mut around);
        }
    }

    fn end_if_drained(&mut self, machine: usize, slot: u16) {
        let worker = &self.machines[machine].workers[usize::from(slot)];
        if worker.is_alive && worker.has_drained() {
            self.keep_clocks(machine, slot);
            let worker = &mut self.machines[machine].workers[usize::from(slot)];
            worker.is_alive = false;
            let message = worker.says(Vec::new(), Vec::new(), false);
            self.report(machine, message);
        }
    }

    /// Advances a site's runner.
    pub(crate) fn work_on(&mut self, machine: usize, slot: u16, incarnation: u32, site: usize) {
        while self.is_alive(machine, slot, incarnation) {
            let (worker, mut around) = self.worker_and_around(machine, slot);
            match worker.advance(site, &mut around) {
                Next::Nothing => break,
                Next::WakeAt(instant) => {
                    let again = Event::Turn {
                        machine,
                        slot,
                        incarnation,
                        site,
                    };
                    return self.at(self.ms_of(instant), again);
                }
                Next::Ask(request) => return self.ask(machine, slot, incarnation, site, request),
                over => self.end_task(machine, slot, over),
            }
        }
        self.end_if_drained(machine, slot);
    }

    /// Ends the task of a runner, which gives it back, or has a page or a refusal to save.
    fn end_task(&mut self, machine: usize, slot: u16, over: Next) {
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        match over {
            Next::GiveBack(returned) => {
                let message = worker.says(Vec::new(), vec![returned], false);
                self.report(machine, message);
            }
            Next::Finish(finished) => {
                worker.saving += 1;
                let incarnation = worker.incarnation;
                let saves_ms = self.dice.between(1, 40);
                let saved = Event::Saved {
                    machine,
                    slot,
                    incarnation,
                    finished,
                };
                self.later(saves_ms, saved);
            }
            Next::Nothing | Next::WakeAt(_) | Next::Ask(_) => {}
        }
    }

    fn ask(&mut self, machine: usize, slot: u16, incarnation: u32, site: usize, request: Request) {
        let (takes_ms, lost) = self.outcome_of_sending(machine, slot, site);
        let ends_ms = self.now_ms + takes_ms;
        let name = self.machines[machine].name();
        let who = format!("{name}/{slot}.{incarnation} of machine {machine}");
        self.trace(|_| format!("site {site}: {request:?} by {who} until {ends_ms}"));
        self.judge_by_backoffs(machine, slot, site, request, &who);
        let mut failure = None;
        if let Request::Page { crawl, page, .. } = request {
            self.judge_by_orders(crawl, site, &who);
            self.judge_by_lane(machine, crawl, &who);
            let page = &self.plan.sites[site].pages[page];
            failure = Some((page.fails, page.failure));
        } else {
            self.judge_by_cache(site, request, &who);
        }
        let process: Process = (machine, slot, incarnation);
        self.may_wait_for_name(process, site, takes_ms);
        let times = (self.now_ms, ends_ms);
        let response = lost.unwrap_or_else(|| {
            self.web
                .begins(site, request, times, (process, &who), failure)
        });
        let pending = Pending {
            request,
            started: self.now(),
            started_ms: self.now_ms,
            response,
        };
        self.machines[machine].workers[usize::from(slot)].sent(site, pending);
        let answered = Event::Answered {
            machine,
            slot,
            incarnation,
            site,
        };
        self.at(ends_ms, answered);
    }

    /// Judges that no page of a crawl in the lane `browser` goes to a supervisor without browsers.
    fn judge_by_lane(&mut self, machine: usize, crawl: CrawlKey, who: &str) {
        // The client opens the crawls in order, so the key is the position plus one.
        let needed = self.plan.crawl_lanes[crawl as usize - 1];
        if needed == Lane::Browser && self.machines[machine].lane() == Lane::Http {
            let fault = format!("without a browser: a page of crawl {crawl} by {who}");
            self.faults.push(fault);
        }
    }

    /// Judges that robots.txt is requested only if the cache has no fresh one, as long as nothing goes wrong.
    fn judge_by_cache(&mut self, site: usize, request: Request, who: &str) {
        let origin = format!("http://{}", crate::shared_servers::site_name(site));
        let wall_ms = self.now().wall_ms;
        let cached = self.cache.robots(&origin, wall_ms).ok().flatten();
        let is_first = request == Request::Robots { hop: 0 };
        let is_known = cached.is_some_and(|entry| entry.is_fresh(wall_ms));
        if is_first && self.plan.is_peaceful() && is_known {
            let fault =
                format!("robots.txt of site {site} is in the cache, and requested by {who}");
            self.faults.push(fault);
        }
    }

    pub(crate) fn answer(&mut self, machine: usize, slot: u16, incarnation: u32, site: usize) {
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        let (worker, mut around) = self.worker_and_around(machine, slot);
        let is_reached = worker.is_reached(site);
        if let Some(over) = worker.answered(site, &mut around) {
            if let Next::Finish(finished) = &over
                && is_reached
                && finished.outcome != Outcome::Blocked
                && self.planned(finished).kills_its_worker
            {
                let blamed = finished.task.task;
                return self.kill_worker(machine, slot, Some(blamed));
            }
            self.end_task(machine, slot, over);
        }
        let clocks = Event::ClocksKept {
            machine,
            slot,
            incarnation,
        };
        self.later(2_000, clocks);
        self.work_on(machine, slot, incarnation, site);
    }

    fn planned(&self, finished: &FinishedTask) -> &PagePlan {
        let task = &finished.task;
        &self.plan.sites[site_number(&task.site)].pages[page_of(&task.url)]
    }

    pub(crate) fn save(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        finished: &FinishedTask,
    ) {
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        let task = &finished.task;
        let is_ok = finished.outcome == Outcome::Ok;
        let page = self.planned(finished);
        let links = page.links.iter().filter(|_| is_ok);
        let links = links.map(|(site, page)| url(*site, *page)).collect();
        let (crawl, completes) = (CRAWLS[task.crawl as usize - 1], page.completes);
        let resolved = self
            .store
            .save(crawl, &task.url, is_ok, completes, &task.records);
        let done = finished.done(links, resolved, self.now());
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        worker.saving -= 1;
        let message = worker.says(vec![done], Vec::new(), false);
        self.report(machine, message);
        self.end_if_drained(machine, slot);
    }

    pub(crate) fn keep_clocks_of(&mut self, machine: usize, slot: u16, incarnation: u32) {
        if self.is_alive(machine, slot, incarnation) {
            self.keep_clocks(machine, slot);
        }
    }
}
