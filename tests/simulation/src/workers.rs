//! What happens to workers, and what they send.

use webfill_wire::{CrawlKey, Lane, SupervisorToWorker, Task, WorkerToSupervisor};

use crate::web::Request;
use crate::worker::{Answered, Next, done, url};
use crate::world::{Event, FetchedPage, Place, World};

/// As the real supervisor has it.
const LOOK_MS: u64 = 100;
const REST_MS: u64 = 300;
const WORKER_SILENT_MS: u64 = 15_000;

impl World {
    // As their supervisor sees them.

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
        let default_delay_ms = self.plan.default_delay_ms;
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        worker.start(slot, default_delay_ms);
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

    /// A worker dies, perhaps of a page.
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
        self.later(LOOK_MS, noticed);
    }

    pub(crate) fn end_worker(&mut self, machine: usize, slot: u16) {
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        if std::mem::replace(&mut worker.is_alive, false) {
            for site in worker.asking() {
                self.web.cut(site, self.now_ms);
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
                core.account_for_death(slot, blamed);
            }
        });
        if !is_draining {
            let starts = Event::WorkerStarts {
                machine,
                life,
                slot,
                blamed,
            };
            self.later(REST_MS, starts);
        }
    }

    /// A worker is stopped, and ended if that takes too long.
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

    // By themselves.

    fn is_alive(&self, machine: usize, slot: u16, incarnation: u32) -> bool {
        let worker = &self.machines[machine].workers[usize::from(slot)];
        worker.is_alive && worker.incarnation == incarnation
    }

    fn report(&mut self, machine: usize, message: WorkerToSupervisor) {
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
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        let (sites, says) = worker.take(message, self.now_ms);
        if says.returned.len() + says.recalled.len() > 0 {
            self.report(machine, says);
        }
        for site in sites {
            self.work_on(machine, slot, incarnation, site);
        }
        self.end_if_drained(machine, slot);
    }

    fn end_if_drained(&mut self, machine: usize, slot: u16) {
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        if worker.is_alive && worker.has_drained() {
            worker.is_alive = false;
            let message = worker.says(Vec::new(), Vec::new(), false);
            self.report(machine, message);
        }
    }

    /// Lets a site's runner go on.
    pub(crate) fn work_on(&mut self, machine: usize, slot: u16, incarnation: u32, site: usize) {
        while self.is_alive(machine, slot, incarnation) {
            let boot_ms = self.machines[machine].boot_ms(self.now_ms);
            let cached = !self.plan.cache_fails && self.robots_cache.contains(&site);
            let worker = &mut self.machines[machine].workers[usize::from(slot)];
            let knows_robots = cached || worker.robots.contains(&site);
            let web = &self.web;
            let delay_of = |task: &Task| web.delay_ms(site, task.delay_ms);
            let next = worker.advance(site, delay_of, knows_robots, boot_ms, self.now_ms);
            let again = Event::Turn {
                machine,
                slot,
                incarnation,
                site,
            };
            match next {
                Next::Nothing => break,
                Next::WakeAt(at_ms) => return self.at(at_ms, again),
                Next::Ask(request) => return self.ask(machine, slot, incarnation, site, request),
                Next::GiveBack(returned) => {
                    let message = worker.says(Vec::new(), vec![returned], false);
                    self.report(machine, message);
                }
            }
        }
        self.end_if_drained(machine, slot);
    }

    fn ask(&mut self, machine: usize, slot: u16, incarnation: u32, site: usize, request: Request) {
        let within_ms = self.plan.sites[site].answers_within_ms;
        let ends_ms = self.now_ms + self.dice.between(1, within_ms);
        let who = format!(
            "{}/{slot}.{incarnation} of machine {machine}",
            self.machines[machine].name()
        );
        self.trace(|_| format!("site {site}: {request:?} by {who} until {ends_ms}"));
        if let Request::Page(crawl, _) = request {
            self.judge_by_orders(crawl, site, &who);
            self.judge_by_lane(machine, crawl, &who);
        }
        self.web.begins(site, request, self.now_ms, ends_ms, &who);
        let answered = Event::Answered {
            machine,
            slot,
            incarnation,
            site,
        };
        self.at(ends_ms, answered);
    }

    /// Pages whose scripts must run are nothing for those who cannot do that.
    fn judge_by_lane(&mut self, machine: usize, crawl: CrawlKey, who: &str) {
        // The client opens them in order.
        let needed = self.plan.crawl_lanes[crawl as usize - 1];
        if needed == Lane::Browser && self.machines[machine].lane() == Lane::Http {
            let fault = format!("without a browser: a page of crawl {crawl} by {who}");
            self.faults.push(fault);
        }
    }

    pub(crate) fn answer(&mut self, machine: usize, slot: u16, incarnation: u32, site: usize) {
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        let longest_ms = self.plan.longest_request_ms;
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        let web = &self.web;
        let delay_of = |task: &Task| web.delay_ms(site, task.delay_ms);
        match worker.answered(site, delay_of, longest_ms, self.now_ms) {
            Answered::Nothing => {}
            Answered::Robots => {
                self.robots_cache.insert(site);
            }
            Answered::Returned(returned) => {
                let message = worker.says(Vec::new(), vec![returned], false);
                self.report(machine, message);
            }
            Answered::Page(task) => {
                let number = page_number(&task);
                let page = &self.plan.sites[site].pages[number];
                if page.kills_its_worker {
                    return self.kill_worker(machine, slot, Some(task.task));
                }
                let asked = self.web.asked.get(&(task.crawl, site, number));
                let failed = asked.is_some_and(|times| *times <= page.fails);
                worker.saving += 1;
                let answered_ms = self.now_ms;
                let page = FetchedPage {
                    task,
                    answered_ms,
                    failed,
                };
                let saves_ms = self.dice.between(1, 40);
                self.later(
                    saves_ms,
                    Event::Saved {
                        machine,
                        slot,
                        incarnation,
                        site,
                        page: Box::new(page),
                    },
                );
            }
        }
        self.work_on(machine, slot, incarnation, site);
    }

    pub(crate) fn save(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
        saved: &FetchedPage,
    ) {
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        let FetchedPage {
            task,
            answered_ms,
            failed,
        } = saved;
        let page = &self.plan.sites[site].pages[page_number(task)];
        let links = page.links.iter().map(|(site, page)| url(*site, *page));
        let links = (!failed).then(|| links.collect());
        let delay_ms = self.web.delay_ms(site, task.delay_ms);
        let done = done(task, links, *answered_ms, delay_ms, self.now_ms);
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        worker.saving -= 1;
        let message = worker.says(vec![done], Vec::new(), false);
        self.report(machine, message);
        self.end_if_drained(machine, slot);
    }
}

fn page_number(task: &Task) -> usize {
    let page = task.url.rsplit('/').next();
    page.and_then(|page| page.parse().ok())
        .expect("a page of ours")
}
