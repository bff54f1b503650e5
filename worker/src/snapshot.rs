//! Makes the snapshot of a page, which is compared with later ones to find changes. It has the page's fields and rows
//! if a mapping has read it, otherwise the blocks of its text. The snapshot of a missing page only says that it was not
//! found. Errors and recognised blocks give no snapshot.

use std::time::Duration;

use serde_json::{Map, Value};
use webfill_changes::{PageContent, PageVersions, SiteBlocks};
use webfill_document::{Document, Limits};
use webfill_store::{Listing, MAX_SNAPSHOT_BYTES};
use webfill_wire::{Feature, Outcome};

use crate::charset::Kind;
use crate::task_result::TaskResult;

/// By how many milliseconds the clock of a server may be slow.
const CLOCK_OFF_MS: i64 = 500;

/// The snapshot of a page that was read.
pub(crate) fn snapshot_of_page(
    result: &TaskResult,
    kind: Kind,
    text: &str,
    limits: &Limits,
) -> Option<Vec<u8>> {
    if !is_compared(result) {
        return None;
    }
    if result.mapping.is_some() {
        let packed = PageContent::from_rows(&rows_by_name(&result.listings)).pack();
        return Some(packed).filter(|packed| packed.len() <= MAX_SNAPSHOT_BYTES);
    }
    let seen = match kind {
        Kind::Html => PageContent::from_tree(&Document::parse_html(text, limits)),
        Kind::Xml => PageContent::from_tree(&Document::parse_xml(text, limits)),
        Kind::Json => PageContent::from_json(text),
        Kind::Text | Kind::Unsupported => PageContent::from_text(text),
    };
    pack_if_worth_keeping(&seen)
}

/// The values of a page's rows, by dataset and by the part of the key that the page itself has. Rows without a key,
/// and further rows with the same key, are left out, because they cannot be identified again.
fn rows_by_name(listings: &[Listing]) -> Map<String, Value> {
    let mut rows = Map::new();
    for listing in listings {
        for row in &listing.rows {
            let Some(id) = listing.own_id(row) else {
                continue;
            };
            let has_value = |(_, value): &(&String, &Value)| !value.is_null();
            let values = row.fields.iter().filter(has_value);
            let values = values.map(|(name, value)| (name.clone(), value.clone()));
            rows.entry(format!("{}[{id}]", listing.dataset.as_str()))
                .or_insert_with(|| values.collect::<Map<_, _>>().into());
        }
    }
    rows
}

/// The snapshot of a document that could not be read or has no text: only that it exists.
pub(crate) fn snapshot_of_unread(result: &TaskResult) -> Option<Vec<u8>> {
    is_compared(result).then(|| PageContent::unread_document().pack())
}

fn is_compared(result: &TaskResult) -> bool {
    result.crawl.needs_feature(Feature::Changes) && result.outcome == Outcome::Ok
}

/// The stored versions of a page, and what is known about the texts of its site.
pub(crate) struct KnownVersions {
    pub(crate) page: Option<PageVersions>,
    pub(crate) site: SiteBlocks,
}

/// A second fetch of a page, which a snapshot requires.
pub(crate) struct Recheck {
    /// How long to wait before the second fetch, until a clock shown on the page has moved.
    pub(crate) wait: Duration,
}

/// Whether a snapshot requires a second fetch: it is the first one, or differs from the known ones.
pub(crate) fn needed_recheck(
    snapshot: &[u8],
    at_ms: i64,
    known: &KnownVersions,
) -> Option<Recheck> {
    let seen = PageContent::unpack(snapshot).ok()?;
    let is_news = known
        .page
        .as_ref()
        .is_none_or(|page| page.has_news(&seen, at_ms, &known.site));
    let wait_ms = seen.clock_step_ms(at_ms, &known.site).map_or(0, |step_ms| {
        (at_ms.div_euclid(step_ms) + 1) * step_ms + CLOCK_OFF_MS - at_ms
    });
    is_news.then_some(Recheck {
        wait: Duration::from_millis(wait_ms.unsigned_abs()),
    })
}

/// Returns the first snapshot with the differences from the second one marked, and whether there are any. `None` if one
/// of the two cannot be read.
pub(crate) fn mark_differences(first: &[u8], second: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (first, second) = (
        PageContent::unpack(first).ok()?,
        PageContent::unpack(second).ok()?,
    );
    let seen = first.merge_second_fetch(&second);
    Some((pack_if_worth_keeping(&seen)?, seen.is_unsteady()))
}

/// The snapshot of an answer that is not a page: the page is missing, or it has not changed.
pub(crate) fn snapshot_without_page(result: &TaskResult) -> Option<Vec<u8>> {
    let is_missing =
        result.outcome == Outcome::HttpError && matches!(result.status_code, Some(404 | 410));
    let is_check = is_missing || result.outcome == Outcome::NotModified;
    (is_check && result.crawl.needs_feature(Feature::Changes))
        .then(|| PageContent::without_content().pack())
}

/// Compresses a snapshot. `None` for an empty page, and for a snapshot that is too long to keep.
fn pack_if_worth_keeping(seen: &PageContent) -> Option<Vec<u8>> {
    let packed = (!seen.is_empty()).then(|| seen.pack())?;
    (packed.len() <= MAX_SNAPSHOT_BYTES).then_some(packed)
}
