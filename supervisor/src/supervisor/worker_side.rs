//! Handles the messages between the supervisor and its worker processes: sends them tasks and settings, takes their
//! results, and gives back the tasks of processes that died.
//!
//! A worker process is identified by its index and its incarnation (how often it was started). Messages of an earlier
//! incarnation are ignored.

use tracing::Span;
use webfill_service::journey::JOURNEY;
use webfill_service::log::task_span;
use webfill_wire::{SupervisorToWorker, Task, WorkerToSupervisor};

use super::Supervisor;
use crate::worker_state::WorkerState;

impl Supervisor {
    /// Sends a ready worker the tasks that wait for it, after the crawl settings that they need. Does nothing until the
    /// current mappings have arrived.
    pub(super) fn send_waiting_tasks(&mut self, worker_index: usize) {
        let worker = &mut self.workers[worker_index];
        if !worker.ready || worker.waiting.is_empty() || !self.mappings.are_complete() {
            return;
        }
        let tasks = std::mem::take(&mut worker.waiting);
        for task in &tasks {
            self.log_sent(task, worker_index);
            self.queue.mark_sent(task.task);
            let worker = &mut self.workers[worker_index];
            if !worker.crawls.contains(&task.crawl)
                && let Some(settings) = self.crawls.get(&task.crawl).cloned()
            {
                worker.crawls.insert(task.crawl);
                self.send_to_worker(worker_index, SupervisorToWorker::Crawl(settings));
            }
            if let Some(scripts) = self.site_scripts.remove(&task.site) {
                let message = SupervisorToWorker::SiteScripts(scripts);
                self.send_to_worker(worker_index, message);
            }
        }
        self.send_to_worker(worker_index, SupervisorToWorker::Tasks(tasks));
    }

    fn log_sent(&self, task: &Task, worker_index: usize) {
        let crawl = self.crawls.get(&task.crawl);
        tracing::debug!(
            target: JOURNEY,
            event = "given_to_worker",
            task = task.task,
            crawl_id = crawl.map(|crawl| crawl.crawl_id.as_str()),
            url = task.url,
            attempt = task.delivery.number,
            slot = worker_index,
            "given to its worker"
        );
    }

    pub fn handle_worker_message(&mut self, message: WorkerToSupervisor) {
        let worker_index = usize::from(message.worker_index);
        let is_current = |worker: &WorkerState| worker.incarnation == message.incarnation;
        if !self.workers.get(worker_index).is_some_and(is_current) {
            return;
        }
        if message.ready {
            self.set_up_worker(worker_index);
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
        for (task, delivery) in message.waiting {
            self.queue.uncount_while_waiting(task, delivery);
        }
        for recall in message.recalled {
            let settled = self.recalls.confirm(recall, worker_index);
            self.outcomes.recalled.extend(settled);
        }
    }

    /// Sends everything that a worker needs before its first task, once it has reported ready.
    pub(super) fn set_up_worker(&mut self, worker_index: usize) {
        self.workers[worker_index].ready = true;
        if self.draining {
            self.send_to_worker(worker_index, SupervisorToWorker::Drain);
        }
        if let Some(sources) = self.mappings.sources() {
            let message = SupervisorToWorker::Mappings(sources.clone());
            self.send_to_worker(worker_index, message);
        }
        let sites = std::mem::take(&mut self.workers[worker_index].inherited);
        if !sites.is_empty() {
            self.send_to_worker(worker_index, SupervisorToWorker::Inherited { sites });
        }
        let boot_ms = self.requests_until_ms();
        self.send_to_worker(worker_index, SupervisorToWorker::LeaseUntil { boot_ms });
        self.send_waiting_tasks(worker_index);
    }

    /// Notes that a worker's process has died. Messages that it sent before may still arrive, so its tasks are not
    /// given back yet; see [`Supervisor::give_back_tasks_of_dead_worker`].
    pub fn note_worker_death(&mut self, worker_index: u16) {
        let settled = self
            .recalls
            .confirm_all_of_dead_worker(usize::from(worker_index));
        self.outcomes.recalled.extend(settled);
        let worker = &mut self.workers[usize::from(worker_index)];
        worker.ready = false;
        worker.crawls.clear();
    }

    /// Notes that a new process of this worker was started, and gives back the tasks that the former process still
    /// held. `blamed` is the task that its crash marker names, if it died while extracting a page.
    pub fn note_worker_start(&mut self, worker_index: u16, incarnation: u32, blamed: Option<u64>) {
        self.note_worker_death(worker_index);
        self.workers[usize::from(worker_index)].incarnation = incarnation;
        self.give_back_tasks_of_dead_worker(worker_index, blamed);
    }

    /// Gives back the tasks that a dead worker process held. Call this once no message of that process can arrive any
    /// more.
    pub fn give_back_tasks_of_dead_worker(&mut self, worker_index: u16, blamed: Option<u64>) {
        let lost = self.queue.end_leases_of_worker(worker_index, blamed);
        let blamed_crawl = lost.blamed_crawl.and_then(|crawl| self.crawls.get(&crawl));
        let span = match (blamed, blamed_crawl) {
            (Some(task), Some(crawl)) => task_span(task, &crawl.crawl_id),
            _ => Span::none(),
        };
        let _entered = span.entered();
        if !lost.returned.is_empty() {
            tracing::warn!(
                event = "tasks_given_back",
                slot = worker_index,
                tasks = lost.returned.len(),
                blamed,
                "returning a dead worker's tasks"
            );
        }
        let inherited = &mut self.workers[usize::from(worker_index)].inherited;
        inherited.extend(lost.sites);
        self.outcomes.returned.extend(lost.returned);
        self.send_report();
    }
}
