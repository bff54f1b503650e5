//! The worker process: starts its parts, handles the supervisor's messages, and shuts down in order.
//!
//! - The socket thread ([`webfill_wire::socket`]) receives the supervisor's messages.
//! - One *runner* per site, a task on the main thread, takes the site's tasks through the [`crate::journey`] one after
//!   another.
//! - The extraction thread ([`crate::extract`]) reads the fetched pages.
//! - The saver ([`crate::save`]) stores the results and reports them.
//!
//! On `Drain`, queued tasks are given back and running ones finish. Then the channels are closed in the order that
//! pages pass them, so no page in them is lost. A worker that crashes loses only what is in memory; its supervisor
//! gives its tasks back to the dispatcher.

mod supervisor_messages;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::MissedTickBehavior;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{Backends, Cache, Store, StoreError};
use webfill_wire::socket::{Pattern, SocketName, SocketSpec, Sockets};

use self::supervisor_messages::Worker;
use crate::archive::{self, Archive};
use crate::browser::Browser;
use crate::client;
use crate::config::{BrowserUse, WorkerSetup, outcomes_endpoint, tasks_endpoint};
use crate::counts::Counts;
use crate::crash_marker::{self, CrashMarker};
use crate::documents::Documents;
use crate::extract::{self, ExtractionMemory, PageTimer, Work};
use crate::fetch::Fetcher;
use crate::fetch_permits::FetchPermits;
use crate::gate::{Gate, longest_request};
use crate::journey::{Interrupt, Journey, Turns};
use crate::memory::{BudgetParts, Memory, MemoryPools};
use crate::resolve::Resolver;
use crate::robots::RobotsFiles;
use crate::sampler::Sampler;
use crate::save::Saver;
use crate::scripts::ScriptedPages;
use crate::shared_cache::SharedCache;
use crate::shared_clock::SharedClock;
use crate::site_headers::SiteHeaders;
use crate::sites::Sites;
use crate::stored_pages::StoredPages;
use crate::supervisor_reporter::SupervisorReporter;
use crate::task_result::TaskResult;

const TASKS: SocketName = 1;
const OUTCOMES: SocketName = 2;

/// Capacities of the channels to the extraction thread and to the saver.
const MAX_WAITING_PAGES: usize = 16;
const MAX_WAITING_RESULTS: usize = 256;

/// How often a heartbeat is sent to the supervisor.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// After this many heartbeats without a task, a worker returns the memory of its last tasks, or of its start.
const IDLE_BEATS: u64 = 3;

/// How often changed site clocks (the times of the sites' next requests) are written to the shared cache.
const CLOCKS_INTERVAL: Duration = Duration::from_secs(2);

/// Runs a worker until it has drained.
pub fn run(setup: WorkerSetup) -> Result<ExitStatus, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(16)
        .build()
        .map_err(|error| Fault::error(format!("cannot start the worker: {error}")))?;
    LocalSet::new().block_on(&runtime, run_worker(setup))
}

async fn run_worker(setup: WorkerSetup) -> Result<ExitStatus, Fault> {
    let backends = webfill_store::open(&setup.store, setup.cache.as_ref())
        .await
        .map_err(store_fault)?;
    let (inbox, arrived) = mpsc::unbounded_channel();
    let sockets = Sockets::start(socket_specs(&setup), move |frame| {
        // The channel is unbounded. The credit that this worker grants bounds the messages that the supervisor sends.
        let _ = inbox.send(frame.frame);
    })
    .map_err(Fault::error)?;
    let reporter = SupervisorReporter::new(
        sockets.outbox(),
        OUTCOMES,
        (setup.worker_index, setup.incarnation),
    );

    let counts = Counts::default();
    let (extraction, pages) = mpsc::channel(MAX_WAITING_PAGES);
    let (results, ended) = mpsc::channel(MAX_WAITING_RESULTS);
    let parts = BudgetParts::of(setup.worker.memory_mib);
    let results_memory = Memory::new(parts.results);
    let page_timer = PageTimer::new();
    let page_deadline = Duration::from_secs_f64(setup.worker.page_deadline);
    let memory = ExtractionMemory {
        page: parts.page,
        results: results_memory.clone(),
        kept_body: setup.bodies.max_body_bytes(),
    };
    let extractor = start_extraction(&setup, (pages, results.clone()), &page_timer, memory)?;
    let (broken, breaks) = mpsc::channel(1);
    let saver = start_saver(&setup, &backends, ended, (&reporter, &counts));
    let about = archive::warcinfo_fields(&setup.politeness.user_agent());
    let (archive, archiving) = Archive::start(&setup.archive, about, broken.clone())?.unzip();
    let journey = Rc::new(build_journey(
        &setup,
        (
            Arc::clone(&backends.store),
            Arc::new(SharedCache::new(backends.cache, setup.workers)),
        ),
        (extraction, results),
        broken,
        archive,
        (&reporter, &counts),
        MemoryPools {
            bodies: Memory::new(parts.bodies),
            held: Memory::new(parts.held),
            results: results_memory,
        },
    )?);
    reporter.report_ready();

    let mut worker = Worker {
        journey: Rc::clone(&journey),
        store: backends.store,
        reporter: reporter.clone(),
        runners: Rc::default(),
        runner_ended: Rc::default(),
    };
    let mut inputs = Inputs {
        arrived,
        breaks,
        saver,
        page_timer,
        longest_page: page_deadline * 3,
        release_memory: setup.release_memory,
    };
    worker.run_until_drained(&mut inputs, &counts).await?;
    journey.turns.write_clocks().await;
    // Closing the channels, in the order that pages pass them, ends the threads behind them.
    drop((worker, journey));
    let saved = inputs.saver.await;
    report_counts(&counts, &reporter);
    if let Ok(Ok(())) = saved {
        let _ = extractor.join();
        // Wait for the archive's thread, which completes its last file.
        let _ = archiving.map(JoinHandle::join);
        if let Ok(fault) = inputs.breaks.try_recv() {
            return Err(fault);
        }
        drop(sockets);
        return Ok(ExitStatus::Done);
    }
    Err(saver_fault(saved))
}

