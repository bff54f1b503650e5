//! Measures how long the extraction thread works on a page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long the thread has been working on its current page. The worker's main thread reads it, and
/// stops its heartbeats if a page hangs.
#[derive(Debug, Clone)]
pub struct PageTimer {
    epoch: Instant,
    /// Milliseconds since the epoch, plus one; 0 between pages.
    began: Arc<AtomicU64>,
}

impl PageTimer {
    pub fn new() -> PageTimer {
        PageTimer {
            epoch: Instant::now(),
            began: Arc::default(),
        }
    }

    pub(super) fn begin(&self) {
        let now_ms = self.epoch.elapsed().as_millis() as u64;
        self.began.store(now_ms + 1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// How long the current page has been worked on.
    pub fn time_on_page(&self) -> Duration {
        match self.began.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            began => {
                let now_ms = self.epoch.elapsed().as_millis() as u64;
                Duration::from_millis((now_ms + 1).saturating_sub(began))
            }
        }
    }
}
