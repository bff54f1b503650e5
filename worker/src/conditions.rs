//! Conditional requests (RFC 9110, section 13): a stored page is requested with its validators, so the server may
//! answer that it has not changed (304). The page then keeps its fields, links and mapping.
//!
//! A request has conditions only if the answer would be read as the stored page was: by the same version of its
//! mapping, for the same links. Servers make mistakes, so each page is requested without conditions at least every 30
//! days. If the store does not answer soon ([`crate::stored_pages`]), the request has no conditions.

use http::header::{ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use webfill_mapping::MappingSet;
use webfill_store::{KnownPage, Validators};
use webfill_wire::{CrawlSettings, Feature, Lane, Outcome, Task};

use crate::documents::Documents;
use crate::fetch::Fetched;
use crate::task_result::TaskResult;

/// The longest time between unconditional requests for a page.
const UNCONDITIONAL_AFTER_MS: i64 = 30 * 86_400_000;

/// The length limit of a validator (an `ETag` or a `Last-Modified` date), in bytes. Longer ones are not kept.
const MOST_BYTES: usize = 1_024;

/// Whether pages of a crawl are requested conditionally. Rendered pages are not: a browser's result may change
/// although the page itself has not.
pub fn wants_conditional_requests(crawl: &CrawlSettings) -> bool {
    crawl.needs_feature(Feature::Conditional) && crawl.lane == Lane::Http
}

/// The headers that make the request for a stored page conditional; empty if the server must send the page in any case.
pub fn conditional_headers(
    known: &KnownPage,
    task: &Task,
    crawl: &CrawlSettings,
    documents: Option<&Documents>,
    mappings: &MappingSet,
    asked_with: &str,
    now_ms: i64,
) -> Vec<(String, String)> {
    let validators = &known.validators;
    let age_ms = now_ms.saturating_sub(validators.fetched_at_ms);
    let mapping = mappings.find(&task.url);
    let would_read = mapping.map(|index| (mappings.name(index), mappings.version_of(index)));
    let has_read = known
        .mapping
        .as_deref()
        .zip(known.mapping_version.as_deref());
    let is_trusted = (0..UNCONDITIONAL_AFTER_MS).contains(&age_ms);
    if !is_trusted
        || validators.read_as != describe_reading(task, crawl, documents, asked_with)
        || would_read != has_read
    {
        return Vec::new();
    }
    let named = |name: HeaderName, value: &Option<String>| {
        value.clone().map(|value| (name.to_string(), value))
    };
    let etags = validators.etag.as_deref().map(with_uncompressed_tag);
    let headers = [
        named(IF_NONE_MATCH, &etags),
        named(IF_MODIFIED_SINCE, &validators.last_modified),
    ];
    headers.into_iter().flatten().collect()
}

/// Suffixes that servers append to the `ETag` of a compressed page: those of Apache, of nginx's brotli module, and of
/// Jetty.
const OF_CODINGS: [&str; 6] = ["--gzip", "-gzip", "-br", "-zstd", "-deflate", ";gzip"];

/// An `ETag` and, if its suffix marks the page as compressed, the original tag as well. Apache compares tags before
/// `mod_deflate` marks them, so a marked tag alone never matches.
fn with_uncompressed_tag(etag: &str) -> String {
    let opaque = etag.strip_suffix('"');
    let mut origins = OF_CODINGS
        .iter()
        .filter_map(|mark| opaque?.strip_suffix(mark));
    match origins.next().filter(|origin| !origin.ends_with('"')) {
        Some(origin) => format!("{etag}, {origin}\""),
        None => etag.to_owned(),
    }
}

/// The validators of an answer (`ETag` and `Last-Modified`), if it has any. They are kept even for crawls without
/// conditional requests, because a later crawl of the same pages may use them.
pub fn response_validators(
    fetched: &Fetched,
    result: &TaskResult,
    documents: Option<&Documents>,
    asked_with: &str,
) -> Option<Validators> {
    let is_page = fetched.outcome == Outcome::Ok && result.crawl.lane == Lane::Http;
    let headers = Some(&fetched.headers).filter(|_| is_page)?;
    let (etag, last_modified) = (
        header_text(headers, ETAG),
        header_text(headers, LAST_MODIFIED),
    );
    (etag.is_some() || last_modified.is_some()).then(|| Validators {
        etag,
        last_modified,
        fetched_at_ms: result.started_at_ms,
        read_as: describe_reading(&result.task, &result.crawl, documents, asked_with),
    })
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty() && value.len() <= MOST_BYTES).then(|| value.to_owned())
}

/// Describes how a page is read: the program's version, the kept parts of the page, and the limits for documents. A
/// document that is too large under one limit may be readable under another.
///
/// The description includes the request headers that the settings give for the site (`asked_with`), because the page's
/// language may depend on them. The mapping's headers are part of the mapping's version.
fn describe_reading(
    task: &Task,
    crawl: &CrawlSettings,
    documents: Option<&Documents>,
    asked_with: &str,
) -> String {
    let follows = task.depth < crawl.max_depth;
    let links = if follows { crawl.follow.as_str() } else { "no" };
    let mut read_as = format!("{} {links} links", env!("CARGO_PKG_VERSION"));
    for (is_kept, what) in [
        (crawl.body, " body"),
        (crawl.headers, " headers"),
        (crawl.needs_feature(Feature::Changes), " snapshot"),
        (crawl.needs_feature(Feature::Sitemaps), " feeds"),
    ] {
        if is_kept {
            read_as.push_str(what);
        }
    }
    if let Some(documents) = documents {
        read_as.push_str(&documents.describe_limits());
    }
    read_as.push_str(asked_with);
    read_as
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_with_a_suffix_for_compression_is_also_sent_without_it() {
        for (etag, expected) in [
            (r#""abc-gzip""#, r#""abc-gzip", "abc""#),
            (r#"W/"abc-gzip""#, r#"W/"abc-gzip", W/"abc""#),
            (r#""abc-br""#, r#""abc-br", "abc""#),
            (r#""abc--gzip""#, r#""abc--gzip", "abc""#),
            (r#""abc;gzip""#, r#""abc;gzip", "abc""#),
            (r#""abc""#, r#""abc""#),
            (r#""gzip""#, r#""gzip""#),
            (r#""-gzip""#, r#""-gzip""#),
            ("abc-gzip", "abc-gzip"),
            (r#""a,b-gzip""#, r#""a,b-gzip", "a,b""#),
        ] {
            assert_eq!(with_uncompressed_tag(etag), expected);
        }
    }
}
