//! The dispatcher's metrics for Prometheus. The loop publishes its values once a second ([`Metrics::publish`]). A
//! second thread counts rows in the frontier's file ([`counts`]). A third thread answers scrapes with the latest
//! values ([`webfill_service::metrics::serve`]), so a scrape blocks nothing.

mod counts;
mod page;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use webfill_scheduler::core::{CoreMetrics, HoldConditions};
use webfill_scheduler::journal::StandbysReport;
use webfill_service::Fault;
use webfill_wire::counts::Histogram;
use webfill_wire::socket::Traffic;

use self::counts::{Counts, CountsThread};
pub use self::page::sample_page;
use crate::clock::SteadyClock;
use crate::config::DispatcherSetup;
use crate::health::Health;

/// How often the loop publishes its values.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The loop's handle to the metrics.
pub(crate) struct Metrics {
    shared: Arc<Shared>,
    next: Instant,
    turns: Histogram,
    counts: Option<CountsThread>,
}

struct Shared {
    health: Health,
    state: PathBuf,
    starts: u64,
    /// The folders on the disks that must have free space.
    folders: Vec<PathBuf>,
    clock: SteadyClock,
    /// The values that the loop published last; `None` while the frontier is being opened.
    loop_metrics: Mutex<Option<Arc<LoopMetrics>>>,
    counts: Mutex<Counts>,
}

/// The published values of the loop.
struct LoopMetrics {
    at: Instant,
    core: CoreMetrics,
    turns: Histogram,
    traffic: BTreeMap<&'static str, Traffic>,
    /// How far other dispatchers are behind this one; `None` if there is no journal.
    standbys: Option<StandbysReport>,
}

impl Metrics {
    /// Starts to serve metrics, if the settings give an address for them.
    pub(crate) fn start(
        setup: &DispatcherSetup,
        health: Health,
        clock: SteadyClock,
    ) -> Result<Option<Metrics>, Fault> {
        let Some(address) = setup.metrics else {
            return Ok(None);
        };
        let shared = Arc::new(Shared {
            health,
            state: setup.state.clone(),
            starts: setup.starts,
            folders: setup.disks.folders().to_vec(),
            clock,
            loop_metrics: Mutex::default(),
            counts: Mutex::default(),
        });
        let served = Arc::clone(&shared);
        webfill_service::metrics::serve(address, "metrics.dispatcher", move || served.page())?;
        Ok(Some(Metrics {
            shared,
            next: Instant::now(),
            turns: Histogram::default(),
            counts: None,
        }))
    }

    /// Starts to count the rows of the frontier (the file of tasks) in this state folder. It must be open already.
    pub(crate) fn begin_counts(&mut self, state: &Path) -> Result<(), Fault> {
        let (asked, shared) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
        let conditions = move || asked.hold_conditions();
        let thread = counts::start(state, self.shared.clock, conditions, move |counts| {
            *lock(&shared.counts) = counts.clone();
        })?;
        self.counts = Some(thread);
        Ok(())
    }

    /// Records the duration of a turn of the loop.
    pub(crate) fn note_turn(&mut self, took: Duration) {
        self.turns.observe(took);
    }

    /// Whether it is time to publish.
    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    pub(crate) fn publish(
        &mut self,
        core: CoreMetrics,
        traffic: BTreeMap<&'static str, Traffic>,
        standbys: Option<StandbysReport>,
    ) {
        let at = Instant::now();
        self.next = at + PUBLISH_EVERY;
        *lock(&self.shared.loop_metrics) = Some(Arc::new(LoopMetrics {
            at,
            core,
            turns: self.turns,
            traffic,
            standbys,
        }));
    }
}

impl Shared {
    /// The conditions that the loop published last; `None` before it has published any.
    fn hold_conditions(&self) -> Option<HoldConditions> {
        let published = lock(&self.loop_metrics).clone()?;
        let (is_store_away, _) = self.health.store_state();
        Some(HoldConditions {
            is_store_away,
            ..published.core.conditions.clone()
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock is harmless: no holder panics, and the value behind it is replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
