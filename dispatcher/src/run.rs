//! The dispatcher process: one loop. Each turn applies the events that have arrived to the core, leases due tasks,
//! commits everything in one transaction (group commit), and sends the results only after that.

mod answering;
mod arriving;
mod ending;
mod events;
mod followers;
mod journalled;
mod opening;
mod reloading;
mod requests;
mod sockets;
mod standing_by;
mod turns;
mod upkeep;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use webfill_followers::{ChangeReader, ContentChanges, ExtractionHealth, Firehose, Subscriptions};
use webfill_scheduler::Mappings;
use webfill_scheduler::core::{Core, TurnDeadline};
use webfill_scheduler::effects::{
    ChangesAnswer, ChangesRequest, ChangesResult, Committed, FeederOrder, OutgoingMessage,
};
use webfill_scheduler::frontier::{FrontierError, ignore_pruned};
use webfill_service::disk::Disks;
use webfill_service::http::SharedProtection;
use webfill_service::metrics::Probe;
use webfill_service::service_manager::ServiceManager;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{ExitStatus, Fault};
use webfill_wire::codec;
use webfill_wire::socket::{ArrivedFrame, Outbox, Sockets};

use self::answering::{AnswerChannels, AnswerSender, CommittedAnswers};
use self::arriving::ArrivalHandler;
use self::events::{Event, Inbox, event_sender};
use self::followers::Followers;
use self::journalled::JournalledCommits;
use self::opening::{frontier_fault, log_admission_wait, open_core};
use self::sockets::{TASKS, check_ports, socket_specs};
use self::standing_by::{Turn, await_turn};
use crate::audit::AuditLog;
use crate::backends::Backends;
use crate::clock::SteadyClock;
use crate::config::DispatcherSetup;
use crate::delivery::Deliveries;
use crate::feeders::Feeders;
use crate::health::Health;
use crate::http::{self, PendingRequests};
use crate::incoming;
use crate::metrics::Metrics;
use crate::permits::SharedPermits;
use crate::reload::{ReadAgain, Reloader};
use crate::request_reader::RequestReader;
use crate::store_writer::{StoreWriter, WriteResult};

/// The maximum time that one turn spends on events other than clients' requests.
const EVENTS_FOR: Duration = Duration::from_millis(250);

/// The most time that one turn spends on work that has become due (`TICK_FOR`), and on handing out tasks. Both consist
/// of small steps.
const TICK_FOR: Duration = Duration::from_millis(100);
const HANDING_OUT_FOR: Duration = Duration::from_millis(150);

/// The maximum pause between two turns, so that lost supervisors and signals are noticed.
const IDLE: Duration = Duration::from_millis(500);

