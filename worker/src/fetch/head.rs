//! Judges the head of an answer: how the request ends, whether the body is worth reading, and whether the site demands
//! a pause.

use std::time::Instant;

use http::response::Parts;
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderMap, LOCATION};
use webfill_wire::Outcome;

use super::coding::{self, UnknownCoding};
use super::header::{joined_header, url_header};
use super::limiter::classify_answer;
use super::{BodyRule, Fetched};
use crate::charset;
use crate::documents;
use crate::sitemaps;

/// The result of a request as far as the answer's head shows it. The outcome is `Ok` if the body is worth reading.
pub(super) fn outcome_of_head(head: &Parts, answered_at: Instant, rule: BodyRule) -> Fetched {
    let headers = &head.headers;
    let status = head.status.as_u16();
    let content_type = joined_header(headers, CONTENT_TYPE);
    let redirect = match status {
        301 | 302 | 303 | 307 | 308 => url_header(headers, LOCATION),
        _ => None,
    };
    let (outcome, error) = match status {
        206 if is_partial(headers) => {
            let reason = "the server sent only a part of the body, unrequested";
            (Outcome::HttpError, Some(reason.to_owned()))
        }
        200..=299 => match undecodable_reason(headers, rule) {
            Some(reason) => (Outcome::UnsupportedType, Some(reason)),
            None => (outcome_of_type(content_type.as_deref(), rule), None),
        },
        304 => (Outcome::NotModified, None),
        _ if redirect.is_some() => (Outcome::Redirected, None),
        _ => (Outcome::HttpError, None),
    };
    Fetched {
        outcome,
        status_code: Some(status),
        content_type,
        headers: HeaderMap::new(),
        body: Vec::new(),
        refusal_body: Vec::new(),
        redirect,
        error,
        no_route: false,
        answered_at,
        answer: classify_answer(status, headers),
        exchange: None,
    }
}

/// Whether an answer declares that its body is only a part of the page (`Content-Range`).
fn is_partial(headers: &HeaderMap) -> bool {
    let Some(range) = headers.get(CONTENT_RANGE) else {
        return false;
    };
    let is_whole = |range: &str| {
        let (range, length) = range.trim().strip_prefix("bytes ")?.split_once('/')?;
        let last: u64 = range.trim().strip_prefix("0-")?.parse().ok()?;
        let length: u64 = length.trim().parse().ok()?;
        Some(last.checked_add(1)? == length)
    };
    range.to_str().ok().and_then(is_whole) != Some(true)
}

/// The reason why a body cannot be decoded; `None` if it can. An undecodable robots.txt is an error, too, because the
/// file might forbid anything. Subresources are not checked here, because the browser itself judges them.
fn undecodable_reason(headers: &HeaderMap, rule: BodyRule) -> Option<String> {
    if let Some(name) = coding::remaining_transfer_coding(headers) {
        return Some(format!("unknown transfer coding {name:?}"));
    }
    let unknown = coding::content_codings(headers).err();
    let UnknownCoding(name) = unknown.filter(|_| rule != BodyRule::Subresource)?;
    Some(format!("unknown content coding {name:?}"))
}

fn outcome_of_type(content_type: Option<&str>, rule: BodyRule) -> Outcome {
    let files = rule.files();
    let is_worth_reading = content_type.is_none_or(|declared| {
        charset::is_supported_type(declared)
            || files.documents && documents::may_be_document(declared)
            || files.sitemaps && sitemaps::may_be_sitemap(declared)
    });
    match is_worth_reading || !rule.is_page() {
        true => Outcome::Ok,
        false => Outcome::UnsupportedType,
    }
}
