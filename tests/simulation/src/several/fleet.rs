//! The events of the supervisors and their workers, and their messages.

use std::rc::Rc;

use webfill_supervisor::supervisor::OutgoingMessage;
use webfill_wire::{Outcome, SiteClock, SupervisorToWorker, Task, TaskDone};

use crate::fleet::Upwards;
use crate::worker::{place_of, url};

use super::machine::{Next, says};
use super::world::{Event, World};

/// The maximum duration of a page request.
const LONGEST_ANSWER_MS: u64 = 50;

impl World {
    /// Sends a supervisor's messages, and schedules its next turn.
    pub(super) fn let_machine_act(&mut self, machine: usize) {
        self.machines[machine].core.report();
        for letter in self.machines[machine].core.take_outgoing() {
            match letter {
                OutgoingMessage::ToWorker(_, message) => self.hand_to_worker(machine, message),
                OutgoingMessage::ToDispatcherNow(word) => {
                    if self.dispatchers[machine].is_up() {
                        self.send_up(machine, Upwards::Word(word));
                    }
                }
                OutgoingMessage::ToDispatcher(word) => self.send_up(machine, Upwards::Word(word)),
                OutgoingMessage::Outcomes(outcomes) => {
                    self.send_up(machine, Upwards::Outcomes((*outcomes).clone()));
                }
            }
        }
        let speaks_ms = self.machines[machine].core.next_send_ms();
        let speaks_at_ms = speaks_ms.max(self.now_ms + 1);
        if speaks_at_ms < self.machines[machine].speaks_at_ms {
            self.machines[machine].speaks_at_ms = speaks_at_ms;
            self.at(speaks_at_ms, Event::MachineSpeaks(machine));
        }
    }

    pub(super) fn send_up(&mut self, machine: usize, message: Upwards) {
        if !self.dispatchers[machine].is_up() {
            return self.machines[machine].unsent.push(message);
        }
        let event = Event::FromMachine {
            dispatcher: machine,
            life: self.dispatchers[machine].life,
            connection: self.machines[machine].connection,
            message,
        };
        self.later(1, event);
    }

    fn hand_to_worker(&mut self, machine: usize, message: SupervisorToWorker) {
        let now_ms = self.now_ms;
        let (sites, answer) = self.machines[machine].worker.take(message, now_ms);
        if answer != says() {
            self.machines[machine].core.take_from_worker(answer);
            self.later(1, Event::MachineActs(machine));
        }
        for site in sites {
            self.later(0, Event::SiteIsFree { machine, site });
        }
    }

    pub(super) fn ask_site(&mut self, machine: usize, site: usize) {
        let now_ms = self.now_ms;
        match self.machines[machine].worker.next(site, now_ms) {
            Next::Nothing => {}
            Next::WaitsUntil(at_ms) => self.at(at_ms, Event::SiteIsFree { machine, site }),
            Next::GiveBack(returned) => {
                let mut message = says();
                message.returned.push(returned);
                self.machines[machine].core.take_from_worker(message);
                self.let_machine_act(machine);
                self.ask_site(machine, site);
            }
            Next::Fetch(crawl, task) => {
                let client = &self.clients[crawl];
                let is_ended = client.is_stopped || client.is_over;
                let has_died = self.dispatchers[machine].life > 1;
                let place = place_of(&task.url);
                let plan = Rc::clone(&self.plan);
                self.judge
                    .note_request((crawl, place), machine, &task, has_died, is_ended, &plan);
                let takes_ms = self.dice.between(1, LONGEST_ANSWER_MS);
                let task = Box::new(task);
                self.later(takes_ms, Event::SiteAnswers { machine, task });
            }
        }
    }

    pub(super) fn take_page(&mut self, machine: usize, task: &Task) {
        let (site, page) = place_of(&task.url);
        let links = self.plan.sites[site][page].iter();
        let delay_ms = self.plan.delay_ms;
        let mut message = says();
        message.done.push(TaskDone {
            task: task.task,
            delivery: task.delivery,
            outcome: Outcome::Ok,
            status_code: Some(200),
            body_bytes: 1_000,
            fields: 0,
            rows: 0,
            rows_stored: 0,
            links: links.map(|(site, page)| url(*site, *page)).collect(),
            redirect: None,
            resolved: Vec::new(),
            clock: SiteClock {
                next_in_ms: delay_ms as u32,
                delay_ms: Some(delay_ms as u32),
            },
            evidence: None,
        });
        let free_ms = self.now_ms + delay_ms;
        self.machines[machine].worker.answered(site, free_ms);
        self.machines[machine].core.take_from_worker(message);
        self.let_machine_act(machine);
        self.at(free_ms, Event::SiteIsFree { machine, site });
    }
}
