//! Looks up the addresses of host names: pending lookups, the tasks that wait for them, and answers that are held for
//! tasks.
//!
//! Concurrent requests for a name share one lookup. It runs on a thread ([`lookup_threads`](super::lookup_threads)) and
//! has a time limit from its start. The wait for a thread has a limit of its own. Failures are remembered
//! ([`memory`](super::memory)).
//!
//! Addresses are held only for tasks that need the name ([`HeldName`]): the requests of a task use the same addresses,
//! and the next task looks them up again. The HTTP client gets the held addresses, so a prepared request never waits
//! for a lookup.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

use super::lookup_threads::LookupThreads;
use super::memory::NameMemory;
use super::refusal::LookupError;

/// The answer for a name: its addresses, at least one, with port 0; or why there are none.
pub(super) type Answer = Result<Arc<[SocketAddr]>, Arc<LookupError>>;

/// A task looks a name up again before its next request if the answer is older than this.
pub const FRESH_FOR: Duration = Duration::from_secs(30);

/// A lookup fails if it gets no thread within this time.
const LONGEST_WAIT_IN_LINE: Duration = Duration::from_secs(60);

/// A function that looks a name up. Its call blocks until there is an answer.
pub(super) type System = Box<dyn Fn(&str) -> Result<Vec<SocketAddr>, LookupError> + Send + Sync>;

/// The lookups of names under way, and the answers held for tasks. Cheap to clone.
#[derive(Clone)]
pub(super) struct Names {
    shared: Arc<Shared>,
}

struct Shared {
    system: System,
    /// The time limit of a lookup.
    limit: Duration,
    threads: LookupThreads,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    memory: NameMemory,
    held: HashMap<Box<str>, HeldAnswer>,
    under_way: HashMap<Box<str>, Arc<watch::Sender<Progress>>>,
}

#[derive(Default)]
struct HeldAnswer {
    holders: usize,
    answer: Option<(Answer, Instant)>,
}

/// The progress of a lookup.
#[derive(Default)]
struct Progress {
    begun: Option<Instant>,
    answer: Option<Answer>,
}

impl Names {
    pub(super) fn new(limit: Duration, system: System) -> Names {
        Names {
            shared: Arc::new(Shared {
                system,
                limit,
                threads: LookupThreads::new(),
                state: Mutex::default(),
            }),
        }
    }

    /// Keeps the answer for a name until all [`HeldName`]s of it are dropped.
    pub(super) fn hold(&self, name: &str) -> HeldName {
        let mut state = self.shared.lock();
        state.held.entry(name.into()).or_default().holders += 1;
        HeldName {
            name: name.into(),
            names: self.clone(),
        }
    }

    /// Returns the addresses of a name: the held ones, however old, or those of a new lookup.
    pub(super) async fn addresses(&self, name: &str) -> Answer {
        self.answer_within_age(name, Duration::MAX).await
    }

    /// Forgets which names of a site could not be found.
    pub(super) fn forget_site(&self, site: &str) {
        self.shared.lock().memory.forget_site(site);
    }

    /// Returns the held answer if it is not older than `most_age`, or otherwise that of a new lookup.
    async fn answer_within_age(&self, name: &str, most_age: Duration) -> Answer {
        let mut progress = match self.join_or_start_lookup(name, most_age) {
            Ok(progress) => progress,
            Err(answer) => return answer,
        };
        let begun = wait_for_progress(&mut progress, |progress| progress.begun);
        let begun = match timeout(LONGEST_WAIT_IN_LINE, begun).await {
            Ok(Some(begun)) => begun,
            Ok(None) => return failed_answer(LookupError::BrokenOff),
            Err(_) => return failed_answer(LookupError::NoTurn(LONGEST_WAIT_IN_LINE)),
        };
        let answer = wait_for_progress(&mut progress, |progress| progress.answer.clone());
        match timeout_at((begun + self.shared.limit).into(), answer).await {
            Ok(Some(answer)) => answer,
            Ok(None) => failed_answer(LookupError::BrokenOff),
            Err(_) => self.shared.give_up(name),
        }
    }

