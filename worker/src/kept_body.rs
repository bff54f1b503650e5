//! Kept bodies of pages ([`webfill_store::Bodies`]), for running mappings again without fetching. A kept body is the
//! mapping's input before it is decoded to text.

use webfill_store::{Body, BodyChange, page_id};
use webfill_wire::{Feature, Outcome};

use crate::task_result::TaskResult;

/// The compression level of zstd. A higher one takes more time than it is worth.
const LEVEL: i32 = 3;

/// A body, compressed.
#[derive(Debug, Clone)]
pub struct KeptBody {
    is_rendered: bool,
    bytes: u64,
    pub body: Vec<u8>,
}

/// Compresses a body, unless it is longer than `max_bytes`. This may take long.
pub(crate) fn compress(body: &[u8], is_rendered: bool, max_bytes: usize) -> Option<KeptBody> {
    if body.len() > max_bytes {
        return None;
    }
    let compressed = zstd::bulk::compress(body, LEVEL).ok()?;
    Some(KeptBody {
        is_rendered,
        bytes: body.len() as u64,
        body: compressed,
    })
}

/// The change to the page's kept body at the end of a task; `None` in crawls that keep no bodies.
pub(crate) fn body_change(result: &TaskResult) -> Option<BodyChange> {
    let crawl = &result.crawl;
    if !crawl.needs_feature(Feature::KeepBodies) {
        return None;
    }
    let page_id = page_id(&crawl.app_id, &crawl.crawl_id, &result.task.url);
    let at_ms = result.started_at_ms;
    let change = match (&result.kept_body, &result.content_hash) {
        (Some(kept), Some(content_hash)) => BodyChange::Keep(Body {
            page_id,
            content_hash: content_hash.clone(),
            is_rendered: kept.is_rendered,
            at_ms,
            task: result.task.task,
            delivery: result.task.delivery,
            bytes: kept.bytes,
            body: kept.body.clone(),
        }),
        (None, Some(content_hash)) if result.outcome == Outcome::NotModified => {
            BodyChange::Unchanged {
                page_id,
                content_hash: content_hash.clone(),
                at_ms,
            }
        }
        _ => BodyChange::Forget { page_id, at_ms },
    };
    Some(change)
}
