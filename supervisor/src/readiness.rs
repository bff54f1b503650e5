//! The output of a supervisor while it starts. It prints `ready` on standard error once its dispatcher has welcomed it
//! and a worker takes tasks. Until then it reports what it waits for, on standard error and in the log, each reason at
//! most once a minute.

use std::time::{Duration, Instant};

use webfill_wire::RefusalLog;

/// Waits shorter than this are normal when a supervisor starts, and are not reported.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether `ready` was printed, and which reasons were reported.
pub(crate) struct Readiness {
    is_ready: bool,
    started: Instant,
    reported: RefusalLog,
}

/// The message to print now.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Nothing,
    Ready,
    Waiting,
}

impl Readiness {
    pub(crate) fn new() -> Readiness {
        Readiness {
            is_ready: false,
            started: Instant::now(),
            reported: RefusalLog::default(),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Prints `ready`, or the reason to wait, unless that was reported recently. `waits_for` is the reason; `None`
    /// means ready.
    pub(crate) fn print_readiness(&mut self, waits_for: Option<String>) {
        let waits_for = waits_for.as_deref();
        match self.update_readiness(waits_for, Instant::now()) {
            News::Nothing => {}
            News::Ready => {
                tracing::info!(event = "ready", "ready");
                webfill_service::say!("ready");
            }
            News::Waiting => {
                let reason = waits_for.unwrap_or_default();
                tracing::warn!(event = "waiting", reason, "not ready yet");
                webfill_service::say!("waiting: {reason}");
            }
        }
    }

    fn update_readiness(&mut self, waits_for: Option<&str>, now: Instant) -> News {
        match waits_for {
            _ if self.is_ready => News::Nothing,
            None => {
                self.is_ready = true;
                News::Ready
            }
            Some(_) if now.duration_since(self.started) < PATIENCE => News::Nothing,
            Some(reason) if self.reported.record_if_new(reason) => News::Waiting,
            Some(_) => News::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_reported_once_and_then_ready() {
        let mut readiness = Readiness::new();
        let now = readiness.started;
        assert_eq!(
            readiness.update_readiness(Some("a"), now),
            News::Nothing,
            "too early"
        );
        let later = now + PATIENCE;
        assert_eq!(readiness.update_readiness(Some("a"), later), News::Waiting);
        assert_eq!(readiness.update_readiness(Some("a"), later), News::Nothing);
        assert_eq!(readiness.update_readiness(Some("b"), later), News::Waiting);
        assert_eq!(readiness.update_readiness(None, later), News::Ready);
        assert_eq!(readiness.update_readiness(Some("c"), later), News::Nothing);
    }
}
