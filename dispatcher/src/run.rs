//! The dispatcher process: one loop. Everything that has arrived is applied to the frontier in
//! one transaction, due tasks are leased in the same one, and only after its commit does
//! anybody hear of it.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use webfill_startup::signals::{self, Asked};
use webfill_startup::{ExitStatus, Fault};
use webfill_wire::keys::{self, Role};
use webfill_wire::socket::{Arrived, Outbox, Pattern, SocketName, SocketSpec, Sockets};
use webfill_wire::{MappingSource, SupervisorOutcomes, SupervisorToDispatcher, codec};

use crate::clerk::{Clerk, Question};
use crate::clock::SteadyClock;
use crate::config::DispatcherSetup;
use crate::dispatcher::{Dispatcher, Terms};
use crate::excluded_sites::ExcludedSites;
use crate::frontier::{Frontier, FrontierConfig, FrontierError};
use crate::herald::{Herald, Subscriptions};
use crate::http::{self, Questions};
use crate::ledger::{Ledger, Written};
use crate::letter::{Client, Letter};

const TASKS: SocketName = 1;
const OUTCOMES: SocketName = 2;
const CONTROL: SocketName = 3;
const FIREHOSE: SocketName = 4;

/// Something that the loop reacts to.
enum Event {
    Frame(Arrived),
    Asked(Question),
    Written(Written),
}

/// Commits are at least this far apart: what arrives meanwhile shares the next one.
const COMMIT_EVERY: Duration = Duration::from_millis(8);

/// Events taken into one transaction, at most.
const BATCH: usize = 10_000;

/// The loop turns at least this often: heartbeats, lost supervisors, signals.
const IDLE: Duration = Duration::from_millis(500);

/// Pages of SQLite's cache, in bytes.
const PAGE_CACHE_BYTES: usize = 16 << 20;

/// Runs a dispatcher until it is told to drain, and everything is back.
pub fn run(setup: DispatcherSetup, mappings: Vec<MappingSource>) -> Result<ExitStatus, Fault> {
    let (events, arrived) = mpsc::channel();
    let clock = SteadyClock::start();
    let written = events.clone();
    let (by_socket, by_http) = (events.clone(), events.clone());
    // Sends fail only while everything ends: the loop outlives the sockets.
    let clerk = Clerk::start(clock, move |question| {
        let _ = by_socket.send(Event::Asked(question));
    })?;
    let questions = Questions::new(move |question| {
        let _ = by_http.send(Event::Asked(question));
    });
    // The sockets come first, so that a port in use leaves nothing behind; what arrives waits in
    // the channel until there is somebody to answer it.
    let subscriptions = Subscriptions::default();
    let heard = subscriptions.clone();
    let sockets = Sockets::start(socket_specs(&setup), move |frame| {
        match (frame.socket, frame.peer) {
            (FIREHOSE, _) => heard.heard(&frame.frame),
            (CONTROL, Some(peer)) => clerk.take(peer, frame.frame),
            (_, peer) => {
                let _ = events.send(Event::Frame(Arrived { peer, ..frame }));
            }
        }
    })
    .map_err(Fault::error)?;
    if let Some(address) = setup.http {
        http::start(address, clock, questions.clone())?;
    }
    let store = setup.store.clone();
    let herald = Herald::start(store, subscriptions, sockets.outbox(), FIREHOSE)?;
    let ledger = Ledger::start(&setup, move |answer| {
        let _ = written.send(Event::Written(answer));
    })?;
    let mut process = Process {
        dispatcher: open(&setup, mappings, clock)?,
        clock,
        outbox: sockets.outbox(),
        ledger,
        herald,
        questions,
    };
    eprintln!("ready");
    let ended = process.turn_until_the_end(&arrived);
    process.close();
    drop(sockets);
    ended
}

