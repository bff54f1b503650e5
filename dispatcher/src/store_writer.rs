//! The dispatcher's own writes to the store, on a separate thread (write-behind): states of crawls and of sites in
//! trouble, pages that killed their workers, and backfills (stored pages applied to further records). Between the
//! writes it drops data beyond the retention limits.
//!
//! While the store is unreachable, writes wait. Their number is bounded: only the latest state of each crawl waits;
//! pages that killed workers are few; backfills are bounded by the pages that records want; states of sites come in
//! batches, one at a time. After a crash the frontier yields them again: pending backfills, crashed pages, crawls
//! that have ended and states of sites are queued once more.

mod writing;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use webfill_followers::row_lists::ListChecker;
use webfill_followers::thread::wait_for_end;
use webfill_scheduler::effects::{CrawlWrite, StoreWrite};
use webfill_service::Fault;
use webfill_store::journal::FencedStates;
use webfill_store::{CrawlId, MappingRules, Store, StoreError};

pub use self::writing::WriteResult;
use self::writing::{Attempt, StoreAccess, retraction_result};
use crate::backends::Backends;
use crate::config::DispatcherSetup;
use crate::health::Health;
use crate::journal::GROUP;
use crate::retention::Retention;
use crate::tenure_gate::TenureGate;

/// An entry of the thread's queue.
enum QueuedWrite {
    /// A crawl, by its id. Its latest state is taken from [`LatestStates`] when it is written.
    Crawl(CrawlId),
    Other(StoreWrite),
}

/// The latest state of each crawl that waits in the queue.
type LatestStates = Arc<Mutex<HashMap<CrawlId, CrawlWrite>>>;

/// The handle of the thread that writes to the store.
pub struct StoreWriter {
    queue: mpsc::UnboundedSender<QueuedWrite>,
    states: LatestStates,
    store: Arc<dyn Store>,
    /// Whether any mapping has lists that show which of their rows are gone.
    says_gone: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl StoreWriter {
    /// Opens the store and starts the thread.
    pub fn start(
        setup: &DispatcherSetup,
        (health, known): (Health, Backends),
        (gate, tenure): (TenureGate, Option<u64>),
        on_written: impl Fn(WriteResult) + Send + 'static,
    ) -> Result<StoreWriter, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot start the store writer: {error}")))?;
        let opened = webfill_store::open(&setup.store, setup.cache.as_ref());
        let backends = runtime.block_on(opened).map_err(store_fault)?;
        let fence = match (&setup.journal, tenure) {
            (Some(journal), Some(epoch)) => {
                let connected = FencedStates::connect(&journal.store, GROUP, epoch);
                Some(runtime.block_on(connected).map_err(store_fault)?)
            }
            _ => None,
        };
        let store_access = StoreAccess {
            store: Arc::clone(&backends.store),
            fence,
            gate,
        };
        let rules = Arc::clone(&setup.mapping_rules);
        let says_gone = Arc::new(AtomicBool::new(rules.marks_missing_rows()));
        backends.store.set_mapping_rules(rules);
        let retention = Retention::new(setup.retention.clone());
        let (queue, queued) = mpsc::unbounded_channel();
        let states = LatestStates::default();
        let taken = Arc::clone(&states);
        let store = Arc::clone(&backends.store);
        let judges = Arc::clone(&says_gone);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || {
                let mut queue = WriteQueue {
                    queued,
                    states: taken,
                    retention,
                    lists: ListChecker::default(),
                    judges_lists: judges,
                    check_at: Instant::now() + CHECK_EVERY,
                };
                runtime.spawn(
                    known
                        .clone()
                        .check_forever(Arc::clone(&backends.store), backends.cache),
                );
                let writes = run_writer(&store_access, &mut queue, (health, known), on_written);
                runtime.block_on(writes)
            })
            .map_err(|error| Fault::error(format!("cannot start the store writer: {error}")))?;
        Ok(StoreWriter {
            queue,
            states,
            store,
            says_gone,
            thread,
        })
    }

    /// Sets the rules that mappings follow to fill records from now on.
    pub fn set_mapping_rules(&self, rules: Arc<dyn MappingRules>) {
        self.says_gone
            .store(rules.marks_missing_rows(), Ordering::Relaxed);
        self.store.set_mapping_rules(rules);
    }

    /// Writes everything that is queued, and ends the thread. It waits no longer than `until`; without `until`, it also
    /// waits for a store that is away.
    pub fn finish(self, until: Option<std::time::Instant>) {
        drop(self.queue);
        if !wait_for_end(self.thread, until) {
            tracing::error!(
                event = "store_writer_panicked",
                "the store writer thread panicked"
            );
        }
    }

    /// Whether more than [`BEHIND`] states of crawls wait, so that further ones should be written
    /// later.
    pub fn is_behind(&self) -> bool {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.len() > BEHIND
    }

    pub fn enqueue(&self, entry: StoreWrite) {
        let queued = match entry {
            StoreWrite::Crawl(write) => {
                let id = write.crawl.id.clone();
                let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
                if states.insert(id.clone(), write).is_some() {
                    return;
                }
                QueuedWrite::Crawl(id)
            }
            other => QueuedWrite::Other(other),
        };
        // An error means that the thread has ended after it reported a fault.
        let _ = self.queue.send(queued);
    }
}

