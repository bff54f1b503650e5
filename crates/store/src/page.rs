//! A stored page: the result of one URL in one crawl.

use std::sync::Arc;

use serde_json::{Map, Value};
use webfill_wire::{Delivery, FailedAttempt, Outcome};

use crate::crawl::CrawlId;
use crate::list::PageOfList;
use crate::listing::Listing;
use crate::record::{Leads, PageValues};
use crate::row_counts::RowCounts;
use crate::sample::SampleText;
use crate::validators::Validators;

/// The largest page or record on any backend, in bytes. A MongoDB document has at most 16 MiB.
pub const MAX_ENTRY_BYTES: usize = 15 << 20;

/// The result of one URL in one crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub app_id: String,
    pub crawl_id: String,
    /// The canonical URL of the task.
    pub url: String,
    /// The URL that answered, if the task's URL was redirected.
    pub final_url: Option<String>,
    pub site: String,
    /// The number of links followed from a seed to this page.
    pub depth: u16,
    /// The page where the link to this one was found.
    pub parent: Option<String>,
    pub outcome: Outcome,
    /// The HTTP status, if there was a response.
    pub status_code: Option<u16>,
    /// The name of the mapping that extracted the fields.
    pub mapping: Option<String>,
    /// The version of the mapping: the first 32 digits of the SHA-256 of its file.
    pub mapping_version: Option<String>,
    /// A sketch of the page's layout. Sketches of pages with the same layout have mostly equal digits.
    pub template: Option<String>,
    /// The extracted fields.
    pub fields: Map<String, Value>,
    /// For each field whose value was not found by the first rule of the mapping: the number of the alternative rule
    /// that found it, from 1, or 0 if the field has no value because its text is ambiguous. Stored only if there are
    /// any.
    pub alternatives: Map<String, Value>,
    /// The rows of the page. They are stored as records, not with the page.
    pub listings: Vec<Listing>,
    /// The page's data about its list (where it continues, what it lacks), if its mapping has rows.
    pub list: Option<PageOfList>,
    /// The counts of the page's rows; see [`crate::row_counts()`]. Empty if its mapping has none. The counts are
    /// stored as `row_counts`, and their sum as `rows`.
    pub row_counts: Vec<RowCounts>,
    /// The discovered links.
    pub links: Vec<String>,
    pub content_type: Option<String>,
    /// The length of the decoded body in bytes.
    pub bytes: u64,
    pub content_hash: Option<String>,
    /// When the fetch started, in milliseconds since the epoch.
    pub started_at_ms: i64,
    pub elapsed_ms: u64,
    /// The number that the dispatcher gave to the task that fetched the page.
    pub task: u64,
    /// The delivery of the task that gave this outcome; its number is stored as `attempts`. Of two saves of a page, the
    /// one of the later delivery wins, or if the tasks differ, the one of the later task. Clocks matter only between
    /// two saves of the same delivery.
    pub delivery: Delivery,
    /// The worker that fetched the page.
    pub worker: String,
    /// The application's own JSON, passed through.
    pub attrs: Option<Value>,
    /// Earlier attempts that failed and were retried, the oldest first; stored as `tries`.
    pub failed_attempts: Vec<FailedAttempt>,
    /// The response headers, `{name: [value]}`, if the crawl stores headers.
    pub headers: Option<Map<String, Value>>,
    /// The page's text, if the crawl stores bodies.
    pub body: Option<Arc<str>>,
    /// Set if the page's text is kept separately as a sample, for repairs of its mapping.
    pub sample: Option<SampleText>,
    /// For a document (PDF, ...): the result of reading it, and its metadata.
    pub document: Option<Map<String, Value>>,
    /// The validators for a conditional request for the page.
    pub validators: Option<Validators>,
    /// The page's snapshot, compressed (Zstandard), if the crawl compares pages.
    pub snapshot: Option<Vec<u8>>,
}

impl Page {
    /// A page with an outcome and nothing else: no response, no fields, no links, first delivery.
    pub fn new(crawl: &CrawlId, url: &str, site: &str, outcome: Outcome) -> Page {
        Page {
            app_id: crawl.app_id.clone(),
            crawl_id: crawl.crawl_id.clone(),
            url: url.to_owned(),
            final_url: None,
            site: site.to_owned(),
            depth: 0,
            parent: None,
            outcome,
            status_code: None,
            mapping: None,
            mapping_version: None,
            template: None,
            fields: Map::new(),
            alternatives: Map::new(),
            listings: Vec::new(),
            list: None,
            row_counts: Vec::new(),
            links: Vec::new(),
            content_type: None,
            bytes: 0,
            content_hash: None,
            started_at_ms: 0,
            elapsed_ms: 0,
            task: 0,
            delivery: Delivery::new(0, 1),
            worker: String::new(),
            attrs: None,
            failed_attempts: Vec::new(),
            headers: None,
            body: None,
            sample: None,
            document: None,
            validators: None,
            snapshot: None,
        }
    }

    /// The page's values, which may fill records.
    pub(crate) fn values<'a>(&'a self, leads: &'a Leads) -> PageValues<'a> {
        PageValues {
            fields: &self.fields,
            url: &self.url,
            mapping: self.mapping.as_deref(),
            started_at_ms: self.started_at_ms,
            ended_at_ms: self.ended_at_ms(),
            depth: Some(self.depth),
            leads,
            is_of_other: false,
            is_reread: false,
        }
    }

    /// The page's key; see [`page_id`].
    pub fn id(&self) -> String {
        page_id(&self.app_id, &self.crawl_id, &self.url)
    }

    /// When the fetch ended, in milliseconds since the epoch.
    pub(crate) fn ended_at_ms(&self) -> i64 {
        let elapsed_ms = i64::try_from(self.elapsed_ms).unwrap_or(i64::MAX);
        self.started_at_ms.saturating_add(elapsed_ms)
    }
}

/// The key for the content that all pages of a site share within a crawl. Stored under it are the earlier versions of
/// that content.
pub fn site_versions_id(app_id: &str, crawl_id: &str, site: &str) -> String {
    format!("{app_id}/{crawl_id}/site/{site}")
}

/// The key of a page: app id, "/", crawl id, "/", hash of the canonical URL. None of the three contains "/".
pub fn page_id(app_id: &str, crawl_id: &str, url: &str) -> String {
    let hash = webfill_urls::page_hash(url);
    let mut id = String::with_capacity(app_id.len() + crawl_id.len() + 2 + hash.len());
    for part in [app_id, "/", crawl_id, "/", &hash] {
        id.push_str(part);
    }
    id
}
