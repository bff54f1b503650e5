//! The dispatcher's state, and what each message does to it. Answers and tasks are collected as
//! letters and sent after the commit.

use std::time::{Duration, Instant};

use webfill_startup::Fault;
use webfill_wire::socket::{Outbox, Peer, SocketName};
use webfill_wire::{
    CrawlKey, DispatcherToSupervisor, MappingSource, ReturnCause, SupervisorOutcomes,
    SupervisorToDispatcher, Task, TaskDone, TaskReturned, codec,
};

use crate::clock::SteadyClock;
use crate::config::DispatcherSetup;
use crate::control::{self, Refusal, Request, SeedUrl};
use crate::crawl_book::{CrawlBook, crashed_page};
use crate::crawl_spec::CrawlSpec;
use crate::dispatch::{Dispatch, Grant, LOOKAHEAD_MS, Lease};
use crate::excluded_sites::ExcludedSites;
use crate::frontier::{
    AlreadyDone, Candidate, CrawlStatus, Done, FeedTally, Frontier, FrontierConfig, FrontierError,
    GivenBack, Leased,
};
use crate::ledger::{Application, Entry, Ledger, Written};
use crate::run::{CONTROL, TASKS, frontier_fault, welcome};

/// A message that leaves after the next commit.
struct Letter {
    socket: SocketName,
    peer: Peer,
    frame: Vec<u8>,
}

/// How often supervisors hear from us at least.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How often the state of the crawls is written to the store.
const CRAWLS_EVERY: Duration = Duration::from_secs(5);

/// Pages of SQLite's cache, in bytes.
const PAGE_CACHE_BYTES: usize = 16 << 20;

pub(crate) struct Dispatcher {
    setup: DispatcherSetup,
    frontier: Frontier,
    dispatch: Dispatch,
    crawls: CrawlBook,
    ledger: Ledger,
    mappings: Vec<MappingSource>,
    outbox: Outbox,
    letters: Vec<Letter>,
    clock: SteadyClock,
    heartbeat_at: Instant,
    crawls_at: Instant,
    /// When the first site outside the window is due.
    next_site_ms: Option<i64>,
    draining: bool,
    /// Who waits for the drain to end, and for the counters of which crawls.
    drain_asked: Option<(Peer, Vec<CrawlKey>)>,
}

impl Dispatcher {
    pub(crate) fn open(
        setup: DispatcherSetup,
        mappings: Vec<MappingSource>,
        ledger: Ledger,
        outbox: Outbox,
    ) -> Result<Dispatcher, Fault> {
        let clock = SteadyClock::start();
        let excluded = match &setup.config.exclude_sites {
            Some(list) => ExcludedSites::load(list).map_err(Fault::usage)?,
            None => ExcludedSites::default(),
        };
        let config = FrontierConfig {
            seen_memory_bytes: setup.config.seen_memory_mib << 20,
            page_cache_bytes: PAGE_CACHE_BYTES,
            default_delay_ms: setup.default_delay_ms,
            excluded,
        };
        let now_ms = clock.now_ms();
        let frontier = Frontier::open(&setup.state, config, now_ms).map_err(frontier_fault)?;
        let dispatch = Dispatch::new(setup.default_delay_ms, setup.longest_request_ms, now_ms);
        let mut dispatcher = Dispatcher {
            setup,
            frontier,
            dispatch,
            crawls: CrawlBook::default(),
            ledger,
            mappings,
            outbox,
            letters: Vec::new(),
            clock,
            heartbeat_at: Instant::now(),
            crawls_at: Instant::now(),
            next_site_ms: Some(now_ms),
            draining: false,
            drain_asked: None,
        };
        dispatcher.go_on().map_err(frontier_fault)?;
        Ok(dispatcher)
    }

    /// Takes up the crawls that are not finished.
    fn go_on(&mut self) -> Result<(), FrontierError> {
        for crawl in self.frontier.unfinished_crawls()? {
            self.take_up(crawl)?;
        }
        Ok(())
    }

    /// How long until the next site becomes ready.
    pub(crate) fn next_ready_in(&self) -> Option<Duration> {
        if self.draining || self.dispatch.supervisor_count() == 0 {
            return None;
        }
        let outside = self.next_site_ms.map(|due_ms| due_ms - LOOKAHEAD_MS);
        let inside = self.dispatch.next_ready_ms();
        let next_ms = match (inside, outside) {
            (Some(inside), Some(outside)) => inside.min(outside),
            (one, other) => one.or(other)?,
        };
        let wait_ms = next_ms.saturating_sub(self.clock.now_ms()).max(1);
        Some(Duration::from_millis(wait_ms as u64))
    }

