//! The saver: writes task results to the store in batches, then reports them to the supervisor.
//!
//! A batch is closed when it is full or has reached the store's age limit ([`SavePace`]); while it is written, the next
//! one fills. While the store is unavailable, a batch is retried with growing pauses, and the bounded channel in front
//! of the saver slows the fetches down. A result is reported only after it is stored, so a crash never loses a page: a
//! task that was not reported is handed out again. Bodies that are kept are stored before their pages.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::Instrument;
use webfill_store::{Bodies, Page, Save, SavePace, Saved, Store, StoreError};
use webfill_wire::{Outcome, TaskDone};

use crate::counts::Counts;
use crate::kept_body;
use crate::task_result::TaskResult;

/// Pauses between retries while the store is unavailable.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(10);

/// How often dropped bodies are reported.
const LOG_DROPPED_EVERY: Duration = Duration::from_secs(60 * 60);

/// Writes results to the store.
pub struct Saver {
    pub store: Arc<dyn Store>,
    pub bodies: Arc<dyn Bodies>,
    /// The limit on the bytes of all kept bodies together.
    pub max_bodies_bytes: u64,
    /// When dropped bodies were last reported.
    pub dropped_logged_at: Cell<Option<Instant>>,
    pub pace: SavePace,
    /// The worker's name, kept with each page.
    pub worker: String,
    pub counts: Counts,
}

