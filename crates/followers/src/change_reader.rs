//! Answers the core's questions about changes, on a thread of its own beside the loop. It reads the store, and waits
//! until the checks of a run are judged. A question that cannot be answered yet, because checks are not judged or the
//! store is away, is retried until it can. Nothing here is durable: after a crash the core asks again.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use webfill_scheduler::effects::{ChangesAnswer, ChangesQuestion, ChangesRequest, ChangesResult};
use webfill_service::Fault;
use webfill_store::{Store, StoreError, StoreUri};

use crate::followed_store::FollowedStore;
use crate::{run_changes, thread};

/// How often a question is retried. After a slow attempt the wait is [`POLL_SHARE`] times as long as the attempt.
const POLL_EVERY: Duration = Duration::from_millis(500);
const POLL_SHARE: u32 = 10;

/// Maximum time for one answer: the questions of other watches wait for it.
const FIND_MAX: Duration = Duration::from_secs(10);

/// The part of [`FIND_MAX`] that counting may take.
const COUNT_MAX: Duration = Duration::from_secs(5);

/// How long the end of a run waits for the judgement of its checks. Later changes are reported separately.
const PATIENCE: Duration = Duration::from_secs(60);

/// The handle of the thread that answers the core's questions about changes.
pub struct ChangeReader(mpsc::UnboundedSender<ChangesRequest>);

impl ChangeReader {
    /// Starts the thread, which ends when this handle is dropped.
    pub fn start(
        store: StoreUri,
        on_answer: impl Fn(ChangesAnswer) + Send + 'static,
    ) -> Result<ChangeReader, Fault> {
        let (ask, asked) = mpsc::unbounded_channel();
        let reading = ReaderState {
            store: FollowedStore::new(store),
            waiting: Vec::new(),
            on_answer: Box::new(on_answer),
        };
        let what = "the thread that reads changes";
        thread::spawn("change-reader", what, move || reading.run(asked))?;
        Ok(ChangeReader(ask))
    }

    /// Sends questions to the thread. Returns those that nobody reads, because the thread has panicked.
    pub fn request(&self, questions: Vec<ChangesRequest>) -> Vec<ChangesRequest> {
        let unread = |asked| self.0.send(asked).err().map(|error| error.0);
        questions.into_iter().filter_map(unread).collect()
    }
}

