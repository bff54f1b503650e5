//! The events of the supervisors and their workers, and their messages.

use std::rc::Rc;

use webfill_supervisor::supervisor::OutgoingMessage;
use webfill_wire::{Outcome, SiteClock, SupervisorToWorker, Task, TaskDone};

use crate::event::MessageToDispatcher;
use crate::names::{site_and_page_of, url};

use super::machine::{SiteAction, empty_message};
use super::world::{Event, World};

/// The longest time that a request for a page takes.
const LONGEST_ANSWER_MS: u64 = 50;

impl World {
    /// Sends a supervisor's messages, and schedules its next turn.
    pub(super) fn send_supervisor_messages(&mut self, machine: usize) {
        self.machines[machine].core.send_report();
        for letter in self.machines[machine].core.take_outgoing() {
            match letter {
                OutgoingMessage::ToWorker(_, message) => self.deliver_to_worker(machine, message),
                OutgoingMessage::ToDispatcherNow(word) => {
                    if self.dispatchers[machine].is_up() {
                        self.send_to_dispatcher(machine, MessageToDispatcher::Word(word));
                    }
                }
                OutgoingMessage::ToDispatcher(word) => {
                    self.send_to_dispatcher(machine, MessageToDispatcher::Word(word))
                }
                OutgoingMessage::Outcomes(outcomes) => {
                    self.send_to_dispatcher(
                        machine,
                        MessageToDispatcher::Outcomes((*outcomes).clone()),
                    );
                }
            }
        }
        let speaks_ms = self.machines[machine].core.next_send_ms();
        let speaks_at_ms = speaks_ms.max(self.now_ms + 1);
        if speaks_at_ms < self.machines[machine].speaks_at_ms {
            self.machines[machine].speaks_at_ms = speaks_at_ms;
            self.schedule_at(speaks_at_ms, Event::MachineSpeaks(machine));
        }
    }

    pub(super) fn send_to_dispatcher(&mut self, machine: usize, message: MessageToDispatcher) {
        if !self.dispatchers[machine].is_up() {
            return self.machines[machine].unsent.push(message);
        }
        let event = Event::FromMachine {
            dispatcher: machine,
            life: self.dispatchers[machine].life,
            connection: self.machines[machine].connection,
            message,
        };
        self.schedule_in(1, event);
    }

    fn deliver_to_worker(&mut self, machine: usize, message: SupervisorToWorker) {
        let now_ms = self.now_ms;
        let (sites, answer) = self.machines[machine].worker.handle(message, now_ms);
        if answer != empty_message() {
            self.machines[machine].core.handle_worker_message(answer);
            self.schedule_in(1, Event::MachineActs(machine));
        }
        for site in sites {
            self.schedule_in(0, Event::SiteIsFree { machine, site });
        }
    }

    pub(super) fn advance_site(&mut self, machine: usize, site: usize) {
        let now_ms = self.now_ms;
        match self.machines[machine].worker.next_action(site, now_ms) {
            SiteAction::Nothing => {}
            SiteAction::WaitsUntil(at_ms) => {
                self.schedule_at(at_ms, Event::SiteIsFree { machine, site })
            }
            SiteAction::GiveBack(returned) => {
                let mut message = empty_message();
                message.returned.push(returned);
                self.machines[machine].core.handle_worker_message(message);
                self.send_supervisor_messages(machine);
                self.advance_site(machine, site);
            }
            SiteAction::Fetch(crawl, task) => {
                let client = &self.clients[crawl];
                let is_ended = client.is_stopped || client.is_over;
                let has_died = self.dispatchers[machine].life > 1;
                let place = site_and_page_of(&task.url);
                let plan = Rc::clone(&self.plan);
                self.judge
                    .check_request((crawl, place), machine, &task, has_died, is_ended, &plan);
                let takes_ms = self.dice.between(1, LONGEST_ANSWER_MS);
                let task = Box::new(task);
                self.schedule_in(takes_ms, Event::SiteAnswers { machine, task });
            }
        }
    }

    pub(super) fn finish_page(&mut self, machine: usize, task: &Task) {
        let (site, page) = site_and_page_of(&task.url);
        let links = self.plan.sites[site][page].iter();
        let delay_ms = self.plan.delay_ms;
        let mut message = empty_message();
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
        self.machines[machine].worker.on_answer(site, free_ms);
        self.machines[machine].core.handle_worker_message(message);
        self.send_supervisor_messages(machine);
        self.schedule_at(free_ms, Event::SiteIsFree { machine, site });
    }
}
