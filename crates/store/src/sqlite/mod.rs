//! The SQLite backend: one file that the processes of one machine write, through the write-ahead log
//! (WAL).
//!
//! Each process has one connection, owned by one thread ([`connection_thread`]), which calls reach
//! through a bounded queue. A call is one transaction, begun with BEGIN IMMEDIATE so that two
//! processes cannot deadlock. With `synchronous = FULL`, the writes of an answered call survive the
//! death of every process and a loss of power.
//!
//! Only this folder knows rusqlite.

pub(crate) mod backup;
mod batch;
mod bodies;
mod browse;
mod cache;
mod changes;
mod claims;
mod connection;
mod connection_thread;
mod content_changes;
mod crawls;
mod export;
mod fault;
mod field_counts;
mod health;
mod lists;
mod pages;
mod records;
mod reread;
mod reservations;
mod retention;
mod rows;
mod samples;
mod schema;
mod scratch;
mod site_states;
mod source_documents;
mod tally;
mod trial;
mod validators;

pub use tally::ValueTally;
pub use trial::Trial;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use serde_json::{Map, Value};

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
use crate::store::{
    Applied, ApplyPage, ExportError, ExportFilter, ExportKind, Save, SavePace, Saved, Store,
};
use crate::uri::OpenMode;
use crate::validators::KnownPage;

use batch::write_each;
use bodies::BodiesFile;
use browse::Browsing;
use connection::Db;
use connection_thread::ConnectionThread;
use fault::store_name;

/// A store and a cache in one SQLite file.
pub(crate) struct Sqlite {
    thread: ConnectionThread,
    path: PathBuf,
    bodies: BodiesFile,
    browsing: Browsing,
    rules: RwLock<Arc<FillRules>>,
    /// The position up to which pages were checked for old ones.
    retained_to: AtomicI64,
}

impl Sqlite {
    /// Opens the file, and creates it where `mode` allows.
    pub(crate) async fn open(path: PathBuf, mode: OpenMode) -> Result<Sqlite, StoreError> {
        let file = path.clone();
        let open = move || open_file(&file, mode);
        let thread = ConnectionThread::start(store_name(&path), open).await?;
        Ok(Sqlite {
            thread,
            bodies: BodiesFile::beside(&path),
            browsing: Browsing::of(&path),
            path,
            rules: RwLock::default(),
            retained_to: AtomicI64::default(),
        })
    }

    fn rules(&self) -> Arc<FillRules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn open_file(path: &Path, mode: OpenMode) -> Result<Db, StoreError> {
    let mut db = schema::open(path, mode)?;
    if mode == OpenMode::Create
        && let Err(error) = db.write(cache::forget_idle_sites)
    {
        tracing::warn!(%error, "cannot forget idle sites, will try at the next start");
    }
    Ok(db)
}

/// The same error for each entry of a batch that failed as a whole.
fn fail_all<R>(entries: usize, error: &StoreError) -> Vec<Result<R, StoreError>> {
    (0..entries).map(|_| Err(error.clone())).collect()
}

#[async_trait]
impl Store for Sqlite {
    /// Commits are cheap, and a long transaction blocks the other writers.
    fn save_pace(&self, _processes: u16) -> SavePace {
        SavePace {
            max_entries: 128,
            max_age: Duration::from_millis(20),
        }
    }

    fn set_mapping_rules(&self, mappings: Arc<dyn MappingRules>) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *rules = Arc::new(FillRules::of(mappings));
    }

