//! The answers to `/healthz` and `/readyz`: whether the dispatcher's loop runs and works, and whether it takes requests
//! and hands out tasks.
//!
//! The loop and the thread that writes to the store record their states. The HTTP thread answers from these records,
//! even while the others are busy or stuck.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_wire::counts::Histogram;

/// Without a turn for this long, the loop counts as stuck. Normally it turns at least twice a second.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// The recorded states, shared by the threads of a dispatcher.
#[derive(Clone)]
pub(crate) struct Health(Arc<Shared>);

struct Shared {
    started: Instant,
    /// When the loop last turned, in milliseconds since the start of the process. It is 0 until the first turn, while
    /// the frontier (the file of tasks) is being opened.
    turned_ms: AtomicU64,
    is_store_away: AtomicBool,
    /// How long the store's answers took.
    store_answers: Mutex<Histogram>,
    /// Why no requests are taken or no tasks are handed out, as recorded in the last turn; `None` if nothing is held
    /// up.
    holds: Mutex<Option<String>>,
}

impl Health {
    pub(crate) fn new() -> Health {
        Health(Arc::new(Shared {
            started: Instant::now(),
            turned_ms: AtomicU64::new(0),
            is_store_away: AtomicBool::new(false),
            store_answers: Mutex::default(),
            holds: Mutex::default(),
        }))
    }

    /// Records that the loop turns. `holds` says why no requests are taken or no tasks are handed out.
    pub(crate) fn note_turn(&self, holds: Option<&str>) {
        let now_ms = self.0.started.elapsed().as_millis() as u64;
        self.0.turned_ms.store(now_ms.max(1), Ordering::Relaxed);
        let mut noted = self.0.holds.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.as_deref() != holds {
            *noted = holds.map(str::to_owned);
        }
    }

    /// Records whether the store is away, and how long it took to answer.
    pub(crate) fn record_store_answer(&self, is_away: bool, took: Duration) {
        self.0.is_store_away.store(is_away, Ordering::Relaxed);
        let answers = self.0.store_answers.lock();
        answers
            .unwrap_or_else(PoisonError::into_inner)
            .observe(took);
    }

    /// Whether the store is away, and how long its answers took.
    pub(crate) fn store_state(&self) -> (bool, Histogram) {
        let is_away = self.0.is_store_away.load(Ordering::Relaxed);
        let answers = self.0.store_answers.lock();
        (is_away, *answers.unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the frontier (the file of tasks) is open, so that the loop runs.
    pub(crate) fn is_frontier_open(&self) -> bool {
        self.0.turned_ms.load(Ordering::Relaxed) > 0
    }

    /// The HTTP status and the body of the answer to `/healthz`.
    pub(crate) fn healthz(&self) -> (u16, Value) {
        probe_answer("ok", &self.faults())
    }

    /// The HTTP status and the body of the answer to `/readyz`.
    pub(crate) fn readyz(&self) -> (u16, Value) {
        probe_answer("ready", &self.not_ready_reasons())
    }

    /// Why the dispatcher takes no requests or hands out no tasks.
    pub(crate) fn not_ready_reasons(&self) -> Vec<String> {
        let mut faults = self.faults();
        let holds = self.0.holds.lock().unwrap_or_else(PoisonError::into_inner);
        faults.extend(holds.clone());
        faults
    }

    /// Why the loop is stuck or not started, or why results cannot be stored.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let turned_ms = self.0.turned_ms.load(Ordering::Relaxed);
        let turned = self.0.started + Duration::from_millis(turned_ms);
        let silent = turned.elapsed();
        if turned_ms == 0 {
            faults.push(String::from("the frontier is being opened"));
        } else if silent > STUCK_AFTER {
            faults.push(format!(
                "the loop has been stuck for {} s",
                silent.as_secs()
            ));
        }
        if self.0.is_store_away.load(Ordering::Relaxed) {
            faults.push(String::from("the store accepts no writes"));
        }
        faults
    }
}

fn probe_answer(word: &str, faults: &[String]) -> (u16, Value) {
    match faults {
        [] => (200, json!({word: true})),
        faults => (503, json!({word: false, "why": faults})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_when_the_loop_turns_and_nothing_holds_it() {
        let health = Health::new();
        assert!(!health.is_frontier_open());
        let opening = json!({"ok": false, "why": ["the frontier is being opened"]});
        assert_eq!(health.healthz(), (503, opening));
        health.note_turn(None);
        assert_eq!(health.healthz(), (200, json!({"ok": true})));
        assert_eq!(health.readyz(), (200, json!({"ready": true})));
        health.note_turn(Some("it drains"));
        assert_eq!(health.healthz().0, 200);
        let draining = json!({"ready": false, "why": ["it drains"]});
        assert_eq!(health.readyz(), (503, draining));
        health.note_turn(None);
        health.record_store_answer(true, Duration::from_secs(1));
        assert_eq!((health.healthz().0, health.readyz().0), (503, 503));
    }
}
