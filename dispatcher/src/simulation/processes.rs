//! What happens to supervisors and workers, and what they send.

use webfill_supervisor::supervisor::{Letter, Supervisor};
use webfill_wire::{DispatcherToSupervisor, SupervisorToWorker, Task, WorkerToSupervisor};

use super::fleet::Upwards;
use super::web::Request;
use super::worker::{Next, done, url};
use super::world::{Event, Place, World};

/// As the real supervisor has it.
const LOOK_MS: u64 = 100;
const REST_MS: u64 = 300;
const WORKER_SILENT_MS: u64 = 15_000;

impl World {
    // Supervisors.

    pub(super) fn start_supervisor(&mut self, machine: usize) {
        if self.machines[machine].core.is_some() {
            return;
        }
        self.unstop(Place::Supervisor(machine));
        self.connections += 1;
        let connection = self.connections;
        self.machines[machine].start(connection);
        let life = self.machines[machine].life;
        for slot in 0..self.plan.workers {
            self.start_worker(machine, life, slot, None);
        }
        self.with_supervisor(machine, |core, boot_ms| core.keep_time(boot_ms));
    }

    /// It takes its workers with it.
    pub(super) fn kill_supervisor(&mut self, machine: usize) {
        for slot in 0..self.plan.workers {
            self.end_worker(machine, slot);
        }
        self.machines[machine].core = None;
    }

    pub(super) fn let_supervisor_speak(&mut self, machine: usize) {
        // An earlier one has taken the place of others.
        if self.now_ms >= self.machines[machine].speaks_at_ms {
            self.machines[machine].speaks_at_ms = u64::MAX;
            self.with_supervisor(machine, |core, boot_ms| core.keep_time(boot_ms));
        }
    }

    /// The connection is another one from now on.
    pub(super) fn reconnect(&mut self, machine: usize) {
        self.connections += 1;
        self.machines[machine].connection = self.connections;
        let unsent = std::mem::take(&mut self.machines[machine].unsent);
        for message in unsent {
            self.send_up(machine, message);
        }
    }

    pub(super) fn hand_to_supervisor(
        &mut self,
        machine: usize,
        connection: u64,
        message: DispatcherToSupervisor,
    ) {
        if self.machines[machine].connection == connection {
            self.with_supervisor(machine, |core, boot_ms| {
                core.take_from_dispatcher(message, boot_ms);
            });
        }
    }

    pub(super) fn hand_from_worker(
        &mut self,
        machine: usize,
        life: u32,
        message: WorkerToSupervisor,
    ) {
        if self.machines[machine].life == life {
            self.with_supervisor(machine, |core, _| core.take_from_worker(message));
        }
    }

    /// Lets the supervisor do something, and sends what comes of it.
    pub(super) fn with_supervisor(
        &mut self,
        machine: usize,
        work: impl FnOnce(&mut Supervisor, u64),
    ) {
        let boot_ms = self.machines[machine].boot_ms(self.now_ms);
        let Some(core) = &mut self.machines[machine].core else {
            return;
        };
        work(core, boot_ms);
        core.report();
        let letters = core.take_letters();
        let (held, speaks_ms) = (core.held() as u64, core.next_word_ms());
        if held > self.plan.queue {
            let name = self.machines[machine].name().to_owned();
            self.faults.push(format!("{name} holds {held} tasks"));
        }
        for letter in letters {
            self.deliver(machine, letter);
        }
        let speaks_at_ms = self.machines[machine].since_start_ms(speaks_ms.max(boot_ms + 1));
        if speaks_at_ms < self.machines[machine].speaks_at_ms {
            self.machines[machine].speaks_at_ms = speaks_at_ms;
            self.at(speaks_at_ms, Event::SupervisorSpeaks(machine));
        }
        if self.machines[machine].has_drained() {
            self.let_supervisor_go(machine);
        }
    }

    fn let_supervisor_go(&mut self, machine: usize) {
        let Some(mut core) = self.machines[machine].core.take() else {
            return;
        };
        core.say_goodbye();
        for letter in core.take_letters() {
            self.deliver(machine, letter);
        }
        let away_ms = self.machines[machine].away_ms;
        self.later(away_ms, Event::SupervisorStarts(machine));
    }

    fn deliver(&mut self, machine: usize, letter: Letter) {
        let message = match letter {
            Letter::ToWorker(slot, message) => return self.send_to_worker(machine, slot, message),
            Letter::ToDispatcherNow(_) if !self.coordinator.is_up() => return,
            Letter::ToDispatcher(word) | Letter::ToDispatcherNow(word) => Upwards::Word(word),
            Letter::Outcomes(outcomes) => Upwards::Outcomes((*outcomes).clone()),
        };
        if self.coordinator.is_up() {
            self.send_up(machine, message);
        } else {
            self.machines[machine].unsent.push(message);
        }
    }

    fn send_up(&mut self, machine: usize, message: Upwards) {
        let sender = &self.machines[machine];
        let peer = sender.connection.to_le_bytes().to_vec();
        let way = match message {
            Upwards::Word(_) => 0,
            Upwards::Outcomes(_) => 1,
        };
        let life = self.coordinator.life;
        for at_ms in self.arrivals(machine, way, sender.cut_up_until_ms) {
            let (peer, message) = (peer.clone(), message.clone());
            self.at(
                at_ms,
                Event::ToDispatcher {
                    life,
                    peer,
                    message,
                },
            );
        }
    }

