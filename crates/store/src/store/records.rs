//! Records: the rows of the user's datasets.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::record::{Record, RecordState};
use crate::source_document::{DatasetRecord, RecordPut};

/// Records are put into crawls, with the values that the user gave.
#[async_trait]
pub trait Records: Send + Sync {
    /// Adds records to a crawl, which must have been [put](crate::Crawls::put_crawl) before. Answers in the order given; a
    /// record that cannot be stored fails alone. A known record takes the given values and gets the additionally
    /// wanted fields as missing ones.
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

    /// Like [`Records::put_records`], for records whose values may be wanted again or written back.
    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordPut, StoreError>>;

    /// The values of records that are not from pages, by the records' keys; nothing for unknown records.
    async fn given_values(&self, keys: Vec<String>) -> Result<Vec<Map<String, Value>>, StoreError>;
}
