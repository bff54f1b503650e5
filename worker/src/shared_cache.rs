//! The worker's access to the shared cache. Requests that are made within a short time are sent as one call. An
//! unreachable cache is logged once, not after each failed call.
//!
//! A call is sent immediately if the last one of its kind is long enough ago for the backend ([`Cache::call_pace`]).
//! Until then, requests are collected. Reservations are atomic steps, so each of them is a call of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use webfill_store::{
    Cache, Reservation, ReservationRelease, ReservationRequest, RobotsEntry, SiteClockEntry,
    StoreError,
};

use crate::now::now_ms;

/// How many requests one call has at most. The limit is low because a robots.txt may have half a megabyte.
const MAX_PER_CALL: usize = 64;

/// A cache shared by the runners of one worker.
pub struct SharedCache {
    cache: Arc<dyn Cache>,
    availability: Arc<Availability>,
    robots: BatchedCalls<String, Option<RobotsEntry>>,
    new_robots: BatchedCalls<RobotsEntry, ()>,
    sites: BatchedCalls<String, Option<SiteClockEntry>>,
}

impl SharedCache {
    /// Creates the access to a cache that `processes` workers of this machine use. Must be called in a
    /// [`tokio::task::LocalSet`].
    pub fn new(cache: Arc<dyn Cache>, processes: u16) -> SharedCache {
        let pace = cache.call_pace(processes);
        let (reader, writer, clocks) = (cache.clone(), cache.clone(), cache.clone());
        SharedCache {
            cache,
            availability: Arc::default(),
            robots: BatchedCalls::start(pace, async move |origins: Vec<String>| {
                reader.robots_of(origins, now_ms()).await
            }),
            new_robots: BatchedCalls::start(pace, async move |entries: Vec<RobotsEntry>| {
                let kept = vec![(); entries.len()];
                writer.put_robots(entries, now_ms()).await.map(|()| kept)
            }),
            sites: BatchedCalls::start(pace, async move |sites: Vec<String>| {
                clocks.sites(sites, now_ms()).await
            }),
        }
    }
}

#[async_trait]
impl Cache for SharedCache {
    fn call_pace(&self, processes: u16) -> Duration {
        self.cache.call_pace(processes)
    }

    async fn robots_of(
        &self,
        origins: Vec<String>,
        _now_ms: i64,
    ) -> Result<Vec<Option<RobotsEntry>>, StoreError> {
        self.availability
            .note_availability(self.robots.request_all(origins).await)
    }

    async fn put_robots(&self, entries: Vec<RobotsEntry>, _now_ms: i64) -> Result<(), StoreError> {
        let kept = self.new_robots.request_all(entries).await;
        self.availability.note_availability(kept.map(drop))
    }

    async fn sites(
        &self,
        sites: Vec<String>,
        _now_ms: i64,
    ) -> Result<Vec<Option<SiteClockEntry>>, StoreError> {
        self.availability
            .note_availability(self.sites.request_all(sites).await)
    }

    async fn put_sites(&self, entries: Vec<SiteClockEntry>) -> Result<(), StoreError> {
        self.availability
            .note_availability(self.cache.put_sites(entries).await)
    }

    async fn reserve(&self, request: &ReservationRequest) -> Result<Reservation, StoreError> {
        self.availability
            .note_availability(self.cache.reserve(request).await)
    }

    async fn release_reservation(&self, release: &ReservationRelease) -> Result<(), StoreError> {
        self.availability
            .note_availability(self.cache.release_reservation(release).await)
    }
}

/// Whether the last call reached the cache, to log each change.
#[derive(Default)]
struct Availability {
    is_away: AtomicBool,
}

impl Availability {
    fn note_availability<R>(&self, answer: Result<R, StoreError>) -> Result<R, StoreError> {
        let was_away = self.is_away.swap(answer.is_err(), Ordering::Relaxed);
        match &answer {
            Err(error) if !was_away => {
                tracing::warn!(event = "cache_away", %error, "the cache of robots.txt files and site clocks is unreachable");
            }
            Ok(_) if was_away => {
                tracing::info!(event = "cache_back", "the cache is reachable again");
            }
            _ => {}
        }
        answer
    }
}

/// Combines many requests into one call.
struct BatchedCalls<Q, A> {
    questions: mpsc::UnboundedSender<QueuedRequest<Q, A>>,
}

struct QueuedRequest<Q, A> {
    question: Q,
    answer: oneshot::Sender<Result<A, StoreError>>,
}

impl<Q: 'static, A: 'static> BatchedCalls<Q, A> {
    fn start(
        pace: Duration,
        call: impl AsyncFn(Vec<Q>) -> Result<Vec<A>, StoreError> + 'static,
    ) -> BatchedCalls<Q, A> {
        // The channel is unbounded, because each runner has at most one request under way.
        let (questions, asked) = mpsc::unbounded_channel();
        tokio::task::spawn_local(run_batches(asked, pace, call));
        BatchedCalls { questions }
    }

