//! The worker process: sockets, runners, extraction thread, saver, and their orderly end.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;
use tokio::time::MissedTickBehavior;
use webfill_mapping::{MappingSet, Source};
use webfill_startup::{ExitStatus, Fault};
use webfill_store::{Cache, MappingOrder, Store, StoreError};
use webfill_wire::socket::{Outbox, Pattern, SocketName, SocketSpec, Sockets};
use webfill_wire::{
    CrawlSettings, MappingSource, RecallScope, ReturnCause, SupervisorToWorker, Task, TaskDone,
    TaskReturned, WorkerToSupervisor, codec,
};

use crate::browser::Browser;
use crate::client;
use crate::config::{WorkerSetup, outcomes_endpoint, tasks_endpoint};
use crate::extract::{self, Pulse, Work};
use crate::fetch::Fetcher;
use crate::gate::{Gate, longest_request};
use crate::journey::Journey;
use crate::kept::KeptRoom;
use crate::now::Now;
use crate::politeness::ClockOwner;
use crate::resolve::Resolver;
use crate::robots::RobotsFiles;
use crate::save::Saver;
use crate::shared_cache::SharedCache;
use crate::shared_clock::SharedClock;
use crate::sites::Sites;
use crate::slots::Slots;
use crate::suspect::{self, Suspect};

const TASKS: SocketName = 1;
const OUTCOMES: SocketName = 2;

/// Bodies that wait for the extraction, and endings that wait for the saver.
const WAITING_PAGES: usize = 16;
const WAITING_ENDINGS: usize = 256;

/// How often the supervisor hears from us at least.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// What a recall finds waiting is given back by then, unless the cache is slow.
const SETTLED_WITHIN: Duration = Duration::from_millis(100);

/// How often clocks go to the shared cache.
const CLOCKS_EVERY: Duration = Duration::from_secs(2);

/// Runs a worker until it is told to drain.
pub fn run(setup: WorkerSetup) -> Result<ExitStatus, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(16)
        .build()
        .map_err(|error| Fault::error(format!("cannot start the worker: {error}")))?;
    LocalSet::new().block_on(&runtime, work(setup))
}

async fn work(setup: WorkerSetup) -> Result<ExitStatus, Fault> {
    let backends = webfill_store::open(&setup.store, setup.cache.as_ref())
        .await
        .map_err(store_fault)?;
    let (inbox, mut arrived) = mpsc::unbounded_channel();
    let sockets = Sockets::start(socket_specs(&setup), move |frame| {
        // Unbounded, because the supervisor never sends more than it was granted credit for.
        let _ = inbox.send(frame.frame);
    })
    .map_err(Fault::error)?;
    let voice = Voice {
        outbox: sockets.outbox(),
        slot: setup.slot,
        incarnation: setup.incarnation,
    };

    let (extraction, pages) = mpsc::channel(WAITING_PAGES);
    let (endings, ended) = mpsc::channel(WAITING_ENDINGS);
    let pulse = Pulse::new();
    let page_deadline = Duration::from_secs_f64(setup.worker.page_deadline);
    let extractor = extract::start(
        pages,
        endings.clone(),
        Suspect::create(&suspect::path(&setup.sockets, setup.slot))
            .map_err(|error| Fault::error(format!("cannot name suspects: {error}")))?,
        pulse.clone(),
        page_deadline,
    )
    .map_err(|error| Fault::error(format!("cannot start the extraction thread: {error}")))?;
    let (broken, mut breaks) = mpsc::channel(1);
    let saver = {
        let saver = Saver {
            store: Arc::clone(&backends.store),
            pace: backends.store.save_pace(setup.workers),
            worker: format!("{}/{}", setup.supervisor, setup.slot),
        };
        let voice = voice.clone();
        tokio::task::spawn_local(async move { saver.run(ended, |done| voice.done(done)).await })
    };
    let journey = Rc::new(journey(
        &setup,
        Arc::new(SharedCache::new(backends.cache, setup.workers)),
        extraction,
        endings,
        broken,
        &voice,
    )?);
    voice.ready();

    let mut worker = Worker {
        journey: Rc::clone(&journey),
        store: backends.store,
        voice: voice.clone(),
        runners: Rc::default(),
        runner_ended: Rc::default(),
    };
    let mut clocks = tokio::time::interval(CLOCKS_EVERY);
    clocks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Beside the loop, for a cache that is away takes its time to say so.
    let mut keeping_clocks = tokio::task::spawn_local(async {});
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    let mut saver = saver;
    while !worker.is_drained() {
        tokio::select! {
            frame = arrived.recv() => match frame {
                Some(frame) => worker.take(&frame).await?,
                None => break,
            },
            () = worker.runner_ended.notified() => {}
            _ = clocks.tick(), if keeping_clocks.is_finished() => {
                let keeping = keep_clocks(Rc::clone(&journey), setup.supervisor.clone());
                keeping_clocks = tokio::task::spawn_local(keeping);
            }
            // A page that is stuck beyond its own deadline is ended by the supervisor, who hears
            // nothing any more.
            _ = heartbeat.tick() => if pulse.on_page_for() < page_deadline * 3 {
                voice.heartbeat();
            },
            Some(fault) = breaks.recv() => return Err(fault),
            ended = &mut saver => return Err(saver_fault(ended)),
        }
    }
    // It lets go of the journey.
    let _ = keeping_clocks.await;
    keep_clocks(Rc::clone(&journey), setup.supervisor.clone()).await;
    // Closing the channels, in the order of the journey, ends the threads behind them.
    drop((worker, journey));
    let saved = (&mut saver).await;
    if let Ok(Ok(())) = saved {
        let _ = extractor.join();
        drop(sockets);
        return Ok(ExitStatus::Done);
    }
    Err(saver_fault(saved))
}