    pub(crate) fn commit(&mut self) -> Result<(), FrontierError> {
        self.frontier.commit()
    }

    pub(crate) fn send_letters(&mut self) {
        for letter in self.letters.drain(..) {
            self.outbox
                .send_to(letter.socket, &letter.peer, letter.frame);
        }
    }

    fn write_to(&mut self, peer: &Peer, message: &DispatcherToSupervisor) {
        self.letters.push(Letter {
            socket: TASKS,
            peer: peer.clone(),
            frame: codec::encode(message),
        });
    }

    // Supervisors.

    pub(crate) fn take_from_supervisor(
        &mut self,
        peer: &Peer,
        message: SupervisorToDispatcher,
    ) -> Result<(), FrontierError> {
        let now_ms = self.clock.now_ms();
        match message {
            SupervisorToDispatcher::Hello {
                supervisor,
                workers,
                credit,
                held,
            } => {
                tracing::info!(
                    event = "supervisor_joined",
                    supervisor,
                    workers,
                    held = held.len(),
                    "supervisor joined"
                );
                for (task, attempt) in &held {
                    self.hold_again(*task, *attempt, &supervisor)?;
                }
                let lost = self
                    .dispatch
                    .hello(&supervisor, peer.clone(), credit, &held, now_ms);
                self.take_back(lost)?;
                self.letters.push(Letter {
                    socket: TASKS,
                    peer: peer.clone(),
                    frame: welcome(&self.mappings),
                });
                if self.draining {
                    self.dispatch.drain();
                    self.write_to(peer, &DispatcherToSupervisor::Drain);
                }
            }
            SupervisorToDispatcher::Goodbye => {
                let left = self.dispatch.goodbye(peer);
                self.take_back(left)?;
            }
            _ if !self.dispatch.heard(peer, now_ms) => {
                self.write_to(peer, &DispatcherToSupervisor::SayHello);
            }
            SupervisorToDispatcher::Credit(credit) => self.dispatch.credit(peer, credit, now_ms),
            SupervisorToDispatcher::Heartbeat => {}
        }
        Ok(())
    }

    /// A supervisor holds a lease from before our restart: it is in force again.
    fn hold_again(
        &mut self,
        task: u64,
        attempt: u32,
        supervisor: &str,
    ) -> Result<(), FrontierError> {
        if let Some(site) = self.frontier.hold_again(task, attempt)? {
            let lease = Lease {
                attempt,
                supervisor: supervisor.to_owned(),
                site,
            };
            self.dispatch.adopt(task, lease);
        }
        Ok(())
    }

    /// Leases of a supervisor that has lost them, or is lost itself.
    fn take_back(&mut self, leases: Vec<(u64, Lease)>) -> Result<(), FrontierError> {
        for (task, lease) in leases {
            let returned = TaskReturned {
                task,
                attempt: lease.attempt,
                cause: ReturnCause::WorkerDied,
            };
            self.returned(returned)?;
        }
        Ok(())
    }

    // Outcomes.

    pub(crate) fn take_outcomes(
        &mut self,
        outcomes: SupervisorOutcomes,
    ) -> Result<(), FrontierError> {
        for done in &outcomes.done {
            self.done(done)?;
        }
        for returned in outcomes.returned {
            self.returned(returned)?;
        }
        Ok(())
    }

    fn done(&mut self, done: &TaskDone) -> Result<(), FrontierError> {
        let now_ms = self.clock.now_ms();
        if !self.dispatch.is_out(done.task) {
            // Its supervisor has outlived our restart: what was queued again for that is done.
            self.frontier.hold_again(done.task, done.attempt)?;
        }
        let counted = match self.frontier.done(done, now_ms)? {
            Done::Counted(counted) => counted,
            Done::Stale => {
                tracing::info!(
                    event = "stale_outcome",
                    task = done.task,
                    attempt = done.attempt,
                    "an outcome came too late and changed nothing"
                );
                return Ok(());
            }
        };
        if let Some((site, clock)) = self.dispatch.ended(done.task, done.clock, now_ms) {
            self.frontier.save_clock(site, &clock)?;
        }
        for record in counted.late_records {
            let page = AlreadyDone {
                task: done.task,
                url: counted.url.clone(),
                depth: counted.depth,
                record,
            };
            self.apply_later(counted.crawl, page)?;
        }
        self.take_tally(counted.crawl, counted.links)
    }