/// The findings of a run. If counting takes too long, the changes are reported without counts.
async fn load_counts(
    store: &dyn Store,
    asked: &ChangesRequest,
    began_ms: i64,
) -> Map<String, Value> {
    let counting = run_changes::load_results(store, &asked.crawl, began_ms);
    let why = match tokio::time::timeout(COUNT_MAX, counting).await {
        Ok(Ok(found)) => return found.counts(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {COUNT_MAX:?}"),
    };
    tracing::warn!(
        event = "changes_not_counted",
        watch = asked.watch,
        why,
        "the record of a run has no changes"
    );
    Map::new()
}

/// The state of the thread that answers the core's questions.
struct ReaderState {
    store: FollowedStore,
    waiting: Vec<PendingRequest>,
    on_answer: Box<dyn Fn(ChangesAnswer) + Send>,
}

/// A question that is not answered yet.
struct PendingRequest {
    asked: ChangesRequest,
    poll_at: Instant,
    /// When the answer counts as late. A late answer is logged once.
    late_at: Option<Instant>,
}

impl ReaderState {
    async fn run(mut self, mut asks: mpsc::UnboundedReceiver<ChangesRequest>) {
        loop {
            let asked = match self.waiting.is_empty() {
                true => asks.recv().await,
                false => match tokio::time::timeout(POLL_EVERY, asks.recv()).await {
                    Ok(asked) => asked,
                    Err(_) => {
                        self.answer_due().await;
                        continue;
                    }
                },
            };
            let Some(asked) = asked else { return };
            self.add_request(asked);
            while let Ok(more) = asks.try_recv() {
                self.add_request(more);
            }
            self.answer_due().await;
        }
    }

    /// Adds a question. A watch has one question of each kind at a time, so a later one replaces it.
    fn add_request(&mut self, asked: ChangesRequest) {
        let now = Instant::now();
        self.waiting.retain(|one| !one.asked.is_replaced_by(&asked));
        let is_of_run = matches!(asked.question, ChangesQuestion::Run { .. });
        self.waiting.push(PendingRequest {
            asked,
            poll_at: now,
            late_at: is_of_run.then(|| now + PATIENCE),
        });
    }

    /// Answers the questions whose answers are available. If the store fails, the other questions are retried later.
    async fn answer_due(&mut self) {
        let mut at = 0;
        while at < self.waiting.len() {
            self.log_late();
            if Instant::now() < self.waiting[at].poll_at {
                at += 1;
                continue;
            }
            let asked = self.waiting[at].asked.clone();
            let began = Instant::now();
            let found = self.find_answer_in_time(&asked).await;
            if let Ok(Some(found)) = found {
                self.store.note_available();
                self.waiting.remove(at);
                self.send_answer(&asked, found);
                continue;
            }
            let wait = POLL_EVERY.max(began.elapsed() * POLL_SHARE);
            self.waiting[at].poll_at = Instant::now() + wait;
            if let Err(why) = found {
                self.note_failure(&why);
                // Moves the question behind all other questions, in case it alone fails.
                self.waiting[at..].rotate_left(1);
                break;
            }
            self.store.note_available();
            at += 1;
        }
        self.log_late();
    }

    /// Logs each run whose answer is late, once.
    fn log_late(&mut self) {
        let now = Instant::now();
        let mut late = Vec::new();
        for waiting in &mut self.waiting {
            if waiting.late_at.is_some_and(|late_at| now >= late_at) {
                waiting.late_at = None;
                late.push(waiting.asked.clone());
            }
        }
        for asked in late {
            tracing::warn!(
                event = "changes_late",
                watch = asked.watch,
                "the changes of a run are not known yet: its end is reported without them, and they follow later"
            );
            self.send_answer(&asked, ChangesResult::Late);
        }
    }

    fn send_answer(&self, asked: &ChangesRequest, found: ChangesResult) {
        let asked = asked.clone();
        (self.on_answer)(ChangesAnswer { asked, found });
    }

    fn note_failure(&mut self, error: &str) {
        if self.store.note_unavailable() {
            tracing::warn!(event = "changes_not_read", %error, "changes are not reported until the store can be read");
        }
    }

    async fn find_answer_in_time(
        &mut self,
        asked: &ChangesRequest,
    ) -> Result<Option<ChangesResult>, String> {
        match tokio::time::timeout(FIND_MAX, self.find_answer(asked)).await {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {FIND_MAX:?}")),
        }
    }

    /// The answer to a question; `None` if it is not available yet.
    async fn find_answer(
        &mut self,
        asked: &ChangesRequest,
    ) -> Result<Option<ChangesResult>, StoreError> {
        let store = self.store.open().await?;
        let crawl = &asked.crawl;
        let found = match asked.question {
            ChangesQuestion::Position { asked_ms } => {
                let before =
                    run_changes::load_change_number_before(&*store, crawl, asked_ms).await?;
                ChangesResult::Position(before)
            }
            ChangesQuestion::After(after) => {
                ChangesResult::Changes(run_changes::read_changes(&*store, crawl, after).await?)
            }
            ChangesQuestion::Run {
                began_ms, after, ..
            } => {
                if !run_changes::is_judged(&*store, crawl).await? {
                    return Ok(None);
                }
                let changes = match after {
                    Some(after) => Some(run_changes::read_changes(&*store, crawl, after).await?),
                    None => None,
                };
                let counts = load_counts(&*store, asked, began_ms).await;
                ChangesResult::Run { counts, changes }
            }
        };
        Ok(Some(found))
    }
}
