//! The world of several dispatchers: one queue of events in time.

use std::collections::BTreeMap;
use std::rc::Rc;

use webfill_scheduler::Caller;
use webfill_scheduler::effects::{Client as Asker, OutgoingMessage};
use webfill_wire::codec::WIRE_VERSION;
use webfill_wire::{DispatcherToSupervisor, Task};

use crate::dice::Dice;
use crate::event::MessageToDispatcher;
use crate::settings::EPOCH_MS;

use super::client::Client;
use super::dispatcher::Dispatcher;
use super::judge::Judge;
use super::machine::Machine;
use super::message::{CrawlNumber, Message};
use super::plan::Plan;
use super::sabotage::Sabotage;
use super::slots::DISPATCHERS;

/// How often a dispatcher repeats its unanswered messages.
const TICK_MS: u64 = 250;

/// The most deaths of dispatchers in the middle of a turn. The limit makes each world end.
const MOST_DEATHS_IN_TURN: u64 = 60;

pub(super) struct World {
    pub(super) plan: Rc<Plan>,
    pub(super) dice: Dice,
    pub(super) now_ms: u64,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
    pub(super) dispatchers: Vec<Dispatcher>,
    pub(super) machines: Vec<Machine>,
    pub(super) clients: Vec<Client>,
    pub(super) judge: Judge,
    connections: u64,
    deaths_in_turn: u64,
    /// When each dispatcher's next turn is due, if no message comes earlier.
    wakes_at_ms: [u64; DISPATCHERS],
    goes_on_until_ms: u64,
    traces: bool,
    _folder: tempfile::TempDir,
}

#[derive(Debug)]
pub(super) enum Event {
    Starts(usize),
    Dies(usize, u64),
    Wakes(usize),
    Ticks {
        dispatcher: usize,
        life: u32,
    },
    Arrives {
        from: usize,
        to: usize,
        message: Message,
    },
    FromMachine {
        dispatcher: usize,
        life: u32,
        connection: u64,
        message: MessageToDispatcher,
    },
    ToMachine {
        machine: usize,
        connection: u64,
        message: DispatcherToSupervisor,
    },
    MachineSpeaks(usize),
    /// A supervisor acts because it got a message from its worker.
    MachineActs(usize),
    SiteIsFree {
        machine: usize,
        site: usize,
    },
    SiteAnswers {
        machine: usize,
        task: Box<Task>,
    },
    ClientAsks(CrawlNumber),
}

impl World {
    pub(super) fn new(seed: u64, plan: Plan, sabotage: Option<Sabotage>, traces: bool) -> World {
        // The database is in memory if possible, because the disk is not under test here.
        let memory = std::path::Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let folder = folder.expect("a temporary folder");
        let plan = Rc::new(plan);
        let dispatcher = |number: usize| {
            let folder = folder.path().join(number.to_string());
            std::fs::create_dir(&folder).expect("the folder is new");
            Dispatcher::new(number, &plan, folder, sabotage)
        };
        let mut world = World {
            dice: Dice::new(seed ^ 0x4D15),
            now_ms: 0,
            events: BTreeMap::new(),
            count: 0,
            dispatchers: (0..DISPATCHERS).map(dispatcher).collect(),
            machines: (0..DISPATCHERS)
                .map(|number| Machine::new(number, &plan))
                .collect(),
            clients: plan.crawls.iter().map(|_| Client::default()).collect(),
            judge: Judge::default(),
            connections: 0,
            deaths_in_turn: 0,
            wakes_at_ms: [u64::MAX; DISPATCHERS],
            goes_on_until_ms: 0,
            traces,
            _folder: folder,
            plan,
        };
        world.schedule_planned_events();
        world
    }

    fn schedule_planned_events(&mut self) {
        let plan = Rc::clone(&self.plan);
        self.trace(|_| format!("{plan:#?}"));
        for number in 0..DISPATCHERS {
            self.schedule_at(0, Event::Starts(number));
            self.schedule_at(1, Event::MachineSpeaks(number));
        }
        for (at_ms, dispatcher, down_ms) in &plan.deaths {
            self.schedule_at(*at_ms, Event::Dies(*dispatcher, *down_ms));
        }
        for (crawl, planned) in plan.crawls.iter().enumerate() {
            self.schedule_at(planned.opens_at_ms, Event::ClientAsks(crawl));
        }
    }

    pub(super) fn schedule_at(&mut self, at_ms: u64, event: Event) {
        self.count += 1;
        self.events
            .insert((at_ms.max(self.now_ms), self.count), event);
    }

    pub(super) fn schedule_in(&mut self, wait_ms: u64, event: Event) {
        self.schedule_at(self.now_ms + wait_ms, event);
    }