    /// Returns the progress of a name's lookup, which is started if none is under way. If the answer is already known,
    /// it is returned as the error.
    fn join_or_start_lookup(
        &self,
        name: &str,
        most_age: Duration,
    ) -> Result<watch::Receiver<Progress>, Answer> {
        let mut state = self.shared.lock();
        if let Some(answer) = state.ready_answer(name, most_age, Instant::now()) {
            return Err(answer);
        }
        if let Some(look_up) = state.under_way.get(name) {
            return Ok(look_up.subscribe());
        }
        let look_up = Arc::new(watch::Sender::default());
        let progress = look_up.subscribe();
        let run = {
            let (shared, name) = (Arc::clone(&self.shared), Box::<str>::from(name));
            let look_up = Arc::clone(&look_up);
            move || shared.look_up(&name, &look_up)
        };
        let class = state.memory.class(name);
        let begun = self.shared.threads.begin(class, Box::new(run));
        begun.map_err(|error| failed_answer(LookupError::NoThread(error)))?;
        state.under_way.insert(name.into(), look_up);
        Ok(progress)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Names").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the system on a lookup thread, unless nothing waits for the result any more.
    fn look_up(&self, name: &str, look_up: &watch::Sender<Progress>) {
        let begun = Instant::now();
        let mut state = self.lock();
        if look_up.receiver_count() == 0 {
            state.under_way.remove(name);
            return;
        }
        drop(state);
        look_up.send_modify(|progress| progress.begun = Some(begun));
        let answer: Answer = (self.system)(name).map(Arc::from).map_err(Arc::new);
        let mut state = self.lock();
        state.under_way.remove(name);
        state.note(name, &answer, begun.elapsed());
        drop(state);
        look_up.send_modify(|progress| progress.answer = Some(answer));
    }

    /// Stops waiting for a lookup that has reached its time limit. The lookup itself keeps its thread and continues.
    fn give_up(&self, name: &str) -> Answer {
        let answer = failed_answer(LookupError::Unanswered(self.limit));
        self.lock().note(name, &answer, self.limit);
        answer
    }
}

impl State {
    fn ready_answer(&mut self, name: &str, most_age: Duration, now: Instant) -> Option<Answer> {
        let held = self.held.get(name).and_then(|held| held.answer.as_ref());
        if let Some((answer, at)) = held
            && now.saturating_duration_since(*at) <= most_age
        {
            return Some(answer.clone());
        }
        self.memory.failure(name, now).map(Err)
    }

    fn note(&mut self, name: &str, answer: &Answer, took: Duration) {
        let now = Instant::now();
        self.memory.note(name, answer, took, now);
        if let Some(held) = self.held.get_mut(name) {
            held.answer = Some((answer.clone(), now));
        }
    }
}

/// Holds the addresses of a name as long as it exists.
#[derive(Debug)]
pub struct HeldName {
    name: Box<str>,
    names: Names,
}

impl HeldName {
    /// Looks the name up, unless a fresh answer is held.
    pub async fn look_up(&self) {
        let answer = self.names.answer_within_age(&self.name, FRESH_FOR).await;
        let mut state = self.names.shared.lock();
        // If addresses are already held, hold the failure, too, so that the request does not look the name up again.
        if let Some(held) = state.held.get_mut(&self.name).filter(|_| answer.is_err()) {
            held.answer = Some((answer, Instant::now()));
        }
    }
}

impl Drop for HeldName {
    fn drop(&mut self) {
        let mut state = self.names.shared.lock();
        if let Some(held) = state.held.get_mut(&self.name) {
            held.holders -= 1;
            if held.holders == 0 {
                state.held.remove(&self.name);
            }
        }
    }
}

fn failed_answer(why: LookupError) -> Answer {
    Err(Arc::new(why))
}

/// Waits until `part` finds a value in the progress of a lookup; `None` if the lookup was dropped.
async fn wait_for_progress<T>(
    progress: &mut watch::Receiver<Progress>,
    part: impl Fn(&Progress) -> Option<T>,
) -> Option<T> {
    let reached = progress.wait_for(|progress| part(progress).is_some()).await;
    part(&*reached.ok()?)
}

#[cfg(test)]
mod tests;
