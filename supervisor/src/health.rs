//! Answers the probes of a supervisor: whether its loop runs, and whether it fetches.
//!
//! The loop records its state at each check. A separate thread answers probes from that record, even while the loop
//! is busy or stuck.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use webfill_service::metrics::Probe;

/// The loop records its state ten times a second. If it has not done so for this long, it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// The state shared by the loop and the thread that answers probes.
#[derive(Clone)]
pub(crate) struct Health(Arc<Mutex<LoopState>>);

struct LoopState {
    /// When the loop last recorded its state.
    at: Instant,
    /// Why nothing is fetched, in words; `None` if pages are fetched.
    holds: Option<String>,
}

impl Health {
    pub(crate) fn new() -> Health {
        Health(Arc::new(Mutex::new(LoopState {
            at: Instant::now(),
            holds: Some("it starts".into()),
        })))
    }

    /// Starts to answer probes. If that fails, the supervisor runs without answering them.
    pub(crate) fn serve(&self, address: SocketAddr) {
        let health = self.clone();
        let serving =
            webfill_service::metrics::serve_probes(address, "probes.supervisor", move |probe| {
                health.list_faults(probe, Instant::now())
            });
        if let Err(fault) = serving {
            tracing::error!(event = "probes_not_served", error = %fault, "probes are not served");
        }
    }

    /// Records that the loop runs. `holds` says why nothing is fetched.
    pub(crate) fn record_loop_state(&self, holds: Option<String>) {
        let noted = LoopState {
            at: Instant::now(),
            holds,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = noted;
    }

    fn list_faults(&self, probe: Probe, now: Instant) -> Vec<String> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = now.duration_since(noted.at);
        let stuck = (silent > STUCK_AFTER)
            .then(|| format!("the loop has been stuck for {} s", silent.as_secs()));
        let holds = noted.holds.clone().filter(|_| probe == Probe::Readiness);
        stuck.into_iter().chain(holds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_supervisor_is_alive_but_not_ready_and_a_stuck_one_is_neither() {
        let health = Health::new();
        let now = || health.0.lock().unwrap().at;
        let counts = |later: Duration| {
            let count = |probe| health.list_faults(probe, now() + later).len();
            (count(Probe::Health), count(Probe::Readiness))
        };
        assert_eq!(counts(Duration::ZERO), (0, 1), "it starts");
        health.record_loop_state(Some("the dispatcher is silent".into()));
        assert_eq!(counts(Duration::ZERO), (0, 1));
        health.record_loop_state(None);
        assert_eq!(counts(STUCK_AFTER), (0, 0));
        assert_eq!(counts(STUCK_AFTER * 2), (1, 1));
    }
}