fn open(
    setup: &DispatcherSetup,
    mappings: Vec<MappingSource>,
    clock: SteadyClock,
) -> Result<Dispatcher, Fault> {
    let excluded = match &setup.config.exclude_sites {
        Some(list) => ExcludedSites::load(list).map_err(Fault::usage)?,
        None => ExcludedSites::default(),
    };
    let config = FrontierConfig {
        seen_memory_bytes: setup.config.seen_memory_mib << 20,
        page_cache_bytes: PAGE_CACHE_BYTES,
        excluded,
        retries: setup.retries.clone(),
        applications: setup.applications.clone(),
    };
    let terms = Terms {
        default_delay_ms: setup.default_delay_ms,
        lease_ms: setup.config.lease_ms(),
        window_sites: setup.config.window_sites,
    };
    let now_ms = clock.now_ms();
    Frontier::open(&setup.state, config, now_ms)
        .and_then(|frontier| Dispatcher::open(frontier, terms, mappings, now_ms))
        .map_err(frontier_fault)
}

/// The dispatcher with what it needs of the world.
struct Process {
    dispatcher: Dispatcher,
    clock: SteadyClock,
    outbox: Outbox,
    ledger: Ledger,
    herald: Herald,
    /// Those that came by HTTP.
    questions: Questions,
}

impl Process {
    fn turn_until_the_end(&mut self, arrived: &mpsc::Receiver<Event>) -> Result<ExitStatus, Fault> {
        let mut committed = Instant::now();
        loop {
            let batch = self.gather(arrived, committed)?;
            self.take_batch(batch)?;
            if signals::asked() >= Asked::Drain {
                self.dispatcher.drain();
            }
            self.dispatcher.store_is_behind = self.ledger.is_behind();
            let now_ms = self.clock.now_ms();
            self.dispatcher
                .keep_time(now_ms)
                .and_then(|()| self.dispatcher.hand_out(now_ms))
                .and_then(|()| self.dispatcher.commit(now_ms))
                .map_err(frontier_fault)?;
            committed = Instant::now();
            self.send();
            if self.dispatcher.is_drained() || signals::asked() == Asked::Stop {
                return Ok(ExitStatus::Done);
            }
        }
    }

    /// Waits for something to do, and then a little longer for what may share its commit.
    fn gather(
        &self,
        arrived: &mpsc::Receiver<Event>,
        committed: Instant,
    ) -> Result<Vec<Event>, Fault> {
        let stopped = || Fault::error("the socket thread has stopped");
        let mut batch = Vec::new();
        match arrived.recv_timeout(self.idle_time()) {
            Ok(event) => batch.push(event),
            Err(RecvTimeoutError::Timeout) => return Ok(batch),
            Err(RecvTimeoutError::Disconnected) => return Err(stopped()),
        }
        let closes = committed + COMMIT_EVERY;
        while batch.len() < BATCH {
            let left = closes.saturating_duration_since(Instant::now());
            match arrived.recv_timeout(left) {
                Ok(event) => batch.push(event),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(stopped()),
            }
        }
        Ok(batch)
    }

    /// How long nothing will be to do unless something arrives.
    fn idle_time(&self) -> Duration {
        let look_ms = self.dispatcher.next_look_ms();
        let next_ms = self.dispatcher.next_ready_ms().unwrap_or(look_ms);
        let wait_ms = next_ms.min(look_ms).saturating_sub(self.clock.now_ms());
        Duration::from_millis(wait_ms.max(1) as u64).min(IDLE)
    }

    fn take_batch(&mut self, batch: Vec<Event>) -> Result<(), Fault> {
        let now_ms = self.clock.now_ms();
        for event in batch {
            match event {
                Event::Frame(frame) => take(&mut self.dispatcher, frame, now_ms),
                Event::Asked(question) => {
                    self.dispatcher.ask(question.client, question.asked, now_ms)
                }
                Event::Written(Written::Failed(fault)) => return Err(fault),
                Event::Written(Written::Applied {
                    application,
                    resolved,
                    links,
                }) => self
                    .dispatcher
                    .applied(&application, resolved, &links, now_ms),
            }
            .map_err(frontier_fault)?;
        }
        Ok(())
    }

