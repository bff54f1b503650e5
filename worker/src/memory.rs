//! The memory budget of a worker (`worker.memory_mib`): the memory that pages in flight may take, from the first byte
//! of a body to the store's confirmation. It has four parts ([`BudgetParts`]):
//!
//! - *bodies*: each fetch has a permit. It takes the permit before its request and enlarges it as its body grows. New
//!   requests wait until memory is free and no growing body waits for memory. They wait before their site's turn, so
//!   neither the site's delay nor a timeout is affected. One body may always grow, even beyond the budget, so there is
//!   always progress.
//! - *the page being read*: its text and trees. Only one page is read at a time, so nothing waits. A page that needs
//!   more is truncated.
//! - *held*: results that wait for a second fetch of their page, and bodies that wait for a tab of the browser. Nothing
//!   waits for this memory: if it is full, there is no second fetch, and the body's task is given back.
//! - *results*, until they are in the store. The extraction waits for this memory, and so do all pages that wait for
//!   the extraction.
//!
//! There is no deadlock: bodies wait for the extraction, the extraction waits for the saver, and the saver waits only
//! for the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The bytes that a connection may have read ahead, plus those that a decompressor needs besides its window.
pub const READ_AHEAD: usize = 256 << 10;

/// The memory that every fetch needs at least, the beginning of its body included.
pub const LEAST_SHARE: usize = READ_AHEAD + (16 << 10);

/// How much past bodies count when the size of the next body is estimated: 7 of 8 parts.
const EXPECTATION_WEIGHT: usize = 8;

/// The parts of a worker's memory budget, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetParts {
    pub bodies: usize,
    pub page: usize,
    pub held: usize,
    pub results: usize,
}

/// The memory pools of a worker, which tasks take permits from.
pub struct MemoryPools {
    pub bodies: Memory,
    pub held: Memory,
    pub results: Memory,
}

impl BudgetParts {
    pub fn of(memory_mib: usize) -> BudgetParts {
        let total = memory_mib << 20;
        BudgetParts {
            bodies: total / 4,
            page: total / 2,
            held: total / 16,
            results: total * 3 / 16,
        }
    }
}

/// A limited number of bytes, shared by the holders of permits.
#[derive(Debug, Clone)]
pub struct Memory {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    total: usize,
    used: usize,
    /// Whether a permit has grown beyond the total.
    overdrawn: bool,
    /// The average size of the latest bodies.
    expected: usize,
    /// The waiting requests, in the order they are served.
    waiting: BTreeMap<QueuePosition, WaitingRequest>,
    next_arrival: u64,
}

