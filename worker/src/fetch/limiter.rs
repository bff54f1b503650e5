//! Recognises when a server or rate limiter demands a pause or fewer requests.
//!
//! The statuses 429 and 503 ask for this by themselves. Other limiters refuse with 403 or another status, and say in
//! headers that no request is left, or when the next one is allowed. The headers are `Retry-After` (RFC 9110, 10.2.3),
//! `RateLimit` (draft-ietf-httpapi-ratelimit-headers, in its older and newer forms), and `X-RateLimit-*`, which has no
//! standard. `Retry-After` and its variants take precedence over the others.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{DATE, HeaderMap};

use super::header::parse_retry_after;
use crate::politeness::Answer;

/// Headers that say when the next request is allowed.
const WAITS: [&str; 4] = [
    "retry-after",
    "x-retry-after",
    "x-ratelimit-retry-after",
    "x-rate-limit-retry-after-seconds",
];

/// Headers with the number of requests left, and headers with the time when more requests are allowed.
const LEFT: [&str; 3] = [
    "x-ratelimit-remaining",
    "x-rate-limit-remaining",
    "ratelimit-remaining",
];
const MORE: [&str; 4] = [
    "x-ratelimit-reset-after",
    "x-ratelimit-reset",
    "x-rate-limit-reset",
    "ratelimit-reset",
];

/// A header with both the number of requests left and the time when more requests are allowed.
const BOTH: &str = "ratelimit";

/// From these sizes on, a number is a time since the epoch in seconds (from 2001), or in milliseconds. Smaller numbers
/// are durations.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MILLISECONDS: f64 = 1e12;

/// What an answer means for the pace of further requests.
pub(super) fn classify_answer(status: u16, headers: &HeaderMap) -> Answer {
    match status {
        429 => too_many_answer(headers),
        503 | 529 => overloaded_answer(headers),
        // Both statuses mean that there is no such page, whatever headers come with them.
        404 | 410 => Answer::Served,
        400.. => refusal_answer(headers),
        _ => Answer::Served,
    }
}

/// The answer of an overloaded site, which demands a pause. Its headers may give the length of the pause.
pub fn overloaded_answer(headers: &HeaderMap) -> Answer {
    Answer::Overloaded {
        retry_after: requested_wait(headers),
    }
}

fn too_many_answer(headers: &HeaderMap) -> Answer {
    Answer::TooMany {
        retry_after: requested_wait(headers),
    }
}

/// Judges a failure whose status does not show whether the page or the pace of requests is the cause.
fn refusal_answer(headers: &HeaderMap) -> Answer {
    match named_wait(headers) {
        _ if parse_rate_limit(headers).is_spent => too_many_answer(headers),
        Some(retry_after) => Answer::Refused { retry_after },
        None => Answer::Served,
    }
}

/// The wait that the server demands; `None` if its headers name none.
fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    named_wait(headers).or_else(|| parse_rate_limit(headers).more_in)
}

fn named_wait(headers: &HeaderMap) -> Option<Duration> {
    let values = WAITS.iter().flat_map(|name| header_texts(headers, name));
    values.filter_map(parse_retry_after).max()
}

fn header_texts<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter();
    values.filter_map(|value| value.to_str().ok())
}

/// A limit on requests, as headers describe it: whether it is used up, and the time until more requests are allowed.
#[derive(Debug, Default, PartialEq, Eq)]
struct RateLimit {
    /// Whether no request is left.
    is_spent: bool,
    more_in: Option<Duration>,
}

impl RateLimit {
    fn add(&mut self, left: Option<&str>, more: Option<Duration>) {
        let is_spent = left.is_some_and(is_zero);
        self.is_spent |= is_spent;
        if is_spent || left.is_none() {
            self.more_in = self.more_in.max(more);
        }
    }
}

fn parse_rate_limit(headers: &HeaderMap) -> RateLimit {
    let mut limit = RateLimit::default();
    let left = LEFT.iter().flat_map(|name| header_texts(headers, name));
    // A header may have several numbers, each of them for another time window.
    let mut left: Vec<&str> = left.flat_map(|left| left.split(',')).collect();
    left.sort_by_key(|left| !is_zero(left));
    let now = server_time(headers);
    let more = MORE.iter().flat_map(|name| header_texts(headers, name));
    let more = more.filter_map(|text| time_until(text, now)).max();
    limit.add(left.first().copied(), more);
    for text in header_texts(headers, BOTH) {
        parse_combined_header(text, &mut limit);
    }
    limit
}

/// Reads a header with several parts: `limit=10, remaining=0, reset=5`, or `"hour";r=0;t=5, "day";r=3;t=9000`.
fn parse_combined_header(text: &str, limit: &mut RateLimit) {
    let (mut left, mut more) = (None, None);
    for policy in text.split(',') {
        let (mut left_of_policy, mut more_of_policy) = (None, None);
        for (name, value) in policy.split(';').filter_map(|pair| pair.split_once('=')) {
            match name.trim() {
                "remaining" => left = Some(value),
                "reset" => more = parse_retry_after(value),
                "r" => left_of_policy = Some(value),
                "t" => more_of_policy = parse_retry_after(value),
                _ => {}
            }
        }
        if left_of_policy.is_some() {
            limit.add(left_of_policy, more_of_policy);
        }
    }
    if left.is_some() {
        limit.add(left, more);
    }
}

