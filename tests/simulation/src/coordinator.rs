//! The simulated dispatcher process: the real core and the real database, under a clock that can be set, a network
//! that loses messages, and deaths within a turn.

use webfill_scheduler::effects::{BackfillWrite, Client, Committed, OutgoingMessage, StoreWrite};
use webfill_scheduler::frontier::{Frontier, FrontierConfig, FrontierError};
use webfill_scheduler::{Caller, Core, CoreSettings, Mappings, control};
use webfill_wire::{
    DispatcherToSupervisor, Lane, RecallScope, SupervisorOutcomes, SupervisorToDispatcher,
};

use crate::fleet::MessageToDispatcher;
use crate::sabotage::Sabotage;
use crate::shared_servers::site_name;
use crate::standstill::Standstill;
use crate::witness::DatabaseObserver;
use crate::worker::{site_and_page_of, url};
use crate::world::{Event, Place, World};

/// The number of the requests for the dispatcher's status. Orders of the operator have other numbers.
const STATUS: u64 = u64::MAX;

/// The wall clock at the beginning.
pub(crate) const EPOCH_MS: i64 = 1_800_000_000_000;

/// The maximum number of the dispatcher's deaths within turns. Without a limit some worlds would not end: if
/// robots.txt is answered with a `Retry-After` that is longer than robots.txt is remembered, the page waits for that
/// long. A dispatcher that dies meanwhile ends the session, so the task is called back, and the next delivery has to
/// request robots.txt again.
const MOST_DEATHS_IN_TURN: u64 = 1_000;

pub(crate) struct Coordinator {
    folder: tempfile::TempDir,
    dispatcher: Option<Core>,
    /// The number of the dispatcher's starts.
    pub(crate) life: u32,
    /// How far the wall clock is ahead of the true time.
    pub(crate) clock_ahead_ms: i64,
    /// How far the dispatcher's clock is ahead of the true time.
    ahead_ms: i64,
    wakes_at_ms: u64,
    turns: u64,
    deaths_in_turn: u64,
    witness: Option<DatabaseObserver>,
}

/// Whether a turn was completed.
#[derive(PartialEq, Eq)]
enum TurnOutcome {
    Done,
    Died,
}

impl Coordinator {
    pub(crate) fn new() -> Coordinator {
        // In memory, if there is such a folder, because the disk is not under test here.
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Coordinator {
            folder: folder.expect("a temporary folder"),
            dispatcher: None,
            life: 0,
            clock_ahead_ms: 0,
            ahead_ms: 0,
            wakes_at_ms: 0,
            turns: 0,
            deaths_in_turn: 0,
            witness: None,
        }
    }

    /// The folder of the database that is judged.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.dispatcher.is_some()
    }

    fn open(&mut self, terms: CoreSettings, mut config: FrontierConfig, true_ms: u64) {
        self.life += 1;
        self.ahead_ms = EPOCH_MS + self.clock_ahead_ms;
        self.wakes_at_ms = 0;
        let now_ms = self.ahead_ms + true_ms as i64;
        config.seen_memory_bytes = 1 << 20;
        config.page_cache_bytes = 2 << 20;
        let frontier = Frontier::open(self.folder.path(), config, now_ms).expect("it opens");
        let dispatcher = Core::open(frontier, terms, Mappings::default(), now_ms);
        self.dispatcher = Some(dispatcher.expect("it goes on"));
    }

    fn restore_fault_of_unreachable_turns(&mut self) {
        if let Some(dispatcher) = &mut self.dispatcher {
            dispatcher
                .frontier()
                .site_states()
                .restore_fault_of_unreachable_turns();
        }
    }

    /// The lanes of the connected supervisors, if each of them has credit and no other may come back.
    pub(crate) fn lanes_with_credit(&self, now_ms: i64) -> Vec<Lane> {
        let dispatcher = self.dispatcher.as_ref();
        dispatcher.map_or(Vec::new(), |dispatcher| {
            dispatcher.lanes_with_credit(now_ms)
        })
    }

    /// How far the dispatcher's clock is ahead of the true time.
    pub(crate) fn ahead_ms(&self) -> i64 {
        self.ahead_ms
    }

    /// The wall clock of the dispatcher's machine.
    pub(crate) fn wall_ms(&self, true_ms: u64) -> i64 {
        EPOCH_MS + self.clock_ahead_ms + true_ms as i64
    }

    /// A connection to the database, as another program would have.
    pub(crate) fn open_witness(&mut self) -> &mut DatabaseObserver {
        let folder = self.folder.path();
        self.witness
            .get_or_insert_with(|| DatabaseObserver::open(folder))
    }
}