/// Runs a dispatcher until it is asked to end.
pub fn run(
    setup: DispatcherSetup,
    mappings: Mappings,
    read_again: ReadAgain,
) -> Result<ExitStatus, Fault> {
    let (events, arrived) = mpsc::channel();
    let mut service_manager = match setup.ends_alone {
        true => ServiceManager::from_environment(),
        false => ServiceManager::disabled(),
    };
    let health = Health::new();
    serve_probes(&setup, &health)?;
    let wake = event_sender(&events, Event::JournalReported);
    let Some(turn) = await_turn(&setup, wake, &health, &mut service_manager)? else {
        return Ok(ExitStatus::Done);
    };
    let Turn {
        clock,
        gate,
        journalled,
    } = turn;
    check_ports(&setup.endpoints)?;
    let is_private = setup.endpoints.control.starts_with("ipc://");
    let permits = SharedPermits::default();
    let request_reader = RequestReader::start(
        clock,
        is_private,
        permits.clone(),
        event_sender(&events, Event::Request),
    )?;
    let pending_requests = PendingRequests::new(permits, event_sender(&events, Event::Request));
    let protection = SharedProtection::new(setup.protection.clone());
    serve_http(&setup, clock, &pending_requests, &health, &protection)?;
    let mut metrics = Metrics::start(&setup, health.clone(), clock)?;
    let backends = Backends::default();
    let tenure = journalled.as_ref().map(JournalledCommits::epoch);
    let store_writer = StoreWriter::start(
        &setup,
        (health.clone(), backends.clone()),
        (gate, tenure),
        event_sender(&events, Event::WriteResult),
    )?;
    // The frontier (the file of tasks) is opened before the sockets, so that clients are answered as soon as they can
    // connect.
    service_manager.notify_status("opens the frontier".to_owned());
    let opens = || open_core(&setup, mappings, clock);
    let core = match &journalled {
        Some(journalled) => journalled.keep_lease_during(opens),
        None => opens(),
    }?;
    if let Some(metrics) = &mut metrics {
        metrics.begin_counts(&setup.state)?;
    }
    let subscriptions = Subscriptions::default();
    let arriving = ArrivalHandler {
        request_reader,
        subscriptions: subscriptions.clone(),
        others: Box::new(event_sender(&events, Event::Frame)),
    };
    let sockets =
        Sockets::start_with_handler(socket_specs(&setup), arriving).map_err(Fault::error)?;
    let followers = Followers::start(&setup, &events, sockets.outbox(), subscriptions)?;
    let ways = AnswerChannels {
        outbox: sockets.outbox(),
        pending_requests: pending_requests.clone(),
    };
    let process = Process {
        backends,
        reloader: Reloader::start(read_again, event_sender(&events, Event::Reload))?,
        feeders: Feeders::new(setup.feeders.clone()),
        core,
        journalled,
        inbox: Inbox::default(),
        clock,
        disks: setup.disks,
        outbox: sockets.outbox(),
        answering: AnswerSender::start(setup.audit.map(AuditLog::new), ways)?,
        store_writer,
        firehose: followers.firehose,
        extraction_health: followers.extraction_health,
        content_changes: Some(followers.content_changes),
        change_reader: followers.change_reader,
        deliveries: followers.deliveries,
        pending_requests,
        protection,
        health,
        metrics,
        service_manager,
        refused_reload: None,
        ends_alone: setup.ends_alone,
    };
    log_admission_wait(&process.core, &setup.state, clock.now_ms());
    process.serve(&arrived, sockets)
}

impl Process {
    /// Runs the loop until the dispatcher ends, and closes everything.
    fn serve(
        mut self,
        arrived: &mpsc::Receiver<Event>,
        sockets: Sockets,
    ) -> Result<ExitStatus, Fault> {
        // The first turn may take a moment. Health checks must not report an unopened frontier to anyone who has read
        // the line `ready`.
        self.note_turn(self.clock.now_ms());
        webfill_service::say!("ready");
        self.service_manager.notify_ready();
        let ended = self.run_until_ended(arrived);
        self.service_manager.notify_stopping();
        let is_handed_over = self.is_hand_over_asked();
        let closed = self.close(arrived);
        drop(sockets);
        match ended.and_then(|status| closed.map(|()| status)) {
            // The process ends with an error, so that the service manager restarts it, as after any failure.
            Ok(_) if is_handed_over => Err(Fault::error(
                "handed over, as `webfill dispatcher --hand-over` has asked: this dispatcher ends, and stands by when \
                 it is started again",
            )),
            ended => ended,
        }
    }
}

fn serve_http(
    setup: &DispatcherSetup,
    clock: SteadyClock,
    pending_requests: &PendingRequests,
    health: &Health,
    protection: &SharedProtection,
) -> Result<(), Fault> {
    let Some(address) = setup.http else {
        return Ok(());
    };
    http::start(
        address,
        clock,
        pending_requests.clone(),
        health.clone(),
        protection.clone(),
        setup.dashboard.clone(),
    )?;
    Ok(())
}

fn serve_probes(setup: &DispatcherSetup, health: &Health) -> Result<(), Fault> {
    let Some(address) = setup.probes else {
        return Ok(());
    };
    let health = health.clone();
    webfill_service::metrics::serve_probes(address, "probes.dispatcher", move |probe| match probe {
        Probe::Health => health.faults(),
        Probe::Readiness => health.not_ready_reasons(),
    })
}

/// The core with its sockets, threads and clock.
struct Process {
    backends: Backends,
    deliveries: Deliveries,
    change_reader: Option<ChangeReader>,
    reloader: Reloader,
    feeders: Feeders,
    core: Core,
    /// The commits on their way to the journal; `None` if there is no journal.
    journalled: Option<JournalledCommits>,
    inbox: Inbox,
    clock: SteadyClock,
    disks: Disks,
    outbox: Outbox,
    answering: AnswerSender,
    store_writer: StoreWriter,
    firehose: Firehose,
    extraction_health: ExtractionHealth,
    /// The thread that compares pages with their earlier versions; `None` once the process is closing.
    content_changes: Option<ContentChanges>,
    /// HTTP requests that wait for their answers.
    pending_requests: PendingRequests,
    /// The tokens and TLS files that protect HTTP requests.
    protection: SharedProtection,
    health: Health,
    metrics: Option<Metrics>,
    service_manager: ServiceManager,
    /// Why the last reload was refused; `None` if it succeeded.
    refused_reload: Option<String>,
    /// Whether the first signal ends only this dispatcher; see [`DispatcherSetup::ends_alone`].
    ends_alone: bool,
}

