//! Conditional requests (RFC 9110, section 13): a page that is stored is asked for with its validators, so
//! that its server may answer that it has not changed (304). The page keeps what it has then: fields,
//! links, mapping.
//!
//! A request has conditions only if the answer would be read as the stored page was: by the same version
//! of its mapping, for the same links. Servers err, so a page is asked for without conditions at least
//! every 30 days. If the store does not answer soon ([`crate::stored_pages`]), there are no conditions.

use http::header::{ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use webfill_mapping::MappingSet;
use webfill_store::{KnownPage, Validators};
use webfill_wire::{CrawlSettings, Feature, Lane, Outcome, Task};

use crate::documents::Documents;
use crate::fetch::Fetched;
use crate::task_result::TaskResult;

/// The longest time for which a page is taken on trust.
const UNCONDITIONAL_AFTER_MS: i64 = 30 * 86_400_000;

/// Longer validators are not kept.
const MOST_BYTES: usize = 1_024;

/// Whether pages of a crawl are asked for conditionally. What a browser makes of a page may change though
/// the page itself has not.
pub fn are_wanted(crawl: &CrawlSettings) -> bool {
    crawl.has(Feature::Conditional) && crawl.lane == Lane::Http
}

/// The headers of a request for a stored page; empty if it must be sent whatever it is.
pub fn headers(
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
        || validators.read_as != read_as(task, crawl, documents, asked_with)
        || would_read != has_read
    {
        return Vec::new();
    }
    let named = |name: HeaderName, value: &Option<String>| {
        value.clone().map(|value| (name.to_string(), value))
    };
    let etags = validators.etag.as_deref().map(with_its_origin);
    let headers = [
        named(IF_NONE_MATCH, &etags),
        named(IF_MODIFIED_SINCE, &validators.last_modified),
    ];
    headers.into_iter().flatten().collect()
}

/// What servers append to the tag of a page that they compress: Apache, nginx's brotli, Jetty.
const OF_CODINGS: [&str; 6] = ["--gzip", "-gzip", "-br", "-zstd", "-deflate", ";gzip"];

/// A tag, and the one that it was made of if a server has marked it as that of a compressed page. Apache's
/// `mod_deflate` marks a tag after the server has compared it, so it never finds its own tag again.
fn with_its_origin(etag: &str) -> String {
    let opaque = etag.strip_suffix('"');
    let mut origins = OF_CODINGS
        .iter()
        .filter_map(|mark| opaque?.strip_suffix(mark));
    match origins.next().filter(|origin| !origin.ends_with('"')) {
        Some(origin) => format!("{etag}, {origin}\""),
        None => etag.to_owned(),
    }
}

/// The validators of an answer, if it has any. Also of crawls that do not ask conditionally themselves: one
/// that goes on with their pages later may.
pub fn validators(
    fetched: &Fetched,
    result: &TaskResult,
    documents: Option<&Documents>,
    asked_with: &str,
) -> Option<Validators> {
    let is_page = fetched.outcome == Outcome::Ok && result.crawl.lane == Lane::Http;
    let headers = Some(&fetched.headers).filter(|_| is_page)?;
    let (etag, last_modified) = (text(headers, ETAG), text(headers, LAST_MODIFIED));
    (etag.is_some() || last_modified.is_some()).then(|| Validators {
        etag,
        last_modified,
        fetched_at_ms: result.started_at_ms,
        read_as: read_as(&result.task, &result.crawl, documents, asked_with),
    })
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty() && value.len() <= MOST_BYTES).then(|| value.to_owned())
}

/// By which program a page is read, and what of it is kept; how much is done to read a document, because what
/// was too large for one reader may not be so for the next.
///
/// And with which headers of its site it is asked for (`asked_with`): in another language it is another page. Those of
/// its mapping are in the mapping's version.
fn read_as(
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
        (crawl.has(Feature::Changes), " look"),
        (crawl.has(Feature::Sitemaps), " feeds"),
    ] {
        if is_kept {
            read_as.push_str(what);
        }
    }
    if let Some(documents) = documents {
        read_as.push_str(&documents.read_as());
    }
    read_as.push_str(asked_with);
    read_as
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_was_marked_when_its_page_was_compressed_is_sent_as_it_was_before_too() {
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
            assert_eq!(with_its_origin(etag), expected);
        }
    }
}
