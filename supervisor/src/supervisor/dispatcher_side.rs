//! Handles the messages between the supervisor and the dispatcher: hello, heartbeats, the lease, tasks, recalls,
//! outcomes.
//!
//! Messages of other sessions than the present one are ignored. Outcomes are kept until the dispatcher acknowledges
//! them. Those that it has not acknowledged are sent again in the next session.

use std::collections::HashSet;
use std::sync::Arc;

use webfill_service::journey::JOURNEY;
use webfill_wire::{
    CrawlKey, CrawlSettings, Credit, DispatcherToSupervisor, Hello, MappingSource, MappingsVersion,
    RecallScope, SupervisorOutcomes, SupervisorToDispatcher, SupervisorToWorker, Task, links,
};

use super::{OutgoingMessage, Supervisor, empty_outcomes};
use crate::queue::worker_index_for;
use crate::session::DueMessage;
use crate::unacknowledged::leases_of;

impl Supervisor {
    /// When [`Supervisor::send_if_due`] next has a message to send. The simulation advances its clock to this time.
    pub fn next_send_ms(&self) -> u64 {
        self.session.next_send_ms()
    }

    /// Sends a hello or a heartbeat, if one is due.
    pub fn send_if_due(&mut self, now_ms: u64, wall_ms: i64) {
        if self.draining && self.queue.is_empty() {
            // All that is missing is the acknowledgement of the last outcomes. It comes with the answer to a heartbeat.
            self.session.schedule_early_heartbeat(now_ms);
        }
        match self.session.due_message(now_ms) {
            DueMessage::Nothing => {}
            DueMessage::Hello => self.send_hello(now_ms),
            DueMessage::Heartbeat => {
                let beat = self.session.next_heartbeat(self.credit(), now_ms, wall_ms);
                let beat = SupervisorToDispatcher::Heartbeat(beat);
                self.outgoing.push(OutgoingMessage::ToDispatcherNow(beat));
            }
        }
        if self.session.is_welcomed() {
            self.log_dispatcher_silence(now_ms);
            self.request_missing_mappings(now_ms);
        }
    }

    pub(super) fn send_hello(&mut self, now_ms: u64) {
        let is_repeated = self.session.has_begun();
        let held = self.queue.leases().into_iter();
        let ended = self
            .unacknowledged
            .leases()
            .chain(leases_of(&self.outcomes));
        let held = held.chain(ended).collect();
        let credit = self.queue.reset_credit();
        self.reported_credit = credit;
        let hello = SupervisorToDispatcher::Hello(Hello {
            supervisor: self.terms.id.clone(),
            instance: self.terms.instance,
            session: self.session.begin(now_ms),
            sent_ms: now_ms,
            lane: self.terms.lane,
            workers: self.terms.workers,
            longest_request_ms: self.terms.longest_request_ms,
            credit,
            held,
        });
        self.outgoing.push(OutgoingMessage::ToDispatcherNow(hello));
        if is_repeated {
            // The dispatcher may have leased the tasks held here to other supervisors. Tasks that have started
            // continue; the others are given back, and may be leased again.
            self.recalls.clear();
            self.recall(0, RecallScope::default());
        }
    }

    pub(super) fn recall(&mut self, recall: u64, scope: RecallScope) {
        self.return_waiting(&scope);
        let workers = self.ready_workers();
        self.send_to_ready_workers(&SupervisorToWorker::Recall { recall, scope });
        if recall > 0 {
            let settled = self.recalls.begin(recall, workers);
            self.outcomes.recalled.extend(settled);
        }
    }

