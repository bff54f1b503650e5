//! Lets a dispatcher write to the store only while it has the right to serve. So a dispatcher that was suspended and
//! replaced meanwhile does not overwrite the data of its successor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use webfill_service::boot_clock::boot_ms;

/// How often a closed gate is checked again.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Until when this dispatcher may write, shared by the loop and the threads that write.
#[derive(Debug, Clone)]
pub(crate) struct TenureGate(Arc<AtomicU64>);

impl TenureGate {
    /// The gate of a dispatcher without a journal. It never closes, because no other dispatcher can take over.
    pub(crate) fn always_open() -> TenureGate {
        TenureGate(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// A gate that is closed until [`open_until`](TenureGate::open_until).
    pub(crate) fn closed() -> TenureGate {
        TenureGate(Arc::default())
    }

    pub(crate) fn open_until(&self, boot_ms: u64) {
        self.0.store(boot_ms, Ordering::Relaxed);
    }

    pub(crate) fn is_open(&self) -> bool {
        boot_ms() < self.0.load(Ordering::Relaxed)
    }

    /// Waits until the gate is open.
    pub(crate) async fn wait_until_open(&self) {
        while !self.is_open() {
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }
}
