//! Pages as they are saved, and the records that they fill.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::page::Page;
use crate::record::{MappingRules, RecordState};
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

/// How pages should be batched into calls of [`Pages::save`], so that the backend keeps up: a batch
/// is saved once it has `max_entries`, or its first entry is older than `max_age`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavePace {
    pub max_entries: usize,
    pub max_age: Duration,
}

/// Pages are saved, taken back, and fill records.
#[async_trait]
pub trait Pages: Send + Sync {
    /// The pace for this backend, if `processes` processes of this machine save.
    fn save_pace(&self, processes: u16) -> SavePace;

    /// Sets the rules of mappings for records. Must be called before records are filled. Without it, the first value
    /// wins, and no page is known to lead to several pages of one mapping. No mapping names the fields by which a
    /// record is recognised, and no list continues on further pages.
    fn set_mapping_rules(&self, mappings: Arc<dyn MappingRules>);

    /// Stores pages and fills their records. Answers in the order given, once everything is durable.
    /// An entry that cannot be stored fails alone. A repeated save changes nothing, and a page of an
    /// earlier delivery than the stored one (or of the same, but started before) does not replace it.
    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>>;

    /// Replaces pages stored by the same deliveries that turned out to be blocks. Their values are taken back from
    /// their records. Answers as [`Pages::save`] does. If a later delivery has stored the page meanwhile, nothing
    /// changes.
    async fn take_back(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>>;

    /// Fills records from pages that were fetched for other records; `None` if the page is not stored.
    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError>;

    /// Those of the pages with these [keys](crate::page_id) that have [`Validators`](crate::Validators), in
    /// any order.
    async fn known_pages(&self, ids: Vec<String>) -> Result<Vec<KnownPage>, StoreError>;
}
