//! Conditional requests for pages: the headers sent, and the result of an unchanged page.

use serde_json::{Map, Value};
use webfill_store::{KnownPage, page_id};
use webfill_urls::Url;
use webfill_wire::{CrawlSettings, Outcome, Task};

use super::giving_back::GivenBack;
use super::state::Journey;
use crate::conditions;
use crate::extract::FetchedPage;
use crate::now::now_ms;
use crate::task_result::TaskResult;

/// The conditions of a request for a page: its headers, and the stored page that they belong to.
#[derive(Default)]
pub(super) struct Condition {
    pub(super) headers: Vec<(String, String)>,
    known: Option<KnownPage>,
}

impl Condition {
    /// Loads the conditions for the request of a task's page. There are no headers if the request is unconditional.
    pub(super) async fn load(journey: &Journey, task: &Task, crawl: &CrawlSettings) -> Condition {
        let mappings = journey.mappings.borrow().clone();
        let Some(mappings) = mappings.filter(|_| conditions::wants_conditional_requests(crawl))
        else {
            return Condition::default();
        };
        let id = page_id(&crawl.app_id, &crawl.crawl_id, &task.url);
        let Some(known) = journey.stored_pages.known_page(id).await else {
            return Condition::default();
        };
        let url = Url::parse(&task.url).ok();
        let asked_with = url.map_or_else(String::new, |url| journey.headers.as_text(&url));
        let headers = conditions::conditional_headers(
            &known,
            task,
            crawl,
            journey.documents.as_ref(),
            &mappings,
            &asked_with,
            now_ms(),
        );
        let known = (!headers.is_empty()).then_some(known);
        Condition { headers, known }
    }

    /// Copies the stored page into the result if the page has not changed. If the stored page cannot be read, the task
    /// is given back, and the page is fetched again.
    pub(super) async fn restore_if_unchanged(
        self,
        journey: &Journey,
        mut page: FetchedPage,
    ) -> Result<FetchedPage, GivenBack> {
        let is_unchanged = page.result.outcome == Outcome::NotModified;
        let Some(known) = self.known.filter(|_| is_unchanged) else {
            return Ok(page);
        };
        // Stored pages are read one at a time, because the size of a page is unknown until it is read.
        let _reading = journey.reading_stored.lock().await;
        let mut stored = None;
        let found = journey
            .store
            .pages(vec![known.id.clone()], &mut |value| {
                stored = Some(value);
                Ok(())
            })
            .await;
        let given_back = |why: &str, page: FetchedPage| {
            tracing::warn!(
                event = "stored_page_lost",
                url = page.result.task.url,
                "the page has not changed, but {why}: it is fetched again"
            );
            Err(GivenBack(Box::new(page.result.task)))
        };
        match (stored, found) {
            (Some(Value::Object(stored)), _) => fill_from_stored(&mut page.result, stored, known),
            // The page was removed from the store meanwhile, with its validators. So the next request is unconditional.
            (_, Ok(_)) => return given_back("it is no longer stored", page),
            (_, Err(error)) => return given_back(&error.to_string(), page),
        }
        let memory = journey
            .results_memory
            .take(page.result.memory_bytes())
            .await;
        page.result.memory = Some(memory);
        Ok(page)
    }
}

fn fill_from_stored(result: &mut TaskResult, mut stored: Map<String, Value>, known: KnownPage) {
    let mut text = |name: &str| match stored.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    result.content_type = text("content_type");
    result.content_hash = text("content_hash");
    result.mapping = text("mapping");
    result.mapping_version = text("mapping_version");
    result.template = text("template");
    result.body = text("body").map(Into::into);
    let mut object = |name: &str| match stored.remove(name) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    };
    result.fields = object("fields").unwrap_or_default();
    result.alternatives = object("alternatives").unwrap_or_default();
    result.document = object("document");
    result.headers = object("headers").or(result.headers.take());
    let row_counts = stored.remove("row_counts");
    let row_counts = row_counts.and_then(|counts| serde_json::from_value(counts).ok());
    result.row_counts = row_counts.unwrap_or_default();
    result.stored_bytes = stored.get("bytes").and_then(Value::as_u64);
    let links = match stored.remove("links") {
        Some(Value::Array(links)) => links,
        _ => Vec::new(),
    };
    let links = links.into_iter().filter_map(|link| match link {
        Value::String(link) => Some(link),
        _ => None,
    });
    result.links = links.collect();
    result.validators = Some(known.validators);
}
