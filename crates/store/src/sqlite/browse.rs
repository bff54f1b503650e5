//! Browses the file ([`Browse`]), on a separate read-only connection.
//!
//! The indexes in [`indexes`] are not part of the file's format. SQLite keeps them up to date even for processes that
//! do not know them, and a file without them is read in the order of its rows.

mod crawls;
mod indexes;
mod pages;
mod records;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use serde_json::Value;

use super::Sqlite;
use super::{changes as page_changes, claims, content_changes, site_states};
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

#[async_trait]
impl Browse for Sqlite {
    async fn create_missing_indexes(&self) -> Result<(), StoreError> {
        indexes::create_missing_indexes(&self.path).await
    }

    async fn crawls(
        &self,
        filter: &CrawlFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<Crawl>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        let read = move |conn: &_| crawls::list(conn, &filter, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn crawl_claim(&self, crawl: &CrawlId) -> Result<Option<CrawlClaim>, StoreError> {
        let crawl = crawl.clone();
        let read = move |conn: &_| claims::find(conn, &crawl);
        self.browsing.read(read).await
    }

    async fn crawl_counts(
        &self,
        crawl: &CrawlId,
        count_to: u64,
    ) -> Result<CrawlCounts, StoreError> {
        let crawl = crawl.clone();
        let read = move |conn: &_| crawls::crawl_counts(conn, &crawl, count_to);
        self.browsing.read(read).await
    }

    async fn pages(
        &self,
        filter: &PageFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<PageRow>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        let read = move |conn: &_| pages::list(conn, &filter, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn page(&self, id: &str) -> Result<Option<Value>, StoreError> {
        let id = id.to_owned();
        let read = move |conn: &_| page_changes::find_page(conn, &id);
        self.browsing.read(read).await
    }

    async fn body(&self, page_id: &str) -> Result<Option<Body>, StoreError> {
        let id = page_id.to_owned();
        let hash = self.browsing.read(move |conn| pages::hash(conn, &id));
        match hash.await? {
            Some(hash) => self.bodies.find(page_id, hash).await,
            None => Ok(None),
        }
    }

    async fn datasets(
        &self,
        count_to: u64,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<DatasetRow>, StoreError> {
        let from = from.cloned();
        let read = move |conn: &_| records::datasets(conn, count_to, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn records(
        &self,
        filter: &RecordFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<RecordRow>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        let read = move |conn: &_| records::list(conn, &filter, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn whole_records(
        &self,
        filter: &RecordFilter,
        condition: &RecordCondition,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<ListedRecord>, StoreError> {
        let (filter, condition, from) = (filter.clone(), condition.clone(), from.cloned());
        let wanted = rows_of(limit);
        let read = move |conn: &_| {
            records::list_whole_records(conn, &filter, &condition, from.as_ref(), wanted)
        };
        self.browsing.read(read).await
    }

    async fn dataset(&self, name: &str, count_to: u64) -> Result<DatasetRow, StoreError> {
        let name = name.to_owned();
        let read = move |conn: &_| records::dataset(conn, name, count_to);
        self.browsing.read(read).await
    }

    async fn page_results(&self, ids: &[String]) -> Result<Vec<PageResult>, StoreError> {
        let ids = ids.to_vec();
        self.browsing
            .read(move |conn| pages::load_page_results(conn, &ids))
            .await
    }

    async fn record(&self, key: &str) -> Result<Option<WholeRecord>, StoreError> {
        let key = key.to_owned();
        let read = move |conn: &_| records::whole_record(conn, &key);
        self.browsing.read(read).await
    }

    async fn changes(
        &self,
        filter: &ChangeListFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<Change>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        let read =
            move |conn: &_| content_changes::list(conn, &filter, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn site_states(
        &self,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<SiteState>, StoreError> {
        let from = from.cloned();
        let read = move |conn: &_| site_states::list(conn, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }
}
