//! Fetch slots: a semaphore with priorities that bounds the fetches in flight.
//!
//! Free slots go to waiting tasks by priority, and within a priority in order of arrival. The browser uses the same
//! type to bound its tabs. Everything runs on the worker's main thread, so there are no locks.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;

use tokio::sync::oneshot;

/// The waiting tasks, ordered by priority, then by arrival.
type WaitQueue = BTreeMap<(Reverse<u8>, u64), oneshot::Sender<()>>;

/// Bounds the fetches in flight by slots, which are given out by priority.
#[derive(Debug)]
pub struct FetchPermits {
    free: Cell<usize>,
    waiting: RefCell<WaitQueue>,
    /// The arrival number of the next waiting task.
    next_arrival: Cell<u64>,
}

/// A slot in use, freed on drop.
#[derive(Debug)]
pub struct FetchPermit<'a> {
    slots: &'a FetchPermits,
}

impl FetchPermits {
    pub fn new(slots: usize) -> FetchPermits {
        FetchPermits {
            free: Cell::new(slots),
            waiting: RefCell::default(),
            next_arrival: Cell::new(0),
        }
    }

    /// Waits for a slot. If the future is dropped first, the slot goes to the next in the queue.
    pub async fn take(&self, priority: u8) -> FetchPermit<'_> {
        if let Some(free) = self.free.get().checked_sub(1) {
            self.free.set(free);
            return FetchPermit { slots: self };
        }
        let place = (Reverse(priority), self.next_arrival.get());
        self.next_arrival.set(place.1 + 1);
        let (grant, granted) = oneshot::channel();
        self.waiting.borrow_mut().insert(place, grant);
        let mut waiting = Waiting {
            slots: self,
            place,
            granted,
        };
        // This is never an error: the sender is dropped only after it has sent, or together with this future.
        let _ = (&mut waiting.granted).await;
        FetchPermit { slots: self }
    }

    fn give_back(&self) {
        while let Some((_, grant)) = self.waiting.borrow_mut().pop_first() {
            if grant.send(()).is_ok() {
                return;
            }
        }
        self.free.set(self.free.get() + 1);
    }
}

impl Drop for FetchPermit<'_> {
    fn drop(&mut self) {
        self.slots.give_back();
    }
}

/// An entry in the wait queue, removed on drop.
struct Waiting<'a> {
    slots: &'a FetchPermits,
    place: (Reverse<u8>, u64),
    granted: oneshot::Receiver<()>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.slots.waiting.borrow_mut().remove(&self.place);
        // The slot was granted, but the waiting future was dropped before it saw that.
        if self.granted.try_recv().is_ok() {
            self.slots.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    use tokio::task::{LocalSet, yield_now};

    #[tokio::test]
    async fn the_highest_priority_goes_first_and_then_the_first_to_arrive() {
        let (slots, served) = (
            Rc::new(FetchPermits::new(1)),
            Rc::new(RefCell::new(Vec::new())),
        );
        let local = LocalSet::new();
        let first = slots.take(1).await;
        for (name, priority) in [("a", 50), ("b", 90), ("c", 50), ("d", 90)] {
            let (slots, served) = (Rc::clone(&slots), Rc::clone(&served));
            local.spawn_local(async move {
                let slot = slots.take(priority).await;
                served.borrow_mut().push(name);
                yield_now().await;
                drop(slot);
            });
        }
        local.run_until(yield_now()).await;
        assert!(served.borrow().is_empty(), "there is one slot");
        drop(first);
        local.await;
        assert_eq!(*served.borrow(), ["b", "d", "a", "c"]);
        assert_eq!(slots.free.get(), 1);
    }

    #[tokio::test]
    async fn a_task_that_stops_waiting_costs_no_slot() {
        let slots = FetchPermits::new(1);
        let held = slots.take(50).await;
        {
            let mut gone = std::pin::pin!(slots.take(90));
            assert!(poll_is_pending(gone.as_mut()).await, "it waits");
            // The future is granted a slot and dropped before it sees that.
            drop(held);
        }
        assert!(slots.waiting.borrow().is_empty());
        let _again = slots.take(10).await;
        assert_eq!(slots.free.get(), 0);
    }

    /// Polls once; returns whether the future is still pending.
    async fn poll_is_pending(mut future: std::pin::Pin<&mut impl Future>) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
        })
        .await
    }
}
