//! The embedded backend: one SQLite file that many processes write, through the write-ahead log.
//!
//! Each process has one connection, owned by one thread ([`owner`]); calls reach it through a
//! bounded queue. A call is one transaction, taken with BEGIN IMMEDIATE so that two processes
//! never deadlock. With `synchronous = NORMAL` an answered call survives the death of every
//! process; only a power failure may take the last ones, which the dispatcher then repeats.
//! This folder is the only place that knows rusqlite.

mod batch;
mod cache;
mod changes;
mod connection;
mod crawls;
mod export;
mod fault;
mod origins;
mod owner;
mod pages;
mod records;
mod schema;
mod slots;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::cache::{Cache, RobotsEntry, SiteEntry, Slot, SlotClaim, SlotRelease};
use crate::crawl::{Crawl, CrawlId};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::origin::{DatasetRecord, Unwritten};
use crate::record::{MappingOrder, RecordCounts, RecordState};
use crate::store::{
    Applied, ApplyPage, ExportError, ExportFilter, Kept, Save, SavePace, Saved, Store,
};
use crate::uri::OpenMode;

use batch::keep_each;
use owner::Owner;

/// A store and a cache in one SQLite file.
pub(crate) struct Sqlite {
    owner: Owner,
    path: PathBuf,
    order: RwLock<Arc<MappingOrder>>,
}

impl Sqlite {
    /// Opens the file, and creates it where `mode` allows.
    pub(crate) async fn open(path: PathBuf, mode: OpenMode) -> Result<Sqlite, StoreError> {
        let owner = Owner::start(path.clone(), mode).await?;
        let order = RwLock::default();
        Ok(Sqlite { owner, path, order })
    }

    fn order(&self) -> Arc<MappingOrder> {
        Arc::clone(&self.order.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The same error for each entry of a batch that failed as a whole.
fn fail_all<R>(entries: usize, error: &StoreError) -> Vec<Result<R, StoreError>> {
    (0..entries).map(|_| Err(error.clone())).collect()
}

#[async_trait]
impl Store for Sqlite {
    /// A commit is cheap, and a long one holds the other writers up.
    fn save_pace(&self, _processes: u16) -> SavePace {
        SavePace {
            max_entries: 128,
            max_age: Duration::from_millis(20),
        }
    }

    fn set_mapping_order(&self, order: MappingOrder) {
        *self.order.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(order);
    }

    /// One transaction.
    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>> {
        let count = saves.len();
        let order = self.order();
        self.owner
            .call(move |db| {
                keep_each(db, &saves, pages::name_save, |conn, save| {
                    pages::save(conn, save, &order)
                })
            })
            .await
            .unwrap_or_else(|error| fail_all(count, &error))
    }

    /// One transaction.
    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordState, StoreError>> {
        let count = records.len();
        let crawl = crawl.to_string();
        self.owner
            .call(move |db| {
                keep_each(db, &records, records::name_record, |conn, record| {
                    records::put(conn, &crawl, record, now_ms)
                })
            })
            .await
            .unwrap_or_else(|error| fail_all(count, &error))
    }

    async fn unwritten(&self, crawl: &CrawlId, limit: u32) -> Result<Vec<Unwritten>, StoreError> {
        let crawl = crawl.to_string();
        self.owner
            .call(move |db| db.read(|conn| origins::unwritten(conn, &crawl, limit)))
            .await?
    }

    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<Unwritten>,
    ) -> Result<(), StoreError> {
        let crawl = crawl.to_string();
        self.owner
            .call(move |db| db.write(|conn| origins::confirm(conn, &crawl, &written)))
            .await?
    }

    async fn record_counts(&self, crawl: &CrawlId) -> Result<RecordCounts, StoreError> {
        let crawl = crawl.to_string();
        self.owner
            .call(move |db| db.read(|conn| crawls::record_counts(conn, &crawl)))
            .await?
    }

    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError> {
        let order = self.order();
        self.owner
            .call(move |db| {
                db.write(|conn| {
                    let apply = |apply| pages::apply(conn, apply, &order);
                    applies.iter().map(apply).collect()
                })
            })
            .await?
    }

    async fn put_crawl(&self, crawl: Crawl) -> Result<(), StoreError> {
        self.owner
            .call(move |db| db.write(|conn| crawls::put(conn, &crawl)))
            .await?
    }

    async fn get_crawl(&self, id: &CrawlId) -> Result<Option<Crawl>, StoreError> {
        let key = id.to_string();
        self.owner
            .call(move |db| db.read(|conn| crawls::get(conn, &key)))
            .await?
    }

    async fn export(
        &self,
        kept: Kept,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        export::export(&self.path, kept, filter, each).await
    }

    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        changes::find(&self.owner, ids, each).await
    }

    async fn changes(
        &self,
        after: &Cursor,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Cursor, Value) -> io::Result<()> + Send),
    ) -> Result<Cursor, ExportError> {
        changes::read(&self.owner, after, filter, each).await
    }
}

#[async_trait]
impl Cache for Sqlite {
    fn call_pace(&self, _processes: u16) -> Duration {
        Duration::ZERO
    }

    async fn robots_of(
        &self,
        origins: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<RobotsEntry>>, StoreError> {
        self.owner
            .call(move |db| db.read(|conn| cache::robots_of(conn, &origins, now_ms)))
            .await?
    }

    async fn put_robots(&self, entries: Vec<RobotsEntry>, now_ms: i64) -> Result<(), StoreError> {
        self.owner
            .call(move |db| db.write(|conn| cache::put_robots(conn, &entries, now_ms)))
            .await?
    }

    async fn sites(
        &self,
        sites: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<SiteEntry>>, StoreError> {
        self.owner
            .call(move |db| {
                db.read(|conn| {
                    let read = |site: &String| cache::site(conn, site, now_ms);
                    sites.iter().map(read).collect()
                })
            })
            .await?
    }

    async fn put_sites(&self, entries: Vec<SiteEntry>) -> Result<(), StoreError> {
        self.owner
            .call(move |db| db.write(|conn| cache::put_sites(conn, &entries)))
            .await?
    }
    async fn claim_slot(&self, claim: &SlotClaim) -> Result<Slot, StoreError> {
        let claim = claim.clone();
        self.owner
            .call(move |db| db.write(|conn| slots::claim(conn, &claim)))
            .await?
    }

    async fn release_slot(&self, release: &SlotRelease) -> Result<(), StoreError> {
        let release = release.clone();
        self.owner
            .call(move |db| db.write(|conn| slots::release(conn, &release)))
            .await?
    }
}