/// Whether a message recalls all tasks of a supervisor, as if its machine was offline: then its failures were not its
/// sites' fault.
fn recalls_everything(message: &OutgoingMessage) -> bool {
    matches!(message, OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Recall { scope, .. })
        if *scope == RecallScope::default())
}

fn is_hand_out(message: &OutgoingMessage) -> bool {
    matches!(
        message,
        OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Tasks { .. })
    )
}

impl World {
    pub(crate) fn start_dispatcher(&mut self) {
        if self.coordinator.is_up() {
            return;
        }
        self.machines_seen.clear();
        let terms = CoreSettings {
            default_delay_ms: self.plan.default_delay_ms as u32,
            group_bounds: self.plan.group_bounds,
            lease_ms: self.plan.lease_ms,
            window_sites: self.plan.window_sites,
        };
        if self.is_sabotaged_by(Sabotage::OwnersAreForgotten) && self.coordinator.life > 0 {
            self.coordinator.open_witness().forget_owners();
        }
        if self.is_sabotaged_by(Sabotage::LanesAreForgotten) && self.coordinator.life > 0 {
            self.coordinator.open_witness().forget_lanes();
        }
        self.extend_backoffs_after_restart();
        if self.is_sabotaged_by(Sabotage::BackoffsAreForgotten) && self.coordinator.life > 0 {
            self.coordinator.open_witness().forget_backoffs();
        }
        let mut config = FrontierConfig {
            retries: self.plan.retry_table(),
            backoff: self.plan.backoff_table(),
            ..FrontierConfig::default()
        };
        if self.is_sabotaged_by(Sabotage::BlocksEndTasks) {
            config.backoff.blocked.clear();
        }
        if let Some(dead_hosts) = &self.plan.dead_hosts {
            let limited = (String::from("limited"), dead_hosts.limits.clone());
            config.applications.extend([limited]);
        }
        self.coordinator.open(terms, config, self.now_ms);
        if self.is_sabotaged_by(Sabotage::UnreachableSitesGoByTurns) {
            self.coordinator.restore_fault_of_unreachable_turns();
        }
        self.resume(Place::Dispatcher);
        self.standstill = Standstill::default();
        for machine in 0..self.machines.len() {
            self.reconnect(machine);
        }
        self.wake_dispatcher();
    }

    pub(crate) fn kill_dispatcher(&mut self, down_ms: u64) {
        self.trace(|_| "dispatcher dies".into());
        if self.coordinator.dispatcher.take().is_some() {
            self.schedule_in(down_ms, Event::DispatcherStarts);
        }
    }

    pub(crate) fn wake_dispatcher(&mut self) {
        // A wake may be outdated, because an earlier one has replaced it.
        if self.now_ms >= self.coordinator.wakes_at_ms {
            self.coordinator.wakes_at_ms = u64::MAX;
            self.run_turn(|_, _| Ok(()));
        }
    }

    pub(crate) fn deliver_to_dispatcher(
        &mut self,
        life: u32,
        peer: &Caller,
        message: MessageToDispatcher,
    ) {
        if life != self.coordinator.life || !self.coordinator.is_up() {
            return;
        }
        match message {
            MessageToDispatcher::Word(word) => {
                let joins = matches!(word, SupervisorToDispatcher::Hello(_));
                self.machines_seen.is_attentive = joins && self.plan.loses_egress();
                self.run_turn(|dispatcher, now_ms| {
                    dispatcher.handle_supervisor_message(peer, word, now_ms)
                });
            }
            MessageToDispatcher::Outcomes(outcomes) => self.deliver_outcomes(outcomes),
        }
    }

    fn deliver_outcomes(&mut self, outcomes: SupervisorOutcomes) {
        let attempts = self.attempts(&outcomes);
        let outcomes = self.sabotage_outcomes(outcomes);
        let witness = self.coordinator.open_witness();
        let is_stale = witness.are_all_stale(&outcomes);
        let before = witness.counters();
        let turned =
            self.run_turn(|dispatcher, now_ms| dispatcher.handle_outcomes(outcomes, now_ms));
        self.read_backoffs();
        self.check_machine(attempts.filter(|_| turned == TurnOutcome::Done));
        if is_stale && turned == TurnOutcome::Done {
            let after = self.coordinator.open_witness().counters();
            // Other work of the turn may lease tasks or take them back, or end a stopped crawl, which changes the
            // counters.
            let ends_others = (0..self.plan.priorities.len()).any(|n| self.plan.ends_early(n));
            let ended = before.done != after.done && !ends_others;
            if ended || before.discovered != after.discovered {
                let fault = format!("stale outcomes changed {before:?} to {after:?}");
                self.faults.push(fault);
            }
        }
    }

