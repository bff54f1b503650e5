//! Whether and how soon the store and the cache answer, for `status`. No decision depends on it.

use std::time::Duration;

use serde_json::{Value, json};

/// The process's report on the store and the cache.
#[derive(Debug, Clone, Default)]
pub struct BackendsReport {
    /// The result of the last check of the store; `None`: not checked yet.
    pub store: Option<BackendReport>,
    pub cache: Option<BackendReport>,
    /// Whether the store accepts no writes at present.
    pub is_store_away: bool,
}

/// The result of the last check of the store or the cache.
#[derive(Debug, Clone)]
pub struct BackendReport {
    pub latency: Duration,
    pub asked_ago: Duration,
    /// Why the check failed; `None`: it was answered.
    pub fault: Option<String>,
}

impl BackendsReport {
    /// The states of the store and of the cache, as JSON for the answer to `status`.
    pub(super) fn status_json(&self) -> (Value, Value) {
        let is_away = self.is_store_away.then_some("it accepts no writes");
        (
            status_json(self.store.as_ref(), is_away),
            status_json(self.cache.as_ref(), None),
        )
    }

    /// Why pages cannot be saved, in words.
    pub(super) fn store_fault(&self) -> Option<String> {
        match (self.is_store_away, &self.store) {
            (true, _) => Some("it accepts no writes".into()),
            (false, Some(store)) => store.fault.clone(),
            (false, None) => None,
        }
    }
}

fn status_json(asked: Option<&BackendReport>, fault: Option<&str>) -> Value {
    let Some(asked) = asked else {
        return json!({"up": null});
    };
    let fault = fault.or(asked.fault.as_deref());
    let latency_ms = asked.latency.as_micros() as f64 / 1_000.0;
    json!({
        "up": fault.is_none(),
        "latency_ms": asked.fault.is_none().then_some(latency_ms),
        "asked_ago_s": asked.asked_ago.as_secs(),
        "fault": fault,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_say_whether_it_answers_and_accepts_writes() {
        let mut backends = BackendsReport::default();
        assert_eq!(backends.status_json().0, json!({"up": null}));
        let asked = |fault: Option<&str>| BackendReport {
            latency: Duration::from_micros(2_500),
            asked_ago: Duration::ZERO,
            fault: fault.map(str::to_owned),
        };
        backends.store = Some(asked(None));
        backends.cache = Some(asked(Some("gone")));
        let (store, cache) = backends.status_json();
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
        backends.is_store_away = true;
        assert_eq!(backends.status_json().0["up"], json!(false));
        assert!(backends.store_fault().is_some());
    }
}