    /// Queues all questions, and returns their answers in the same order.
    async fn request_all(&self, questions: Vec<Q>) -> Result<Vec<A>, StoreError> {
        let ask = |question| {
            let (answer, answered) = oneshot::channel();
            let sent = self.questions.send(QueuedRequest { question, answer });
            sent.ok().map(|()| answered)
        };
        let asked: Vec<_> = questions.into_iter().map(ask).collect();
        let mut answers = Vec::with_capacity(asked.len());
        for answered in asked {
            let answered = answered.expect("the task ends with this handle");
            answers.push(answered.await.expect("the task answers every question")?);
        }
        Ok(answers)
    }
}

/// Answers questions in batches until the sending half is dropped.
async fn run_batches<Q, A>(
    mut asked: mpsc::UnboundedReceiver<QueuedRequest<Q, A>>,
    pace: Duration,
    call: impl AsyncFn(Vec<Q>) -> Result<Vec<A>, StoreError>,
) {
    let mut next_call = Instant::now();
    let mut together = Vec::new();
    while asked.recv_many(&mut together, MAX_PER_CALL).await > 0 {
        while together.len() < MAX_PER_CALL {
            let room = MAX_PER_CALL - together.len();
            let more = asked.recv_many(&mut together, room);
            match tokio::time::timeout_at(next_call, more).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        next_call = Instant::now() + pace;
        let of_call = |question: QueuedRequest<Q, A>| (question.question, question.answer);
        let (questions, answers): (Vec<_>, Vec<_>) = together.drain(..).map(of_call).unzip();
        // If a receiver is gone, nothing waits for its answer, which is dropped.
        match call(questions).await {
            Ok(found) => answers.into_iter().zip(found).for_each(|(answer, found)| {
                let _ = answer.send(Ok(found));
            }),
            Err(error) => answers.into_iter().for_each(|answer| {
                let _ = answer.send(Err(error.clone()));
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tokio::task::LocalSet;

    use super::*;

    const PACE: Duration = Duration::from_millis(250);

    type Calls = Rc<RefCell<Vec<(Instant, usize)>>>;

    /// Makes a batched call that doubles numbers, and notes each call. A call that contains a zero fails.
    fn doubling_calls(calls: &Calls) -> BatchedCalls<u32, u32> {
        let calls = Rc::clone(calls);
        BatchedCalls::start(PACE, async move |numbers: Vec<u32>| {
            calls.borrow_mut().push((Instant::now(), numbers.len()));
            match numbers.contains(&0) {
                true => Err(StoreError::Retry {
                    store: String::from("the cache"),
                    reason: String::from("it is away"),
                }),
                false => Ok(numbers.into_iter().map(|number| 2 * number).collect()),
            }
        })
    }

    fn run_with_paused_time<R>(test: impl Future<Output = R>) -> R {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        LocalSet::new().block_on(&runtime, test)
    }

    #[test]
    fn a_single_question_is_sent_immediately_and_many_are_batched() {
        let calls = Calls::default();
        run_with_paused_time(async {
            let start = Instant::now();
            let doubling = doubling_calls(&calls);
            assert_eq!(doubling.request_all(vec![7]).await, Ok(vec![14]));
            assert_eq!(start.elapsed(), Duration::ZERO);
            let doubling = Rc::new(doubling);
            let asking = (1..=10).map(|number| {
                let doubling = Rc::clone(&doubling);
                tokio::task::spawn_local(async move { doubling.request_all(vec![number]).await })
            });
            for (index, asked) in asking.collect::<Vec<_>>().into_iter().enumerate() {
                let expected = 2 * (index as u32 + 1);
                assert_eq!(asked.await.expect("no panic"), Ok(vec![expected]));
            }
            let calls = calls.borrow();
            assert_eq!(*calls, [(start, 1), (start + PACE, 10)]);
        });
    }

    #[test]
    fn a_full_batch_is_sent_immediately() {
        let calls = Calls::default();
        run_with_paused_time(async {
            let start = Instant::now();
            let doubling = doubling_calls(&calls);
            let numbers: Vec<u32> = (1..=3 * MAX_PER_CALL as u32).collect();
            let doubled: Vec<u32> = numbers.iter().map(|number| 2 * number).collect();
            assert_eq!(doubling.request_all(numbers).await, Ok(doubled));
            assert_eq!(*calls.borrow(), [(start, MAX_PER_CALL); 3]);
        });
    }

    #[test]
    fn a_failed_call_fails_for_all_its_requests_and_the_next_call_is_independent() {
        let calls = Calls::default();
        run_with_paused_time(async {
            let doubling = doubling_calls(&calls);
            assert!(doubling.request_all(vec![1, 0]).await.is_err());
            assert_eq!(doubling.request_all(vec![1]).await, Ok(vec![2]));
        });
    }
}