    /// Passes on a request of the client. Returns the answer, if one arrives.
    pub(crate) fn send_client_request(&mut self, frame: &[u8]) -> Option<serde_json::Value> {
        if !self.coordinator.is_up() || self.is_suspended(Place::Dispatcher) {
            return None;
        }
        let before = self.client.answer.take();
        debug_assert!(before.is_none());
        self.run_turn(|dispatcher, now_ms| {
            let client = Client::Socket(b"client".to_vec().into());
            dispatcher.handle_request(client, control::parse_request(frame, now_ms), now_ms)
        });
        self.client.answer.take()
    }

    /// Passes on a request of the operator. The answer may come later, or not at all.
    pub(crate) fn send_operator_request(&mut self, number: u64, frame: &[u8]) {
        if self.has_standbys() {
            return self.send_operator_request_to_node(number, frame);
        }
        if self.coordinator.is_up() && !self.is_suspended(Place::Dispatcher) {
            self.run_turn(|dispatcher, now_ms| {
                let asked = control::parse_request(frame, now_ms);
                dispatcher.handle_request(Client::Http(number.into()), asked, now_ms)
            });
        }
    }

    /// Runs one turn of the dispatcher's loop around `work`. The dispatcher may die before or after the commit.
    fn run_turn(
        &mut self,
        work: impl FnOnce(&mut Core, i64) -> Result<(), FrontierError>,
    ) -> TurnOutcome {
        let now_ms = self.coordinator.ahead_ms + self.now_ms as i64;
        let hurried = self.is_sabotaged_by(Sabotage::AnswersDoNotWaitForLeases);
        let deaths_in_turn = match self.coordinator.deaths_in_turn < MOST_DEATHS_IN_TURN {
            true => self.plan.deaths_in_turn,
            false => 0,
        };
        let dies_early = self.dice.once_in(deaths_in_turn);
        let dies_late = self.dice.once_in(deaths_in_turn);
        let hands_out = self.hands_out(self.coordinator.turns);
        let Some(dispatcher) = &mut self.coordinator.dispatcher else {
            return TurnOutcome::Died;
        };
        if hurried {
            // This ends the waits for supervisors that were last heard of a second ago or earlier.
            dispatcher.expire_recalls(now_ms + self.plan.lease_ms as i64);
        }
        let mut worked = work(dispatcher, now_ms).and_then(|()| dispatcher.on_tick(now_ms));
        if hands_out {
            worked = worked.and_then(|()| dispatcher.hand_out(now_ms));
        }
        if self.machines_seen.needs_report() {
            let asked = control::parse_request(br#"{"action": "status"}"#, now_ms);
            worked = worked.and_then(|()| {
                dispatcher.handle_request(Client::Http(STATUS.into()), asked, now_ms)
            });
        }
        worked.expect("the database is healthy");
        let mut committed = Committed::default();
        if !dies_early {
            committed = dispatcher.commit(now_ms).expect("the database is healthy");
            self.backoff.note_commit(self.now_ms);
        }
        if dies_early || dies_late {
            self.coordinator.deaths_in_turn += 1;
            self.backoff.may_be_over |= self.plan.loses_egress();
            let down_ms = self.dice.log_uniform(20, 60_000);
            self.kill_dispatcher(down_ms);
            return TurnOutcome::Died;
        }
        self.schedule_wake();
        for write in committed.store_writes {
            match write {
                StoreWrite::Backfill(application) => self.schedule_application(application),
                StoreWrite::SiteStates(states) => self.write_site_states(states),
                // The store's writes of these kinds have no effect here: the workers mark no page as similar to a
                // block.
                StoreWrite::Crawl(_) | StoreWrite::Page(_) | StoreWrite::TakeBack(_) => {}
            }
        }
        self.note_statuses(&committed.outgoing);
        self.check_standstill(committed.outgoing.iter().any(is_hand_out));
        // Even if no machine loses its way out, one whose hosts are all dead is taken for cut off.
        self.backoff.may_be_over |= committed.outgoing.iter().any(recalls_everything);
        for message in committed.outgoing {
            match message {
                OutgoingMessage::ToSupervisor(peer, message) => self.send_down(&peer, message),
                OutgoingMessage::ToClient(Client::Http(asker), answer) => {
                    if asker.number != STATUS {
                        self.handle_operator_answer(asker.number as usize, &answer);
                    }
                }
                OutgoingMessage::ToClient(_, answer) => self.client.answer = Some(answer),
                OutgoingMessage::FinishedPage(_) | OutgoingMessage::Notification { .. } => {}
            }
        }
        self.coordinator.turns += 1;
        let between = self.plan.turns_between_checks;
        if self.coordinator.turns.is_multiple_of(between) {
            self.check_conservation();
        }
        TurnOutcome::Done
    }

    /// Notes the dispatcher's statuses first, because the status precedes the messages that depend on it.
    fn note_statuses(&mut self, messages: &[OutgoingMessage]) {
        for message in messages {
            if let OutgoingMessage::ToClient(Client::Http(asker), status) = message
                && asker.number == STATUS
            {
                self.note_status(status);
            }
        }
    }

    /// Lets the store apply a page to a further record, after some time.
    fn schedule_application(&mut self, application: BackfillWrite) {
        let applied = Event::Applied {
            life: self.coordinator.life,
            application: Box::new(application),
        };
        let takes_ms = self.dice.between(1, 200);
        self.schedule_in(takes_ms, applied);
    }

    /// Reports the result of an application to the dispatcher, unless it has died meanwhile.
    pub(crate) fn confirm_application(&mut self, life: u32, application: &BackfillWrite) {
        if life != self.coordinator.life || !self.coordinator.is_up() {
            return;
        }
        let page = &application.page;
        let (site, number) = site_and_page_of(&page.url);
        let planned = &self.plan.sites[site].pages[number];
        let (resolved, follows) = self.store.apply(application, planned.completes);
        let links = planned.links.iter().filter(|_| follows);
        let links: Vec<String> = links.map(|(site, page)| url(*site, *page)).collect();
        self.run_turn(|dispatcher, now_ms| {
            dispatcher.on_backfill_applied(application, resolved, &links, now_ms)
        });
    }

    /// Reports to the dispatcher that the store has states of sites, unless the dispatcher has died meanwhile.
    pub(crate) fn confirm_site_states(&mut self, life: u32, last: i64) {
        if life == self.coordinator.life && self.coordinator.is_up() {
            self.run_turn(|dispatcher, _| dispatcher.on_site_states_written(last));
        }
    }

    pub(crate) fn check_conservation(&mut self) {
        self.check_site_states();
        let sites = self.plan.sites.iter().enumerate();
        let blocking = sites.filter(|(_, site)| site.blocks.is_some());
        let blocking: Vec<String> = blocking.map(|(number, _)| site_name(number)).collect();
        let found = self.coordinator.open_witness().find_faults(&blocking);
        self.faults.extend(found);
    }

    /// Schedules the dispatcher's next turn for the time of its next work.
    fn schedule_wake(&mut self) {
        let Some(dispatcher) = &self.coordinator.dispatcher else {
            return;
        };
        let tick_ms = dispatcher.next_tick_ms();
        let next_ms = dispatcher.next_ready_ms().unwrap_or(tick_ms).min(tick_ms);
        let at_ms = (next_ms - self.coordinator.ahead_ms).max(self.now_ms as i64 + 1) as u64;
        if at_ms < self.coordinator.wakes_at_ms {
            self.coordinator.wakes_at_ms = at_ms;
            self.schedule_at(at_ms, Event::DispatcherWakes);
        }
    }

    pub(crate) fn send_down(&mut self, peer: &Caller, message: DispatcherToSupervisor) {
        let connection =
            u64::from_le_bytes(peer.peer.as_slice().try_into().expect("a peer of ours"));
        let machines = self.machines.iter();
        let Some(machine) = machines
            .enumerate()
            .find(|(_, machine)| machine.connection == connection && machine.core.is_some())
            .map(|(number, _)| number)
        else {
            return;
        };
        if let DispatcherToSupervisor::Tasks { tasks, .. } = &message {
            let name = self.machines[machine].name().to_owned();
            self.check_tasks(&name, tasks);
        }
        for at_ms in self.draw_arrivals(machine, 2, self.machines[machine].cut_down_until_ms) {
            let message = message.clone();
            self.schedule_at(
                at_ms,
                Event::ToSupervisor {
                    machine,
                    connection,
                    message,
                },
            );
        }
    }
}
