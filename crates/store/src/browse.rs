//! Bounded reads for users who browse a store ([`Browse`]), list by list.
//!
//! A store may hold ten million pages. So a list is read in [pages](ListPage), each starting at a [`Place`]. The time
//! of a read does not depend on the length of the list. A read follows an index to its rows, or checks a bounded number
//! of rows and returns that number. Counts are stored, or stop at a limit.
//!
//! The indexes are created by [`Browse::create_missing_indexes`], so that a store that nobody browses does not pay for
//! them. Without them, the same reads check all rows in order, a bounded number at a time.
//!
//! Nothing is stored but the indexes. Reads have a connection of their own, so writers do not wait for them.

mod list_page;
mod place;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use webfill_wire::Outcome;

use crate::bodies::Body;
use crate::change::{Change, ChangeKind};
use crate::claim::CrawlClaim;
use crate::crawl::{Crawl, CrawlId, CrawlState};
use crate::dataset_name::split_record_key;
use crate::error::StoreError;
use crate::record::RecordState;
use crate::site_state::SiteState;

pub use list_page::{ListPage, MAX_LIST_PAGE};
pub(crate) use list_page::{MOST_EXAMINED, UnfinishedPage, rows_of};
pub(crate) use place::ListOrder;
pub use place::{ListCursorError, Place};

/// The crawls to list; the default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrawlFilter {
    /// Only crawls of these applications.
    pub apps: Option<Vec<String>>,
    pub state: Option<CrawlState>,
}

/// The pages to list; the default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageFilter {
    pub crawl: Option<CrawlId>,
    pub site: Option<String>,
    /// Only pages that this mapping has extracted.
    pub mapping: Option<String>,
    /// Only pages with one of these outcomes; an empty list allows all.
    pub outcomes: Vec<Outcome>,
    /// Only pages of these applications.
    pub apps: Option<Vec<String>>,
}

/// A page in a list, without members that may be long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRow {
    /// The page's key; see [`crate::page_id`].
    pub id: String,
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    pub final_url: Option<String>,
    pub site: String,
    pub depth: u32,
    pub parent: Option<String>,
    pub outcome: Outcome,
    pub status_code: Option<u16>,
    pub mapping: Option<String>,
    pub content_type: Option<String>,
    pub bytes: u64,
    pub started_at_ms: i64,
    pub elapsed_ms: u64,
    /// The number of the delivery that brought the outcome.
    pub attempts: u32,
}

/// The records to list; the default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordFilter {
    pub dataset: Option<String>,
    pub state: Option<RecordState>,
    /// Only records whose ids begin with this text. Needs `dataset`.
    pub id_prefix: Option<String>,
    /// Only records with this id or a later one, in the order of ids. Needs `dataset`; ignored by lists that begin with
    /// the latest resolved records.
    pub from_id: Option<String>,
    /// Only records in a crawl of one of these applications.
    pub apps: Option<Vec<String>>,
}

/// A record in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordRow {
    /// The record's key; see [`crate::record_key`].
    pub key: String,
    pub dataset: String,
    pub id: String,
    /// The wanted fields without a value.
    pub missing: Vec<String>,
    pub resolved_at_ms: Option<i64>,
    /// The record's values, unless they take more than [`MAX_FIELDS_OF_ROW`] bytes.
    pub fields: Option<Map<String, Value>>,
}

/// The most bytes of a record's values that are included in a list.
pub const MAX_FIELDS_OF_ROW: usize = 4 << 10;

/// A record with everything known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeRecord {
    /// The record as it is exported: `fields`, `sources`, `candidates`, `history`, `missing`, ...
    pub document: Value,
    /// The crawls that the record is in, at most [`MAX_CRAWLS_OF_RECORD`].
    pub crawls: Vec<CrawlId>,
}

pub const MAX_CRAWLS_OF_RECORD: usize = 100;

/// A whole record in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedRecord {
    /// Where the list continues after this record.
    pub place: Place,
    pub id: String,
    pub record: WholeRecord,
}

/// A condition on the [document](WholeRecord::document) of a record. It is checked where the records are read.
#[derive(Clone)]
pub struct RecordCondition(Arc<dyn Fn(&Value) -> bool + Send + Sync>);

impl RecordCondition {
    pub fn new(takes: impl Fn(&Value) -> bool + Send + Sync + 'static) -> RecordCondition {
        RecordCondition(Arc::new(takes))
    }

    pub fn matches(&self, document: &Value) -> bool {
        (self.0)(document)
    }
}

/// The default condition accepts all records.
impl Default for RecordCondition {
    fn default() -> RecordCondition {
        RecordCondition::new(|_| true)
    }
}

impl fmt::Debug for RecordCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordCondition")
    }
}

