//! The [`Store`] trait: records, pages, crawls and states of sites.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::change::{Change, ChangeFilter, ChangeKind, JudgedTo, Judgement, Versions};
use crate::claim::CrawlClaim;
use crate::crawl::{Crawl, CrawlId};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::field_counts::FieldCounts;
use crate::health::HealthState;
use crate::list::{ListedPage, ListedRows, MarkedGone};
use crate::page::Page;
use crate::record::{MappingRules, Record, RecordCounts, RecordState};
use crate::reread::{Reread, RereadAnswer};
use crate::retention::{Cutoff, Dropped};
use crate::sample::Sample;
use crate::site_state::SiteState;
use crate::source_document::{DatasetRecord, RecordPut, Unwritten};
use crate::sqlite::Trial;
use crate::validators::KnownPage;

/// A page to store, and the records that it may fill.
#[derive(Debug, Clone, PartialEq)]
pub struct Save {
    pub page: Page,
    /// The keys of records.
    pub records: Vec<String>,
}

impl Save {
    /// The records that are kept with the page, which may be for thousands.
    pub(crate) fn first_records(&self) -> &[String] {
        &self.records[..self.records.len().min(MAX_RECORDS_OF_PAGE)]
    }
}

/// Records that are kept with a page.
const MAX_RECORDS_OF_PAGE: usize = 4;

/// The states of a saved page's records. A record that is not stored is open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Saved {
    /// Resolved by this page or before.
    pub resolved: Vec<String>,
    /// Records that still lack a wanted field.
    pub open: Vec<String>,
    /// The page's rows whose records lack a wanted field, with their links.
    pub leads: Vec<RowLead>,
}

/// The record of a row, and the URLs that may fill it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLead {
    /// The key of the record.
    pub record: String,
    pub urls: Vec<String>,
}

/// Asks a stored page to fill a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyPage {
    /// See [`crate::page_id`].
    pub page_id: String,
    /// The key of a record.
    pub record: String,
}

/// The answer to an [`ApplyPage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub state: RecordState,
    /// The page's discovered links, which would have inherited the record.
    pub links: Vec<String>,
}

/// How pages should be batched into calls of [`Store::save`], so that the backend keeps up: a batch
/// is saved once it has `max_entries`, or its first entry is older than `max_age`.
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

/// Limits an export to an application, a crawl, or a dataset, which only records have; the default
/// exports everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportFilter {
    pub app_id: Option<String>,
    pub crawl_id: Option<String>,
    pub dataset: Option<String>,
    /// Only pages with the outcome `ok` that a mapping has read, each with the members needed to judge its
    /// extraction. Used only by [`Store::changes`].
    pub extractions: bool,
    /// Only pages with a [snapshot](crate::Page::look) for comparison, each with the members needed to compare it;
    /// `look` is in Base64. Used only by [`Store::changes`].
    pub looks: bool,
    /// With the fields of the record that a row's page was fetched for, as `parent_fields`. Used only by
    /// [`Store::export`].
    pub parents: bool,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output failed, such as a closed pipe or a full disk.
    #[error("cannot write the export: {0}")]
    Output(#[from] io::Error),
}

/// A store of records, pages, crawls and states of sites. Threads may share it, and many processes may open it at the
/// same time.
#[async_trait]
pub trait Store: Send + Sync {
    /// The pace for this backend, if `processes` processes of this machine save.
    fn save_pace(&self, processes: u16) -> SavePace;

    /// Sets the rules of mappings for records. Must be called before records are filled. Without it, the first value
    /// wins, no page is known to lead to several pages of one mapping, no mapping names the fields by which a record
    /// is recognised, and no list continues on further pages.
    fn set_mapping_rules(&self, mappings: Arc<dyn MappingRules>);

    /// Stores pages and fills their records. Answers in the order given, once everything is durable.
    /// An entry that cannot be stored fails alone. A repeated save changes nothing, and a page of an
    /// earlier delivery than the stored one (or of the same, but started before) does not replace it.
    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>>;

