//! Checks every few seconds whether the store and the cache answer, and how soon. The checks are independent of the
//! dispatcher's writes. Their results are shown to users.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use webfill_scheduler::core::{BackendReport, BackendsReport};
use webfill_store::{Cache, CrawlId, Store, StoreError};

/// How often the store and the cache are checked, and how long a check waits for an answer.
const EVERY: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);

/// A key that never exists. Looking it up costs one read of an index.
const NOBODY: &str = "webfill-is-it-there";

/// The states of the store and the cache, shared by the threads of a dispatcher.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backends(Arc<Mutex<LastChecks>>);

#[derive(Debug, Default)]
struct LastChecks {
    store: Option<CheckResult>,
    cache: Option<CheckResult>,
    /// Whether the store accepts no writes at present.
    is_store_away: bool,
}

/// The result of a check.
#[derive(Debug)]
struct CheckResult {
    at: Instant,
    latency: Duration,
    /// Why the check failed; `None` if the store or cache answered.
    fault: Option<String>,
}

impl CheckResult {
    fn report(&self) -> BackendReport {
        BackendReport {
            latency: self.latency,
            asked_ago: self.at.elapsed(),
            fault: self.fault.clone(),
        }
    }
}

impl Backends {
    /// Notes whether the store accepts writes.
    pub(crate) fn set_store_away(&self, is_away: bool) {
        self.lock().is_store_away = is_away;
    }

    /// Checks the store and the cache as long as the process lives.
    pub(crate) async fn check_forever(self, store: Arc<dyn Store>, cache: Arc<dyn Cache>) {
        loop {
            let nobody = CrawlId::new(NOBODY, NOBODY);
            let checked = check_backend(store.get_crawl(&nobody)).await;
            self.lock().store = Some(checked);
            let checked = check_backend(cache.sites(vec![NOBODY.to_owned()], 0)).await;
            self.lock().cache = Some(checked);
            tokio::time::sleep(EVERY).await;
        }
    }

    /// The state of the store and the cache, as the core reports it.
    pub(crate) fn report(&self) -> BackendsReport {
        let known = self.lock();
        BackendsReport {
            store: known.store.as_ref().map(CheckResult::report),
            cache: known.cache.as_ref().map(CheckResult::report),
            is_store_away: known.is_store_away,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LastChecks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn check_backend<T>(question: impl Future<Output = Result<T, StoreError>>) -> CheckResult {
    let at = Instant::now();
    let fault = match tokio::time::timeout(PATIENCE, question).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    let latency = at.elapsed();
    CheckResult { at, latency, fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_the_last_answers_and_whether_the_store_accepts_writes() {
        let backends = Backends::default();
        assert!(backends.report().store.is_none());
        let latency = Duration::from_micros(2_500);
        backends.lock().store = Some(CheckResult {
            at: Instant::now(),
            latency,
            fault: None,
        });
        backends.set_store_away(true);
        let report = backends.report();
        assert_eq!(report.store.map(|store| store.latency), Some(latency));
        assert!(report.is_store_away && report.cache.is_none());
    }
}
