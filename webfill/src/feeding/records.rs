//! Puts the records of seeds into the store, before the URLs that may fill them are fed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use webfill_startup::Fault;
use webfill_store::{CrawlId, DatasetRecord, Record, RecordState, Store, StoreError};

use crate::seeds::Seed;

const STORE_RETRY: Duration = Duration::from_millis(500);

/// What becomes of a seed once its record is in the store.
pub enum Put {
    /// Its URLs are crawled: fields are missing, or the seed has no record.
    Open,
    /// No field is missing, so its URLs are not crawled.
    NothingToDo,
    /// The store refuses the record.
    Refused(String),
}

/// Puts records into the store.
pub struct Records {
    pub store: Arc<dyn Store>,
    pub crawl: CrawlId,
    /// When a record enters the crawl, stored values of its wanted fields are dropped.
    pub refresh: bool,
    /// Set when the crawl is over.
    pub over: Arc<AtomicBool>,
    pub runtime: tokio::runtime::Runtime,
}

impl Records {
    /// Puts the records of a batch. Returns what becomes of each seed; `None` if the crawl was over
    /// before the store had taken the records.
    pub fn put(&self, batch: &[Seed]) -> Result<Option<Vec<Put>>, Fault> {
        let records = batch
            .iter()
            .filter_map(|seed| self.record_of(seed))
            .collect();
        let Some(states) = self.put_until_taken(records) else {
            return Ok(None);
        };
        let mut states = states.into_iter();
        let put_of = |seed: &Seed| match seed.id {
            None => Ok(Put::Open),
            Some(_) => match states.next() {
                Some(Ok(RecordState::Open)) => Ok(Put::Open),
                Some(Ok(_)) | None => Ok(Put::NothingToDo),
                Some(Err(error)) if error.is_fatal() => Err(store_fault(error)),
                Some(Err(error)) => Ok(Put::Refused(error.to_string())),
            },
        };
        batch.iter().map(put_of).collect::<Result<_, _>>().map(Some)
    }

    /// Retries while the store is unreachable and the crawl goes on.
    fn put_until_taken(
        &self,
        records: Vec<DatasetRecord>,
    ) -> Option<Vec<Result<RecordState, StoreError>>> {
        if records.is_empty() {
            return Some(Vec::new());
        }
        loop {
            let put = self
                .store
                .put_dataset(&self.crawl, records.clone(), now_ms());
            let states = self.runtime.block_on(put);
            let is_away =
                |state: &Result<_, StoreError>| state.as_ref().is_err_and(StoreError::is_retry);
            if !states.iter().any(is_away) {
                return Some(states);
            }
            if self.over.load(Ordering::Relaxed) {
                return None;
            }
            std::thread::sleep(STORE_RETRY);
        }
    }

    fn record_of(&self, seed: &Seed) -> Option<DatasetRecord> {
        Some(DatasetRecord {
            record: Record {
                id: seed.id.clone()?,
                fields: seed.fields.clone().unwrap_or_default(),
                want: seed.want.clone(),
            },
            refresh: self.refresh,
            source: seed.source.clone(),
        })
    }
}

pub fn store_fault(error: StoreError) -> Fault {
    if error.is_fatal() {
        Fault::fatal(error)
    } else {
        Fault::error(error)
    }
}

pub fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since_epoch| since_epoch.as_millis() as i64)
}