fn is_zero(number: &str) -> bool {
    number.trim().parse::<f64>().is_ok_and(|left| left <= 0.0)
}

/// Reads a duration from now or a point in time; the size of the number decides which of the two it is. Returns the
/// time until then.
fn time_until(text: &str, now: SystemTime) -> Option<Duration> {
    let number = text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    let since_epoch = match number {
        Some(number) if number >= EPOCH_MILLISECONDS => number / 1_000.0,
        Some(number) if number >= EPOCH_SECONDS => number,
        Some(_) | None => return parse_retry_after(text),
    };
    let at = UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(since_epoch).ok()?)?;
    let seconds = at.duration_since(now).unwrap_or_default().as_secs_f64();
    parse_retry_after(&format!("{}", seconds.ceil()))
}

/// The time by the server's clock. The other times in the server's headers refer to it.
fn server_time(headers: &HeaderMap) -> SystemTime {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
    date.unwrap_or_else(SystemTime::now)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    /// Makes headers from lines of the form `name: value`.
    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn too_many(seconds: Option<u64>) -> Answer {
        Answer::TooMany {
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    fn refused(seconds: u64) -> Answer {
        Answer::Refused {
            retry_after: Duration::from_secs(seconds),
        }
    }

    const NOW: &str = "date: Fri, 27 Nov 2026 10:00:00 GMT";

    #[test]
    fn a_limiter_is_recognised_by_its_headers() {
        let cases: &[(u16, &[&str], Answer)] = &[
            (403, &[], Answer::Served),
            (403, &["retry-after: 60"], refused(60)),
            (403, &["retry-after: 0"], refused(0)),
            (403, &["retry-after: soon"], Answer::Served),
            (403, &["x-ratelimit-remaining: 1"], Answer::Served),
            (403, &["x-ratelimit-remaining: 0"], too_many(None)),
            // GitHub sends such an answer.
            (
                403,
                &[
                    NOW,
                    "x-ratelimit-remaining: 0",
                    "x-ratelimit-reset: 1795773630",
                ],
                too_many(Some(30)),
            ),
            (
                403,
                &[
                    NOW,
                    "x-ratelimit-remaining: 58",
                    "x-ratelimit-reset: 1795773630",
                    "retry-after: 60",
                ],
                refused(60),
            ),
            (
                429,
                &[NOW, "x-rate-limit-reset: 1795773630000"],
                too_many(Some(30)),
            ),
            (429, &["x-ratelimit-reset-after: 1.5"], too_many(Some(2))),
            (
                429,
                &["ratelimit-remaining: 0", "ratelimit-reset: 7"],
                too_many(Some(7)),
            ),
            (
                429,
                &["retry-after: 3", "ratelimit-reset: 7"],
                too_many(Some(3)),
            ),
            (
                429,
                &["ratelimit: limit=10, remaining=0, reset=5"],
                too_many(Some(5)),
            ),
            (
                403,
                &["ratelimit: \"hour\";r=0;t=5, \"day\";r=3;t=9000"],
                too_many(Some(5)),
            ),
            (403, &["ratelimit: \"day\";r=3;t=9000"], Answer::Served),
            (403, &["x-ratelimit-remaining: 4, 0"], too_many(None)),
            (
                429,
                &["x-ratelimit-remaining: 4", "x-ratelimit-reset: 900"],
                too_many(None),
            ),
            // The demanded wait is already over.
            (
                429,
                &[NOW, "x-ratelimit-reset: 1795770000"],
                too_many(Some(0)),
            ),
            (429, &["x-ratelimit-reset: inf"], too_many(None)),
            (429, &["x-ratelimit-reset: -5"], too_many(None)),
            (400, &["retry-after: 5"], refused(5)),
            (418, &["retry-after: 5"], refused(5)),
            (420, &["x-rate-limit-remaining: 0"], too_many(None)),
            (500, &["retry-after: 5"], refused(5)),
            (502, &["retry-after: 5"], refused(5)),
            (999, &["retry-after: 5"], refused(5)),
            // The page does not exist, whatever the headers say.
            (404, &["retry-after: 5"], Answer::Served),
            (410, &["x-ratelimit-remaining: 0"], Answer::Served),
            // The last allowed request has been answered.
            (200, &["x-ratelimit-remaining: 0"], Answer::Served),
        ];
        for (status, lines, expected) in cases {
            let found = classify_answer(*status, &headers(lines));
            assert_eq!(found, *expected, "{status} {lines:?}");
        }
        let busy = Answer::Overloaded {
            retry_after: Some(Duration::from_secs(4)),
        };
        for status in [503, 529] {
            assert_eq!(classify_answer(status, &headers(&["retry-after: 4"])), busy);
        }
    }
}