    fn returned(&mut self, returned: TaskReturned) -> Result<(), FrontierError> {
        let now_ms = self.clock.now_ms();
        let blamed = returned.cause == ReturnCause::KilledWorker;
        let may_have_started = returned.cause != ReturnCause::Unstarted;
        let given_back =
            self.frontier
                .give_back(returned.task, returned.attempt, blamed, now_ms)?;
        if given_back == GivenBack::Stale {
            return Ok(());
        }
        let requeued = given_back == GivenBack::Requeued;
        if requeued {
            self.next_site_ms = Some(now_ms);
        }
        if let Some((site, clock)) =
            self.dispatch
                .returned(returned.task, requeued, may_have_started, now_ms)
        {
            self.frontier.save_clock(site, &clock)?;
        }
        if given_back == GivenBack::Quarantined {
            self.note_crashed(&returned)?;
        }
        Ok(())
    }

    /// The page that killed three workers has no worker left to save it.
    fn note_crashed(&mut self, returned: &TaskReturned) -> Result<(), FrontierError> {
        let Some(task) = self.frontier.task(returned.task)? else {
            return Ok(());
        };
        tracing::error!(
            event = "quarantined",
            url = task.url,
            "a page has killed three workers and is not fetched again"
        );
        let spec = self.frontier.spec(task.crawl)?;
        let page = crashed_page(spec, task, returned.attempt, self.clock.now_ms());
        self.ledger.write(Entry::Page(Box::new(page)));
        Ok(())
    }

    /// What judged links led to beside new tasks.
    fn take_tally(&mut self, crawl: CrawlKey, tally: FeedTally) -> Result<(), FrontierError> {
        for site in tally.woken {
            self.dispatch.wake(site);
        }
        if tally.accepted > 0 {
            self.next_site_ms = Some(self.clock.now_ms());
        }
        for page in tally.already_done {
            self.apply_later(crawl, page)?;
        }
        Ok(())
    }

    /// A stored page serves a further record.
    fn apply_later(&mut self, crawl: CrawlKey, page: AlreadyDone) -> Result<(), FrontierError> {
        let crawl_id = self.frontier.spec(crawl)?.crawl_id.clone();
        self.crawls.applying(crawl);
        self.ledger.write(Entry::Apply(Application {
            crawl,
            crawl_id,
            page,
        }));
        Ok(())
    }

    pub(crate) fn take_written(&mut self, written: Written) -> Result<(), Fault> {
        match written {
            Written::Applied {
                application,
                resolved,
                links,
            } => self
                .applied(&application, resolved, &links)
                .map_err(frontier_fault),
            Written::Failed(fault) => Err(fault),
        }
    }

    fn applied(
        &mut self,
        application: &Application,
        resolved: bool,
        links: &[String],
    ) -> Result<(), FrontierError> {
        let now_ms = self.clock.now_ms();
        self.crawls.applied(application.crawl);
        let page = &application.page;
        self.frontier.applied(page.task, &page.record)?;
        if resolved {
            return self.frontier.record_resolved(&page.record, now_ms);
        }
        let records = std::slice::from_ref(&page.record);
        let candidates: Vec<Candidate<'_>> = links
            .iter()
            .map(|url| Candidate {
                url,
                depth: page.depth.saturating_add(1),
                parent: Some(page.task),
                records,
            })
            .collect();
        let tally = self.frontier.feed(application.crawl, &candidates, now_ms)?;
        self.take_tally(application.crawl, tally)
    }

    // Handing out.

    /// Leases tasks of sites that are due to supervisors with room.
    pub(crate) fn hand_out(&mut self) -> Result<(), FrontierError> {
        self.keep_time()?;
        if self.draining {
            return Ok(());
        }
        self.fill_window()?;
        let now_ms = self.clock.now_ms();
        let mut budget = self.crawls.page_budget(&mut self.frontier)?;
        while budget > 0 {
            let Some(mut grant) = self.dispatch.next_grant(now_ms) else {
                break;
            };
            grant.tasks = grant
                .tasks
                .min(usize::try_from(budget).unwrap_or(usize::MAX));
            budget -= self.hand_out_site(&grant, now_ms)? as u64;
        }
        for (site, clock) in self.dispatch.take_idle() {
            self.frontier.return_site(site, &clock)?;
        }
        Ok(())
    }

