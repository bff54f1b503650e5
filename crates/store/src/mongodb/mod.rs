//! The MongoDB backend: one database that the processes of many machines write.
//!
//! The driver runs on a thread of its own ([`runtime_thread`]), so that its connections and its
//! monitoring of the servers do not depend on the callers' runtimes.
//!
//! A call is a few commands, whatever the size of its batch. It is answered once a majority of the
//! members has its writes. There are no transactions: every write is an idempotent statement on one
//! document, with a condition that detects concurrent writes. So a call that was interrupted, by a
//! timeout or by the election of a new primary, is repeated.
//!
//! Only this folder, and what it exports, knows BSON.

mod bodies;
mod browse;
mod cache;
mod changes;
mod claims;
mod command;
mod connection;
mod content_changes;
mod crawls;
mod dataset;
mod export;
mod fault;
mod field_counts;
mod health;
mod indexes;
mod lists;
mod page_log;
mod pages;
mod records;
mod reread;
mod reservations;
mod retention;
mod runtime_thread;
mod samples;
mod site_states;
mod source_documents;
mod taking_back;
mod uri;
mod validators;
mod value;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::change::{Change, ChangeFilter, ChangeKind, JudgedTo, Judgement, Versions};
use crate::claim::CrawlClaim;
use crate::crawl::{Crawl, CrawlId};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::field_counts::FieldCounts;
use crate::health::HealthState;
use crate::list::{ListedPage, ListedRows, MarkedGone};
use crate::record::{FillRules, MappingRules, RecordCounts};
use crate::reread::{Reread, RereadAnswer};
use crate::retention::{Cutoff, Dropped};
use crate::sample::Sample;
use crate::site_state::SiteState;
use crate::source_document::{DatasetRecord, RecordPut, Unwritten};
use crate::sqlite::Trial;
use crate::store::{
    Applied, ApplyPage, ExportError, ExportFilter, ExportKind, Save, SavePace, Saved, Store,
};
use crate::uri::{OpenMode, Uses};
use crate::validators::KnownPage;

use command::Db;
pub use dataset::{Dataset, DatasetDocument, DatasetSource, Documents, WriteBack};
use fault::Fault;
use runtime_thread::RuntimeThread;
pub use uri::{DatabasePlace, MongoUri};

/// A store and a cache in one database.
pub(crate) struct Mongo {
    db: Db,
    thread: RuntimeThread,
    rules: RwLock<Arc<FillRules>>,
    written_bodies: Arc<bodies::Written>,
}

impl Mongo {
    /// Connects to the server, and creates indexes where `mode` allows.
    pub(crate) async fn open(
        uri: &MongoUri,
        mode: OpenMode,
        uses: Uses,
    ) -> Result<Mongo, StoreError> {
        let store = uri.to_string();
        let thread = RuntimeThread::start().map_err(|error| StoreError::Fatal {
            store: store.clone(),
            reason: format!("cannot start its thread: {error}"),
        })?;
        let uri = uri.clone();
        let opening = thread.run(async move { connection::open(&uri, mode, uses).await });
        let opened = opening.await.ok_or_else(|| panicked(&store))?;
        Ok(Mongo {
            db: opened?,
            thread,
            rules: RwLock::default(),
            written_bodies: Arc::default(),
        })
    }

    fn rules(&self) -> Arc<FillRules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a call on the driver's thread.
    async fn call<R, W>(&self, call: impl FnOnce(Db) -> W) -> Result<R, StoreError>
    where
        R: Send + 'static,
        W: Future<Output = Result<R, Fault>> + Send + 'static,
    {
        let done = self.thread.run(call(self.db.clone())).await;
        let done = done.ok_or_else(|| panicked(&self.db.store))?;
        done.map_err(|fault| fault.into_error(&self.db.store))
    }
}

