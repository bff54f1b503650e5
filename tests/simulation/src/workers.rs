//! The events of workers, and their messages.

use webfill_wire::{CrawlKey, Lane, Outcome, SupervisorToWorker, WorkerToSupervisor};

use crate::client::CRAWLS;
use crate::judge::Process;
use crate::sites::PagePlan;
use crate::web::Request;
use crate::worker::{
    FinishedTask, Pending, RunnerAction, Worker, WorkerEnvironment, page_of, site_number, url,
};
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
        self.resume(Place::Worker(machine, slot));
        let (politeness, now_ms) = (self.plan.politeness(), self.now_ms);
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        worker.start(slot, politeness, now_ms);
        let incarnation = worker.incarnation;
        self.run_supervisor(machine, |core, _| {
            core.note_worker_start(slot, incarnation, blamed);
        });
        let ready = Event::WorkerReady {
            machine,
            slot,
            incarnation,
        };
        self.schedule_in(50, ready);
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
        self.schedule_in(CHECK_MS, noticed);
    }

    pub(crate) fn end_worker(&mut self, machine: usize, slot: u16) {
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        if std::mem::replace(&mut worker.is_alive, false) {
            for site in worker.sites_with_requests() {
                self.web.judge.on_worker_gone(site, self.now_ms);
                self.web.shared_servers.on_worker_gone(site);
            }
        }
    }

    pub(crate) fn report_worker_death(
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
        self.run_supervisor(machine, |core, _| {
            core.note_worker_death(slot);
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
            self.schedule_in(BACKOFF_MS, starts);
        }
    }

    /// Stops a worker, and kills it if that lasts too long.
    pub(crate) fn stop_worker(&mut self, machine: usize, slot: u16, for_ms: u64) {
        self.suspend(Place::Worker(machine, slot), for_ms);
        let incarnation = self.machines[machine].workers[usize::from(slot)].incarnation;
        if for_ms > WORKER_SILENT_MS {
            let hangs = Event::WorkerHangs {
                machine,
                slot,
                incarnation,
            };
            self.schedule_in(WORKER_SILENT_MS, hangs);
        }
    }

    pub(crate) fn kill_if_still_hanging(&mut self, machine: usize, slot: u16, incarnation: u32) {
        let worker = &self.machines[machine].workers[usize::from(slot)];
        let hangs = self.is_suspended(Place::Worker(machine, slot));
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
        self.schedule_in(1, event);
    }

    // The worker, as it sees itself.

    pub(crate) fn is_alive(&self, machine: usize, slot: u16, incarnation: u32) -> bool {
        let worker = &self.machines[machine].workers[usize::from(slot)];
        worker.is_alive && worker.incarnation == incarnation
    }

    pub(crate) fn schedule_from_worker(&mut self, machine: usize, message: WorkerToSupervisor) {
        let life = self.machines[machine].life;
        let event = Event::FromWorker {
            machine,
            life,
            message,
        };
        self.schedule_in(1, event);
    }

    pub(crate) fn worker_is_ready(&mut self, machine: usize, slot: u16, incarnation: u32) {
        if self.is_alive(machine, slot, incarnation) {
            let worker = &self.machines[machine].workers[usize::from(slot)];
            let message = worker.message(Vec::new(), Vec::new(), true);
            self.schedule_from_worker(machine, message);
        }
    }

    pub(crate) fn deliver_to_worker(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        message: SupervisorToWorker,
    ) {
        let Some(message) = self.sabotage_message(machine, message) else {
            return;
        };
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        self.write_clocks(machine, slot);
        let now = self.now();
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        let (sites, says) = worker.handle(message, now);
        if says.returned.len() + says.recalled.len() > 0 {
            self.schedule_from_worker(machine, says);
        }
        for site in sites {
            self.advance_runner(machine, slot, incarnation, site);
        }
        self.end_if_drained(machine, slot);
    }

    /// A worker, and its present environment.
    fn worker_and_environment(
        &mut self,
        machine: usize,
        slot: u16,
    ) -> (&mut Worker, WorkerEnvironment<'_>) {
        let (now, boot_ms) = (self.now(), self.machines[machine].boot_ms(self.now_ms));
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        let around = WorkerEnvironment {
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
    pub(crate) fn write_clocks(&mut self, machine: usize, slot: u16) {
        let owner = self.machines[machine].name().to_owned();
        let (worker, mut around) = self.worker_and_environment(machine, slot);
        if worker.is_alive {
            worker.write_clocks(&owner, &mut around);
        }
    }

    fn end_if_drained(&mut self, machine: usize, slot: u16) {
        let worker = &self.machines[machine].workers[usize::from(slot)];
        if worker.is_alive && worker.has_drained() {
            self.write_clocks(machine, slot);
            let worker = &mut self.machines[machine].workers[usize::from(slot)];
            worker.is_alive = false;
            let message = worker.message(Vec::new(), Vec::new(), false);
            self.schedule_from_worker(machine, message);
        }
    }

    /// Advances a site's runner.
    pub(crate) fn advance_runner(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    ) {
        while self.is_alive(machine, slot, incarnation) {
            let (worker, mut around) = self.worker_and_environment(machine, slot);
            match worker.advance(site, &mut around) {
                RunnerAction::Nothing => break,
                RunnerAction::WakeAt(instant) => {
                    let again = Event::Turn {
                        machine,
                        slot,
                        incarnation,
                        site,
                    };
                    return self.schedule_at(self.ms_of(instant), again);
                }
                RunnerAction::Ask(request) => {
                    return self.send_request(machine, slot, incarnation, site, request);
                }
                over => self.end_task(machine, slot, over),
            }
        }
        self.end_if_drained(machine, slot);
    }

    /// Ends the task of a runner, which gives it back, or has a page or a refusal to save.
    fn end_task(&mut self, machine: usize, slot: u16, over: RunnerAction) {
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        match over {
            RunnerAction::GiveBack(returned) => {
                let message = worker.message(Vec::new(), vec![returned], false);
                self.schedule_from_worker(machine, message);
            }
            RunnerAction::Finish(finished) => {
                worker.saving += 1;
                let incarnation = worker.incarnation;
                let saves_ms = self.dice.between(1, 40);
                let saved = Event::Saved {
                    machine,
                    slot,
                    incarnation,
                    finished,
                };
                self.schedule_in(saves_ms, saved);
            }
            RunnerAction::Nothing | RunnerAction::WakeAt(_) | RunnerAction::Ask(_) => {}
        }
    }

    fn send_request(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
        request: Request,
    ) {
        let (takes_ms, lost) = self.outcome_of_sending(machine, slot, site);
        let ends_ms = self.now_ms + takes_ms;
        let name = self.machines[machine].name();
        let who = format!("{name}/{slot}.{incarnation} of machine {machine}");
        self.trace(|_| format!("site {site}: {request:?} by {who} until {ends_ms}"));
        self.check_backoff(machine, slot, site, request, &who);
        let mut failure = None;
        if let Request::Page { crawl, page, .. } = request {
            self.check_orders(crawl, site, &who);
            self.check_lane(machine, crawl, &who);
            let page = &self.plan.sites[site].pages[page];
            failure = Some((page.fails, page.failure));
        } else {
            self.check_cache_use(site, request, &who);
        }
        let process: Process = (machine, slot, incarnation);
        self.schedule_name_wait_sometimes(process, site, takes_ms);
        let times = (self.now_ms, ends_ms);
        let response = lost.unwrap_or_else(|| {
            self.web
                .answer_request(site, request, times, (process, &who), failure)
        });
        let pending = Pending {
            request,
            started: self.now(),
            started_ms: self.now_ms,
            response,
        };
        self.machines[machine].workers[usize::from(slot)].on_request_sent(site, pending);
        let answered = Event::Answered {
            machine,
            slot,
            incarnation,
            site,
        };
        self.schedule_at(ends_ms, answered);
    }

    /// Judges that no page of a crawl in the lane `browser` goes to a supervisor without browsers.
    fn check_lane(&mut self, machine: usize, crawl: CrawlKey, who: &str) {
        // The client opens the crawls in order, so the key is the position plus one.
        let needed = self.plan.crawl_lanes[crawl as usize - 1];
        if needed == Lane::Browser && self.machines[machine].lane() == Lane::Http {
            let fault = format!("without a browser: a page of crawl {crawl} by {who}");
            self.faults.push(fault);
        }
    }

    /// Judges that robots.txt is requested only if the cache has no fresh one, as long as nothing goes wrong.
    fn check_cache_use(&mut self, site: usize, request: Request, who: &str) {
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

    pub(crate) fn deliver_answer(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    ) {
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        let (worker, mut around) = self.worker_and_environment(machine, slot);
        let is_reached = worker.will_be_answered_soon(site);
        if let Some(over) = worker.apply_answer(site, &mut around) {
            if let RunnerAction::Finish(finished) = &over
                && is_reached
                && finished.outcome != Outcome::Blocked
                && self.page_plan_of(finished).kills_its_worker
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
        self.schedule_in(2_000, clocks);
        self.advance_runner(machine, slot, incarnation, site);
    }

    fn page_plan_of(&self, finished: &FinishedTask) -> &PagePlan {
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
        let page = self.page_plan_of(finished);
        let links = page.links.iter().filter(|_| is_ok);
        let links = links.map(|(site, page)| url(*site, *page)).collect();
        let (crawl, completes) = (CRAWLS[task.crawl as usize - 1], page.completes);
        let resolved = self
            .store
            .save(crawl, &task.url, is_ok, completes, &task.records);
        let done = finished.to_message(links, resolved, self.now());
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        worker.saving -= 1;
        let message = worker.message(vec![done], Vec::new(), false);
        self.schedule_from_worker(machine, message);
        self.end_if_drained(machine, slot);
    }

    pub(crate) fn write_clocks_if_alive(&mut self, machine: usize, slot: u16, incarnation: u32) {
        if self.is_alive(machine, slot, incarnation) {
            self.write_clocks(machine, slot);
        }
    }
}
