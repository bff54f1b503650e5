//! What the head of an answer says: how the request ends, whether the body is worth reading, and
//! whether the site asks for a pause.

use std::time::{Duration, Instant};

use http::response::Parts;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use webfill_wire::Outcome;

use super::coding::{self, UnknownCoding};
use super::header::{list, retry_after, url};
use super::{BodyRule, Fetched};
use crate::charset;
use crate::documents;
use crate::politeness::Answer;
use crate::sitemaps;

/// What the head alone says: the outcome, and whether the body is worth reading (`Ok`).
pub(super) fn outcome_of_head(head: &Parts, answered_at: Instant, rule: BodyRule) -> Fetched {
    let headers = &head.headers;
    let status = head.status.as_u16();
    let content_type = list(headers, CONTENT_TYPE);
    let redirect = match status {
        301 | 302 | 303 | 307 | 308 => url(headers, LOCATION),
        _ => None,
    };
    let (outcome, error) = match status {
        200..=299 => match undecodable(headers, rule) {
            Some(reason) => (Outcome::UnsupportedType, Some(reason)),
            None => (outcome_of_type(content_type.as_deref(), rule), None),
        },
        304 => (Outcome::NotModified, None),
        _ if redirect.is_some() => (Outcome::Redirected, None),
        _ => (Outcome::HttpError, None),
    };
    let answer = match status {
        429 => Answer::TooMany {
            retry_after: asked_for(headers),
        },
        503 => overloaded(headers),
        _ => Answer::Served,
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
        answer,
        exchange: None,
    }
}

/// The site asks for a pause, as long as the headers say.
pub fn overloaded(headers: &HeaderMap) -> Answer {
    Answer::Overloaded {
        retry_after: asked_for(headers),
    }
}

fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(RETRY_AFTER).iter();
    let waits = values.filter_map(|value| retry_after(value.to_str().ok()?));
    waits.max()
}

/// Why a body cannot be decoded; such a robots.txt might forbid anything. A browser judges what it has asked
/// for by itself.
fn undecodable(headers: &HeaderMap, rule: BodyRule) -> Option<String> {
    if let Some(name) = coding::transfer_coding_left(headers) {
        return Some(format!("transfer coding {name:?} is not understood"));
    }
    let unknown = coding::codings(headers).err();
    let UnknownCoding(name) = unknown.filter(|_| rule != BodyRule::Subresource)?;
    Some(format!("content coding {name:?} is not understood"))
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