    pub fn handle_dispatcher_message(&mut self, message: DispatcherToSupervisor, now_ms: u64) {
        match message {
            DispatcherToSupervisor::Welcome {
                session,
                heard_ms,
                lease_ms,
                mappings,
            } => {
                if self.note_welcome(session, heard_ms, lease_ms, now_ms) {
                    self.mappings.note_version(mappings);
                    self.request_missing_mappings(now_ms);
                    self.resend_outcomes();
                }
            }
            DispatcherToSupervisor::MappingsChanged {
                session,
                number,
                mappings,
            } => {
                if self.session.accept_number(session, number) {
                    self.mappings.note_version(mappings);
                    self.request_missing_mappings(now_ms);
                }
            }
            DispatcherToSupervisor::Mappings {
                session,
                version,
                sources,
            } => {
                if session == self.session.id() && self.mappings.lacks(&version) {
                    self.use_mappings(version, sources);
                }
            }
            DispatcherToSupervisor::NameTaken { session } => self.note_name_taken(session),
            DispatcherToSupervisor::Tasks {
                session,
                number,
                crawls,
                tasks,
            } => {
                if self.session.accept_number(session, number) {
                    self.update_crawls(crawls);
                    self.queue_tasks(tasks, self.session.has_later_recall(number));
                }
            }
            DispatcherToSupervisor::ForgetCrawls { session } => {
                if session == self.session.id() {
                    self.drop_unneeded_crawls();
                }
            }
            DispatcherToSupervisor::Recall {
                session,
                number,
                recall,
                scope,
            } => {
                if self.session.accept_number(session, number) {
                    self.session.note_recall(number);
                    self.recall(recall, scope);
                }
            }
            DispatcherToSupervisor::Heartbeat {
                session,
                heard_ms,
                outcomes_heard,
            } => {
                if session == self.session.id() {
                    self.unacknowledged.acknowledge(outcomes_heard);
                    if self.session.note_heard(heard_ms, now_ms) {
                        self.send_lease();
                    }
                }
            }
            DispatcherToSupervisor::SayHello { session } => {
                if session == self.session.id() {
                    self.send_hello(now_ms);
                }
            }
            DispatcherToSupervisor::Drain => self.drain(),
            DispatcherToSupervisor::SiteScripts {
                session,
                number,
                scripts,
            } => {
                if self.session.accept_number(session, number) {
                    self.site_scripts.insert(scripts.site.clone(), scripts);
                }
            }
        }
    }

    /// Notes that the dispatcher refused the hello because another supervisor has this name.
    pub(super) fn note_name_taken(&mut self, session: u64) {
        if session != self.session.id() {
            return;
        }
        self.name_taken = true;
        if !std::mem::replace(&mut self.problem_logged, true) {
            tracing::error!(
                event = "name_taken",
                supervisor = self.terms.id,
                "another supervisor of this name is at work, or was until a moment ago: waiting; \
                 if it is to stay, start this one with another --id"
            );
        }
    }

    pub(super) fn log_dispatcher_silence(&mut self, now_ms: u64) {
        let silent = now_ms >= self.session.lease_until_ms();
        if silent && !self.problem_logged {
            tracing::warn!(
                event = "dispatcher_silent",
                "no message from the dispatcher; no fetches are started"
            );
        }
        if !silent && self.problem_logged {
            tracing::info!(
                event = "dispatcher_back",
                "messages from the dispatcher arrive again"
            );
        }
        self.problem_logged = silent;
    }

    pub(super) fn send_lease(&mut self) {
        let boot_ms = self.requests_until_ms();
        self.send_to_ready_workers(&SupervisorToWorker::LeaseUntil { boot_ms });
    }

    /// Notes that the dispatcher answered a hello. Returns whether this begins a session.
    fn note_welcome(&mut self, session: u64, heard_ms: u64, lease_ms: u64, now_ms: u64) -> bool {
        let begins = session == self.session.id() && !self.session.is_welcomed();
        if begins {
            self.session.note_welcome(heard_ms, lease_ms, now_ms);
            self.problem_logged = false;
            self.name_taken = false;
            self.send_lease();
        }
        begins
    }

    fn request_missing_mappings(&mut self, now_ms: u64) {
        let patience_ms = self.session.lease_ms();
        if let Some(mappings) = self.mappings.next_request(now_ms, patience_ms) {
            let session = self.session.id();
            self.send_to_dispatcher(SupervisorToDispatcher::AskMappings { session, mappings });
        }
    }

    fn use_mappings(&mut self, version: MappingsVersion, sources: Vec<MappingSource>) {
        let for_workers = SupervisorToWorker::Mappings(sources.clone());
        if self.mappings.replace(version, sources) {
            self.send_to_ready_workers(&for_workers);
        }
        for worker_index in 0..self.workers.len() {
            self.send_waiting_tasks(worker_index);
        }
    }

