//! What people are told while a supervisor starts: `ready` on standard error once it is welcome at its
//! dispatcher and a worker takes tasks; until then what it waits for, there and in the log, each reason
//! at most once a minute.

use std::time::{Duration, Instant};

use webfill_wire::RefusalLog;

/// A start takes a moment; what lasts no longer is not told.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
pub(crate) struct Readiness {
    is_ready: bool,
    started: Instant,
    told: RefusalLog,
}

/// What there is to tell.
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
            told: RefusalLog::default(),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Tells what is new. `waits_for`: what it waits for now.
    pub(crate) fn tell(&mut self, waits_for: Option<String>) {
        let waits_for = waits_for.as_deref();
        match self.news(waits_for, Instant::now()) {
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

    fn news(&mut self, waits_for: Option<&str>, now: Instant) -> News {
        match waits_for {
            _ if self.is_ready => News::Nothing,
            None => {
                self.is_ready = true;
                News::Ready
            }
            Some(_) if now.duration_since(self.started) < PATIENCE => News::Nothing,
            Some(reason) if self.told.record_if_new(reason) => News::Waiting,
            Some(_) => News::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_and_then_that_it_is_ready() {
        let mut readiness = Readiness::new();
        let now = readiness.started;
        assert_eq!(readiness.news(Some("a"), now), News::Nothing, "too early");
        let later = now + PATIENCE;
        assert_eq!(readiness.news(Some("a"), later), News::Waiting);
        assert_eq!(readiness.news(Some("a"), later), News::Nothing);
        assert_eq!(readiness.news(Some("b"), later), News::Waiting);
        assert_eq!(readiness.news(None, later), News::Ready);
        assert_eq!(readiness.news(Some("c"), later), News::Nothing);
    }
}