/// The outcome of a page, and the values read from it.
#[derive(Debug, Clone, PartialEq)]
pub struct PageResult {
    pub id: String,
    pub url: String,
    pub outcome: Outcome,
    /// The page's values, unless they take more than [`MAX_FIELDS_OF_ROW`] bytes.
    pub fields: Option<Map<String, Value>>,
}

/// A number of rows, counted up to a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub counted: u64,
    /// Counting stopped at the limit: there may be more.
    pub is_more: bool,
}

impl Count {
    /// A complete count.
    pub(crate) fn exact(counted: u64) -> Count {
        Count {
            counted,
            is_more: false,
        }
    }

    /// The count if no row was counted because an index is missing: at least 0.
    pub(crate) fn unknown() -> Count {
        Count {
            counted: 0,
            is_more: true,
        }
    }

    /// How many rows must be counted to know whether there are more than `count_to`.
    pub(crate) fn count_limit(count_to: u64) -> i64 {
        i64::try_from(count_to.saturating_add(1)).unwrap_or(i64::MAX)
    }

    pub(crate) fn from_found(found: u64, count_to: u64) -> Count {
        Count {
            counted: found.min(count_to),
            is_more: found > count_to,
        }
    }
}

/// A dataset, with the number of its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetRow {
    pub name: String,
    pub total: Count,
    pub open: Count,
}

/// The numbers of a crawl's stored pages and records. The dispatcher's own counts are in [`Crawl::counts`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrawlCounts {
    /// Stored pages by outcome. Outcomes without pages are left out.
    pub outcomes: Vec<(Outcome, Count)>,
    pub records: Count,
    pub resolved: Count,
}

/// The changes of pages to list; the default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeListFilter {
    pub crawl: Option<CrawlId>,
    pub site: Option<String>,
    /// Only changes of the page with this key; see [`crate::page_id`].
    pub page: Option<String>,
    pub kind: Option<ChangeKind>,
    /// Only changes of pages of these applications.
    pub apps: Option<Vec<String>>,
}

/// Browses a store, list by list, with bounded reads.
///
/// A list is read from the place that an earlier page returned, or from its beginning (`None`). `limit` is clamped to
/// 1 to [`MAX_LIST_PAGE`]. Rows that are written meanwhile may or may not appear; unchanged rows appear once.
#[async_trait]
pub trait Browse: Send + Sync {
    /// Creates missing indexes. If millions of pages are already stored, this takes long and is logged. Processes that
    /// write to a SQLite file wait for each index in turn; MongoDB creates them during other work.
    async fn create_missing_indexes(&self) -> Result<(), StoreError>;

