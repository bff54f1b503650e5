//! Pages that are asked for conditionally: what is sent along, and what a page has that has not changed.

use serde_json::{Map, Value};
use webfill_store::{KnownPage, page_id};
use webfill_wire::{Outcome, Task};

use super::Journey;
use crate::conditions;
use crate::crawl::Crawl;
use crate::extract::FetchedPage;
use crate::now::now_ms;
use crate::task_result::TaskResult;

/// With what a page is asked for.
#[derive(Default)]
pub(super) struct Condition {
    pub(super) headers: Vec<(String, String)>,
    known: Option<KnownPage>,
}

impl Journey {
    /// The condition for the request of a task's page; it has no headers if there is none.
    pub(super) async fn condition(&self, task: &Task, crawl: &Crawl) -> Condition {
        let mappings = self.mappings.borrow().clone();
        let Some(mappings) = mappings.filter(|_| conditions::are_wanted(crawl)) else {
            return Condition::default();
        };
        let id = page_id(&crawl.app_id, &crawl.crawl_id, &task.url);
        let Some(known) = self.conditions.known_page(id).await else {
            return Condition::default();
        };
        let headers = conditions::headers(&known, task, crawl, &mappings, now_ms());
        let known = (!headers.is_empty()).then_some(known);
        Condition { headers, known }
    }

    /// If the page has not changed: gives its result what the stored page has.
    pub(super) async fn keep_unchanged(&self, page: &mut FetchedPage, condition: Condition) {
        let Some(known) = condition.known else { return };
        if page.result.outcome != Outcome::NotModified {
            return;
        }
        let mut stored = None;
        let found = self
            .store
            .pages(vec![known.id.clone()], &mut |value| {
                stored = Some(value);
                Ok(())
            })
            .await;
        match (stored, found) {
            (Some(Value::Object(stored)), _) => fill(&mut page.result, stored, known),
            // It was dropped meanwhile. It has no validators any more, so the next look asks for all of it.
            (_, Ok(_)) => lost(&mut page.result, "the stored page is gone".into()),
            (_, Err(error)) => lost(&mut page.result, error.to_string()),
        }
        page.memory.set(page.result.memory_bytes());
    }
}

fn lost(result: &mut TaskResult, why: String) {
    result.outcome = Outcome::HttpError;
    result.error = Some(format!("not modified, but {why}"));
}

fn fill(result: &mut TaskResult, mut stored: Map<String, Value>, known: KnownPage) {
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
    result.document = object("document");
    result.headers = object("headers").or(result.headers.take());
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