/// The time between two calls of a process. The processes of a machine share a rate that a server
/// can bear, so the more processes there are, the longer it is. At most 700 ms, which is well below
/// a polite delay: a site's next task is there when it is due.
fn pace(processes: u16) -> Duration {
    let ms = 125 * u64::from(processes);
    Duration::from_millis(ms.clamp(250, 700))
}

fn panicked(store: &str) -> StoreError {
    StoreError::Fatal {
        store: store.to_owned(),
        reason: String::from("cannot be used any more: a call broke down"),
    }
}

/// The same error for each entry of a batch that failed as a whole.
fn fail_all<R>(entries: usize, error: &StoreError) -> Vec<Result<R, StoreError>> {
    (0..entries).map(|_| Err(error.clone())).collect()
}

#[async_trait]
impl Store for Mongo {
    /// A call takes three round trips, whatever the number of pages.
    fn save_pace(&self, processes: u16) -> SavePace {
        SavePace {
            max_entries: 512,
            max_age: pace(processes),
        }
    }

    fn set_mapping_rules(&self, mappings: Arc<dyn MappingRules>) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *rules = Arc::new(FillRules::of(mappings));
    }

    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let count = saves.len();
        let rules = self.rules();
        self.call(async move |db: Db| pages::save(&db, &saves, &rules).await)
            .await
            .unwrap_or_else(|error| fail_all(count, &error))
    }

    async fn take_back(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let count = saves.len();
        let rules = self.rules();
        self.call(async move |db: Db| taking_back::take_back(&db, &saves, &rules).await)
            .await
            .unwrap_or_else(|error| fail_all(count, &error))
    }

    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordPut, StoreError>> {
        let id = |input: &DatasetRecord| input.record.id.clone();
        let ids: Vec<String> = records.iter().map(id).collect();
        let crawl = crawl.clone();
        let put = self
            .call(async move |db: Db| records::put(&db, &crawl, &records, now_ms).await)
            .await;
        let settled = match put {
            Ok(settled) => settled,
            Err(error) => return fail_all(ids.len(), &error),
        };
        let refusal = |(id, put): (String, Result<RecordPut, String>)| {
            put.map_err(|reason| StoreError::Entry {
                entry: format!("record {id:.80}"),
                reason,
            })
        };
        ids.into_iter().zip(settled).map(refusal).collect()
    }

    async fn unwritten(
        &self,
        crawl: &CrawlId,
        collection: &str,
        limit: u32,
    ) -> Result<Vec<Unwritten>, StoreError> {
        let (crawl, of) = (crawl.clone(), collection.to_owned());
        self.call(async move |db: Db| source_documents::unwritten(&db, &crawl, &of, limit).await)
            .await
    }

    async fn begin_writing(&self, written: &mut Vec<Unwritten>) -> Result<(), StoreError> {
        let records = std::mem::take(written);
        *written = self
            .call(async move |db: Db| source_documents::begin(&db, records).await)
            .await?;
        Ok(())
    }

    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<Unwritten>,
    ) -> Result<(), StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| source_documents::confirm(&db, &crawl, &written).await)
            .await
    }

    async fn record_counts(&self, crawl: &CrawlId) -> Result<RecordCounts, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| crawls::record_counts(&db, &crawl).await)
            .await
    }

    async fn field_counts(&self, crawl: &CrawlId) -> Result<FieldCounts, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| field_counts::count(&db, &crawl).await)
            .await
    }

    async fn crawl_before(&self, crawl: &CrawlId) -> Result<Option<CrawlId>, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| field_counts::crawl_before(&db, &crawl).await)
            .await
    }

    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError> {
        let rules = self.rules();
        self.call(async move |db: Db| pages::apply(&db, &applies, &rules).await)
            .await
    }

    async fn put_crawl(&self, crawl: Crawl) -> Result<(), StoreError> {
        self.call(async move |db: Db| crawls::put(&db, &crawl).await)
            .await
    }

    async fn get_crawl(&self, id: &CrawlId) -> Result<Option<Crawl>, StoreError> {
        let id = id.clone();
        self.call(async move |db: Db| crawls::get(&db, &id).await)
            .await
    }

    async fn claim_crawl(
        &self,
        claim: CrawlClaim,
        watched: Option<CrawlClaim>,
    ) -> Result<Option<CrawlClaim>, StoreError> {
        self.call(async move |db: Db| claims::claim(&db, &claim, watched.as_ref()).await)
            .await
    }

    async fn renew_claim(&self, claim: CrawlClaim) -> Result<bool, StoreError> {
        self.call(async move |db: Db| claims::renew(&db, &claim).await)
            .await
    }

    async fn release_crawl(&self, claim: CrawlClaim) -> Result<(), StoreError> {
        self.call(async move |db: Db| claims::release(&db, &claim).await)
            .await
    }

    async fn put_site_states(&self, states: Vec<SiteState>) -> Result<(), StoreError> {
        self.call(async move |db: Db| site_states::put(&db, &states).await)
            .await
    }

    async fn remove_site_states(&self, sites: Vec<String>) -> Result<(), StoreError> {
        self.call(async move |db: Db| site_states::remove(&db, &sites).await)
            .await
    }

    async fn site_state(&self, site: &str) -> Result<Option<SiteState>, StoreError> {
        let site = site.to_owned();
        self.call(async move |db: Db| site_states::get(&db, &site).await)
            .await
    }

    async fn first_pages(
        &self,
        crawl: &CrawlId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ListedPage>, StoreError> {
        let (crawl, after) = (crawl.clone(), after.to_owned());
        self.call(async move |db: Db| lists::first_pages(&db, &crawl, &after, limit).await)
            .await
    }

    async fn listed_pages(&self, ids: Vec<String>) -> Result<Vec<ListedPage>, StoreError> {
        self.call(async move |db: Db| lists::listed_pages(&db, &ids).await)
            .await
    }

    async fn listed_rows(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
    ) -> Result<ListedRows, StoreError> {
        let (list, dataset) = (list.to_owned(), dataset.to_owned());
        self.call(async move |db: Db| lists::listed_rows(&db, &list, &dataset, began_ms).await)
            .await
    }

    async fn mark_gone(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
        after: &str,
    ) -> Result<MarkedGone, StoreError> {
        let (list, dataset, after) = (list.to_owned(), dataset.to_owned(), after.to_owned());
        self.call(async move |db: Db| {
            lists::mark_gone(&db, &list, &dataset, began_ms, &after).await
        })
        .await
    }

    async fn health(&self) -> Result<Vec<HealthState>, StoreError> {
        self.call(async move |db: Db| health::all(&db).await).await
    }

    async fn put_health(&self, states: Vec<HealthState>) -> Result<Vec<bool>, StoreError> {
        self.call(async move |db: Db| health::put(&db, &states).await)
            .await
    }

    async fn samples(&self, mapping: &str) -> Result<Vec<Sample>, StoreError> {
        let mapping = mapping.to_owned();
        self.call(async move |db: Db| samples::of_mapping(&db, &mapping).await)
            .await
    }

    async fn sample_texts(&self, ids: Vec<String>) -> Result<Vec<Sample>, StoreError> {
        self.call(async move |db: Db| samples::with_texts(&db, &ids).await)
            .await
    }

    async fn put_samples(&self, samples: Vec<Sample>) -> Result<(), StoreError> {
        self.call(async move |db: Db| samples::put(&db, &samples).await)
            .await
    }

    async fn given_values(&self, keys: Vec<String>) -> Result<Vec<Map<String, Value>>, StoreError> {
        self.call(async move |db: Db| health::given_values(&db, &keys).await)
            .await
    }

    async fn judged_to(&self) -> Result<JudgedTo, StoreError> {
        self.call(async move |db: Db| content_changes::judged_to(&db).await)
            .await
    }

    async fn versions(&self, ids: Vec<String>) -> Result<Vec<Versions>, StoreError> {
        self.call(async move |db: Db| content_changes::versions(&db, &ids).await)
            .await
    }

    async fn with_versions(&self, ids: Vec<String>) -> Result<HashSet<String>, StoreError> {
        self.call(async move |db: Db| content_changes::with_versions(&db, &ids).await)
            .await
    }

    async fn put_judgement(&self, judgement: Judgement) -> Result<bool, StoreError> {
        self.call(async move |db: Db| content_changes::put(&db, &judgement).await)
            .await
    }

    async fn content_changes(
        &self,
        filter: &ChangeFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError> {
        let filter = filter.clone();
        self.call(async move |db: Db| content_changes::read(&db, &filter, after, limit).await)
            .await
    }

    async fn count_content_changes(
        &self,
        filter: &ChangeFilter,
    ) -> Result<BTreeMap<ChangeKind, u64>, StoreError> {
        let filter = filter.clone();
        self.call(async move |db: Db| content_changes::count(&db, &filter).await)
            .await
    }

    async fn count_new_documents(
        &self,
        crawl: &CrawlId,
        began_ms: i64,
        is_first: bool,
    ) -> Result<u64, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| {
            content_changes::new_documents(&db, &crawl, began_ms, is_first).await
        })
        .await
    }

    async fn export(
        &self,
        kind: ExportKind,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        // Bounded: one step waits while the next is read.
        let (steps, mut read) = mpsc::channel::<export::Step>(1);
        self.thread.start_task(export::read_all(
            self.db.clone(),
            kind,
            filter.clone(),
            steps,
        ));
        let mut rows = 0;
        while let Some(step) = read.recv().await {
            for row in step.map_err(|fault| fault.into_error(&self.db.store))? {
                each(row)?;
                rows += 1;
            }
        }
        Ok(rows)
    }

    async fn known_pages(&self, ids: Vec<String>) -> Result<Vec<KnownPage>, StoreError> {
        self.call(async move |db: Db| validators::known_pages(&db, &ids).await)
            .await
    }

    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        let (steps, mut read) = mpsc::channel::<export::Step>(1);
        let finding = export::read_pages(self.db.clone(), ids, steps);
        self.thread.start_task(finding);
        let mut pages = 0;
        while let Some(step) = read.recv().await {
            for page in step.map_err(|fault| fault.into_error(&self.db.store))? {
                each(page)?;
                pages += 1;
            }
        }
        Ok(pages)
    }

    async fn changes(
        &self,
        after: &Cursor,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Cursor, Value) -> io::Result<()> + Send),
    ) -> Result<Cursor, ExportError> {
        let (steps, mut read) = mpsc::channel::<changes::Step>(1);
        let reading = changes::read_all(self.db.clone(), after.clone(), filter.clone(), steps);
        self.thread.start_task(reading);
        while let Some(step) = read.recv().await {
            let step = step.map_err(|fault| fault.into_error(&self.db.store))?;
            for (cursor, page) in step.pages {
                each(cursor, page)?;
            }
            if let Some(end) = step.end {
                return Ok(end);
            }
        }
        Err(panicked(&self.db.store).into())
    }

    async fn drop_old(&self, cutoff: Cutoff) -> Result<Dropped, StoreError> {
        self.call(async move |db: Db| retention::drop_old(&db, cutoff).await)
            .await
    }

    async fn put_reread(
        &self,
        rereads: Vec<Reread>,
        trial: Option<Arc<Trial>>,
    ) -> Vec<Result<RereadAnswer, StoreError>> {
        let count = rereads.len();
        let rules = self.rules();
        self.call(async move |db: Db| reread::put(&db, &rereads, &rules, trial.as_deref()).await)
            .await
            .unwrap_or_else(|error| fail_all(count, &error))
    }
}
