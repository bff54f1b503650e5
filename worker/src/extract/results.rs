//! Adds the values, rows and links extracted from a page to the result of its task.

use webfill_mapping::{ExtractError, Extraction};
use webfill_store::{PageLack, RowCounts, row_counts};
use webfill_wire::{Follow, LinkKind, Outcome};

use super::listings;
use crate::task_result::TaskResult;

/// Links taken from one page; further ones are dropped and logged.
const MAX_LINKS: usize = 50_000;

/// The limit on the bytes of all links taken from one page, so that they fit into a message and into an entry of the
/// store.
const MAX_LINKS_BYTES: usize = 8 << 20;

pub(super) fn with_extracted(
    result: TaskResult,
    extracted: Result<Extraction, ExtractError>,
) -> TaskResult {
    match extracted {
        Ok(extraction) => with_extraction(result, extraction),
        Err(error) => with_extract_error(result, error.to_string()),
    }
}

/// Counts and logs the rows that do not become records, because they lack a field of their key or share it with an
/// earlier row.
fn count_rows(result: &mut TaskResult) {
    let (counts, clashing) = row_counts(&result.listings, &result.task.records);
    result.row_counts = counts;
    let sum = |of: fn(&RowCounts) -> u64| result.row_counts.iter().map(of).sum::<u64>();
    let rows = sum(|counts| counts.without_key);
    if rows > 0 {
        tracing::warn!(
            event = "rows_without_key",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            rows,
            of = result.rows(),
            "rows lack a field of their key and do not become records"
        );
    }
    let rows = sum(|counts| counts.same_key);
    if rows > 0 {
        tracing::warn!(
            event = "rows_with_same_key",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            rows,
            of = result.rows(),
            key = clashing,
            "rows have the key of an earlier row of their page and other values, which are lost: \
             add a field to `key` that tells them apart"
        );
    }
}

fn with_extraction(mut result: TaskResult, extraction: Extraction) -> TaskResult {
    for warning in extraction.truncated.iter().chain(&extraction.warnings) {
        tracing::warn!(
            event = "extraction_warning",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            warning,
            "a page was not read in full"
        );
    }
    result.mapping = extraction.mapping;
    result.mapping_version = extraction.mapping_version;
    result.template = extraction.template;
    result.fields = extraction.fields;
    result.alternatives = extraction.alternatives;
    let is_cut =
        extraction.truncated.is_some() || extraction.listings.iter().any(|listing| listing.cut);
    result.listings = listings::into_listings(extraction.listings);
    count_rows(&mut result);
    if let Some(continuation) = extraction.continuation {
        listings::note_list(&mut result, continuation, is_cut);
    }
    result.links = match result.crawl.follow {
        Follow::Mapped => extraction.links,
        Follow::All => extraction.all_links,
        Follow::None => Vec::new(),
    };
    listings::separate_row_links(&mut result);
    let feeds = extraction.feeds.into_iter();
    result
        .listed
        .extend(feeds.map(|feed| (LinkKind::Sitemap, feed)));
    let mut bytes = 0;
    let fitting = result.links.iter().take_while(|link| {
        bytes += link.len();
        bytes <= MAX_LINKS_BYTES
    });
    let kept = fitting.count().min(MAX_LINKS);
    if result.links.len() > kept {
        tracing::warn!(
            event = "links_cut",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            links = result.links.len(),
            kept,
            "a page exceeds the limit of links"
        );
        result.links.truncate(kept);
        if let Some(list) = &mut result.list {
            list.lacks = Some(PageLack::Cut);
        }
    }
    result
}

pub(super) fn with_extract_error(mut result: TaskResult, reason: String) -> TaskResult {
    result.outcome = Outcome::ExtractError;
    result.error = Some(reason);
    result
}