    /// Keeps crawl settings. They may have changed since workers got them, so workers get them again with their next
    /// task.
    pub(super) fn update_crawls(&mut self, crawls: Vec<CrawlSettings>) {
        for crawl in crawls {
            for worker in &mut self.workers {
                worker.crawls.remove(&crawl.key);
            }
            self.crawls.insert(crawl.key, crawl);
        }
    }

    /// Drops the settings of crawls and the scripts of sites that no waiting task needs.
    fn drop_unneeded_crawls(&mut self) {
        let waiting = self.workers.iter().flat_map(|worker| &worker.waiting);
        let needed: HashSet<CrawlKey> = waiting.map(|task| task.crawl).collect();
        self.crawls.retain(|key, _| needed.contains(key));
        let waiting = self.workers.iter().flat_map(|worker| &worker.waiting);
        let sites: HashSet<&str> = waiting.map(|task| &*task.site).collect();
        self.site_scripts
            .retain(|site, _| sites.contains(site.as_str()));
        for worker in &mut self.workers {
            worker.crawls.clear();
        }
        self.send_to_ready_workers(&SupervisorToWorker::ForgetCrawls);
    }

    fn queue_tasks(&mut self, tasks: Vec<Task>, are_recalled: bool) {
        for task in tasks {
            let worker_index = worker_index_for(&task.site, self.terms.workers);
            self.queue.add_lease(&task, worker_index, false);
            self.log_received(&task, worker_index);
            self.workers[usize::from(worker_index)].waiting.push(task);
        }
        if self.draining || self.paused || are_recalled {
            self.return_waiting(&RecallScope::default());
        }
        for worker_index in 0..self.workers.len() {
            self.send_waiting_tasks(worker_index);
        }
    }

    fn log_received(&self, task: &Task, worker_index: u16) {
        let crawl = self.crawls.get(&task.crawl);
        tracing::debug!(
            target: JOURNEY,
            event = "received",
            task = task.task,
            crawl_id = crawl.map(|crawl| crawl.crawl_id.as_str()),
            url = task.url,
            attempt = task.delivery.number,
            supervisor = self.terms.id,
            slot = worker_index,
            "received, for this worker"
        );
    }

    /// Sends the collected outcomes and the credit to the dispatcher. Without a session, they are sent when the next
    /// one begins.
    pub fn send_report(&mut self) {
        if !self.session.is_welcomed() {
            return;
        }
        let collected = &self.outcomes;
        let ended = collected.done.len() + collected.returned.len();
        if ended + collected.recalled.len() > 0 {
            let mut outcomes =
                std::mem::replace(&mut self.outcomes, empty_outcomes(&self.terms.id));
            let mut parts = links::split_for_messages(std::mem::take(&mut outcomes.done));
            // The confirmations of recalls are in `outcomes`, which is sent last, with the last part of the outcomes.
            outcomes.done = parts.pop().unwrap_or_default();
            for done in parts {
                let part = empty_outcomes(&self.terms.id);
                self.send_outcomes(SupervisorOutcomes { done, ..part });
            }
            self.send_outcomes(outcomes);
        }
        let credit = self.credit();
        if credit != self.reported_credit {
            self.reported_credit = credit;
            let session = self.session.id();
            self.send_to_dispatcher(SupervisorToDispatcher::Credit { session, credit });
        }
    }

    /// The credit to report to the dispatcher, as a running total. It does not grow during a pause, while the
    /// supervisor drains, or while too many outcomes are unacknowledged.
    fn credit(&self) -> Credit {
        match self.paused || self.draining || self.unacknowledged.is_full() {
            true => self.reported_credit,
            false => self.queue.credit(),
        }
    }

    pub(super) fn send_outcomes(&mut self, mut outcomes: SupervisorOutcomes) {
        outcomes.session = self.session.id();
        outcomes.number = self.session.next_outcomes_number();
        let outcomes = Arc::new(outcomes);
        self.unacknowledged.add(&outcomes);
        self.outgoing.push(OutgoingMessage::Outcomes(outcomes));
    }

    /// Sends the outcomes of the last session again in the new one, in case they were lost.
    pub(super) fn resend_outcomes(&mut self) {
        for outcomes in self.unacknowledged.take_all() {
            self.send_outcomes(outcomes);
        }
        self.send_report();
    }
}