fn journey(
    setup: &WorkerSetup,
    cache: Arc<dyn Cache>,
    extraction: mpsc::Sender<Work>,
    endings: mpsc::Sender<crate::ending::Ending>,
    broken: mpsc::Sender<Fault>,
    voice: &Voice,
) -> Result<Journey, Fault> {
    let resolver = Resolver::new(&setup.fetch, &setup.politeness).map_err(Fault::usage)?;
    let clients = client::build(&setup.fetch, &setup.politeness, &resolver)?;
    let voice = voice.clone();
    let shared_clock = match setup.politeness.clock {
        ClockOwner::Owner => None,
        ClockOwner::Shared => Some(SharedClock::new(
            Arc::clone(&cache),
            longest_request(&setup.fetch),
        )),
    };
    let browser = setup.browser.clone().map(|config| {
        let folder = setup.sockets.join(format!("browser-{}", setup.slot));
        Browser::new(config, folder, setup.fetch.max_body_bytes)
    });
    Ok(Journey {
        politeness: setup.politeness.clone(),
        gate: Gate::new(
            Fetcher::new(clients, resolver.clone(), setup.fetch.clone()),
            &setup.fetch,
        ),
        resolver,
        cache,
        sites: RefCell::new(Sites::default()),
        shared_clock,
        robots: RefCell::new(RobotsFiles::default()),
        crawls: RefCell::new(HashMap::new()),
        slots: Slots::new(setup.worker.concurrency),
        browser,
        broken,
        kept_room: KeptRoom::new(),
        extraction,
        endings,
        draining: Cell::new(false),
        called_back: Notify::new(),
        give_back: Box::new(move |returned| voice.returned(returned)),
    })
}

fn socket_specs(setup: &WorkerSetup) -> Vec<SocketSpec> {
    let tasks = tasks_endpoint(&setup.sockets, setup.slot, setup.incarnation);
    let outcomes = outcomes_endpoint(&setup.sockets);
    vec![
        SocketSpec::connect(TASKS, Pattern::Pull, tasks),
        SocketSpec::connect(OUTCOMES, Pattern::Push, outcomes),
    ]
}

/// Takes the supervisor's messages.
struct Worker {
    journey: Rc<Journey>,
    store: Arc<dyn Store>,
    voice: Voice,
    /// Runners at work.
    runners: Rc<Cell<usize>>,
    runner_ended: Rc<Notify>,
}

impl Worker {
    async fn take(&mut self, frame: &[u8]) -> Result<(), Fault> {
        match codec::decode(frame) {
            Ok(SupervisorToWorker::Mappings(sources)) => self.use_mappings(sources).await?,
            Ok(SupervisorToWorker::Crawl(crawl)) => self.learn_crawl(crawl),
            Ok(SupervisorToWorker::ForgetCrawls) => self.forget_crawls(),
            Ok(SupervisorToWorker::Tasks(tasks)) => {
                for task in tasks {
                    self.start(task);
                }
            }
            Ok(SupervisorToWorker::LeaseUntil { boot_ms }) => {
                self.journey.gate.open_until(boot_ms);
            }
            Ok(SupervisorToWorker::Inherited { sites }) => self.inherit(sites),
            Ok(SupervisorToWorker::Recall { recall, scope }) => {
                self.journey.gate.recall(&scope);
                if let Some(site) = scope.site.as_deref().filter(|_| scope.forget) {
                    self.journey.sites.borrow_mut().forget_back_off(site);
                }
                self.voice.returned(self.call_back(&scope));
                self.confirm(recall, scope);
            }
            Ok(SupervisorToWorker::Drain) => {
                self.journey.draining.set(true);
                let returned = self.call_back(&RecallScope::default());
                self.voice.returned(returned);
            }
            Err(error) => {
                tracing::error!(event = "unreadable_message", %error, "a message of the supervisor was dropped");
            }
        }
        Ok(())
    }