    /// Sites that will be due soon enter the window, while it has room.
    fn fill_window(&mut self) -> Result<(), FrontierError> {
        let now_ms = self.clock.now_ms();
        let room = self
            .setup
            .config
            .window_sites
            .saturating_sub(self.dispatch.sites_in_window());
        let is_due = self
            .next_site_ms
            .is_some_and(|due_ms| due_ms - LOOKAHEAD_MS <= now_ms);
        if room == 0 || !is_due || self.dispatch.supervisor_count() == 0 {
            return Ok(());
        }
        for site in self.frontier.next_sites(now_ms + LOOKAHEAD_MS, room)? {
            self.dispatch.add_site(site);
        }
        self.next_site_ms = self.frontier.next_due_ms()?;
        Ok(())
    }

    fn hand_out_site(&mut self, grant: &Grant, now_ms: i64) -> Result<usize, FrontierError> {
        let batch = self.frontier.lease(grant.site, grant.tasks, now_ms)?;
        let leases: Vec<(u64, u32, usize)> = batch
            .tasks
            .iter()
            .map(|task| (task.task, task.attempt, task.url.len()))
            .collect();
        let priority = batch.tasks.last().map_or(0, |task| task.priority);
        self.dispatch
            .handed_out(grant, &leases, batch.left, priority);
        self.send_tasks(grant, batch.tasks)?;
        Ok(leases.len())
    }

    fn send_tasks(&mut self, grant: &Grant, leased: Vec<Leased>) -> Result<(), FrontierError> {
        let Some(peer) = self.dispatch.peer(&grant.supervisor).cloned() else {
            return Ok(());
        };
        let site = self
            .dispatch
            .site_name(grant.site)
            .unwrap_or_default()
            .to_owned();
        let mut tasks = Vec::with_capacity(leased.len());
        for task in leased {
            if self.dispatch.must_tell_crawl(&grant.supervisor, task.crawl) {
                let settings = self.crawls.settings(&mut self.frontier, task.crawl)?;
                self.write_to(&peer, &DispatcherToSupervisor::Crawl(settings));
            }
            tasks.push(Task {
                task: task.task,
                attempt: task.attempt,
                crawl: task.crawl,
                url: task.url,
                site: site.clone(),
                depth: task.depth,
                wait_ms: grant.wait_ms,
                parent: task.parent,
                records: task.records,
            });
        }
        if !tasks.is_empty() {
            self.write_to(&peer, &DispatcherToSupervisor::Tasks(tasks));
        }
        Ok(())
    }

    /// What time alone brings: heartbeats, lost supervisors, the state of crawls.
    fn keep_time(&mut self) -> Result<(), FrontierError> {
        let now = Instant::now();
        if now >= self.heartbeat_at {
            self.heartbeat_at = now + HEARTBEAT;
            let peers: Vec<Peer> = self.dispatch.peers().cloned().collect();
            for peer in peers {
                self.write_to(&peer, &DispatcherToSupervisor::Heartbeat);
            }
            self.remove_lost_supervisors()?;
        }
        if now >= self.crawls_at {
            self.crawls_at = now + CRAWLS_EVERY;
            self.write_crawls()?;
        }
        Ok(())
    }

    fn remove_lost_supervisors(&mut self) -> Result<(), FrontierError> {
        let longest = self.setup.longest_request_ms;
        for supervisor in self.dispatch.lost_supervisors(self.clock.now_ms(), longest) {
            tracing::error!(
                event = "supervisor_lost",
                supervisor,
                "a supervisor is lost, its tasks go to others"
            );
            let leases = self.dispatch.remove_supervisor(&supervisor);
            self.take_back(leases)?;
        }
        Ok(())
    }

    fn write_crawls(&mut self) -> Result<(), FrontierError> {
        for crawl in self
            .crawls
            .rows(&mut self.frontier, !self.draining, self.clock.now_ms())?
        {
            self.ledger.write(Entry::Crawl(Box::new(crawl)));
        }
        Ok(())
    }

    // Control.

    pub(crate) fn take_request(&mut self, peer: &Peer, frame: &[u8]) -> Result<(), FrontierError> {
        let answer = match control::read(frame) {
            Ok(Request::Drain { crawls }) => {
                self.drain_asked = Some((peer.clone(), crawls));
                self.drain();
                return Ok(());
            }
            Ok(request) => self.carry_out(request),
            Err(refusal) => Ok(refusal.answer()),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(FrontierError::UnknownCrawl(crawl)) => {
                Refusal::new("crawl", FrontierError::UnknownCrawl(crawl)).answer()
            }
            Err(FrontierError::Scope(error)) => Refusal::new("spec", error).answer(),
            Err(fault) => return Err(fault),
        };
        self.letters.push(Letter {
            socket: CONTROL,
            peer: peer.clone(),
            frame: answer.to_string().into_bytes(),
        });
        Ok(())
    }