    /// Runs the next event. Returns false when all crawls have ended and all late messages have arrived.
    pub(super) fn run_next_event(&mut self) -> bool {
        let Some(((at_ms, _), event)) = self.events.pop_first() else {
            return false;
        };
        self.now_ms = at_ms;
        self.trace(|_| format!("{event:?}"));
        self.handle_event(event);
        if !self.clients.iter().all(|client| client.is_over) {
            self.goes_on_until_ms = self.now_ms + self.plan.network.latest_ms;
        }
        self.now_ms <= self.goes_on_until_ms
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Starts(number) => self.start(number),
            Event::Dies(number, down_ms) => self.kill(number, down_ms),
            Event::Wakes(number) => {
                // This event is outdated if an earlier one has replaced it.
                if self.now_ms >= self.wakes_at_ms[number] {
                    self.wakes_at_ms[number] = u64::MAX;
                    self.run_turn(number, |_, _| ());
                }
            }
            Event::Ticks { dispatcher, life } => {
                if life == self.dispatchers[dispatcher].life {
                    self.schedule_in(TICK_MS, Event::Ticks { dispatcher, life });
                    self.run_turn(dispatcher, |dispatcher, now_ms| dispatcher.tick(now_ms));
                }
            }
            Event::Arrives { from, to, message } => {
                self.run_turn(to, |dispatcher, now_ms| {
                    dispatcher.handle(from, message, now_ms);
                });
            }
            Event::FromMachine {
                dispatcher,
                life,
                connection,
                message,
            } => {
                if life == self.dispatchers[dispatcher].life {
                    self.deliver_to_dispatcher(dispatcher, connection, message);
                }
            }
            Event::ToMachine {
                machine,
                connection,
                message,
            } => {
                if self.machines[machine].connection == connection {
                    let now_ms = self.now_ms;
                    self.machines[machine]
                        .core
                        .handle_dispatcher_message(message, now_ms);
                    self.send_supervisor_messages(machine);
                }
            }
            Event::MachineSpeaks(machine) => {
                if self.now_ms >= self.machines[machine].speaks_at_ms {
                    self.machines[machine].speaks_at_ms = u64::MAX;
                    let now_ms = self.now_ms;
                    self.machines[machine].core.send_if_due(now_ms, 0);
                    self.send_supervisor_messages(machine);
                }
            }
            Event::MachineActs(machine) => self.send_supervisor_messages(machine),
            Event::SiteIsFree { machine, site } => self.advance_site(machine, site),
            Event::SiteAnswers { machine, task } => self.finish_page(machine, &task),
            Event::ClientAsks(crawl) => self.run_client(crawl),
        }
    }

    fn start(&mut self, number: usize) {
        if self.dispatchers[number].is_up() {
            return;
        }
        let now_ms = self.wall_ms();
        self.dispatchers[number].start(now_ms);
        self.connections += 1;
        self.machines[number].connection = self.connections;
        for message in std::mem::take(&mut self.machines[number].unsent) {
            self.send_to_dispatcher(number, message);
        }
        let life = self.dispatchers[number].life;
        let dispatcher = number;
        self.schedule_in(1, Event::Ticks { dispatcher, life });
    }

    fn kill(&mut self, number: usize, down_ms: u64) {
        if self.dispatchers[number].is_up() {
            self.trace(|_| format!("dispatcher {number} dies"));
            self.dispatchers[number].die();
            self.schedule_in(down_ms, Event::Starts(number));
        }
    }

    fn wall_ms(&self) -> i64 {
        EPOCH_MS + self.now_ms as i64
    }

    /// Runs `work` as one turn of a dispatcher's loop. The dispatcher may die before or after the commit.
    fn run_turn(&mut self, number: usize, work: impl FnOnce(&mut Dispatcher, i64)) {
        let now_ms = self.wall_ms();
        let deaths_in_turn = match self.deaths_in_turn < MOST_DEATHS_IN_TURN {
            true => self.plan.deaths_in_turn,
            false => 0,
        };
        let dies_early = self.dice.once_in(deaths_in_turn);
        let dies_late = self.dice.once_in(deaths_in_turn);
        let dispatcher = &mut self.dispatchers[number];
        if !dispatcher.is_up() {
            return;
        }
        work(dispatcher, now_ms);
        dispatcher.run_turn_end(now_ms);
        let early = dispatcher.is_sabotaged_by(Sabotage::ConfirmedBeforeCommit);
        let committed = (!dies_early).then(|| dispatcher.commit(now_ms));
        let letters = std::mem::take(&mut dispatcher.memory.letters);
        if dies_early || dies_late {
            let is_early =
                |(_, message): &(usize, Message)| early && matches!(message, Message::Taken { .. });
            self.schedule_letters(number, letters.into_iter().filter(is_early));
            self.deaths_in_turn += 1;
            let down_ms = self.dice.log_uniform(20, 10_000);
            return self.kill(number, down_ms);
        }
        self.schedule_letters(number, letters);
        for message in committed
            .into_iter()
            .flat_map(|committed| committed.outgoing)
        {
            self.route_message(number, message);
        }
        self.finish_turn(number, now_ms);
    }

    fn finish_turn(&mut self, number: usize, now_ms: i64) {
        let dispatcher = &mut self.dispatchers[number];
        if !dispatcher.memory.uncommitted.is_empty() {
            dispatcher.fill_outbox_later(now_ms);
        }
        let letters = std::mem::take(&mut dispatcher.memory.letters);
        for answer in std::mem::take(&mut dispatcher.memory.answers) {
            self.clients[answer.crawl()].handle_answer(&answer);
        }
        let outbox_len = dispatcher.memory.outbox_len;
        let next_ms = (dispatcher.next_wake_ms() - EPOCH_MS).max(self.now_ms as i64 + 1) as u64;
        self.judge.check_outbox(number, outbox_len, &self.plan);
        self.schedule_letters(number, letters);
        if next_ms < self.wakes_at_ms[number] {
            self.wakes_at_ms[number] = next_ms;
            self.schedule_at(next_ms, Event::Wakes(number));
        }
    }

    /// Delivers a message that the core sent in a turn. This is done after the commit.
    fn route_message(&mut self, number: usize, message: OutgoingMessage) {
        match message {
            OutgoingMessage::ToSupervisor(peer, message) => {
                let connection = peer.peer.as_slice().try_into().expect("a peer of ours");
                let event = Event::ToMachine {
                    machine: number,
                    connection: u64::from_le_bytes(connection),
                    message,
                };
                self.schedule_in(1, event);
            }
            OutgoingMessage::ToClient(Asker::Http(request), answer) => {
                assert_eq!(answer.get("error"), None, "{answer}");
                self.dispatchers[number].handle_core_answer(request.number);
            }
            _ => {}
        }
    }

    /// Sends messages to other dispatchers.
    fn schedule_letters(
        &mut self,
        from: usize,
        letters: impl IntoIterator<Item = (usize, Message)>,
    ) {
        for (to, message) in letters {
            self.judge.note_letter(&message);
            for at_ms in self.draw_arrivals(from, to, &message) {
                let message = message.clone();
                self.schedule_at(at_ms, Event::Arrives { from, to, message });
            }
        }
    }

    /// The arrival times of a message sent now. There are none if it is lost, and two if it is repeated.
    fn draw_arrivals(&mut self, from: usize, to: usize, message: &Message) -> Vec<u64> {
        let (plan, now_ms) = (Rc::clone(&self.plan), self.now_ms);
        let network = &plan.network;
        let is_cut = network.cuts.iter().any(|(one, other, from_ms, until_ms)| {
            let is_pair = (*one, *other) == (from, to) || (*one, *other) == (to, from);
            is_pair && (*from_ms..*until_ms).contains(&now_ms)
        });
        if is_cut || self.dice.once_in(network.loss_once_in) {
            return Vec::new();
        }
        let times = 1 + usize::from(self.dice.once_in(network.twice_once_in));
        let mut arrival = || {
            let latest_ms = match message {
                _ if self.dice.once_in(network.late_once_in) => network.latest_ms,
                Message::CountsWanted { .. } => network.slowest_wave_ms,
                _ => 5,
            };
            now_ms + self.dice.between(1, latest_ms)
        };
        (0..times).map(|_| arrival()).collect()
    }

    fn deliver_to_dispatcher(
        &mut self,
        number: usize,
        connection: u64,
        message: MessageToDispatcher,
    ) {
        self.run_turn(number, |dispatcher, now_ms| match message {
            MessageToDispatcher::Word(word) => {
                let peer = Caller {
                    peer: connection.to_le_bytes().to_vec(),
                    version: WIRE_VERSION,
                };
                let done = dispatcher
                    .core()
                    .handle_supervisor_message(&peer, word, now_ms);
                done.expect("the database is healthy");
            }
            MessageToDispatcher::Outcomes(outcomes) => dispatcher.handle_outcomes(outcomes, now_ms),
        });
    }

    fn run_client(&mut self, crawl: CrawlNumber) {
        let plan = Rc::clone(&self.plan);
        let planned = &plan.crawls[crawl];
        let (client, true_ms) = (self.clients[crawl].clone(), self.now_ms);
        self.run_turn(planned.home, |home, now_ms| {
            client.ask(crawl, planned, home, (true_ms, now_ms));
        });
        if !self.clients[crawl].is_over {
            self.schedule_in(200, Event::ClientAsks(crawl));
        }
    }

    pub(super) fn trace(&self, what: impl FnOnce(&World) -> String) {
        if self.traces {
            eprintln!("{:>9} {}", self.now_ms, what(self));
        }
    }
}