    async fn use_mappings(&self, sources: Vec<MappingSource>) -> Result<(), Fault> {
        let sources = sources.into_iter().map(|source| Source {
            name: source.name,
            text: source.text,
        });
        let set = MappingSet::from_sources(sources.collect())
            .map_err(|faults| Fault::error(format!("the dispatcher's mappings: {faults}")))?;
        let order = set.names().map(str::to_owned).collect();
        self.store.set_mapping_order(MappingOrder(order));
        let _ = self
            .journey
            .extraction
            .send(Work::Mappings(Arc::new(set)))
            .await;
        Ok(())
    }

    fn learn_crawl(&self, crawl: CrawlSettings) {
        let mut crawls = self.journey.crawls.borrow_mut();
        crawls.insert(crawl.key, Arc::new(crawl));
    }

    /// Those of tasks that wait are needed still; a task that has begun holds its own.
    fn forget_crawls(&self) {
        let needed = self.journey.sites.borrow().queued_crawls();
        let mut crawls = self.journey.crawls.borrow_mut();
        crawls.retain(|key, _| needed.contains(key));
    }

    fn start(&self, task: Task) {
        let journey = Rc::clone(&self.journey);
        let site = task.site.clone();
        let default_delay = journey.politeness.delay();
        if !journey
            .sites
            .borrow_mut()
            .add(task, default_delay, Now::read())
        {
            return;
        }
        let runners = Rc::clone(&self.runners);
        let ended = Rc::clone(&self.runner_ended);
        runners.set(runners.get() + 1);
        tokio::task::spawn_local(async move {
            journey.run_site(site).await;
            runners.set(runners.get() - 1);
            ended.notify_one();
        });
    }

    fn inherit(&self, sites: Vec<String>) {
        let default_delay = self.journey.politeness.delay();
        self.journey
            .sites
            .borrow_mut()
            .inherit(sites, default_delay, Now::read());
    }

    /// Says that a recall is carried out. Nothing of it can start any more, but what was about to is
    /// given back first, if that is soon: so whoever counts what came back counts right.
    fn confirm(&self, recall: u64, scope: RecallScope) {
        let (journey, voice) = (Rc::clone(&self.journey), self.voice.clone());
        tokio::task::spawn_local(async move {
            let patient_until = Instant::now() + SETTLED_WITHIN;
            while !journey.gate.is_settled(&scope) && Instant::now() < patient_until {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            voice.recalled(recall);
        });
    }

    /// What has not begun, to be given back; what has begun comes to its end.
    fn call_back(&self, scope: &RecallScope) -> Vec<TaskReturned> {
        self.journey.called_back.notify_waiters();
        let queued = self.journey.sites.borrow_mut().take_queued(scope);
        let returned = queued.iter().map(|task| TaskReturned {
            task: task.task,
            delivery: task.delivery,
            cause: ReturnCause::Unstarted,
            clock: None,
        });
        returned.collect()
    }

    fn is_drained(&self) -> bool {
        self.journey.draining.get() && self.runners.get() == 0
    }
}

/// Writes the clocks that moved to the cache; those that it does not take are written the next time.
async fn keep_clocks(journey: Rc<Journey>, owner: String) {
    let moved = journey.sites.borrow_mut().moved_clocks(&owner, Now::read());
    if moved.is_empty() {
        return;
    }
    if journey.cache.put_sites(moved.clone()).await.is_err() {
        journey.sites.borrow_mut().write_again(moved);
    }
}

/// Talks to the supervisor.
#[derive(Clone)]
struct Voice {
    outbox: Outbox,
    slot: u16,
    incarnation: u32,
}

impl Voice {
    fn ready(&self) {
        self.say(WorkerToSupervisor {
            ready: true,
            ..self.nothing()
        });
    }

    fn heartbeat(&self) {
        self.say(self.nothing());
    }

    fn done(&self, done: Vec<TaskDone>) {
        self.say(WorkerToSupervisor {
            done,
            ..self.nothing()
        });
    }

    fn returned(&self, returned: Vec<TaskReturned>) {
        if !returned.is_empty() {
            self.say(WorkerToSupervisor {
                returned,
                ..self.nothing()
            });
        }
    }

    /// A recall is carried out.
    fn recalled(&self, recall: u64) {
        self.say(WorkerToSupervisor {
            recalled: vec![recall],
            ..self.nothing()
        });
    }

    fn nothing(&self) -> WorkerToSupervisor {
        WorkerToSupervisor {
            slot: self.slot,
            incarnation: self.incarnation,
            done: Vec::new(),
            returned: Vec::new(),
            recalled: Vec::new(),
            ready: false,
        }
    }

    fn say(&self, message: WorkerToSupervisor) {
        self.outbox.send(OUTCOMES, codec::encode(&message));
    }
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