    /// Sends what rests on the commit.
    fn send(&mut self) {
        for letter in self.dispatcher.take_letters() {
            match letter {
                Letter::ToSupervisor(peer, message) => {
                    self.outbox.send_to(TASKS, &peer, codec::encode(&message));
                }
                Letter::ToClient(Client::Socket(peer), answer) => {
                    let frame = answer.to_string().into_bytes();
                    self.outbox.send_to(CONTROL, &peer, frame);
                }
                Letter::ToClient(Client::Http(number), answer) => {
                    self.questions.answer(number, answer);
                }
                Letter::Finished(page) => self.herald.announce(page),
                Letter::Notice { app_id, notice } => self.herald.notice(&app_id, &notice),
            }
        }
        for entry in self.dispatcher.take_entries() {
            self.ledger.write(entry);
        }
    }

    /// The last counters and the last state of the crawls.
    fn close(mut self) {
        if let Err(error) = self.dispatcher.close(self.clock.now_ms()) {
            tracing::warn!(event = "crawls_not_written", %error, "cannot tell the state of the crawls");
        }
        self.send();
        self.questions.forget_all();
        self.ledger.finish();
        self.herald.finish();
    }
}

fn take(dispatcher: &mut Dispatcher, arrived: Arrived, now_ms: i64) -> Result<(), FrontierError> {
    let Arrived {
        socket,
        peer,
        sender,
        frame,
        ..
    } = arrived;
    let unreadable = match (socket, peer) {
        (TASKS, Some(peer)) => match codec::decode::<SupervisorToDispatcher>(&frame) {
            Ok(SupervisorToDispatcher::Hello(hello)) if is_impostor(&sender, &hello.supervisor) => {
                return Ok(());
            }
            Ok(message) => return dispatcher.take_from_supervisor(&peer, message, now_ms),
            Err(error) => error,
        },
        _ => match codec::decode::<SupervisorOutcomes>(&frame) {
            Ok(outcomes) if is_impostor(&sender, &outcomes.supervisor) => return Ok(()),
            Ok(outcomes) => return dispatcher.take_outcomes(outcomes, now_ms),
            Err(error) => error,
        },
    };
    tracing::error!(event = "unreadable_message", error = %unreadable, "a message was dropped");
    Ok(())
}

/// Whether a supervisor goes by a name that its key does not give it.
fn is_impostor(sender: &Option<Arc<str>>, supervisor: &str) -> bool {
    let Some(name) = sender else {
        return false;
    };
    let is_impostor = !keys::may_be_called(name, supervisor);
    if is_impostor {
        tracing::warn!(
            event = "message_refused",
            name = &**name,
            supervisor,
            "a supervisor goes by a name that is not its key's: start it with --id NAME, or --id NAME:ANYTHING where several share the key"
        );
    }
    is_impostor
}

fn socket_specs(setup: &DispatcherSetup) -> Vec<SocketSpec> {
    let at = &setup.endpoints;
    let keys = setup.keys.as_ref();
    vec![
        SocketSpec::bind(TASKS, Pattern::Router, &at.tasks).serve(keys, Role::Supervisor),
        SocketSpec::bind(OUTCOMES, Pattern::Pull, &at.outcomes).serve(keys, Role::Supervisor),
        SocketSpec::bind(CONTROL, Pattern::Router, &at.control).serve(keys, Role::Client),
        SocketSpec::bind(FIREHOSE, Pattern::Publish, &at.firehose).serve(keys, Role::Client),
    ]
}

fn frontier_fault(error: FrontierError) -> Fault {
    match error {
        FrontierError::Foreign { .. } | FrontierError::Newer { .. } | FrontierError::Scope(_) => {
            Fault::usage(error)
        }
        other => Fault::fatal(other),
    }
}