impl Saver {
    /// Runs until `results` is closed; an error means that the store can no longer be used.
    pub async fn run(
        &self,
        mut results: mpsc::Receiver<TaskResult>,
        acknowledge: impl Fn(Vec<TaskDone>),
    ) -> Result<(), StoreError> {
        let pace = self.pace;
        let mut batch = Vec::with_capacity(pace.max_entries);
        while results.recv_many(&mut batch, pace.max_entries).await > 0 {
            let closes = tokio::time::Instant::now() + pace.max_age;
            while batch.len() < pace.max_entries {
                let room = pace.max_entries - batch.len();
                match tokio::time::timeout_at(closes, results.recv_many(&mut batch, room)).await {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
            let done = self.save(std::mem::take(&mut batch)).await?;
            acknowledge(done);
        }
        Ok(())
    }

    async fn save(&self, results: Vec<TaskResult>) -> Result<Vec<TaskDone>, StoreError> {
        let answers = self.save_all(&results).await?;
        let now = Instant::now();
        let mut done = Vec::with_capacity(results.len());
        for (mut result, answer) in results.into_iter().zip(answers) {
            let span = result.span.clone();
            let saved = match answer {
                Ok(saved) => saved,
                Err(refusal) => {
                    let saving = self.save_without_content(&mut result, refusal);
                    saving.instrument(span.clone()).await?
                }
            };
            span.in_scope(|| log_result(&result));
            self.counts.note_page_saved(&result);
            done.push(result.into_task_done(saved, now));
        }
        Ok(done)
    }

    /// Saves the results, and retries while the store is unavailable. Entries that the store refuses
    /// because of their content come back as errors.
    async fn save_all(
        &self,
        results: &[TaskResult],
    ) -> Result<Vec<Result<Saved, StoreError>>, StoreError> {
        let mut wait = FIRST_RETRY;
        loop {
            let began = Instant::now();
            let answers = match self.keep_bodies(results).await {
                Ok(()) => {
                    let saves = results
                        .iter()
                        .map(|result| build_entry(result, &self.worker))
                        .collect();
                    self.store.save(saves).await
                }
                Err(error) => vec![Err(error)],
            };
            if let Some(fatal) = answers.iter().find_map(fatal_error) {
                return Err(fatal);
            }
            let busy = answers.iter().find_map(retry_error);
            self.counts
                .note_store_answered(began.elapsed(), busy.is_some());
            let Some(busy) = busy else {
                if wait > FIRST_RETRY {
                    tracing::info!(event = "store_back", "the store accepts writes again");
                }
                return Ok(answers);
            };
            if wait == FIRST_RETRY {
                tracing::warn!(event = "store_away", error = %busy, "the store accepts no writes, waiting for it");
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    /// Keeps the bodies of pages. Bodies that the store refuses because of their content are dropped.
    async fn keep_bodies(&self, results: &[TaskResult]) -> Result<(), StoreError> {
        let changes: Vec<_> = results.iter().filter_map(kept_body::body_change).collect();
        if changes.is_empty() {
            return Ok(());
        }
        match self.bodies.keep(changes, self.max_bodies_bytes).await {
            Ok(dropped) => {
                self.log_dropped(dropped.bodies);
                Ok(())
            }
            Err(error @ StoreError::Entry { .. }) => {
                tracing::warn!(event = "bodies_not_kept", %error, "the store rejected bodies of pages");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn log_dropped(&self, bodies: u64) {
        let logged_at = self.dropped_logged_at.get();
        let is_logged = logged_at.is_some_and(|logged_at| logged_at.elapsed() < LOG_DROPPED_EVERY);
        if bodies > 0 && !is_logged {
            self.dropped_logged_at.set(Some(Instant::now()));
            tracing::warn!(
                event = "bodies_dropped",
                bodies,
                max_mib = self.max_bodies_bytes >> 20,
                "kept bodies have reached bodies.max_mib; the oldest are dropped"
            );
        }
    }

    /// Saves a page that the store refuses because of its content: first without its body; if that is refused as well,
    /// as an `extract_error` without fields and links.
    async fn save_without_content(
        &self,
        result: &mut TaskResult,
        refusal: StoreError,
    ) -> Result<Saved, StoreError> {
        if result.body.take().is_some() {
            let mut answers = self.save_all(std::slice::from_ref(result)).await?;
            if let Some(Ok(saved)) = answers.pop() {
                return Ok(saved);
            }
        }
        result.headers = None;
        result.sample = None;
        result.snapshot = None;
        result.outcome = Outcome::ExtractError;
        result.error = Some(refusal.to_string());
        result.fields.clear();
        result.alternatives.clear();
        result.listings.clear();
        result.list = None;
        result.row_counts.clear();
        result.links.clear();
        let mut answers = self.save_all(std::slice::from_ref(result)).await?;
        Ok(answers.pop().and_then(Result::ok).unwrap_or_default())
    }
}

/// The entry of the store for a result. `worker` is the worker's name.
pub(crate) fn build_entry(result: &TaskResult, worker: &str) -> Save {
    let attrs = result.task.attrs.as_ref().or(result.crawl.attrs.as_ref());
    let page = Page {
        app_id: result.crawl.app_id.clone(),
        crawl_id: result.crawl.crawl_id.clone(),
        url: result.task.url.clone(),
        final_url: result.redirect.clone(),
        site: result.task.site.clone(),
        depth: result.task.depth,
        parent: result.task.parent.clone(),
        outcome: result.outcome,
        status_code: result.status_code,
        mapping: result.mapping.clone(),
        mapping_version: result.mapping_version.clone(),
        template: result.template.clone(),
        sample: result.sample.clone(),
        fields: result.fields.clone(),
        alternatives: result.alternatives.clone(),
        listings: result.listings.clone(),
        list: result
            .list
            .clone()
            .filter(|_| result.outcome == Outcome::Ok),
        row_counts: result.row_counts.clone(),
        links: result.links.clone(),
        content_type: result.content_type.clone(),
        bytes: result.stored_bytes.unwrap_or(result.body_bytes),
        content_hash: result.content_hash.clone(),
        started_at_ms: result.started_at_ms,
        elapsed_ms: result.elapsed.as_millis() as u64,
        task: result.task.task,
        delivery: result.task.delivery,
        worker: worker.to_owned(),
        attrs: attrs.and_then(|text| serde_json::from_str(text).ok()),
        failed_attempts: result.task.failed_attempts.clone(),
        headers: result.headers.clone(),
        body: result.body.clone(),
        document: result.document.clone(),
        validators: result
            .validators
            .clone()
            // A page with feeds gets no validators: the feeds are not stored with it, so a 304 would lose them.
            .filter(|_| result.outcome.is_page() && result.listed.is_empty()),
        snapshot: result.snapshot.clone(),
    };
    Save {
        page,
        records: result.task.records.clone(),
    }
}

fn fatal_error(answer: &Result<Saved, StoreError>) -> Option<StoreError> {
    answer
        .as_ref()
        .err()
        .filter(|error| error.is_fatal())
        .cloned()
}

fn retry_error(answer: &Result<Saved, StoreError>) -> Option<StoreError> {
    answer
        .as_ref()
        .err()
        .filter(|error| error.is_retry())
        .cloned()
}

fn log_result(result: &TaskResult) {
    tracing::info!(
        event = "ended",
        url = result.task.url,
        crawl_id = result.crawl.crawl_id,
        site = result.task.site,
        outcome = result.outcome.as_str(),
        status_code = result.status_code,
        error = result.error.as_deref(),
        mapping = result.mapping.as_deref(),
        fields = result.fields.len(),
        rows = result.rows(),
        links = result.links.len(),
        body_bytes = result.body_bytes,
        elapsed_ms = result.elapsed.as_millis() as u64,
        attempt = result.task.delivery.number,
        "task ended"
    );
}
