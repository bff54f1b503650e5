//! Browses the database ([`Browse`]). Each list names its index, so the server uses no other. Without that index, pages
//! and records are listed in the order of their keys.

mod crawls;
mod pages;
mod records;

use async_trait::async_trait;
use serde_json::Value;

use super::Mongo;
use super::command::Db;
use super::{bodies, claims, content_changes, export, indexes, site_states};
use crate::bodies::Body;
use crate::browse::{
    Browse, ChangeListFilter, CrawlCounts, CrawlFilter, DatasetRow, ListPage, ListedRecord,
    PageFilter, PageResult, PageRow, Place, RecordCondition, RecordFilter, RecordRow, WholeRecord,
    rows_of,
};
use crate::change::Change;
use crate::claim::CrawlClaim;
use crate::crawl::{Crawl, CrawlId};
use crate::error::StoreError;
use crate::site_state::SiteState;
use crate::store::ExportKind;

#[async_trait]
impl Browse for Mongo {
    async fn create_missing_indexes(&self) -> Result<(), StoreError> {
        self.call(async move |db: Db| indexes::create_for_browsing(&db).await)
            .await
    }

    async fn crawls(
        &self,
        filter: &CrawlFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<Crawl>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        self.call(async move |db: Db| crawls::list(&db, &filter, from, rows_of(limit)).await)
            .await
    }

    async fn crawl_claim(&self, crawl: &CrawlId) -> Result<Option<CrawlClaim>, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| claims::find(&db, &crawl).await)
            .await
    }

    async fn crawl_counts(
        &self,
        crawl: &CrawlId,
        count_to: u64,
    ) -> Result<CrawlCounts, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| crawls::crawl_counts(&db, &crawl, count_to).await)
            .await
    }

    async fn pages(
        &self,
        filter: &PageFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<PageRow>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        self.call(async move |db: Db| pages::list(&db, &filter, from, rows_of(limit)).await)
            .await
    }

    async fn page(&self, id: &str) -> Result<Option<Value>, StoreError> {
        let id = id.to_owned();
        self.call(async move |db: Db| {
            let found = db.find_one("pages", &id).await?;
            Ok(found.map(|page| export::row(ExportKind::Pages, &page)))
        })
        .await
    }

    async fn body(&self, page_id: &str) -> Result<Option<Body>, StoreError> {
        let id = page_id.to_owned();
        self.call(async move |db: Db| bodies::find(&db, &id).await)
            .await
    }

    async fn datasets(
        &self,
        count_to: u64,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<DatasetRow>, StoreError> {
        let from = from.cloned();
        self.call(async move |db: Db| records::datasets(&db, count_to, from, rows_of(limit)).await)
            .await
    }

    async fn records(
        &self,
        filter: &RecordFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<RecordRow>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        self.call(async move |db: Db| records::list(&db, &filter, from, rows_of(limit)).await)
            .await
    }

    async fn whole_records(
        &self,
        filter: &RecordFilter,
        condition: &RecordCondition,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<ListedRecord>, StoreError> {
        let (filter, condition, from) = (filter.clone(), condition.clone(), from.cloned());
        self.call(async move |db: Db| {
            records::list_whole(&db, &filter, &condition, from, rows_of(limit)).await
        })
        .await
    }

    async fn dataset(&self, name: &str, count_to: u64) -> Result<DatasetRow, StoreError> {
        let name = name.to_owned();
        self.call(async move |db: Db| records::dataset(&db, &name, count_to).await)
            .await
    }

    async fn page_results(&self, ids: &[String]) -> Result<Vec<PageResult>, StoreError> {
        let ids = ids.to_vec();
        self.call(async move |db: Db| pages::results(&db, &ids).await)
            .await
    }

    async fn record(&self, key: &str) -> Result<Option<WholeRecord>, StoreError> {
        let key = key.to_owned();
        self.call(async move |db: Db| records::whole(&db, &key).await)
            .await
    }

    async fn changes(
        &self,
        filter: &ChangeListFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<Change>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        self.call(async move |db: Db| {
            content_changes::list(&db, &filter, from, rows_of(limit)).await
        })
        .await
    }

    async fn site_states(
        &self,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<SiteState>, StoreError> {
        let from = from.cloned();
        self.call(async move |db: Db| site_states::list(&db, from, rows_of(limit)).await)
            .await
    }
}
