//! What follows from a recognised block ([`crate::blocks`]): the attempt ends in the outcome
//! `blocked`, without fields, links or redirect, and a warning names the signature.
//!
//! A response is judged twice at most. Right after the fetch, on the worker's main thread, its
//! status, headers and redirect are judged, and the body of a refusal; the site's clock then moves
//! as after an overloaded answer. The HTML of a page that was served is judged where it is decoded:
//! on the extraction thread, or before it is rendered in the browser. The site's clock has moved by
//! then, so such a block costs the site's next request only the usual delay.

use webfill_urls::Url;
use webfill_wire::Outcome;

use crate::blocks::{self, HeaderMap, Response, Sign};
use crate::charset::{self, Kind};
use crate::fetch::{self, Fetched};
use crate::politeness::Answer;
use crate::task_result::TaskResult;

/// Judges what a request yielded, except the body of a page. A block becomes the outcome `blocked`.
pub fn judge_fetched(fetched: &mut Fetched, url: &Url) -> Option<Sign> {
    let body = std::mem::take(&mut fetched.refusal_body);
    let content_type = fetched.content_type.as_deref();
    let kind = charset::media_type(content_type, &body);
    let sign = blocks::judge(&Response {
        status: fetched.status_code?,
        headers: &fetched.headers,
        url,
        redirect: fetched.redirect.as_deref(),
        body: &charset::decode(&body, content_type, kind),
        is_html: kind == Kind::Html,
    })?;
    if !matches!(fetched.answer, Answer::Overloaded { .. }) {
        fetched.answer = fetch::overloaded(&fetched.headers);
    }
    fetched.outcome = Outcome::Blocked;
    fetched.redirect = None;
    fetched.body = Vec::new();
    fetched.large_body = None;
    Some(sign)
}

/// Judges the HTML of a page that was served.
pub fn judge_html(result: &TaskResult, headers: &HeaderMap, url: &Url, html: &str) -> Option<Sign> {
    blocks::judge(&Response {
        status: result.status_code?,
        headers,
        url,
        redirect: None,
        body: html,
        is_html: true,
    })
}

/// Judges the address that a page's scripts went to, as if the server had redirected to it.
pub fn judge_move(headers: &HeaderMap, url: &Url, target: &str) -> Option<Sign> {
    blocks::judge(&Response {
        status: 302,
        headers,
        url,
        redirect: Some(target),
        body: "",
        is_html: false,
    })
}

/// Ends an attempt as `blocked`.
pub fn end_as_blocked(result: &mut TaskResult, sign: &Sign) {
    result.outcome = Outcome::Blocked;
    result.error = Some(format!("{}: {}", sign.signature, sign.evidence));
    result.redirect = None;
    tracing::warn!(
        event = "blocked",
        url = result.task.url,
        crawl_id = result.crawl.crawl_id,
        signature = sign.signature,
        grade = sign.grade.as_str(),
        evidence = sign.evidence,
        "the site blocks the crawler"
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refusal(status: u16, body: &str) -> Fetched {
        Fetched {
            outcome: Outcome::HttpError,
            status_code: Some(status),
            content_type: Some("text/html".into()),
            refusal_body: body.into(),
            answer: Answer::Served,
            ..Fetched::refused(Outcome::HttpError, "")
        }
    }

    fn judge(fetched: &mut Fetched) -> Option<&'static str> {
        let url = Url::parse("http://site.example/page").unwrap();
        judge_fetched(fetched, &url).map(|sign| sign.signature)
    }

    #[test]
    fn a_block_moves_the_clock_like_an_overloaded_answer() {
        let title = "<title>Attention Required! | Cloudflare</title>";
        let mut fetched = refusal(403, title);
        fetched.headers.insert("retry-after", 7.into());
        assert_eq!(judge(&mut fetched), Some("cloudflare-refusal"));
        assert_eq!(fetched.outcome, Outcome::Blocked);
        let asked = Some(Duration::from_secs(7));
        assert!(
            matches!(fetched.answer, Answer::Overloaded { retry_after } if retry_after == asked)
        );
    }

    #[test]
    fn a_plain_refusal_stays_an_error_of_its_page() {
        let mut fetched = refusal(403, "<title>Forbidden</title><h1>Forbidden</h1>");
        assert_eq!(judge(&mut fetched), None);
        assert_eq!(fetched.outcome, Outcome::HttpError);
        assert!(matches!(fetched.answer, Answer::Served));
    }
}
