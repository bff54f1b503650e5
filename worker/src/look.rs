//! What is kept of a page so that later looks can be compared with this one: its fields if a mapping has read
//! it, else the blocks of its text; or that it was not found. An error is no look, and neither is a block.

use webfill_changes::Seen;
use webfill_document::{Document, Limits};
use webfill_store::MAX_LOOK_BYTES;
use webfill_wire::{Feature, Outcome};

use crate::charset::Kind;
use crate::task_result::TaskResult;

/// Of a page that was read.
pub(crate) fn of_page(
    result: &TaskResult,
    kind: Kind,
    text: &str,
    limits: &Limits,
) -> Option<Vec<u8>> {
    if !is_compared(result) {
        return None;
    }
    if result.mapping.is_some() {
        return Some(Seen::nothing().packed());
    }
    let at_ms = result.started_at_ms;
    let seen = match kind {
        Kind::Html => Seen::of_tree(&Document::parse_html(text, limits), at_ms),
        Kind::Xml => Seen::of_tree(&Document::parse_xml(text, limits), at_ms),
        Kind::Json => Seen::of_json(text, at_ms),
        Kind::Text | Kind::Unsupported => Seen::of_text(text, at_ms),
    };
    packed(&seen)
}

/// Of a document that could not be read, or has no text: that it is there.
pub(crate) fn of_unread_document(result: &TaskResult) -> Option<Vec<u8>> {
    is_compared(result).then(|| Seen::unread_document().packed())
}

fn is_compared(result: &TaskResult) -> bool {
    result.crawl.has(Feature::Changes) && result.outcome == Outcome::Ok
}

/// Notes in a page's look where a second fetch of it differs.
pub(crate) fn note_second(first: &mut TaskResult, second: &TaskResult) {
    let seen = |result: &TaskResult| Seen::unpacked(result.look.as_ref()?).ok();
    if let (None, Some(one), Some(other)) = (&second.mapping, seen(first), seen(second)) {
        let seen = one.of_two_fetches(first.started_at_ms, &other, second.started_at_ms);
        first.look = packed(&seen).or(first.look.take());
    }
}

/// Of an answer without a page.
pub(crate) fn without_page(result: &TaskResult) -> Option<Vec<u8>> {
    let is_missing =
        result.outcome == Outcome::HttpError && matches!(result.status_code, Some(404 | 410));
    let is_look = is_missing || result.outcome == Outcome::NotModified;
    (is_look && result.crawl.has(Feature::Changes)).then(|| Seen::nothing().packed())
}

/// Nothing of an empty page, and nothing that would be too long to keep.
fn packed(seen: &Seen) -> Option<Vec<u8>> {
    let packed = (!seen.is_empty()).then(|| seen.packed())?;
    (packed.len() <= MAX_LOOK_BYTES).then_some(packed)
}