/// If more states of crawls than this wait, the store cannot keep up.
const BEHIND: usize = 1_000;

/// How often the store is checked while there are no writes.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The wait before an unreachable store is retried.
const RETRY: Duration = Duration::from_millis(500);

async fn run_writer(
    access: &StoreAccess,
    queue: &mut WriteQueue,
    (health, known): (Health, Backends),
    on_written: impl Fn(WriteResult),
) {
    let mut has_begun = access.fence.is_none();
    while let Some(entry) = queue.next(access, &health, &on_written).await {
        loop {
            access.gate.wait_until_open().await;
            let began = Instant::now();
            let answer = match has_begun {
                true => access.write(&entry).await,
                false => access.begin_and_write(&entry).await,
            };
            has_begun |= answer.is_ok();
            let is_away = answer.as_ref().is_err_and(StoreError::is_retry);
            health.record_store_answer(is_away, began.elapsed());
            known.set_store_away(is_away);
            queue.check_at = Instant::now() + CHECK_EVERY;
            match answer {
                Ok(Attempt::Replaced) => return on_written(WriteResult::Failed(replaced_fault())),
                Ok(Attempt::Done(Some(written))) => on_written(written),
                Ok(Attempt::Done(None)) => {
                    if let Some(note) = queue.queue_lists_of_written(&entry) {
                        on_written(WriteResult::CrawlSaved { note });
                    }
                }
                Err(error) if error.is_retry() => {
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
                Err(error) if error.is_entry_refusal() => {
                    log_refused(&entry, &error);
                    // A write that the store refuses is reported as written, so that later writes are not held up.
                    match &entry {
                        StoreWrite::SiteStates(states) => {
                            on_written(WriteResult::SiteStatesWritten { last: states.last });
                        }
                        StoreWrite::TakeBack(write) => {
                            on_written(retraction_result(write, Vec::new()))
                        }
                        _ => {}
                    }
                }
                Err(error) => return on_written(WriteResult::Failed(store_fault(error))),
            }
            break;
        }
    }
}

/// Logs a write that the store refuses permanently.
fn log_refused(write: &StoreWrite, error: &StoreError) {
    let (task, crawl_id, url) = match write {
        StoreWrite::Crawl(write) => (None, Some(&write.crawl.id.crawl_id), None),
        StoreWrite::Page(page) => (None, Some(&page.crawl_id), Some(page.url.as_str())),
        StoreWrite::SiteStates(_) => (None, None, None),
        StoreWrite::TakeBack(write) => {
            let page = &write.save.page;
            let (crawl_id, url) = (Some(&page.crawl_id), Some(page.url.as_str()));
            (Some(write.task), crawl_id, url)
        }
        StoreWrite::Backfill(backfill) => {
            let page = &backfill.page;
            (
                Some(page.task),
                Some(&backfill.crawl_id),
                Some(page.url.as_str()),
            )
        }
    };
    tracing::error!(
        event = "entry_refused",
        task,
        crawl_id,
        url,
        %error,
        "the store rejected an entry"
    );
}

/// The thread's queue of writes, and its other work.
struct WriteQueue {
    queued: mpsc::UnboundedReceiver<QueuedWrite>,
    states: LatestStates,
    retention: Retention,
    lists: ListChecker,
    judges_lists: Arc<AtomicBool>,
    /// When the store is checked next, unless something is written before.
    check_at: Instant,
}

impl WriteQueue {
    /// Waits for the next write; `None` at the end. Meanwhile drops old data, judges the lists of finished crawls,
    /// and checks whether the store answers.
    async fn next(
        &mut self,
        StoreAccess { store, gate, .. }: &StoreAccess,
        health: &Health,
        on_written: &impl Fn(WriteResult),
    ) -> Option<StoreWrite> {
        loop {
            // A list is judged as a whole; a write that arrives meanwhile does not interrupt it.
            let is_idle = self.queued.is_empty() && !self.queued.is_closed();
            if self.lists.has_work() && is_idle && gate.is_open() {
                if let Some(note) = self.judge_next_list(store).await {
                    on_written(WriteResult::CrawlSaved { note });
                }
                continue;
            }
            let queued = tokio::select! {
                queued = self.queued.recv() => queued?,
                () = gate.wait_until_open(), if self.lists.has_work() && is_idle => continue,
                () = wait_until_retention_is_due(&self.retention, gate) => {
                    self.retention.drop_old_data(&**store).await;
                    continue;
                }
                () = tokio::time::sleep_until(self.check_at) => {
                    self.check_store(&**store, health).await;
                    continue;
                }
            };
            if let Some(entry) = take_latest(queued, &self.states) {
                return Some(entry);
            }
        }
    }

    /// Queues the lists of a crawl that was just written. Returns the frontier's note of the crawl if it has no lists
    /// to judge.
    fn queue_lists_of_written(&mut self, entry: &StoreWrite) -> Option<i64> {
        let StoreWrite::Crawl(CrawlWrite { crawl, note }) = entry else {
            return None;
        };
        match self.judges_lists.load(Ordering::Relaxed) {
            true => self.lists.queue_unless_checked(crawl, *note),
            false => *note,
        }
    }

    /// Judges the next list. Returns the frontier's note of its crawl if that was its last list.
    async fn judge_next_list(&mut self, store: &Arc<dyn Store>) -> Option<i64> {
        match self.lists.judge_next_list(store).await {
            Ok(note) => note,
            Err(error) => {
                tracing::warn!(event = "lists_not_judged", %error, "the lists of a crawl are not judged");
                tokio::time::sleep(RETRY).await;
                None
            }
        }
    }

    /// Checks the store by reading a row that does not exist, which takes one look-up in an index.
    async fn check_store(&mut self, store: &dyn Store, health: &Health) {
        let nobody = CrawlId {
            app_id: String::new(),
            crawl_id: String::new(),
        };
        let began = Instant::now();
        let answer = store.get_crawl(&nobody).await;
        let is_away = answer.as_ref().is_err_and(StoreError::is_retry);
        health.record_store_answer(is_away, began.elapsed());
        self.check_at = Instant::now() + CHECK_EVERY;
    }
}

async fn wait_until_retention_is_due(retention: &Retention, gate: &TenureGate) {
    retention.wait_until_due().await;
    gate.wait_until_open().await;
}

fn take_latest(queued: QueuedWrite, states: &LatestStates) -> Option<StoreWrite> {
    match queued {
        QueuedWrite::Crawl(id) => {
            let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
            states.remove(&id).map(StoreWrite::Crawl)
        }
        QueuedWrite::Other(entry) => Some(entry),
    }
}

fn replaced_fault() -> Fault {
    Fault::error(
        "another dispatcher has taken over and writes to the store: this one ends, and stands by when it is started \
         again",
    )
}

fn store_fault(error: StoreError) -> Fault {
    if error.is_fatal() {
        Fault::fatal(error)
    } else {
        Fault::error(error)
    }
}