impl Process {
    fn run_until_ended(&mut self, arrived: &mpsc::Receiver<Event>) -> Result<ExitStatus, Fault> {
        let mut committed = Instant::now();
        loop {
            self.await_journal()?;
            let idle = self.idle_time();
            let batch = self.inbox.collect(arrived, idle, committed)?;
            let began = Instant::now();
            self.core.environment().standing = self.extraction_health.standing_alerts();
            self.core.environment().backends = self.backends.report();
            self.core.environment().standbys = self.standbys();
            self.apply_events(batch)?;
            self.handle_requests()?;
            if self.is_hand_over_asked() {
                return self.end_without_supervisors();
            }
            if signals::received_request() >= SignalRequest::Drain {
                if self.ends_alone {
                    self.core.audit_signal("end", self.clock.now_ms());
                    return self.end_without_supervisors();
                }
                self.core.start_drain();
            }
            self.request_signalled_reload();
            self.audit_list_changes();
            self.core.environment().low_disk = self.disks.check_shortage().map(ToString::to_string);
            self.core.environment().store_is_behind = self.store_writer.is_behind();
            self.core.set_wall_ahead(self.clock.wall_ahead_ms());
            let now_ms = self.clock.now_ms();
            let due = self.advance_core(now_ms).map_err(frontier_fault)?;
            committed = Instant::now();
            self.note_turn(now_ms);
            let took = committed - began;
            self.finish_commit(due, now_ms)?;
            self.publish_metrics(took, now_ms);
            if self.core.is_drained() || signals::received_request() == SignalRequest::Stop {
                return Ok(ExitStatus::Done);
            }
        }
    }

    /// Carries out the effects of a commit that is stored durably.
    fn carry_out(&mut self, mut committed: Committed, now_ms: i64) -> Result<(), Fault> {
        self.send_committed(&mut committed);
        self.begin_reloads(committed.reloads_asked);
        self.advance_feeders(committed.feeder_orders)?;
        self.deliveries.deliver(committed.deliveries);
        self.request_changes(committed.changes_asked, now_ms)
    }

    /// Does due work and then hands out tasks, each for a limited time, and commits everything.
    fn advance_core(&mut self, now_ms: i64) -> Result<Committed, FrontierError> {
        self.core.environment().turn_end = deadline_after(TICK_FOR);
        self.core.on_tick(now_ms)?;
        self.core.environment().turn_end = deadline_after(HANDING_OUT_FOR);
        self.core.hand_out(now_ms)?;
        self.core.commit(now_ms)
    }

    /// Starts the feeders of runs that have begun. It must be called after the commit.
    fn advance_feeders(&mut self, orders: Vec<FeederOrder>) -> Result<(), Fault> {
        let core = &self.core;
        let is_over = |watch: &str, run| core.run_state(watch, run)["over"] == true;
        for ended in self.feeders.start_and_reap(orders, is_over) {
            let noted = self
                .core
                .on_feeder_ended(&ended.watch, ended.run, ended.why);
            ignore_pruned(noted, ()).map_err(frontier_fault)?;
        }
        Ok(())
    }

    /// Passes requests for changes of pages from the core to the thread that reads them.
    fn request_changes(&mut self, asked: Vec<ChangesRequest>, now_ms: i64) -> Result<(), Fault> {
        let Some(change_reader) = &self.change_reader else {
            return Ok(());
        };
        for unread in change_reader.request(asked) {
            // If the thread has ended, the core gets an answer immediately, so that runs can end without waiting for
            // it.
            let answer = ChangesAnswer {
                asked: unread,
                found: ChangesResult::Late,
            };
            let noted = self.core.on_changes_answered(answer, now_ms);
            ignore_pruned(noted, ()).map_err(frontier_fault)?;
        }
        Ok(())
    }

