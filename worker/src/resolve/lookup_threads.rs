//! Runs the threads that call the system's resolver of host names.
//!
//! A call blocks its thread until there is an answer or the system gives up. If the name servers do not answer, this
//! takes ten seconds or more, and it cannot be aborted. So each lookup takes a *place* until its call returns, even if
//! its result is no longer needed. There are never more than [`PLACES`] lookups under way. Threads start on demand and
//! end after [`IDLE`] without work. A thread waiting for an answer takes 18 KiB of memory and a socket.
//!
//! Lookups wait in three queues, by the [`LookupClass`] of their name. Each class may take places up to its own
//! ceiling, and a free place goes to the highest class that may have it. Therefore:
//!
//! - names that failed slowly before leave at least 256 places to all other names, and 1,500 such names can be tried
//!   per minute;
//! - new names leave at least 64 places to names that were found before. If very many new names are dead, further new
//!   names wait: 448 unanswered lookups finish per timeout of the system;
//! - a name that was found quickly before waits only if hundreds of such names die at once, and only until their first
//!   lookups time out; then they count as slow.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The largest number of lookups, and so of threads, at the same time.
pub const PLACES: usize = 512;

/// For each [`LookupClass`]: a lookup of this class begins only if fewer places than this are taken.
const CEILINGS: [usize; 3] = [PLACES, PLACES - 64, PLACES / 2];

/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(10);

/// The stack of a thread. The system's resolver needs little.
const STACK_BYTES: usize = 256 << 10;

/// The class of a name, by the result of its last lookup. The class with the highest priority comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupClass {
    /// The last lookup found the name quickly.
    Quick,
    New,
    /// The last lookup had no answer, or it failed after a long time.
    Slow,
}

type LookUp = Box<dyn FnOnce() + Send>;

/// The threads that resolve names, and the queues of waiting lookups. Cheap to clone.
#[derive(Clone)]
pub(super) struct LookupThreads {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Wakes a waiting thread when a lookup is ready for it.
    is_ready: Condvar,
}

#[derive(Default)]
struct State {
    lines: [VecDeque<LookUp>; 3],
    /// Lookups that have a place but no thread yet.
    ready: VecDeque<LookUp>,
    /// How many places are taken.
    taken: usize,
    threads: usize,
    /// How many threads wait for work.
    waiting: usize,
}

impl LookupThreads {
    pub(super) fn new() -> LookupThreads {
        LookupThreads {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                is_ready: Condvar::new(),
            }),
        }
    }

    /// Queues a lookup, which runs on one of the threads as soon as its class gets a place.
    ///
    /// # Errors
    ///
    /// If there is no thread and the system cannot start one.
    pub(super) fn begin(&self, class: LookupClass, look_up: LookUp) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.lines[class as usize].push_back(look_up);
        state.assign_places();
        while state.ready.len() > state.waiting {
            if let Err(error) = self.start_thread() {
                return state.handle_thread_failure(error);
            }
            state.threads += 1;
            state.waiting += 1;
        }
        self.shared.is_ready.notify_one();
        Ok(())
    }

    fn start_thread(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        thread::Builder::new()
            .name("look-up".into())
            .stack_size(STACK_BYTES)
            .spawn(move || shared.run())
            .map(drop)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The main loop of a thread. A new thread counts as waiting.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(look_up) = state.ready.pop_front() {
                state.waiting -= 1;
                drop(state);
                look_up();
                state = self.lock();
                state.taken -= 1;
                state.waiting += 1;
                state.assign_places();
                continue;
            }
            let (woken, timeout) = self
                .is_ready
                .wait_timeout(state, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() && state.ready.is_empty() {
                state.threads -= 1;
                state.waiting -= 1;
                return;
            }
        }
    }
}

impl State {
    /// Gives free places to the lookups that may have them.
    fn assign_places(&mut self) {
        for (line, ceiling) in self.lines.iter_mut().zip(CEILINGS) {
            while self.taken < ceiling
                && let Some(look_up) = line.pop_front()
            {
                self.ready.push_back(look_up);
                self.taken += 1;
            }
        }
    }

    /// Handles the failure to start a thread: existing threads take the lookup, and if there are none, it is dropped.
    fn handle_thread_failure(&mut self, error: io::Error) -> io::Result<()> {
        if self.threads > 0 {
            return Ok(());
        }
        self.taken -= self.ready.len();
        self.ready.clear();
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    /// Starts lookups that report when they begin, and that last until the test ends them.
    struct Bench {
        threads: LookupThreads,
        begun: (Sender<&'static str>, Receiver<&'static str>),
    }

    impl Bench {
        fn new() -> Bench {
            Bench {
                threads: LookupThreads::new(),
                begun: channel(),
            }
        }

        /// Begins a lookup that ends when the returned sender is dropped.
        fn begin(&self, class: LookupClass, name: &'static str) -> Sender<()> {
            let (end, ended) = channel::<()>();
            let begun = self.begun.0.clone();
            let look_up = move || {
                begun.send(name).unwrap();
                let _ = ended.recv();
            };
            self.threads.begin(class, Box::new(look_up)).unwrap();
            end
        }

        fn begin_many(
            &self,
            class: LookupClass,
            name: &'static str,
            count: usize,
        ) -> Vec<Sender<()>> {
            (0..count).map(|_| self.begin(class, name)).collect()
        }

        fn next(&self) -> &'static str {
            self.begun.1.recv_timeout(SOON).unwrap()
        }

        fn skip(&self, count: usize) {
            for _ in 0..count {
                self.next();
            }
        }

        fn line_lengths(&self) -> [usize; 3] {
            let state = self.threads.shared.lock();
            assert!(state.threads <= PLACES && state.taken <= PLACES);
            [0, 1, 2].map(|line| state.lines[line].len())
        }
    }

    #[test]
    fn each_class_leaves_places_to_the_higher_ones() {
        let bench = Bench::new();
        let slow = bench.begin_many(LookupClass::Slow, "slow", 300);
        bench.skip(256);
        assert_eq!(bench.line_lengths(), [0, 0, 44]);
        let new = bench.begin_many(LookupClass::New, "new", 200);
        bench.skip(192);
        assert_eq!(bench.line_lengths(), [0, 8, 44]);
        let quick = bench.begin_many(LookupClass::Quick, "quick", 70);
        bench.skip(64);
        assert_eq!(bench.line_lengths(), [6, 8, 44]);
        drop((slow, new, quick));
        bench.skip(6 + 8 + 44);
        assert_eq!(bench.line_lengths(), [0, 0, 0]);
    }

    #[test]
    fn a_free_place_goes_to_the_highest_class_that_waits() {
        let bench = Bench::new();
        let mut held = bench.begin_many(LookupClass::Quick, "held", PLACES);
        bench.skip(PLACES);
        let _waiting = [(LookupClass::Slow, "slow"), (LookupClass::Quick, "quick")]
            .map(|(class, name)| bench.begin(class, name));
        held.pop();
        assert_eq!(bench.next(), "quick");
        assert_eq!(bench.line_lengths(), [0, 0, 1]);
    }

    #[test]
    fn threads_are_used_again_and_no_more_are_started_than_needed() {
        let bench = Bench::new();
        for _ in 0..100 {
            drop(bench.begin(LookupClass::New, "one"));
            bench.next();
            while bench.threads.shared.lock().taken > 0 {
                thread::yield_now();
            }
        }
        assert_eq!(bench.threads.shared.lock().threads, 1);
    }
}