/// The position of a request in the queue: permits that grow come before new ones, and then the order of arrival
/// decides.
type QueuePosition = (RequestKind, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RequestKind {
    ToGrow,
    ToBegin,
}

#[derive(Debug)]
struct WaitingRequest {
    bytes: usize,
    granted: oneshot::Sender<Grant>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Grant {
    bytes: usize,
    /// Whether this permit has grown beyond the total.
    overdraws: bool,
}

impl Memory {
    pub fn new(total: usize) -> Memory {
        let state = State {
            total,
            used: 0,
            overdrawn: false,
            expected: LEAST_SHARE,
            waiting: BTreeMap::new(),
            next_arrival: 0,
        };
        Memory {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Waits for a permit of the size that bodies usually have.
    pub async fn take_for_body(&self) -> MemoryPermit {
        let expected = self.lock().expected;
        self.take(expected.max(LEAST_SHARE)).await
    }

    /// Waits for a permit of this size. If no other permit exists, it may exceed the total.
    pub async fn take(&self, bytes: usize) -> MemoryPermit {
        let granted = self.enqueue(RequestKind::ToBegin, bytes).wait().await;
        self.new_permit(granted)
    }

    /// Takes a permit of this size if the memory is free and no other request waits for it.
    pub fn try_take(&self, bytes: usize) -> Option<MemoryPermit> {
        let mut state = self.lock();
        if !state.waiting.is_empty() || state.used + bytes > state.total {
            return None;
        }
        state.used += bytes;
        drop(state);
        Some(self.new_permit(Grant {
            bytes,
            overdraws: false,
        }))
    }

    /// Waits for a permit of this size, on a thread that may block.
    pub fn take_blocking(&self, bytes: usize) -> MemoryPermit {
        let granted = self.enqueue(RequestKind::ToBegin, bytes).wait_blocking();
        self.new_permit(granted)
    }

    /// Notes the size of a body, which adjusts the expected size of the next ones.
    pub fn note_size(&self, bytes: usize) {
        let mut state = self.lock();
        let weighted = state.expected * (EXPECTATION_WEIGHT - 1) + bytes;
        state.expected = weighted / EXPECTATION_WEIGHT;
    }

    fn new_permit(&self, granted: Grant) -> MemoryPermit {
        MemoryPermit {
            memory: self.clone(),
            bytes: granted.bytes,
            overdraws: granted.overdraws,
        }
    }

    fn enqueue(&self, need: RequestKind, bytes: usize) -> Queued {
        let (granted, answer) = oneshot::channel();
        let mut state = self.lock();
        let place = (need, state.next_arrival);
        state.next_arrival += 1;
        state
            .waiting
            .insert(place, WaitingRequest { bytes, granted });
        state.grant_waiting();
        drop(state);
        Queued {
            memory: self.clone(),
            place,
            answer: Some(answer),
        }
    }

    fn give_back(&self, bytes: usize, overdraws: bool) {
        let mut state = self.lock();
        state.used -= bytes;
        state.overdrawn &= !overdraws;
        state.grant_waiting();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid even after a panic, because no code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Grants memory to waiting requests, in the order of the queue.
    fn grant_waiting(&mut self) {
        while let Some(first) = self.waiting.first_entry() {
            let bytes = first.get().bytes;
            let fits = self.used == 0 || self.used + bytes <= self.total;
            let may_overdraw = first.key().0 == RequestKind::ToGrow && !self.overdrawn;
            if !fits && !may_overdraw {
                return;
            }
            let granted = Grant {
                bytes,
                overdraws: !fits,
            };
            // If the receiver is gone, the request was dropped and needs no memory.
            if first.remove().granted.send(granted).is_ok() {
                self.used += bytes;
                self.overdrawn |= granted.overdraws;
            }
        }
    }
}

/// An entry in the wait queue, removed on drop.
struct Queued {
    memory: Memory,
    place: QueuePosition,
    answer: Option<oneshot::Receiver<Grant>>,
}

impl Queued {
    /// Waits until the request is granted. The channel cannot close before: the sender is dropped only after it has
    /// sent, or together with this entry.
    async fn wait(mut self) -> Grant {
        match &mut self.answer {
            Some(answer) => answer.await.unwrap_or_default(),
            None => Grant::default(),
        }
    }

    fn wait_blocking(mut self) -> Grant {
        let answer = self.answer.take();
        answer
            .and_then(|answer| answer.blocking_recv().ok())
            .unwrap_or_default()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.memory.lock().waiting.remove(&self.place);
        // The request was granted, but the waiting future was dropped before it saw that.
        let unseen = self.answer.as_mut().map(|answer| answer.try_recv());
        if let Some(Ok(granted)) = unseen {
            self.memory.give_back(granted.bytes, granted.overdraws);
        }
    }
}

/// A permit to use memory of the budget, freed on drop.
#[derive(Debug)]
pub struct MemoryPermit {
    memory: Memory,
    bytes: usize,
    overdraws: bool,
}

impl MemoryPermit {
    /// Waits until the permit has at least this size.
    pub async fn grow_to(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.bytes);
        if self.overdraws {
            // One permit may always grow, even beyond the total, and it is this one.
            return self.set(self.bytes + more);
        }
        if more > 0 {
            let granted = self.memory.enqueue(RequestKind::ToGrow, more).wait().await;
            self.bytes += granted.bytes;
            self.overdraws |= granted.overdraws;
        }
    }

    /// Sets the permit to this size without waiting, beyond the budget if necessary.
    pub fn set(&mut self, bytes: usize) {
        let mut state = self.memory.lock();
        state.used = state.used - self.bytes + bytes;
        self.bytes = bytes;
        state.grant_waiting();
    }

    /// Moves the permit out, leaving an empty one.
    pub fn take(&mut self) -> MemoryPermit {
        MemoryPermit {
            memory: self.memory.clone(),
            bytes: std::mem::take(&mut self.bytes),
            overdraws: std::mem::take(&mut self.overdraws),
        }
    }

    /// Notes the actual size of a body.
    pub fn note_size(&self, bytes: usize) {
        self.memory.note_size(bytes);
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.memory.give_back(self.bytes, self.overdraws);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const MIB: usize = 1 << 20;

    /// Polls a future once, and returns its output if it is ready.
    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn used_bytes(memory: &Memory) -> usize {
        memory.lock().used
    }

    #[test]
    fn a_new_permit_waits_for_room_unless_it_is_the_only_one() {
        let memory = Memory::new(10 * MIB);
        let large = poll(pin!(memory.take(20 * MIB))).expect("it is alone");
        let mut second = pin!(memory.take(MIB));
        assert!(poll(second.as_mut()).is_none());
        drop(large);
        let second = poll(second).expect("there is room");
        assert_eq!(used_bytes(&memory), MIB);
        drop(second);
        assert_eq!(used_bytes(&memory), 0);
    }

    #[test]
    fn try_take_never_takes_more_than_the_total() {
        let memory = Memory::new(10 * MIB);
        let some = memory.try_take(6 * MIB).expect("there is room");
        assert!(memory.try_take(5 * MIB).is_none());
        drop(some);
        assert!(memory.try_take(11 * MIB).is_none(), "even if it is alone");
        assert!(memory.try_take(10 * MIB).is_some());
    }

    #[test]
    fn growing_permits_go_before_new_ones() {
        let memory = Memory::new(10 * MIB);
        let mut overdrawn = poll(pin!(memory.take(MIB))).unwrap();
        let mut growing = poll(pin!(memory.take(4 * MIB))).unwrap();
        let done = poll(pin!(memory.take(5 * MIB))).unwrap();
        poll(pin!(overdrawn.grow_to(3 * MIB))).expect("one may always grow");
        let mut begins = pin!(memory.take(MIB));
        assert!(poll(begins.as_mut()).is_none());
        {
            let mut grows = pin!(growing.grow_to(6 * MIB));
            assert!(poll(grows.as_mut()).is_none(), "only one may");
            drop(done);
            assert!(poll(grows).is_some());
        }
        assert_eq!(
            used_bytes(&memory),
            10 * MIB,
            "the new one came last, and it fits"
        );
        poll(begins).unwrap();
    }

    #[test]
    fn one_body_may_always_grow_and_then_the_next() {
        let memory = Memory::new(4 * MIB);
        let mut bodies: Vec<MemoryPermit> = (0..4)
            .map(|_| poll(pin!(memory.take(MIB))).unwrap())
            .collect();
        while let Some(mut body) = bodies.pop() {
            poll(pin!(body.grow_to(3 * MIB))).expect("it may go on");
            poll(pin!(body.grow_to(8 * MIB))).expect("to its end");
        }
        assert_eq!(used_bytes(&memory), 0);
    }

    #[test]
    fn a_dropped_waiter_holds_nothing() {
        let memory = Memory::new(MIB);
        let first = poll(pin!(memory.take(MIB))).unwrap();
        {
            let mut gone = pin!(memory.take(MIB));
            assert!(poll(gone.as_mut()).is_none());
            // Memory is granted, and the future is dropped before it sees that.
            drop(first);
        }
        assert_eq!(used_bytes(&memory), 0);
        assert!(memory.lock().waiting.is_empty());
    }

    #[test]
    fn a_new_request_takes_the_size_of_recent_bodies() {
        let memory = Memory::new(100 * MIB);
        assert_eq!(
            poll(pin!(memory.take_for_body())).unwrap().bytes,
            LEAST_SHARE
        );
        for _ in 0..40 {
            memory.note_size(8 * MIB);
        }
        let share = poll(pin!(memory.take_for_body())).unwrap();
        assert!(
            (7 * MIB..=8 * MIB).contains(&share.bytes),
            "{}",
            share.bytes
        );
    }

    #[test]
    fn a_thread_may_wait_as_well() {
        let memory = Memory::new(MIB);
        let first = memory.take_blocking(MIB);
        let waits = std::thread::spawn({
            let memory = memory.clone();
            move || memory.take_blocking(MIB).bytes
        });
        drop(first);
        assert_eq!(waits.join().unwrap(), MIB);
    }
}
