//! The slots for fetches in flight, so many and no more. Who waits gets one by priority, and within
//! a priority in turn. All on one thread.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;

use tokio::sync::oneshot;

/// Those who wait, by priority and arrival.
type Line = BTreeMap<(Reverse<u8>, u64), oneshot::Sender<()>>;

/// See the module.
#[derive(Debug)]
pub struct Slots {
    free: Cell<usize>,
    waiting: RefCell<Line>,
    /// Counts those who had to wait.
    waited: Cell<u64>,
}

/// A slot taken, until it is dropped.
#[derive(Debug)]
pub struct Slot<'a> {
    slots: &'a Slots,
}

impl Slots {
    pub fn new(slots: usize) -> Slots {
        Slots {
            free: Cell::new(slots),
            waiting: RefCell::default(),
            waited: Cell::new(0),
        }
    }

    /// Waits for a slot. Who stops waiting leaves the place to the next.
    pub async fn take(&self, priority: u8) -> Slot<'_> {
        if let Some(free) = self.free.get().checked_sub(1) {
            self.free.set(free);
            return Slot { slots: self };
        }
        let place = (Reverse(priority), self.waited.get());
        self.waited.set(place.1 + 1);
        let (turn, comes) = oneshot::channel();
        self.waiting.borrow_mut().insert(place, turn);
        let mut waiting = Waiting {
            slots: self,
            place,
            comes,
        };
        // The sender is dropped only together with us, or after it has sent.
        let _ = (&mut waiting.comes).await;
        Slot { slots: self }
    }

    fn give_back(&self) {
        while let Some((_, turn)) = self.waiting.borrow_mut().pop_first() {
            if turn.send(()).is_ok() {
                return;
            }
        }
        self.free.set(self.free.get() + 1);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.slots.give_back();
    }
}

/// A place in the line.
struct Waiting<'a> {
    slots: &'a Slots,
    place: (Reverse<u8>, u64),
    comes: oneshot::Receiver<()>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.slots.waiting.borrow_mut().remove(&self.place);
        // The turn came, but nobody was there any more to see it.
        if self.comes.try_recv().is_ok() {
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
    async fn the_highest_priority_goes_first_and_then_who_came_first() {
        let (slots, served) = (Rc::new(Slots::new(1)), Rc::new(RefCell::new(Vec::new())));
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
    async fn who_stops_waiting_costs_no_slot() {
        let slots = Slots::new(1);
        let held = slots.take(50).await;
        {
            let mut gone = std::pin::pin!(slots.take(90));
            assert!(futures_poll(gone.as_mut()).await, "it waits");
            // Its turn comes, and it goes away without looking.
            drop(held);
        }
        assert!(slots.waiting.borrow().is_empty());
        let _again = slots.take(10).await;
        assert_eq!(slots.free.get(), 0);
    }

    /// Polls once; whether the future is still pending.
    async fn futures_poll(mut future: std::pin::Pin<&mut impl Future>) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
        })
        .await
    }
}
