//! Puts the records of seeds into the store, before the URLs that may fill them are fed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use webfill_service::Fault;
use webfill_store::{
    CrawlId, DatasetName, DatasetRecord, Record, RecordPut, RecordState, Refresh, Store,
    StoreError, has_value,
};

use super::position::Position;
use crate::seeds::Seed;

const STORE_RETRY: Duration = Duration::from_millis(500);

/// What to do with a seed after its record was put into the store.
pub enum SeedState {
    /// The URLs are crawled, because fields are missing or the seed has no record.
    Open,
    /// No field is missing. The URLs are crawled only if they list rows.
    NothingToDo,
    /// The store refuses the record.
    Refused(String),
}

/// The result of putting the record of a seed into the store.
pub struct StoredSeed {
    pub put: SeedState,
    /// The earlier line of the input that has the same record, if there is one.
    pub earlier_line: Option<u64>,
}

/// Which fields are refreshed although they have a value.
#[derive(Debug, Clone, Copy, Default)]
pub struct RefreshRule {
    /// All wanted fields, at the time when their record enters the crawl.
    pub on_entry: bool,
    /// In each run, the fields that a page has filled longer than this ago, in milliseconds.
    pub after_ms: Option<u64>,
    /// The fields that a page has filled before this time, in milliseconds since the epoch.
    pub since_ms: Option<i64>,
}

impl RefreshRule {
    /// Whether fields with a value are wanted, too.
    pub fn wants_filled_fields(self) -> bool {
        self.on_entry || self.after_ms.is_some() || self.since_ms.is_some()
    }

    /// The least age of fields that are refreshed, in milliseconds.
    fn least_age_ms(self, now_ms: i64) -> Option<u64> {
        let since = self.since_ms;
        let since = since.map(|since_ms| now_ms.saturating_sub(since_ms).max(0) as u64);
        since.or(self.after_ms)
    }
}

impl StoredSeed {
    fn from_put(put: SeedState) -> StoredSeed {
        StoredSeed {
            put,
            earlier_line: None,
        }
    }
}

/// Puts records into the store.
pub struct Records {
    pub store: Arc<dyn Store>,
    pub crawl: CrawlId,
    pub dataset: DatasetName,
    pub refresh: RefreshRule,
    /// Whether the crawl is over.
    pub over: Arc<AtomicBool>,
    pub runtime: tokio::runtime::Runtime,
}

impl Records {
    /// Puts the records of a batch; `input` is a position in their input. Returns the state of each seed; `None` if
    /// the crawl was over before the store accepted the records.
    pub fn put_records(
        &self,
        batch: &[Seed],
        input: &Position,
    ) -> Result<Option<Vec<StoredSeed>>, Fault> {
        let now_ms = now_ms();
        let records = batch
            .iter()
            .filter_map(|seed| self.record_of(seed, input, now_ms))
            .collect();
        let Some(put) = self.put_with_retry(records, now_ms) else {
            return Ok(None);
        };
        let mut put = put.into_iter();
        let taken = |seed: &Seed| match seed.id {
            None => Ok(StoredSeed::from_put(SeedState::Open)),
            Some(_) => match put.next() {
                Some(Ok(put)) => Ok(StoredSeed {
                    put: match put.state {
                        RecordState::Open => SeedState::Open,
                        RecordState::Resolved => SeedState::NothingToDo,
                    },
                    earlier_line: put.earlier.and_then(|earlier| input.line_at(earlier)),
                }),
                None => Ok(StoredSeed::from_put(SeedState::NothingToDo)),
                Some(Err(error)) if error.is_fatal() => Err(store_fault(error)),
                Some(Err(error)) => Ok(StoredSeed::from_put(SeedState::Refused(error.to_string()))),
            },
        };
        batch.iter().map(taken).collect::<Result<_, _>>().map(Some)
    }

    /// Puts records into the store. While the store is unreachable and the crawl runs, this is retried.
    fn put_with_retry(
        &self,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Option<Vec<Result<RecordPut, StoreError>>> {
        if records.is_empty() {
            return Some(Vec::new());
        }
        loop {
            let put = self.store.put_dataset(&self.crawl, records.clone(), now_ms);
            let put = self.runtime.block_on(put);
            let is_away =
                |put: &Result<_, StoreError>| put.as_ref().is_err_and(StoreError::is_retry);
            if !put.iter().any(is_away) {
                return Some(put);
            }
            if self.over.load(Ordering::Relaxed) {
                return None;
            }
            std::thread::sleep(STORE_RETRY);
        }
    }

    fn refresh_of(&self, seed: &Seed, now_ms: i64) -> Refresh {
        let is_known = |name: &&String| {
            let value = seed.fields.as_ref().and_then(|fields| fields.get(*name));
            value.is_some_and(has_value)
        };
        let wanted = seed.want.iter();
        let on_entry = match self.refresh.on_entry {
            true => wanted.cloned().collect(),
            // If a line's `want` names a field that has a value already, the line requests a new value.
            false if seed.lists_want => wanted.filter(is_known).cloned().collect(),
            false => Vec::new(),
        };
        Refresh {
            on_entry,
            after_ms: self.refresh.least_age_ms(now_ms),
        }
    }

    fn record_of(&self, seed: &Seed, input: &Position, now_ms: i64) -> Option<DatasetRecord> {
        Some(DatasetRecord {
            record: Record {
                dataset: self.dataset.clone(),
                id: seed.id.clone()?,
                fields: seed.fields.clone().unwrap_or_default(),
                want: seed.want.clone(),
            },
            refresh: self.refresh_of(seed, now_ms),
            urls: seed.urls.clone(),
            source: seed.source.clone(),
            position: input.line_key(seed.line),
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