/// The events that a worker's loop waits for.
struct Inputs {
    arrived: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Faults of the worker's threads. Each of them ends the worker.
    breaks: mpsc::Receiver<Fault>,
    saver: tokio::task::JoinHandle<Result<(), StoreError>>,
    page_timer: PageTimer,
    longest_page: Duration,
    release_memory: fn(),
}

impl Worker {
    async fn run_until_drained(
        &mut self,
        inputs: &mut Inputs,
        counts: &Counts,
    ) -> Result<(), Fault> {
        let mut clocks = tokio::time::interval(CLOCKS_INTERVAL);
        clocks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The clocks are written by a task of their own, because a call to an unavailable cache blocks until its
        // timeout.
        let mut writing_clocks = tokio::task::spawn_local(async {});
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        let mut idle_beats: u64 = 0;
        while !self.is_drained() {
            tokio::select! {
                frame = inputs.arrived.recv() => match frame {
                    Some(frame) => self.handle_message(&frame).await?,
                    None => break,
                },
                () = self.runner_ended.notified() => {}
                _ = clocks.tick(), if writing_clocks.is_finished() => {
                    let journey = Rc::clone(&self.journey);
                    writing_clocks =
                        tokio::task::spawn_local(async move { journey.turns.write_clocks().await });
                }
                // No heartbeat is sent while a page takes longer than its deadline, so that the supervisor kills this
                // process.
                _ = heartbeat.tick() => if inputs.page_timer.time_on_page() < inputs.longest_page {
                    self.reporter.send_heartbeat();
                    report_counts(counts, &self.reporter);
                    idle_beats = if self.runners.get() == 0 { idle_beats + 1 } else { 0 };
                    if idle_beats == IDLE_BEATS {
                        (inputs.release_memory)();
                    }
                },
                Some(fault) = inputs.breaks.recv() => return Err(fault),
                ended = &mut inputs.saver => return Err(saver_fault(ended)),
            }
        }
        // The task holds a reference to the shared state of all runners, which must be dropped at the end.
        let _ = writing_clocks.await;
        Ok(())
    }
}

fn start_extraction(
    setup: &WorkerSetup,
    (pages, results): (mpsc::Receiver<Work>, mpsc::Sender<TaskResult>),
    page_timer: &PageTimer,
    memory: ExtractionMemory,
) -> Result<JoinHandle<()>, Fault> {
    let marker = CrashMarker::create(&crash_marker::marker_path(
        &setup.sockets,
        setup.worker_index,
    ))
    .map_err(|error| Fault::error(format!("cannot create the crash marker: {error}")))?;
    extract::start(
        pages,
        results,
        marker,
        page_timer.clone(),
        Duration::from_secs_f64(setup.worker.page_deadline),
        memory,
        setup.keeps_samples.then(Sampler::default),
    )
    .map_err(|error| Fault::error(format!("cannot start the extraction thread: {error}")))
}

/// Saves results, and reports them to the supervisor as done.
fn start_saver(
    setup: &WorkerSetup,
    backends: &Backends,
    ended: mpsc::Receiver<TaskResult>,
    (reporter, counts): (&SupervisorReporter, &Counts),
) -> tokio::task::JoinHandle<Result<(), StoreError>> {
    let saver = Saver {
        store: Arc::clone(&backends.store),
        bodies: Arc::clone(&backends.bodies),
        max_bodies_bytes: setup.bodies.max_bytes(),
        dropped_logged_at: Cell::new(None),
        pace: backends.store.save_pace(setup.workers),
        worker: worker_name(setup),
        counts: counts.clone(),
    };
    let reporter = reporter.clone();
    tokio::task::spawn_local(
        async move { saver.run(ended, |done| reporter.report_done(done)).await },
    )
}