    /// Crawls, the last started first.
    async fn crawls(
        &self,
        filter: &CrawlFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<Crawl>, StoreError>;

    /// The claim of the process that runs a crawl. `None` if no process has one, and always for a crawl that a fleet
    /// runs.
    async fn crawl_claim(&self, crawl: &CrawlId) -> Result<Option<CrawlClaim>, StoreError>;

    /// The numbers of a crawl's stored pages and records, each counted up to `count_to`.
    async fn crawl_counts(&self, crawl: &CrawlId, count_to: u64)
    -> Result<CrawlCounts, StoreError>;

    /// Lists pages, the last stored (SQLite) or the last fetched (MongoDB) first. If MongoDB lacks the indexes, pages
    /// are in the order of their keys.
    async fn pages(
        &self,
        filter: &PageFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<PageRow>, StoreError>;

    /// The whole stored page with this [key](crate::page_id), in the form of an export. Earlier failed attempts are in
    /// its member `tries`.
    async fn page(&self, id: &str) -> Result<Option<Value>, StoreError>;

    /// The body of the page with this key, if it is kept and belongs to the page's present version.
    async fn body(&self, page_id: &str) -> Result<Option<Body>, StoreError>;

    /// Datasets in the order of their names, their records counted up to `count_to`.
    async fn datasets(
        &self,
        count_to: u64,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<DatasetRow>, StoreError>;

    /// Records in the order of their keys. If resolved records of one dataset are listed without an id prefix, the
    /// latest resolved come first.
    async fn records(
        &self,
        filter: &RecordFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<RecordRow>, StoreError>;

    /// Like [`Browse::records`], but with everything known about each record, and only records that meet the condition.
    async fn whole_records(
        &self,
        filter: &RecordFilter,
        condition: &RecordCondition,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<ListedRecord>, StoreError>;

    /// The records of a dataset, counted up to `count_to`.
    async fn dataset(&self, name: &str, count_to: u64) -> Result<DatasetRow, StoreError>;

    /// The outcomes and values of the pages with these keys. Pages that are not stored are left out.
    async fn page_results(&self, ids: &[String]) -> Result<Vec<PageResult>, StoreError>;

    /// A record, by its [key](crate::record_key).
    async fn record(&self, key: &str) -> Result<Option<WholeRecord>, StoreError>;

    /// Changes of pages, the latest first.
    async fn changes(
        &self,
        filter: &ChangeListFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<Change>, StoreError>;

    /// The stored states of sites in trouble, in the order of the sites' names.
    async fn site_states(
        &self,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<ListPage<SiteState>, StoreError>;
}

/// Whether rows of this application are to be listed.
pub(crate) fn includes_app(apps: Option<&Vec<String>>, app_id: &str) -> bool {
    apps.is_none_or(|apps| apps.iter().any(|app| app == app_id))
}

impl PageFilter {
    pub(crate) fn matches(&self, row: &PageRow) -> bool {
        let is_of_crawl =
            |crawl: &CrawlId| crawl.app_id == row.app_id && crawl.crawl_id == row.crawl_id;
        self.crawl.as_ref().is_none_or(is_of_crawl)
            && self.site.as_ref().is_none_or(|site| *site == row.site)
            && (self.mapping.is_none() || self.mapping == row.mapping)
            && (self.outcomes.is_empty() || self.outcomes.contains(&row.outcome))
            && includes_app(self.apps.as_ref(), &row.app_id)
    }

    /// The wanted outcomes, without duplicates.
    pub(crate) fn wanted_outcomes(&self) -> Vec<Outcome> {
        let is_wanted =
            |outcome: &Outcome| self.outcomes.is_empty() || self.outcomes.contains(outcome);
        Outcome::ALL.iter().copied().filter(is_wanted).collect()
    }
}

impl RecordFilter {
    /// Whether the filter accepts a record, regardless of applications.
    pub(crate) fn matches(&self, row: &RecordRow) -> bool {
        self.matches_record(&row.dataset, &row.id, row.resolved_at_ms.is_some())
    }

    pub(crate) fn matches_record(&self, dataset: &str, id: &str, is_resolved: bool) -> bool {
        let state = match is_resolved {
            true => RecordState::Resolved,
            false => RecordState::Open,
        };
        let begins = |prefix: &String| id.starts_with(prefix.as_str());
        self.state.is_none_or(|wanted| wanted == state)
            && self.dataset.as_ref().is_none_or(|name| name == dataset)
            && self.id_prefix.as_ref().is_none_or(begins)
    }

    /// The range of record keys that the filter may accept, after a place in the list. It includes its first key, but
    /// not its second.
    pub(crate) fn keys(&self, from: Option<&Place>) -> (String, String) {
        let prefix = match &self.dataset {
            Some(dataset) => {
                let ids = self.id_prefix.as_deref().unwrap_or_default();
                [dataset, "/", ids].concat()
            }
            None => String::new(),
        };
        let after = from.map(|place| place.part(0));
        let least = self.dataset.as_ref().zip(self.from_id.as_ref());
        let least = least.map(|(dataset, id)| [dataset, "/", id].concat());
        text_range(&prefix, after, least.as_deref())
    }

    /// Like [`RecordFilter::keys`], but for ids within a dataset.
    pub(crate) fn ids(&self, from: Option<&Place>) -> (String, String) {
        let after = from.map(|place| split_record_key(place.part(0)).1);
        let prefix = self.id_prefix.as_deref().unwrap_or_default();
        text_range(prefix, after, self.from_id.as_deref())
    }
}

/// The range of texts that begin with `prefix` and come after `after`, but not before `least`.
fn text_range(prefix: &str, after: Option<&str>, least: Option<&str>) -> (String, String) {
    // No other text comes between a text and the same text followed by NUL.
    let next = after.map(|after| format!("{after}\0"));
    let first = next.unwrap_or_default().max(prefix.to_owned());
    let first = first.max(least.unwrap_or_default().to_owned());
    (first, format!("{prefix}{}", char::MAX))
}

impl ChangeListFilter {
    pub(crate) fn matches(&self, change: &Change) -> bool {
        let is_of_crawl =
            |crawl: &CrawlId| crawl.app_id == change.app_id && crawl.crawl_id == change.crawl_id;
        self.crawl.as_ref().is_none_or(is_of_crawl)
            && self.site.as_ref().is_none_or(|site| *site == change.site)
            && self
                .page
                .as_ref()
                .is_none_or(|page| *page == change.page_id)
            && self.kind.is_none_or(|kind| kind == change.kind)
            && includes_app(self.apps.as_ref(), &change.app_id)
    }
}

impl CrawlFilter {
    pub(crate) fn matches(&self, crawl: &Crawl) -> bool {
        self.state.is_none_or(|state| state == crawl.state)
            && includes_app(self.apps.as_ref(), &crawl.id.app_id)
    }
}
