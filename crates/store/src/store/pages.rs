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
    /// The keys of the records that the page was fetched for.
    pub records: Vec<String>,
}

impl Save {
    /// The records that are stored with the page. A page may be for thousands of them.
    pub(crate) fn first_records(&self) -> &[String] {
        &self.records[..self.records.len().min(MAX_RECORDS_OF_PAGE)]
    }
}

/// The most records that are stored with a page.
const MAX_RECORDS_OF_PAGE: usize = 4;

/// The states of the records of a saved page. A record that is not stored counts as open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Saved {
    /// Records resolved by this page or earlier.
    pub resolved: Vec<String>,
    /// Records that need further pages, mostly because they still lack a wanted field.
    pub open: Vec<String>,
    /// The page's rows whose records need further pages, with their links.
    pub leads: Vec<RowLead>,
}

/// The record of a row, and the URLs that may fill it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLead {
    /// The key of the record.
    pub record: String,
    pub urls: Vec<String>,
}

/// A request to fill a record from a stored page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyPage {
    /// The key of the page; see [`crate::page_id`].
    pub page_id: String,
    /// The key of the record to fill.
    pub record: String,
}

/// The result of an [`ApplyPage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub state: RecordState,
    /// The page's discovered links, which would have been followed for this record if the page had been fetched for it.
    pub links: Vec<String>,
}

/// How pages should be batched into calls of [`Pages::save`], so that the backend keeps up. A batch is saved once it
/// has `max_entries`, or its first entry is older than `max_age`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavePace {
    pub max_entries: usize,
    pub max_age: Duration,
}

/// Saves pages, takes them back, and fills records from them.
#[async_trait]
pub trait Pages: Send + Sync {
    /// The pace for this backend, if `processes` processes of this machine save pages.
    fn save_pace(&self, processes: u16) -> SavePace;

    /// Sets the rules of mappings for filling records. Must be called before records are filled. Without rules, the
    /// first value wins, no record is recognised by its fields, and no list continues on further pages.
    fn set_mapping_rules(&self, mappings: Arc<dyn MappingRules>);

    /// Stores pages and fills their records. Answers in the given order, once everything is durable. If an entry
    /// cannot be stored, only that entry fails. A repeated save changes nothing. A page of an earlier delivery than
    /// the stored one (or of the same, but started before) does not replace it.
    async fn save(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>>;

    /// Replaces pages that the same deliveries have stored, and that turned out to be block pages. Their values are
    /// taken back from their records. Answers like [`Pages::save`]. If a later delivery has stored the page meanwhile,
    /// nothing changes.
    async fn take_back(&self, saves: Vec<Save>) -> Vec<Result<Saved, StoreError>>;

    /// Fills records from pages that were fetched for other records; `None` if the page is not stored.
    async fn apply_pages(
        &self,
        applies: Vec<ApplyPage>,
    ) -> Result<Vec<Option<Applied>>, StoreError>;

    /// Which of the pages with these [keys](crate::page_id) have [`Validators`](crate::Validators), in any order.
    async fn known_pages(&self, ids: Vec<String>) -> Result<Vec<KnownPage>, StoreError>;
}
