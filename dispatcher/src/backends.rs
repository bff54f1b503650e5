//! Whether the store and the cache answer, and how soon: asked every few seconds beside the writes, and told
//! by `status`. Nothing is decided by it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_store::{Cache, CrawlId, Store, StoreError};

/// How often they are asked, and how long an answer is waited for.
const EVERY: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);

/// Asked for, and never there: the answer costs one look into an index.
const NOBODY: &str = "webfill-is-it-there";

/// What is known of the store and the cache, shared by the threads of a dispatcher.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backends(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    store: Option<Asked>,
    cache: Option<Asked>,
    /// The store accepts no writes.
    is_store_away: bool,
}

/// What has come of a question.
#[derive(Debug)]
struct Asked {
    at: Instant,
    latency: Duration,
    /// Why there was no answer.
    fault: Option<String>,
}

impl Backends {
    /// The store accepts writes, or does not.
    pub(crate) fn note_store(&self, is_away: bool) {
        self.lock().is_store_away = is_away;
    }

    /// Asks for as long as the process lives.
    pub(crate) async fn watch(self, store: Arc<dyn Store>, cache: Arc<dyn Cache>) {
        loop {
            let nobody = CrawlId::new(NOBODY, NOBODY);
            let asked = ask(store.get_crawl(&nobody)).await;
            self.lock().store = Some(asked);
            let asked = ask(cache.sites(vec![NOBODY.to_owned()], 0)).await;
            self.lock().cache = Some(asked);
            tokio::time::sleep(EVERY).await;
        }
    }

    /// The store and the cache, as `status` tells of them.
    pub(crate) fn told(&self) -> (Value, Value) {
        let known = self.lock();
        let is_away = known.is_store_away.then_some("it accepts no writes");
        (
            told(known.store.as_ref(), is_away),
            told(known.cache.as_ref(), None),
        )
    }

    /// Why pages cannot be saved, in words.
    pub(crate) fn store_fault(&self) -> Option<String> {
        let known = self.lock();
        match (known.is_store_away, &known.store) {
            (true, _) => Some("it accepts no writes".into()),
            (false, Some(asked)) => asked.fault.clone(),
            (false, None) => None,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask<T>(question: impl Future<Output = Result<T, StoreError>>) -> Asked {
    let at = Instant::now();
    let fault = match tokio::time::timeout(PATIENCE, question).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    let latency = at.elapsed();
    Asked { at, latency, fault }
}

fn told(asked: Option<&Asked>, fault: Option<&str>) -> Value {
    let Some(asked) = asked else {
        return json!({"up": null});
    };
    let fault = fault.or(asked.fault.as_deref());
    let latency_ms = asked.latency.as_micros() as f64 / 1_000.0;
    json!({
        "up": fault.is_none(),
        "latency_ms": asked.fault.is_none().then_some(latency_ms),
        "asked_ago_s": asked.at.elapsed().as_secs(),
        "fault": fault,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_says_whether_it_answers_and_accepts_writes() {
        let backends = Backends::default();
        assert_eq!(backends.told().0, json!({"up": null}));
        let asked = |fault: Option<&str>| Asked {
            at: Instant::now(),
            latency: Duration::from_micros(2_500),
            fault: fault.map(str::to_owned),
        };
        backends.lock().store = Some(asked(None));
        backends.lock().cache = Some(asked(Some("gone")));
        let (store, cache) = backends.told();
        assert_eq!(
            (&store["up"], &store["latency_ms"]),
            (&json!(true), &json!(2.5))
        );
        assert_eq!(
            (&cache["up"], &cache["fault"]),
            (&json!(false), &json!("gone"))
        );
        assert_eq!(cache["latency_ms"], Value::Null);
        assert_eq!(backends.store_fault(), None);
        backends.note_store(true);
        assert_eq!(backends.told().0["up"], json!(false));
        assert!(backends.store_fault().is_some());
    }
}
