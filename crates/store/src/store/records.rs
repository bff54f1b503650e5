//! Records: the rows of the user's datasets.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::record::{Decided, Decision, Record, RecordState};
use crate::source_document::{DatasetRecord, RecordPut};

/// Puts records into crawls, with the values that the user gave.
#[async_trait]
pub trait Records: Send + Sync {
    /// Adds records to a crawl, which must have been [put](crate::Crawls::put_crawl) before. Answers in the given
    /// order. If a record cannot be stored, only that record fails. A stored record takes the given values, and fields
    /// that it did not want before become missing.
    async fn put_records(
        &self,
        crawl: &CrawlId,
        records: Vec<Record>,
        now_ms: i64,
    ) -> Vec<Result<RecordState, StoreError>> {
        let records = records.into_iter().map(DatasetRecord::from).collect();
        let put = self.put_dataset(crawl, records, now_ms).await;
        put.into_iter()
            .map(|put| put.map(|put| put.state))
            .collect()
    }

    /// Like [`Records::put_records`], for records whose values may be refreshed or written back.
    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordPut, StoreError>>;

    /// Applies a person's decision about a value.
    async fn decide(&self, decision: Decision, now_ms: i64) -> Result<Decided, StoreError>;

    /// The values of records that are not from pages, in the order of the given keys of records. An unknown record has
    /// none.
    async fn given_values(&self, keys: Vec<String>) -> Result<Vec<Map<String, Value>>, StoreError>;
}