    fn carry_out(&mut self, request: Request) -> Result<serde_json::Value, FrontierError> {
        match request {
            Request::OpenCrawl { spec } => self.open_crawl(&spec),
            Request::FeedSeeds {
                crawl,
                seeds,
                fed_lines,
            } => self.feed_seeds(crawl, &seeds, fed_lines),
            Request::EndOfSeeds { crawl } => {
                self.frontier.end_seeds(crawl)?;
                Ok(serde_json::json!({"accepted": 1}))
            }
            Request::CrawlStatus { crawls } => self.crawl_status(&crawls),
            Request::Drain { crawls } => self.crawl_status(&crawls),
        }
    }

    fn open_crawl(&mut self, spec: &CrawlSpec) -> Result<serde_json::Value, FrontierError> {
        let crawl = self.frontier.open_crawl(spec)?;
        self.dispatch.forget_crawl(crawl);
        self.take_up(crawl)?;
        self.write_crawls()?;
        let fed_lines = self.frontier.crawl_status(crawl)?.fed_lines;
        Ok(serde_json::json!({"crawl": crawl, "fed_lines": fed_lines}))
    }

    /// Goes on with a crawl from before our start, or begins with a new one.
    fn take_up(&mut self, crawl: CrawlKey) -> Result<(), FrontierError> {
        self.frontier.spec(crawl)?;
        if !self.crawls.open(crawl, self.clock.now_ms()) {
            return Ok(());
        }
        for page in self.frontier.unapplied(crawl)? {
            self.apply_later(crawl, page)?;
        }
        Ok(())
    }

    fn feed_seeds(
        &mut self,
        crawl: CrawlKey,
        seeds: &[SeedUrl],
        fed_lines: u64,
    ) -> Result<serde_json::Value, FrontierError> {
        let candidates: Vec<Candidate<'_>> = seeds
            .iter()
            .map(|seed| Candidate {
                url: &seed.url,
                depth: 0,
                parent: None,
                records: &seed.records,
            })
            .collect();
        let tally = self
            .frontier
            .feed(crawl, &candidates, self.clock.now_ms())?;
        self.frontier.set_fed(crawl, fed_lines)?;
        let answer = control::fed(&tally);
        self.take_tally(crawl, tally)?;
        Ok(answer)
    }

    fn crawl_status(&mut self, crawls: &[CrawlKey]) -> Result<serde_json::Value, FrontierError> {
        let mut total = CrawlStatus::default();
        let mut finished = true;
        let mut limit_reached = false;
        for crawl in crawls {
            // Its dispatcher may have been restarted when all was done but the application of pages.
            self.take_up(*crawl)?;
            let status = self.frontier.crawl_status(*crawl)?;
            finished &= self.crawls.is_finished(*crawl, &status);
            limit_reached |= self.crawls.is_limit_reached(&mut self.frontier, *crawl)?;
            total.add(&status);
        }
        let supervisors = self.dispatch.supervisor_count();
        Ok(control::status(
            &total,
            finished,
            limit_reached,
            supervisors,
        ))
    }

    // The end.

    /// Supervisors finish what they have begun and give back the rest.
    pub(crate) fn drain(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        tracing::info!(
            event = "draining",
            leased = self.dispatch.leases_out(),
            "draining"
        );
        self.dispatch.drain();
        let peers: Vec<Peer> = self.dispatch.peers().cloned().collect();
        for peer in peers {
            self.write_to(&peer, &DispatcherToSupervisor::Drain);
        }
        self.send_letters();
    }

    /// Everything is back and nobody is left.
    pub(crate) fn is_drained(&self) -> bool {
        self.draining && self.dispatch.leases_out() == 0 && self.dispatch.supervisor_count() == 0
    }

    /// Writes the last state of the crawls, and answers who waits for the end.
    pub(crate) fn close(mut self) {
        if let Some((peer, crawls)) = self.drain_asked.take() {
            match self.crawl_status(&crawls) {
                Ok(answer) => self.letters.push(Letter {
                    socket: CONTROL,
                    peer,
                    frame: answer.to_string().into_bytes(),
                }),
                Err(error) => {
                    tracing::error!(event = "no_last_counters", %error, "cannot tell the last counters")
                }
            }
            self.send_letters();
        }
        if let Err(error) = self.write_crawls() {
            tracing::warn!(event = "crawls_not_written", %error, "cannot write the state of the crawls");
        }
        self.ledger.finish();
    }
}