    /// Replaces pages stored by the same deliveries that turned out to be blocks. Their values are taken back from
    /// their records. Answers as [`Store::save`] does. If a later delivery has stored the page meanwhile, nothing
    /// changes.
    async fn take_back(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>>;

    /// Adds records to a crawl, which must have been [put](Store::put_crawl) before. Answers in the order given; a
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

    /// Like [`Store::put_records`], for records whose values may be wanted again or written back.
    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordPut, StoreError>>;

    /// Records that a crawl has read from a collection and that have changed since they were last written back, in
    /// any order: at most `limit`, fewer if they are large, and an empty list only if there are none.
    async fn unwritten(
        &self,
        crawl: &CrawlId,
        collection: &str,
        limit: u32,
    ) -> Result<Vec<Unwritten>, StoreError>;

    /// Notes values of [unwritten](Store::unwritten) records that are about to be written: whatever happens next,
    /// they may be in the dataset and are not the user's; but the values they replace count as the user's until the
    /// write is confirmed. Removes records that others have changed meanwhile; those must be read again.
    async fn begin_writing(&self, written: &mut Vec<Unwritten>) -> Result<(), StoreError>;

    /// Marks records as written back. A record that has changed meanwhile stays unwritten.
    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<Unwritten>,
    ) -> Result<(), StoreError>;

    /// Counts the records of a crawl. SQLite stores the counts. MongoDB counts index entries, which takes about a
    /// second for a million: callers should call it less often if it takes longer.
    async fn record_counts(&self, crawl: &CrawlId) -> Result<RecordCounts, StoreError>;

    /// Counts what the mappings extracted from the pages of a crawl, and what its records lack. Reads the whole
    /// crawl, which takes seconds for a million pages.
    async fn field_counts(&self, crawl: &CrawlId) -> Result<FieldCounts, StoreError>;

    /// The latest crawl of the same application that began before this one.
    async fn crawl_before(&self, crawl: &CrawlId) -> Result<Option<CrawlId>, StoreError>;

    /// Fills records from pages that were fetched for other records; `None` if the page is not stored.
    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError>;

    /// Stores a crawl. The first start time stays, everything else is replaced.
    async fn put_crawl(&self, crawl: Crawl) -> Result<(), StoreError>;

    async fn get_crawl(&self, id: &CrawlId) -> Result<Option<Crawl>, StoreError>;

    /// Claims a crawl for a process. If another claim is in force, it is returned, and nothing changes; `watched` is
    /// a claim that was seen to lapse; it is replaced unless it was renewed since.
    async fn claim_crawl(
        &self,
        claim: CrawlClaim,
        watched: Option<CrawlClaim>,
    ) -> Result<Option<CrawlClaim>, StoreError>;

    /// Renews a claim. Returns false if it is no longer its owner's: another process has it, or had it and has
    /// released it.
    async fn renew_claim(&self, claim: CrawlClaim) -> Result<bool, StoreError>;

    /// Releases a claim, if it is still its owner's.
    async fn release_crawl(&self, claim: CrawlClaim) -> Result<(), StoreError>;

    /// Stores the states of sites in trouble. Each replaces the stored state of its site.
    async fn put_site_states(&self, states: Vec<SiteState>) -> Result<(), StoreError>;

    /// Removes the states of sites that are open again; sites without a state are skipped.
    async fn remove_site_states(&self, sites: Vec<String>) -> Result<(), StoreError>;

    /// The stored state of a site, by its name.
    async fn site_state(&self, site: &str) -> Result<Option<SiteState>, StoreError>;

