//! Reads a page that is a document, before its extraction and in a process of its own.

use webfill_wire::{Feature, Outcome, Task};

use super::giving_back::GivenBack;
use super::state::Journey;
use crate::documents::{self, Attempt, Documents, NoDocument};
use crate::extract::FetchedPage;
use crate::permits::Permit;

/// A task is given back if the machine could not read its document. From this delivery of the task on, it ends instead.
const MAX_DELIVERIES: u32 = 3;

fn attempt_of(task: &Task) -> Attempt {
    match task.delivery.number < MAX_DELIVERIES {
        true => Attempt::Early,
        false => Attempt::Last,
    }
}

/// Returns the reader of documents if the page is a document.
pub(super) fn reader_for<'j>(journey: &'j Journey, page: &FetchedPage) -> Option<&'j Documents> {
    let documents = journey.documents.as_ref()?;
    let content_type = page.result.content_type.as_deref();
    let is_document = page.result.outcome == Outcome::Ok
        && !page.body.is_empty()
        && documents::is_document_or_text(content_type, &page.body);
    is_document.then_some(documents)
}

/// Reads a page that is a document. The document's text then replaces the body of the page.
pub(super) async fn read(
    journey: &Journey,
    documents: &Documents,
    mut page: FetchedPage,
    permit: &Permit,
) -> Result<FetchedPage, GivenBack> {
    let reader = documents.take_reader_permit();
    let reader = journey
        .interrupt
        .wait_unless_called_back(permit, reader)
        .await;
    let Some(_reader) = reader.flatten() else {
        return Err(GivenBack(Box::new(page.result.task)));
    };
    let content_type = page.result.content_type.clone();
    let body = std::mem::take(&mut page.body);
    let this_try = attempt_of(&page.result.task);
    let keeps = page.result.crawl.needs_feature(Feature::KeepBodies);
    let kept_bytes = keeps.then_some(journey.kept_body_bytes);
    let reading = documents.read_and_keep(body, content_type, this_try, kept_bytes);
    match reading.await {
        Ok(document) => {
            let kept = document
                .kept_body
                .as_ref()
                .map_or(0, |kept| kept.body.len());
            page.memory.set(document.text.capacity() + kept);
            page.document = Some(Box::new(document));
        }
        Err(NoDocument::Unsupported) => {
            page.result.outcome = Outcome::UnsupportedType;
            page.result.error = Some("the body is neither a page nor a document".into());
        }
        Err(NoDocument::NotRead(reason)) => {
            tracing::warn!(
                event = "document_not_read",
                url = page.result.task.url,
                crawl_id = page.result.crawl.crawl_id,
                reason,
                "this machine could not read a document"
            );
            if this_try == Attempt::Early {
                return Err(GivenBack(Box::new(page.result.task)));
            }
            page.result.outcome = Outcome::ExtractError;
            page.result.error = Some(reason);
        }
        Err(NoDocument::NotKept(fault)) => {
            // If the channel is full, another fault was reported before. In both cases the process is about to end.
            let _ = journey.broken.try_send(fault);
            std::future::pending::<()>().await;
        }
    }
    Ok(page)
}