fn report_counts(counts: &Counts, reporter: &SupervisorReporter) {
    if let Some(news) = counts.take_report() {
        reporter.report_counts(news);
    }
}

/// The worker's name in the cache and the store.
fn worker_name(setup: &WorkerSetup) -> String {
    format!("{}/{}", setup.supervisor, setup.worker_index)
}

fn build_journey(
    setup: &WorkerSetup,
    (store, cache): (Arc<dyn Store>, Arc<dyn Cache>),
    (extraction, results): (mpsc::Sender<Work>, mpsc::Sender<TaskResult>),
    broken: mpsc::Sender<Fault>,
    archive: Option<Archive>,
    (reporter, counts): (&SupervisorReporter, &Counts),
    room: MemoryPools,
) -> Result<Journey, Fault> {
    let politeness = Rc::new(setup.politeness.clone());
    let sites = Rc::new(RefCell::new(Sites::default()));
    let interrupt = Rc::new(Interrupt::default());
    let resolver = Resolver::new(&setup.fetch, &setup.politeness).map_err(Fault::usage)?;
    let clients = client::build(&setup.fetch, &setup.politeness, &resolver)?;
    let (reporter, waiting_reporter) = (reporter.clone(), reporter.clone());
    let reservations = SharedClock::new(Arc::clone(&cache), longest_request(&setup.fetch));
    let browser = (setup.browser_use != BrowserUse::None).then(|| {
        let folder = setup
            .sockets
            .join(format!("browser-{}", setup.worker_index));
        Browser::new(setup.browser.clone(), folder, setup.fetch.max_body_bytes)
    });
    let documents = Documents::new(setup.documents.clone());
    let headers = SiteHeaders::parse(&setup.fetch.headers).map_err(Fault::usage)?;
    let mut fetcher =
        Fetcher::new(clients, resolver.clone(), setup.fetch.clone()).with_headers(headers.clone());
    if documents.is_some() {
        fetcher = fetcher.with_documents();
    }
    if archive.is_some() {
        fetcher = fetcher.with_archive(setup.politeness.user_agent());
    }
    let turns = Turns {
        worker: worker_name(setup),
        politeness: Rc::clone(&politeness),
        sites: Rc::clone(&sites),
        cache: Arc::clone(&cache),
        reservations,
        resolver: resolver.clone(),
        fetches: FetchPermits::new(setup.worker.concurrency),
        bodies: room.bodies,
        interrupt: Rc::clone(&interrupt),
        report_waiting: Box::new(move |task| waiting_reporter.report_waiting(task)),
    };
    Ok(Journey {
        politeness,
        turns,
        interrupt,
        gate: Gate::new(fetcher, &setup.fetch),
        headers,
        archive,
        resolver,
        names_given_back: RefCell::default(),
        cache,
        stored_pages: StoredPages::start(Arc::clone(&store)),
        rechecks: RefCell::default(),
        store,
        reading_stored: tokio::sync::Mutex::default(),
        mappings: RefCell::default(),
        sites,
        robots: RefCell::new(RobotsFiles::default()),
        crawls: RefCell::new(HashMap::new()),
        repeated_pages: RefCell::default(),
        counts: counts.clone(),
        kept_body_bytes: setup.bodies.max_body_bytes(),
        documents,
        browser,
        scripted_pages: RefCell::new(ScriptedPages::new(&setup.browser)),
        needs_browser: setup.browser_use == BrowserUse::Lane,
        broken,
        held: room.held,
        results_memory: room.results,
        extraction,
        results,
        give_back: Box::new(move |returned| reporter.report_returned(returned)),
    })
}

fn socket_specs(setup: &WorkerSetup) -> Vec<SocketSpec> {
    let tasks = tasks_endpoint(&setup.sockets, setup.worker_index, setup.incarnation);
    let outcomes = outcomes_endpoint(&setup.sockets);
    vec![
        SocketSpec::connect(TASKS, Pattern::Pull, tasks),
        SocketSpec::connect(OUTCOMES, Pattern::Push, outcomes),
    ]
}

fn store_fault(error: StoreError) -> Fault {
    if error.is_fatal() {
        Fault::fatal(error)
    } else {
        Fault::error(error)
    }
}

fn saver_fault(ended: Result<Result<(), StoreError>, tokio::task::JoinError>) -> Fault {
    match ended {
        Ok(Err(error)) => store_fault(error),
        Ok(Ok(())) => Fault::error("the saver ended early"),
        Err(panic) => Fault::error(format!("the saver failed: {panic}")),
    }
}