    /// How long the loop may sleep unless an event arrives.
    fn idle_time(&self) -> Duration {
        if !self.inbox.is_empty() || self.core.is_feeding() {
            return Duration::ZERO;
        }
        let tick_ms = self.core.next_tick_ms();
        let next_ms = self.core.next_ready_ms().unwrap_or(tick_ms);
        let wait_ms = next_ms.min(tick_ms).saturating_sub(self.clock.now_ms());
        Duration::from_millis(wait_ms.max(1) as u64).min(IDLE)
    }

    /// Applies the arrived events. Messages of supervisors come first, because their leases depend on the answers.
    /// If there is no time for some events, they are left to the next turn.
    fn apply_events(&mut self, batch: Vec<Event>) -> Result<(), Fault> {
        let now_ms = self.clock.now_ms();
        let until = Instant::now() + EVENTS_FOR;
        let is_word = |event: &Event| matches!(event, Event::Frame(frame) if frame.socket == TASKS);
        let (words, others): (Vec<Event>, Vec<Event>) = batch.into_iter().partition(is_word);
        let mut events = words.into_iter().chain(others);
        while let Some(event) = events.next() {
            if !is_word(&event) && Instant::now() >= until {
                let left = std::iter::once(event).chain(events);
                self.inbox.put_back(left);
                return Ok(());
            }
            let applied = match event {
                Event::Frame(frame) => self.apply_frame(frame, now_ms),
                // Requests wait in a queue where senders take turns.
                Event::Request(request) => {
                    self.inbox.add_request(request);
                    Ok(())
                }
                Event::Reload(ended) => {
                    self.finish_reload(ended);
                    Ok(())
                }
                Event::Delivery(ended) => self.core.on_delivery_ended(&ended, now_ms),
                Event::PageChecks(checks) => self.core.on_pages_checked(&checks, now_ms),
                Event::Changes(answer) => self.core.on_changes_answered(answer, now_ms),
                // This event only wakes the loop.
                Event::JournalReported(()) => Ok(()),
                Event::WriteResult(WriteResult::Failed(fault)) => return Err(fault),
                Event::WriteResult(WriteResult::Backfilled {
                    backfill,
                    resolved,
                    links,
                }) => self
                    .core
                    .on_backfill_applied(&backfill, resolved, &links, now_ms),
                Event::WriteResult(WriteResult::PageDropped(backfill)) => {
                    self.core.requeue_dropped_page(&backfill, now_ms)
                }
                Event::WriteResult(WriteResult::TakenBack { crawl, task, open }) => {
                    self.core.on_page_retracted((crawl, task), &open, now_ms)
                }
                Event::WriteResult(WriteResult::CrawlSaved { note }) => {
                    self.core.on_crawl_saved(note)
                }
                Event::WriteResult(WriteResult::SiteStatesWritten { last }) => {
                    self.core.on_site_states_written(last)
                }
            };
            ignore_pruned(applied, ()).map_err(frontier_fault)?;
        }
        Ok(())
    }

    fn apply_frame(&mut self, frame: ArrivedFrame, now_ms: i64) -> Result<(), FrontierError> {
        match frame.socket {
            TASKS => incoming::apply_tasks_frame(&mut self.core, &self.outbox, frame, now_ms),
            _ => incoming::apply_outcomes(&mut self.core, frame, now_ms),
        }
    }

    /// Sends the messages and store writes of a commit. Answers are sent later, once the audit log has their actions.
    fn send_committed(&mut self, committed: &mut Committed) {
        let mut answers = Vec::new();
        for message in committed.outgoing.drain(..) {
            match message {
                OutgoingMessage::ToSupervisor(caller, message) => {
                    let frame = codec::encode_in_version(caller.version, &message);
                    self.outbox.send_to(TASKS, &caller.peer, frame);
                }
                OutgoingMessage::ToClient(client, answer) => answers.push((client, answer)),
                OutgoingMessage::FinishedPage(page) => self.firehose.announce(page),
                OutgoingMessage::Notification {
                    app_id,
                    notification,
                } => self.firehose.publish_notification(&app_id, &notification),
            }
        }
        let audited = std::mem::take(&mut committed.audited);
        self.answering.send(CommittedAnswers { audited, answers });
        for write in committed.store_writes.drain(..) {
            self.store_writer.enqueue(write);
        }
    }
}

fn deadline_after(time: Duration) -> TurnDeadline {
    let end = Instant::now() + time;
    TurnDeadline::from_check(move || Instant::now() >= end)
}