    /// One transaction.
    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let count = saves.len();
        let rules = self.rules();
        self.thread
            .call(move |db| {
                write_each(db, &saves, pages::describe_save, |conn, save| {
                    pages::save(conn, save, &rules)
                })
            })
            .await
            .unwrap_or_else(|error| fail_all(count, &error))
    }

    /// One transaction.
    async fn take_back(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let count = saves.len();
        let rules = self.rules();
        self.thread
            .call(move |db| {
                write_each(db, &saves, pages::describe_save, |conn, save| {
                    pages::take_back(conn, save, &rules)
                })
            })
            .await
            .unwrap_or_else(|error| fail_all(count, &error))
    }

    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordPut, StoreError>> {
        let count = records.len();
        let crawl = crawl.to_string();
        self.thread
            .call(move |db| {
                write_each(db, &records, records::describe_record, |conn, record| {
                    records::put(conn, &crawl, record, now_ms)
                })
            })
            .await
            .unwrap_or_else(|error| fail_all(count, &error))
    }

    async fn unwritten(
        &self,
        crawl: &CrawlId,
        collection: &str,
        limit: u32,
    ) -> Result<Vec<Unwritten>, StoreError> {
        let (crawl, of) = (crawl.to_string(), collection.to_owned());
        self.thread
            .call(move |db| db.read(|conn| source_documents::unwritten(conn, &crawl, &of, limit)))
            .await?
    }

    async fn begin_writing(&self, written: &mut Vec<Unwritten>) -> Result<(), StoreError> {
        let records = written.clone();
        self.thread
            .call(move |db| db.write(|conn| source_documents::begin(conn, &records)))
            .await?
    }

    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<Unwritten>,
    ) -> Result<(), StoreError> {
        let crawl = crawl.to_string();
        self.thread
            .call(move |db| db.write(|conn| source_documents::confirm(conn, &crawl, &written)))
            .await?
    }

    async fn record_counts(&self, crawl: &CrawlId) -> Result<RecordCounts, StoreError> {
        let crawl = crawl.to_string();
        self.thread
            .call(move |db| db.read(|conn| crawls::record_counts(conn, &crawl)))
            .await?
    }

    async fn field_counts(&self, crawl: &CrawlId) -> Result<FieldCounts, StoreError> {
        let crawl = crawl.to_string();
        self.thread
            .call(move |db| db.read(|conn| field_counts::count(conn, &crawl)))
            .await?
    }

    async fn crawl_before(&self, crawl: &CrawlId) -> Result<Option<CrawlId>, StoreError> {
        let crawl = crawl.clone();
        self.thread
            .call(move |db| db.read(|conn| field_counts::crawl_before(conn, &crawl)))
            .await?
    }

    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError> {
        let rules = self.rules();
        self.thread
            .call(move |db| {
                db.write(|conn| {
                    let apply = |apply| pages::apply(conn, apply, &rules);
                    applies.iter().map(apply).collect()
                })
            })
            .await?
    }

    async fn put_crawl(&self, crawl: Crawl) -> Result<(), StoreError> {
        self.thread
            .call(move |db| db.write(|conn| crawls::put(conn, &crawl)))
            .await?
    }

    async fn get_crawl(&self, id: &CrawlId) -> Result<Option<Crawl>, StoreError> {
        let key = id.to_string();
        self.thread
            .call(move |db| db.read(|conn| crawls::get(conn, &key)))
            .await?
    }

    async fn claim_crawl(
        &self,
        claim: CrawlClaim,
        watched: Option<CrawlClaim>,
    ) -> Result<Option<CrawlClaim>, StoreError> {
        self.thread
            .call(move |db| db.write(|conn| claims::claim(conn, &claim, watched.as_ref())))
            .await?
    }

    async fn renew_claim(&self, claim: CrawlClaim) -> Result<bool, StoreError> {
        self.thread
            .call(move |db| db.write(|conn| claims::renew(conn, &claim)))
            .await?
    }

    async fn release_crawl(&self, claim: CrawlClaim) -> Result<(), StoreError> {
        self.thread
            .call(move |db| db.write(|conn| claims::release(conn, &claim)))
            .await?
    }

    async fn put_site_states(&self, states: Vec<SiteState>) -> Result<(), StoreError> {
        self.thread
            .call(move |db| db.write(|conn| site_states::put(conn, &states)))
            .await?
    }

    async fn remove_site_states(&self, sites: Vec<String>) -> Result<(), StoreError> {
        self.thread
            .call(move |db| db.write(|conn| site_states::remove(conn, &sites)))
            .await?
    }

    async fn site_state(&self, site: &str) -> Result<Option<SiteState>, StoreError> {
        let site = site.to_owned();
        self.thread
            .call(move |db| db.read(|conn| site_states::get(conn, &site)))
            .await?
    }

    async fn first_pages(
        &self,
        crawl: &CrawlId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ListedPage>, StoreError> {
        let (crawl, after) = (crawl.clone(), after.to_owned());
        self.thread
            .call(move |db| db.read(|conn| lists::first_pages(conn, &crawl, &after, limit)))
            .await?
    }

    async fn listed_pages(&self, ids: Vec<String>) -> Result<Vec<ListedPage>, StoreError> {
        self.thread
            .call(move |db| db.read(|conn| lists::listed_pages(conn, &ids)))
            .await?
    }

    async fn listed_rows(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
    ) -> Result<ListedRows, StoreError> {
        let (list, dataset) = (list.to_owned(), dataset.to_owned());
        self.thread
            .call(move |db| db.read(|conn| lists::listed_rows(conn, &list, &dataset, began_ms)))
            .await?
    }

    /// One transaction.
    async fn mark_gone(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
        after: &str,
    ) -> Result<MarkedGone, StoreError> {
        let (list, dataset, after) = (list.to_owned(), dataset.to_owned(), after.to_owned());
        let mark = move |conn: &_| lists::mark_gone(conn, &list, &dataset, began_ms, &after);
        self.thread.call(move |db| db.write(mark)).await?
    }

    async fn health(&self) -> Result<Vec<HealthState>, StoreError> {
        self.thread.call(|db| db.read(health::all)).await?
    }

    /// One transaction.
    async fn put_health(&self, states: Vec<HealthState>) -> Result<Vec<bool>, StoreError> {
        self.thread
            .call(move |db| db.write(|conn| health::put(conn, &states)))
            .await?
    }

    async fn samples(&self, mapping: &str) -> Result<Vec<Sample>, StoreError> {
        let mapping = mapping.to_owned();
        self.thread
            .call(move |db| db.read(|conn| samples::of_mapping(conn, &mapping)))
            .await?
    }

    async fn sample_texts(&self, ids: Vec<String>) -> Result<Vec<Sample>, StoreError> {
        self.thread
            .call(move |db| db.read(|conn| samples::with_texts(conn, &ids)))
            .await?
    }

    async fn put_samples(&self, samples: Vec<Sample>) -> Result<(), StoreError> {
        self.thread
            .call(move |db| {
                db.write(|conn| samples.iter().try_for_each(|one| samples::put(conn, one)))
            })
            .await?
    }

    async fn given_values(&self, keys: Vec<String>) -> Result<Vec<Map<String, Value>>, StoreError> {
        self.thread
            .call(move |db| db.read(|conn| health::given_values(conn, &keys)))
            .await?
    }

    async fn judged_to(&self) -> Result<JudgedTo, StoreError> {
        self.thread
            .call(|db| db.read(content_changes::judged_to))
            .await?
    }

    async fn versions(&self, ids: Vec<String>) -> Result<Vec<Versions>, StoreError> {
        self.thread
            .call(move |db| db.read(|conn| content_changes::versions(conn, &ids)))
            .await?
    }

    async fn with_versions(&self, ids: Vec<String>) -> Result<HashSet<String>, StoreError> {
        self.thread
            .call(move |db| db.read(|conn| content_changes::with_versions(conn, ids)))
            .await?
    }

    /// One transaction.
    async fn put_judgement(&self, judgement: Judgement) -> Result<bool, StoreError> {
        self.thread
            .call(move |db| db.write(|conn| content_changes::put(conn, &judgement)))
            .await?
    }

    async fn content_changes(
        &self,
        filter: &ChangeFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError> {
        let filter = filter.clone();
        self.thread
            .call(move |db| db.read(|conn| content_changes::read(conn, &filter, after, limit)))
            .await?
    }

    async fn count_content_changes(
        &self,
        filter: &ChangeFilter,
    ) -> Result<BTreeMap<ChangeKind, u64>, StoreError> {
        let filter = filter.clone();
        self.thread
            .call(move |db| db.read(|conn| content_changes::count(conn, &filter)))
            .await?
    }

    async fn count_new_documents(
        &self,
        crawl: &CrawlId,
        began_ms: i64,
        is_first: bool,
    ) -> Result<u64, StoreError> {
        let crawl = crawl.clone();
        let count =
            move |conn: &_| content_changes::new_documents(conn, &crawl, began_ms, is_first);
        self.thread.call(move |db| db.read(count)).await?
    }

    async fn export(
        &self,
        kind: ExportKind,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        export::export(&self.path, kind, filter, each).await
    }

    async fn known_pages(&self, ids: Vec<String>) -> Result<Vec<KnownPage>, StoreError> {
        self.thread
            .call(move |db| db.read(|conn| validators::known_pages(conn, &ids)))
            .await?
    }

    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        changes::find(&self.thread, ids, each).await
    }

    async fn changes(
        &self,
        after: &Cursor,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Cursor, Value) -> io::Result<()> + Send),
    ) -> Result<Cursor, ExportError> {
        changes::read(&self.thread, after, filter, each).await
    }

    /// One transaction, and one of the file of bodies.
    async fn drop_old(&self, cutoff: Cutoff) -> Result<Dropped, StoreError> {
        let after = self.retained_to.load(Ordering::Relaxed);
        let drop = move |db: &mut Db| db.write(|conn| retention::drop_old(conn, cutoff, after));
        let (mut dropped, looked_to) = self.thread.call(drop).await??;
        self.retained_to.store(looked_to, Ordering::Relaxed);
        if let Some(pages_ms) = cutoff.pages_ms {
            dropped.has_more |= self.bodies.drop_old(pages_ms).await?.has_more;
        }
        Ok(dropped)
    }

    /// One transaction.
    async fn put_reread(
        &self,
        rereads: Vec<Reread>,
        trial: Option<Arc<Trial>>,
    ) -> Vec<Result<RereadAnswer, StoreError>> {
        let count = rereads.len();
        let rules = self.rules();
        let call = move |db: &mut Db| match &trial {
            Some(trial) => {
                let foresee =
                    |one| db.read(|conn: &Connection| reread::foresee(conn, one, &rules, trial));
                rereads.iter().map(foresee).collect()
            }
            None => write_each(db, &rereads, reread::describe, |conn, one| {
                reread::write(conn, one, &rules)
            }),
        };
        let called = self.thread.call(call).await;
        called.unwrap_or_else(|error| fail_all(count, &error))
    }
}
