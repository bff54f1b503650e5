//! The trait of every store of records, pages and crawls.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::crawl::{Crawl, CrawlId};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::page::Page;
use crate::record::{MappingOrder, Record, RecordCounts, RecordState};
use crate::source_document::{DatasetRecord, Unwritten};

/// A page to keep, and the records whose missing fields it may fill.
#[derive(Debug, Clone, PartialEq)]
pub struct Save {
    pub page: Page,
    /// Record ids.
    pub records: Vec<String>,
}

/// Where the records of a saved page stand. A record that the store does not know is open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Saved {
    /// Complete now, by this page or before.
    pub resolved: Vec<String>,
    /// Still missing a wanted field.
    pub open: Vec<String>,
}

/// Asks for a page that is stored already to fill a record's missing fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyPage {
    /// See [`crate::page_id`].
    pub page_id: String,
    /// A record id.
    pub record: String,
}

/// What came of an [`ApplyPage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub state: RecordState,
    /// The page's discovered links, which the record would have inherited.
    pub links: Vec<String>,
}

/// How the pages that come to an end should be gathered into calls of [`Store::save`], so that
/// the backend keeps up: a batch is saved when it is full or its first entry old enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavePace {
    pub max_entries: usize,
    pub max_age: Duration,
}

/// What an export reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportKind {
    Pages,
    Records,
}

/// Narrows an export; the default takes everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportFilter {
    pub app_id: Option<String>,
    pub crawl_id: Option<String>,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The taker failed, as a closed pipe or a full disk does.
    #[error("cannot write the export: {0}")]
    Output(#[from] io::Error),
}

/// Records, pages and crawls. Safe to share, and to open from many processes at once.
#[async_trait]
pub trait Store: Send + Sync {
    /// What suits this backend, if so many processes of this machine save.
    fn save_pace(&self, processes: u16) -> SavePace;

    /// Tells which mapping's values win from now on; without it, the value that comes first does.
    fn set_mapping_order(&self, order: MappingOrder);

    /// Keeps pages and fills their records; answers in the order given, once all of it is
    /// durable. An entry that cannot be kept fails alone. Repeating a save changes nothing, and
    /// one that started before the stored page leaves the page as it is.
    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>>;

    /// Takes the records of a crawl in, which must have been [put](Store::put_crawl); answers in
    /// the order given, an unfit record alone with an error. A known record keeps its values,
    /// takes those that it has not, and misses what is wanted anew.
    async fn put_records(
        &self,
        crawl: &CrawlId,
        records: Vec<Record>,
        now_ms: i64,
    ) -> Vec<Result<RecordState, StoreError>> {
        let records = records.into_iter().map(DatasetRecord::from).collect();
        self.put_dataset(crawl, records, now_ms).await
    }

    /// The same for records of a dataset, whose values may be wanted again or written back.
    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordState, StoreError>>;

    /// Some records of a crawl that have changed since they were last written back, in any order;
    /// at most `limit`, fewer if they are large, none only if there are none.
    async fn unwritten(&self, crawl: &CrawlId, limit: u32) -> Result<Vec<Unwritten>, StoreError>;

    /// Notes that these values are in the dataset. A record that has changed meanwhile stays
    /// unwritten.
    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<Unwritten>,
    ) -> Result<(), StoreError>;

    /// Counts the records put for a crawl. SQLite keeps the counts; MongoDB counts in an index,
    /// which takes about a second for a million: ask the less often the longer it takes.
    async fn record_counts(&self, crawl: &CrawlId) -> Result<RecordCounts, StoreError>;

    /// Applies pages fetched for other records, without a second fetch; `None` where the page is
    /// not stored.
    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError>;

    /// Keeps a crawl; the first start stays, everything else is replaced.
    async fn put_crawl(&self, crawl: Crawl) -> Result<(), StoreError>;

    async fn get_crawl(&self, id: &CrawlId) -> Result<Option<Crawl>, StoreError>;

    /// Hands every page or record to `each` as a JSON object, keys as the tables and collections
    /// name them, in order of arrival; returns how many. Memory is bounded and writers are not
    /// held up, so the export is no snapshot: what changes meanwhile appears old or new, or both.
    async fn export(
        &self,
        kind: ExportKind,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError>;

    /// Hands the pages with these [keys](crate::page_id) to `each`, as an export does but in any
    /// order; returns how many there are. Memory is bounded, however large they are.
    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError>;

    /// Hands the pages that were saved since `after` to `each`, in the order in which they became
    /// visible, each with the cursor to go on from behind it; returns the cursor to go on from
    /// behind all that had become visible when the call began.
    ///
    /// Who goes on from each cursor in turn misses no page that a [`Store::save`] has answered for,
    /// however many save at once, and whoever dies meanwhile. A page that is saved again comes
    /// again, as it is then: the reader may see the last of its versions only. The same version may
    /// come twice, after a save that was cut off and repeated.
    async fn changes(
        &self,
        after: &Cursor,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Cursor, Value) -> io::Result<()> + Send),
    ) -> Result<Cursor, ExportError>;
}
