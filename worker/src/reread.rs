//! Reads stored pages again, with the code that reads new pages, but without requests, links, snapshots and samples.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use webfill_mapping::{Engine, Limits, MappingSet};
use webfill_store::Listing;
use webfill_wire::{AddressBounds, CrawlSettings, Delivery, Follow, Lane, Outcome, Task};

use crate::config::WorkerConfig;
use crate::documents::{Attempt, Documents, DocumentsConfig, NoDocument, is_readable};
use crate::extract::{FetchedPage, extract};
use crate::memory::{BudgetParts, Memory};
use crate::task_result::TaskResult;

/// A page to read again.
#[derive(Debug)]
pub struct PageToRead {
    pub url: String,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
    /// Whether the body is the document that the page became after its scripts ran.
    pub is_rendered: bool,
    /// Whether the page was read as a document (PDF, ...).
    pub is_document: bool,
    /// Whether the page was a document that could be read.
    pub was_readable: bool,
}

/// The values that mappings find on a page now.
#[derive(Debug)]
pub struct PageRead {
    /// `ok`, or the reason why the page could not be read.
    pub outcome: Outcome,
    pub error: Option<String>,
    /// The hash of the content, which shows whether the page still has the content that was stored.
    pub content_hash: Option<String>,
    pub mapping: Option<String>,
    pub mapping_version: Option<String>,
    pub template: Option<String>,
    pub fields: Map<String, Value>,
    /// See [`webfill_store::Page::alternatives`].
    pub alternatives: Map<String, Value>,
    /// See [`webfill_store::Page::listings`].
    pub listings: Vec<Listing>,
}

/// Reads stored pages again, without requests. A thread that reads pages must have a stack of
/// [`PageReader::STACK_BYTES`].
pub struct PageReader {
    engine: Engine,
    documents: Option<Documents>,
    page_deadline: Duration,
    crawl: Arc<CrawlSettings>,
    /// The memory for pages. It is unlimited, because pages are read one at a time.
    memory: Memory,
}

impl PageReader {
    pub const STACK_BYTES: usize = crate::extract::STACK_BYTES;

    pub fn new(
        mappings: Arc<MappingSet>,
        config: &WorkerConfig,
        documents: &DocumentsConfig,
    ) -> PageReader {
        let documents = DocumentsConfig {
            read: true,
            keep: None,
            ..documents.clone()
        };
        let page = BudgetParts::of(config.memory_mib).page;
        PageReader {
            engine: Engine::new(mappings, Limits::with_memory(page)),
            documents: Documents::new(documents),
            page_deadline: Duration::from_secs_f64(config.page_deadline),
            crawl: Arc::new(empty_crawl_settings()),
            memory: Memory::new(usize::MAX >> 1),
        }
    }

    pub async fn read(&self, page: PageToRead) -> PageRead {
        let result =
            TaskResult::of_unfetched(task_of(&page.url), Arc::clone(&self.crawl), Outcome::Ok);
        let mut page_in_hand = FetchedPage {
            result,
            body: page.body,
            document: None,
            is_rendered: page.is_rendered,
            is_candidate: false,
            answer: None,
            memory: self.memory.take(0).await,
        };
        page_in_hand.result.content_type = page.content_type;
        if page.is_document
            && let Err(read) = self
                .read_document(&mut page_in_hand, page.was_readable)
                .await
        {
            return read;
        }
        let read = extract(&self.engine, None, page_in_hand, self.page_deadline);
        PageRead {
            outcome: read.outcome,
            error: read.error,
            content_hash: read.content_hash,
            mapping: read.mapping,
            mapping_version: read.mapping_version,
            template: read.template,
            fields: read.fields,
            alternatives: read.alternatives,
            listings: read.listings,
        }
    }

    /// Reads a document again. After an error, the stored result is kept. A reader may end because the machine is busy,
    /// and a document that was readable before does not become unreadable.
    async fn read_document(
        &self,
        page: &mut FetchedPage,
        was_readable: bool,
    ) -> Result<(), PageRead> {
        let Some(documents) = &self.documents else {
            return Err(unread_page("documents are not read"));
        };
        let body = std::mem::take(&mut page.body);
        let content_type = page.result.content_type.clone();
        let read = documents
            .read_and_keep(body, content_type, Attempt::Early, None)
            .await;
        match read {
            Ok(document) if was_readable && !is_readable(document.status) => {
                let reason = document.stored.get("reason").and_then(Value::as_str);
                let reason = reason.unwrap_or(document.status.as_str());
                Err(unread_page(&format!(
                    "the document cannot be read now: {reason}"
                )))
            }
            Ok(document) => {
                page.document = Some(Box::new(document));
                Ok(())
            }
            Err(NoDocument::Unsupported) => Err(unread_page("not a document")),
            Err(NoDocument::NotRead(reason)) => Err(unread_page(&reason)),
            Err(NoDocument::NotKept(fault)) => Err(unread_page(&fault.message)),
        }
    }
}

fn unread_page(reason: &str) -> PageRead {
    PageRead {
        outcome: Outcome::ExtractError,
        error: Some(reason.to_owned()),
        content_hash: None,
        mapping: None,
        mapping_version: None,
        template: None,
        fields: Map::new(),
        alternatives: Map::new(),
        listings: Vec::new(),
    }
}

/// A crawl that follows no links and uses no features.
fn empty_crawl_settings() -> CrawlSettings {
    CrawlSettings {
        key: 0,
        app_id: String::new(),
        crawl_id: String::new(),
        max_depth: 0,
        follow: Follow::None,
        lane: Lane::Http,
        useragent: None,
        attrs: None,
        headers: false,
        body: false,
        features: Vec::new(),
    }
}

fn task_of(url: &str) -> Task {
    Task {
        task: 0,
        delivery: Delivery::new(0, 1),
        crawl: 0,
        url: url.to_owned(),
        site: String::new(),
        depth: 0,
        wait_ms: 0,
        last_request_ago_ms: None,
        parent: None,
        records: Vec::new(),
        attrs: None,
        priority: 50,
        delay_ms: None,
        failed_attempts: Vec::new(),
        unreachable: None,
        address_bounds: AddressBounds::None,
    }
}