    /// When a message that is sent now arrives: never, once, or twice.
    pub(super) fn arrivals(&mut self, machine: usize, way: usize, cut_until_ms: u64) -> Vec<u64> {
        let network = self.plan.network.clone();
        if cut_until_ms > self.now_ms || self.dice.once_in(network.loss_once_in) {
            return Vec::new();
        }
        let times = 1 + usize::from(self.dice.once_in(network.twice_once_in));
        let mut arrivals = Vec::with_capacity(times);
        for _ in 0..times {
            let latest_ms = match self.dice.once_in(network.late_once_in) {
                true => network.latest_ms.max(5),
                false => 5,
            };
            let mut at_ms = self.now_ms + self.dice.between(1, latest_ms);
            let last_ms = &mut self.machines[machine].last_arrival_ms[way];
            if !network.reorders {
                at_ms = at_ms.max(*last_ms);
                *last_ms = at_ms;
            }
            arrivals.push(at_ms);
        }
        arrivals
    }

    // Workers, as their supervisor sees them.

    pub(super) fn start_worker(
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
    pub(super) fn kill_worker(&mut self, machine: usize, slot: u16, blamed: Option<u64>) {
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

    fn end_worker(&mut self, machine: usize, slot: u16) {
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        if std::mem::replace(&mut worker.is_alive, false) {
            for site in worker.asking() {
                self.web.cut(site, self.now_ms);
            }
        }
    }

    pub(super) fn miss_worker(
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
    pub(super) fn stop_worker(&mut self, machine: usize, slot: u16, for_ms: u64) {
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

    pub(super) fn end_hanging_worker(&mut self, machine: usize, slot: u16, incarnation: u32) {
        let worker = &self.machines[machine].workers[usize::from(slot)];
        let hangs = self.is_stopped(Place::Worker(machine, slot));
        if worker.incarnation == incarnation && hangs && self.machines[machine].core.is_some() {
            self.kill_worker(machine, slot, None);
        }
    }

    fn send_to_worker(&mut self, machine: usize, slot: u16, message: SupervisorToWorker) {
        let incarnation = self.machines[machine].workers[usize::from(slot)].incarnation;
        let event = Event::ToWorker {
            machine,
            slot,
            incarnation,
            message,
        };
        self.later(1, event);
    }

    // Workers, by themselves.

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

    pub(super) fn worker_is_ready(&mut self, machine: usize, slot: u16, incarnation: u32) {
        if self.is_alive(machine, slot, incarnation) {
            let worker = &self.machines[machine].workers[usize::from(slot)];
            let message = worker.says(Vec::new(), Vec::new(), true);
            self.report(machine, message);
        }
    }

    pub(super) fn hand_to_worker(
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
        let (sites, returned) = worker.take(message, self.now_ms);
        if !returned.is_empty() {
            let message = worker.says(Vec::new(), returned, false);
            self.report(machine, message);
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
    pub(super) fn work_on(&mut self, machine: usize, slot: u16, incarnation: u32, site: usize) {
        while self.is_alive(machine, slot, incarnation) {
            let boot_ms = self.machines[machine].boot_ms(self.now_ms);
            let delay_ms = self.web.delay_ms(site);
            let cached = !self.plan.cache_fails && self.robots_cache.contains(&site);
            let worker = &mut self.machines[machine].workers[usize::from(slot)];
            let knows_robots = cached || worker.robots.contains(&site);
            let next = worker.advance(site, delay_ms, knows_robots, boot_ms, self.now_ms);
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
        self.web.begins(site, request, self.now_ms, ends_ms, &who);
        let answered = Event::Answered {
            machine,
            slot,
            incarnation,
            site,
        };
        self.at(ends_ms, answered);
    }

    pub(super) fn answer(&mut self, machine: usize, slot: u16, incarnation: u32, site: usize) {
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        let delay_ms = self.web.delay_ms(site);
        let worker = &mut self.machines[machine].workers[usize::from(slot)];
        match worker.answered(site, delay_ms, self.now_ms) {
            None => {
                self.robots_cache.insert(site);
            }
            Some(task) => {
                let number = page_number(&task);
                if self.plan.sites[site].pages[number].kills_its_worker {
                    return self.kill_worker(machine, slot, Some(task.task));
                }
                let worker = &mut self.machines[machine].workers[usize::from(slot)];
                worker.saving += 1;
                let answered_ms = self.now_ms;
                let saves_ms = self.dice.between(1, 40);
                self.later(
                    saves_ms,
                    Event::Saved {
                        machine,
                        slot,
                        incarnation,
                        site,
                        task: Box::new(task),
                        answered_ms,
                    },
                );
            }
        }
        self.work_on(machine, slot, incarnation, site);
    }

    pub(super) fn save(
        &mut self,
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
        task: &Task,
        answered_ms: u64,
    ) {
        if !self.is_alive(machine, slot, incarnation) {
            return;
        }
        let page = &self.plan.sites[site].pages[page_number(task)];
        let links = page.links.iter().map(|(site, page)| url(*site, *page));
        let delay_ms = self.web.delay_ms(site);
        let done = done(task, links.collect(), answered_ms, delay_ms, self.now_ms);
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
