//! What is said to the workers and what is heard of them, alive and dead.

use webfill_wire::{SupervisorToWorker, WorkerToSupervisor};

use super::Supervisor;
use crate::slot::Slot;

impl Supervisor {
    /// Sends a ready worker what waits for it.
    pub(super) fn feed(&mut self, slot: usize) {
        let worker = &mut self.slots[slot];
        if !worker.ready || worker.waiting.is_empty() {
            return;
        }
        let tasks = std::mem::take(&mut worker.waiting);
        for task in &tasks {
            self.queue.mark_sent(task.task);
            let worker = &mut self.slots[slot];
            if !worker.crawls.contains(&task.crawl)
                && let Some(crawl) = self.crawls.get(&task.crawl)
            {
                worker.crawls.insert(task.crawl);
                let message = SupervisorToWorker::Crawl(crawl.clone());
                self.tell(slot, message);
            }
        }
        self.tell(slot, SupervisorToWorker::Tasks(tasks));
    }

    pub fn take_from_worker(&mut self, message: WorkerToSupervisor) {
        let slot = usize::from(message.slot);
        let is_alive = |slot: &Slot| slot.incarnation == message.incarnation;
        if !self.slots.get(slot).is_some_and(is_alive) {
            return;
        }
        if message.ready {
            self.welcome_worker(slot);
        }
        for done in message.done {
            if self.queue.release(done.task, done.delivery) {
                self.outcomes.done.push(done);
            }
        }
        for returned in message.returned {
            if self.queue.release(returned.task, returned.delivery) {
                self.outcomes.returned.push(returned);
            }
        }
        for recall in message.recalled {
            let settled = self.recalls.confirm(recall, slot);
            self.outcomes.recalled.extend(settled);
        }
    }

    pub(super) fn welcome_worker(&mut self, slot: usize) {
        self.slots[slot].ready = true;
        if self.draining {
            self.tell(slot, SupervisorToWorker::Drain);
        }
        if let Some(mappings) = &self.mappings {
            let message = SupervisorToWorker::Mappings(mappings.clone());
            self.tell(slot, message);
        }
        let sites = std::mem::take(&mut self.slots[slot].inherited);
        if !sites.is_empty() {
            self.tell(slot, SupervisorToWorker::Inherited { sites });
        }
        let boot_ms = self.session.lease_until_ms();
        self.tell(slot, SupervisorToWorker::LeaseUntil { boot_ms });
        self.feed(slot);
    }

    /// A worker's process is gone; its last words may still arrive.
    pub fn worker_died(&mut self, slot: u16) {
        let settled = self.recalls.note_death(usize::from(slot));
        self.outcomes.recalled.extend(settled);
        let slot = &mut self.slots[usize::from(slot)];
        slot.ready = false;
        slot.crawls.clear();
    }

    /// The slot's process was started. What the one before held is lost for good; `blamed` is the
    /// page that it worked on when it died.
    pub fn worker_started(&mut self, slot: u16, incarnation: u32, blamed: Option<u64>) {
        self.worker_died(slot);
        self.slots[usize::from(slot)].incarnation = incarnation;
        self.account_for_death(slot, blamed);
    }

    /// The slot's process is dead, and its last words are in.
    pub fn account_for_death(&mut self, slot: u16, blamed: Option<u64>) {
        let lost = self.queue.give_back(slot, blamed);
        if !lost.returned.is_empty() {
            tracing::warn!(
                event = "tasks_given_back",
                slot,
                tasks = lost.returned.len(),
                blamed,
                "a dead worker's tasks go back"
            );
        }
        let inherited = &mut self.slots[usize::from(slot)].inherited;
        inherited.extend(lost.sites);
        self.outcomes.returned.extend(lost.returned);
        self.report();
    }
}
