//! Interrupts waiting tasks. A task may wait until its site may be requested, for a permit, or for a name server. When
//! it is recalled, or the worker drains, it is *called back*: the wait ends, and the task is given back without a
//! request.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::time::Instant;

use tokio::sync::Notify;

use crate::permits::Permit;

/// Interrupts the waits of all runners (the loops that process the tasks of one site each).
#[derive(Debug, Default)]
pub struct Interrupt {
    draining: Cell<bool>,
    called_back: Notify,
}

impl Interrupt {
    /// From now on, calls back every task whose page was not requested yet.
    pub fn drain(&self) {
        self.draining.set(true);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Makes all waiting runners check whether their tasks must be given back.
    pub fn wake_waiting(&self) {
        self.called_back.notify_waiters();
    }

    /// Whether the permit's task must be given back if its page was not requested yet.
    pub(super) fn is_called_back(&self, permit: &Permit) -> bool {
        self.draining.get() || permit.is_recalled()
    }

    /// Waits for a future. `None` if the task is recalled or the worker drains meanwhile.
    pub(super) async fn wait_unless_called_back<T>(
        &self,
        permit: &Permit,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        while !self.is_called_back(permit) {
            tokio::select! {
                value = &mut future => return (!self.is_called_back(permit)).then_some(value),
                () = self.called_back.notified() => {}
            }
        }
        None
    }

    /// Sleeps until this time, or until a recall or the draining of the worker.
    pub(super) async fn sleep_until(&self, until: Instant, permit: &Permit) {
        if !self.is_called_back(permit) {
            tokio::select! {
                () = tokio::time::sleep_until(until.into()) => {}
                () = self.called_back.notified() => {}
            }
        }
    }
}
