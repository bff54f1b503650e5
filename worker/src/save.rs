//! Saves endings in batches, then, and only then, acknowledges them.
//!
//! A batch closes when it is full or old enough for the store at hand; while one is being written
//! the next one fills.
//! What the store cannot take for now is tried again until it can: nothing is acknowledged that
//! is not stored, and the bounded channel in front of this stops the fetches meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use webfill_store::{Page, Save, SavePace, Saved, Store, StoreError};
use webfill_wire::{Outcome, TaskDone};

use crate::ending::Ending;

/// Waits between tries while the store is out of reach.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(10);

/// Writes endings to the store.
pub struct Saver {
    pub store: Arc<dyn Store>,
    pub pace: SavePace,
    /// The worker's name, kept with each page.
    pub worker: String,
}

impl Saver {
    /// Runs until `endings` is closed; an error means that the store is of no more use.
    pub async fn run(
        &self,
        mut endings: mpsc::Receiver<Ending>,
        acknowledge: impl Fn(Vec<TaskDone>),
    ) -> Result<(), StoreError> {
        let pace = self.pace;
        let mut batch = Vec::with_capacity(pace.max_entries);
        while endings.recv_many(&mut batch, pace.max_entries).await > 0 {
            let closes = tokio::time::Instant::now() + pace.max_age;
            while batch.len() < pace.max_entries {
                let room = pace.max_entries - batch.len();
                match tokio::time::timeout_at(closes, endings.recv_many(&mut batch, room)).await {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
            let done = self.save(std::mem::take(&mut batch)).await?;
            acknowledge(done);
        }
        Ok(())
    }

    async fn save(&self, endings: Vec<Ending>) -> Result<Vec<TaskDone>, StoreError> {
        let answers = self.save_all(&endings).await?;
        let now = Instant::now();
        let mut done = Vec::with_capacity(endings.len());
        for (mut ending, answer) in endings.into_iter().zip(answers) {
            let saved = match answer {
                Ok(saved) => saved,
                Err(refusal) => self.save_without_content(&mut ending, refusal).await?,
            };
            log_end(&ending);
            done.push(ending.done(saved.resolved, now));
        }
        Ok(done)
    }

    /// Saves, again and again while the store is out of reach. Entries that the store refuses for
    /// their content come back as errors.
    async fn save_all(
        &self,
        endings: &[Ending],
    ) -> Result<Vec<Result<Saved, StoreError>>, StoreError> {
        let mut wait = FIRST_RETRY;
        loop {
            let saves = endings.iter().map(|ending| self.entry(ending)).collect();
            let answers = self.store.save(saves).await;
            if let Some(fatal) = answers.iter().find_map(fatal_error) {
                return Err(fatal);
            }
            let Some(busy) = answers.iter().find_map(retry_error) else {
                if wait > FIRST_RETRY {
                    tracing::info!(event = "store_back", "the store takes writes again");
                }
                return Ok(answers);
            };
            if wait == FIRST_RETRY {
                tracing::warn!(event = "store_away", error = %busy, "the store takes no writes, waiting for it");
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    /// The page's content cannot be stored. Perhaps it can without its text; else that fact is kept
    /// instead.
    async fn save_without_content(
        &self,
        ending: &mut Ending,
        refusal: StoreError,
    ) -> Result<Saved, StoreError> {
        if ending.body.take().is_some() {
            let mut answers = self.save_all(std::slice::from_ref(ending)).await?;
            if let Some(Ok(saved)) = answers.pop() {
                return Ok(saved);
            }
        }
        ending.headers = None;
        ending.outcome = Outcome::ExtractError;
        ending.error = Some(refusal.to_string());
        ending.fields.clear();
        ending.links.clear();
        let mut answers = self.save_all(std::slice::from_ref(ending)).await?;
        Ok(answers.pop().and_then(Result::ok).unwrap_or_default())
    }

    fn entry(&self, ending: &Ending) -> Save {
        let attrs = ending.task.attrs.as_ref().or(ending.crawl.attrs.as_ref());
        let page = Page {
            app_id: ending.crawl.app_id.clone(),
            crawl_id: ending.crawl.crawl_id.clone(),
            url: ending.task.url.clone(),
            final_url: ending.redirect.clone(),
            site: ending.task.site.clone(),
            depth: ending.task.depth,
            parent: ending.task.parent.clone(),
            outcome: ending.outcome,
            status_code: ending.status_code,
            mapping: ending.mapping.clone(),
            fields: ending.fields.clone(),
            links: ending.links.clone(),
            content_type: ending.content_type.clone(),
            bytes: ending.body_bytes,
            content_hash: ending.content_hash.clone(),
            started_at_ms: ending.started_at_ms,
            elapsed_ms: ending.elapsed.as_millis() as u64,
            delivery: ending.task.delivery,
            worker: self.worker.clone(),
            attrs: attrs.and_then(|text| serde_json::from_str(text).ok()),
            failed_attempts: ending.task.failed_attempts.clone(),
            headers: ending.headers.clone(),
            body: ending.body.as_ref().map(|body| Arc::clone(&body.text)),
        };
        Save {
            page,
            records: ending.task.records.clone(),
        }
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

fn log_end(ending: &Ending) {
    tracing::info!(
        event = "ended",
        url = ending.task.url,
        crawl_id = ending.crawl.crawl_id,
        site = ending.task.site,
        outcome = ending.outcome.as_str(),
        status_code = ending.status_code,
        error = ending.error.as_deref(),
        mapping = ending.mapping.as_deref(),
        fields = ending.fields.len(),
        links = ending.links.len(),
        body_bytes = ending.body_bytes,
        elapsed_ms = ending.elapsed.as_millis() as u64,
        attempt = ending.task.delivery,
        "task ended"
    );
}
