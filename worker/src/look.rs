//! What is kept of a page so that later looks can be compared with this one: its fields and rows if a mapping has read
//! it, else the blocks of its text; or that it was not found. An error is no look, and neither is a block.

use std::time::Duration;

use serde_json::{Map, Value};
use webfill_changes::{PageVersions, Seen, SiteBlocks};
use webfill_document::{Document, Limits};
use webfill_store::{Listing, MAX_LOOK_BYTES};
use webfill_wire::{Feature, Outcome};

use crate::charset::Kind;
use crate::task_result::TaskResult;

/// By how much the clock of a server may be behind.
const CLOCK_OFF_MS: i64 = 500;

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
        let packed = Seen::of_rows(&rows_by_name(&result.listings)).packed();
        return Some(packed).filter(|packed| packed.len() <= MAX_LOOK_BYTES);
    }
    let seen = match kind {
        Kind::Html => Seen::of_tree(&Document::parse_html(text, limits)),
        Kind::Xml => Seen::of_tree(&Document::parse_xml(text, limits)),
        Kind::Json => Seen::of_json(text),
        Kind::Text | Kind::Unsupported => Seen::of_text(text),
    };
    packed(&seen)
}

/// The values of the rows of a page, by their dataset and key as far as the page itself has it. Those without a key,
/// and further ones with the same key, are none that can be known again.
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

/// Of a document that could not be read, or has no text: that it is there.
pub(crate) fn of_unread_document(result: &TaskResult) -> Option<Vec<u8>> {
    is_compared(result).then(|| Seen::unread_document().packed())
}

fn is_compared(result: &TaskResult) -> bool {
    result.crawl.has(Feature::Changes) && result.outcome == Outcome::Ok
}

/// What is known of a page and of its site when it is looked at.
pub(crate) struct Known {
    pub(crate) page: Option<PageVersions>,
    pub(crate) site: SiteBlocks,
}

/// What a look asks of a second fetch.
pub(crate) struct Recheck {
    /// Until a clock has moved that the page shows.
    pub(crate) wait: Duration,
}

/// Whether a look must be followed by a second fetch: it is the first one, or differs from what is known.
pub(crate) fn recheck(look: &[u8], at_ms: i64, known: &Known) -> Option<Recheck> {
    let seen = Seen::unpacked(look).ok()?;
    let is_news = known
        .page
        .as_ref()
        .is_none_or(|page| page.is_news(&seen, at_ms, &known.site));
    let wait_ms = seen.clock_step_ms(at_ms, &known.site).map_or(0, |step_ms| {
        (at_ms.div_euclid(step_ms) + 1) * step_ms + CLOCK_OFF_MS - at_ms
    });
    is_news.then_some(Recheck {
        wait: Duration::from_millis(wait_ms.unsigned_abs()),
    })
}

/// The look of a page with where a second fetch of it differs, and whether it does. `None` if either cannot be read.
pub(crate) fn with_second(first: &[u8], second: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (first, second) = (Seen::unpacked(first).ok()?, Seen::unpacked(second).ok()?);
    let seen = first.of_two_fetches(&second);
    Some((packed(&seen)?, seen.is_unsteady()))
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