    /// The first pages of a crawl's lists, in the order of their keys, after the key `after`.
    async fn first_pages(
        &self,
        crawl: &CrawlId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ListedPage>, StoreError>;

    /// Those of the pages with these [keys](crate::page_id) that are stored, in any order.
    async fn listed_pages(&self, ids: Vec<String>) -> Result<Vec<ListedPage>, StoreError>;

    /// Counts the rows of a dataset that a list holds, compared with the reading that began at this time.
    async fn listed_rows(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
    ) -> Result<ListedRows, StoreError>;

    /// Notes that a list, whose reading began at this time, no longer holds rows that were seen there before. Rows
    /// that no other list holds are gone. One bounded step, in the order of the records' keys, after the key `after`.
    /// The caller must know that the list was read to its end; see [`crate::judge_rows`].
    async fn mark_gone(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
        after: &str,
    ) -> Result<MarkedGone, StoreError>;

    /// The health of all mappings.
    async fn health(&self) -> Result<Vec<HealthState>, StoreError>;

    /// Stores states, each only if the stored one has the previous revision. Returns which of them were stored.
    async fn put_health(&self, states: Vec<HealthState>) -> Result<Vec<bool>, StoreError>;

    /// The samples of a mapping, without their texts, in the order of their ids.
    async fn samples(&self, mapping: &str) -> Result<Vec<Sample>, StoreError>;

    /// The samples with these ids, in any order.
    async fn sample_texts(&self, ids: Vec<String>) -> Result<Vec<Sample>, StoreError>;

    /// Stores samples. Each replaces the one with its id.
    async fn put_samples(&self, samples: Vec<Sample>) -> Result<(), StoreError>;

    /// The values of records that are not from pages, by the records' keys; nothing for unknown records.
    async fn given_values(&self, keys: Vec<String>) -> Result<Vec<Map<String, Value>>, StoreError>;

    /// The position up to which snapshots are judged.
    async fn judged_to(&self) -> Result<JudgedTo, StoreError>;

    /// The versions that the pages with these keys are compared with, in any order.
    async fn versions(&self, ids: Vec<String>) -> Result<Vec<Versions>, StoreError>;

    /// Those of these page keys that have versions to compare with.
    async fn with_versions(&self, ids: Vec<String>) -> Result<HashSet<String>, StoreError>;

    /// Stores a judgement atomically, and only if it follows the stored one. Returns whether it is stored. A writer
    /// that got no answer may repeat it.
    async fn put_judgement(&self, judgement: Judgement) -> Result<bool, StoreError>;

    /// The changes of pages after a number, in the order of their numbers, at most `limit`. Those that are not
    /// visible yet will have greater numbers.
    async fn content_changes(
        &self,
        filter: &ChangeFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError>;

    /// How many changes of each kind there are.
    async fn count_content_changes(
        &self,
        filter: &ChangeFilter,
    ) -> Result<BTreeMap<ChangeKind, u64>, StoreError>;

    /// How many documents a run of a crawl has met for the first time: pages that changes report as new since it
    /// began, or, in its first run, which reports nothing as new, all that were fetched since.
    async fn count_new_documents(
        &self,
        crawl: &CrawlId,
        began_ms: i64,
        is_first: bool,
    ) -> Result<u64, StoreError>;

    /// Passes every page or record to `each`, as a JSON object with the names of the columns as keys, in the order of
    /// creation; returns their number. Memory is bounded. Writers are not blocked, so the export is not a snapshot:
    /// entries that change meanwhile appear in their old or new version, or both.
    async fn export(
        &self,
        kind: ExportKind,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError>;

    /// Passes the pages with these [keys](crate::page_id) to `each`, as an export does, but in any order; returns
    /// their number. Memory is bounded, even for large pages.
    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError>;

    /// Those of the pages with these [keys](crate::page_id) that have [`Validators`](crate::Validators), in
    /// any order.
    async fn known_pages(&self, ids: Vec<String>) -> Result<Vec<KnownPage>, StoreError>;

    /// Passes the pages that were saved after the cursor `after` to `each`, in the order in which they
    /// became visible, each with the cursor that continues after it. Returns the cursor that
    /// continues after all pages that were visible when the call began.
    ///
    /// A reader that continues from cursor to cursor misses no page that [`Store::save`] has
    /// acknowledged, whatever the number of concurrent writers, and whichever process dies. A page
    /// that is saved again is passed again, in its present version, so a reader may not see every
    /// version. The same version may be passed twice, if its save was interrupted and repeated.
    ///
    /// A reader gets an error if pages it has not read were [dropped](Store::drop_old), even in the middle of its
    /// reading. The cursor at the beginning continues with the oldest page in the order.
    async fn changes(
        &self,
        after: &Cursor,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Cursor, Value) -> io::Result<()> + Send),
    ) -> Result<Cursor, ExportError>;

    /// Drops old entries in one bounded step. The caller repeats it as long as there [is more](Dropped::has_more),
    /// and leaves others time in between. Several processes may do it at once. Everything filled from a dropped page
    /// stays: records with their sources.
    ///
    /// [Bodies](crate::Bodies) are dropped with their pages.
    async fn drop_old(&self, cutoff: Cutoff) -> Result<Dropped, StoreError>;

    /// Stores the results of reading pages again, and fills their records as a refresh would. Answers in the order
    /// given. Repeating it changes nothing. With a trial it only returns what it would change after all earlier calls
    /// with that trial.
    async fn put_reread(
        &self,
        rereads: Vec<Reread>,
        trial: Option<Arc<Trial>>,
    ) -> Vec<Result<RereadAnswer, StoreError>>;
}
