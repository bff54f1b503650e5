//! The consequences of a recognised block ([`crate::blocks`]). The attempt ends in the outcome `blocked`, with the
//! evidence and without fields, links or redirect. The next request to the site is delayed as after the answer of an
//! overloaded server, and a logged warning names the sign of the block.
//!
//! A response is judged right after the fetch, before the site's clock moves and before the page is extracted or shown
//! to the browser. It costs microseconds, because only the beginning of a page is inspected. After rendering, the page
//! is judged again by [`find_block_in_document`] and [`find_block_in_navigation`].

use std::borrow::Cow;

use webfill_urls::Url;
use webfill_wire::{Evidence, Outcome};

use crate::blocks::{
    self, BEGINNING_BYTES, Grade, HeaderMap, Inspected, RepeatedPages, Response, Sign,
};
use crate::charset::{self, Kind};
use crate::fetch::{self, Fetched};
use crate::politeness::Answer;
use crate::task_result::TaskResult;

/// Bytes of a body that are decoded and judged. In encodings of up to two bytes per character, this is enough to
/// notice that a body exceeds [`BEGINNING_BYTES`].
const JUDGED_BYTES: usize = 2 * (BEGINNING_BYTES + 1);

/// The earlier answers of a site, for comparison with an answer.
pub struct EarlierAnswers<'a> {
    pub repeated: &'a mut RepeatedPages,
    pub site: &'a str,
    /// Whether pages are compared as well, not only redirects.
    pub compares_pages: bool,
    /// Whether the task can be retried later, in case the answer is only suspected to be a block.
    pub may_wait: bool,
}

impl EarlierAnswers<'_> {
    fn note_answer(self, outcome: Outcome, inspected: &Inspected<'_>) -> Option<Sign> {
        let is_compared = match outcome {
            Outcome::Ok => self.compares_pages,
            Outcome::Redirected => true,
            _ => false,
        };
        let noted = is_compared.then(|| {
            self.repeated
                .note_answer(self.site, inspected, self.may_wait)
        });
        noted.flatten()
    }
}

/// Judges the response to a page request. If it is a block, or a suspected one, only its status and headers are kept.
pub fn find_block_in_response(
    fetched: &mut Fetched,
    url: &Url,
    before: Option<EarlierAnswers<'_>>,
) -> Option<Sign> {
    let (is_html, text) = text_beginning(fetched);
    let response = Response {
        status: fetched.status_code?,
        headers: &fetched.headers,
        url,
        redirect: fetched.redirect.as_deref(),
        body: &text,
        is_html,
    };
    let inspected = Inspected::new(&response);
    let sign = blocks::find_block(&inspected)
        .or_else(|| before.and_then(|before| before.note_answer(fetched.outcome, &inspected)))?;
    let is_proved = sign.grade != Grade::Suspicion;
    if is_proved && !matches!(fetched.answer, Answer::Overloaded { .. }) {
        fetched.answer = fetch::overloaded_answer(&fetched.headers);
    }
    fetched.outcome = Outcome::Blocked;
    fetched.redirect = None;
    fetched.body = Vec::new();
    Some(sign)
}

/// Returns whether the body of a page or a refusal is HTML, and the beginning of its text. The text is empty if the
/// body is not HTML.
fn text_beginning(fetched: &Fetched) -> (bool, Cow<'_, str>) {
    let body = match fetched.body.is_empty() {
        true => &fetched.refusal_body,
        false => &fetched.body,
    };
    let content_type = fetched.content_type.as_deref();
    let kind = charset::content_kind(content_type, body);
    match kind {
        Kind::Html => {
            let body = &body[..body.len().min(JUDGED_BYTES)];
            (true, charset::decode(body, content_type, kind))
        }
        _ => (false, Cow::Borrowed("")),
    }
}

/// Judges the document that a page has become after its scripts ran in the browser.
pub fn find_block_in_document(url: &Url, document: &str) -> Option<Sign> {
    blocks::find_block(&Inspected::new(&Response {
        status: 200,
        headers: &HeaderMap::new(),
        url,
        redirect: None,
        body: document,
        is_html: true,
    }))
}

/// Judges the address that a page's scripts went to, as if the server had redirected to it.
pub fn find_block_in_navigation(url: &Url, target: &str) -> Option<Sign> {
    blocks::find_block(&Inspected::new(&Response {
        status: 302,
        headers: &HeaderMap::new(),
        url,
        redirect: Some(target),
        body: "",
        is_html: false,
    }))
}

/// Ends an attempt as `blocked`. If the block is only suspected, the result has no evidence; the dispatcher recognises
/// a suspicion by that.
pub fn end_as_blocked(result: &mut TaskResult, sign: &Sign) {
    let sign_in_words = sign.describe();
    result.outcome = Outcome::Blocked;
    result.error = Some(sign_in_words.clone());
    result.redirect = None;
    result.refresh = None;
    if sign.grade == Grade::Suspicion {
        result.evidence = None;
        tracing::info!(
            event = "block_suspected",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            signature = sign.signature,
            evidence = sign.evidence,
            "the answer may be a block; the page is retried after others of its site"
        );
        return;
    }
    result.evidence = Some(Evidence {
        url: result.task.url.clone(),
        status_code: result.status_code,
        sign: sign_in_words,
        no_route: false,
    });
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

    fn answer(outcome: Outcome, status: u16) -> Fetched {
        Fetched {
            outcome,
            status_code: Some(status),
            content_type: Some("text/html".into()),
            answer: Answer::Served,
            ..Fetched::unanswered(outcome, "")
        }
    }

    fn refusal(body: &str) -> Fetched {
        Fetched {
            refusal_body: body.into(),
            ..answer(Outcome::HttpError, 403)
        }
    }

    fn served_page(body: impl Into<Vec<u8>>) -> Fetched {
        Fetched {
            body: body.into(),
            ..answer(Outcome::Ok, 200)
        }
    }

    fn signature_of(fetched: &mut Fetched) -> Option<&'static str> {
        let url = Url::parse("http://site.example/page").unwrap();
        find_block_in_response(fetched, &url, None).map(|sign| sign.signature)
    }

    #[test]
    fn a_block_moves_the_clock_like_an_overloaded_answer() {
        let title = "<title>Attention Required! | Cloudflare</title>";
        let mut fetched = refusal(title);
        fetched.headers.insert("retry-after", 7.into());
        assert_eq!(signature_of(&mut fetched), Some("cloudflare-refusal"));
        assert_eq!(fetched.outcome, Outcome::Blocked);
        let asked = Some(Duration::from_secs(7));
        assert!(
            matches!(fetched.answer, Answer::Overloaded { retry_after } if retry_after == asked)
        );
    }

    #[test]
    fn a_challenge_that_was_served_moves_the_clock_and_leaves_no_body() {
        let challenge = "<script>location.reload()</script>";
        let utf_16: Vec<u8> = "\u{feff}<script>location.reload()</script>"
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        for body in [challenge.as_bytes(), &utf_16] {
            let mut fetched = served_page(body);
            assert_eq!(
                signature_of(&mut fetched),
                Some("short-page-reloads-itself")
            );
            assert!(matches!(fetched.answer, Answer::Overloaded { .. }));
            assert!(fetched.body.is_empty());
        }
    }

    #[test]
    fn the_beginning_of_a_long_page_is_not_taken_for_a_short_page() {
        let filler: Vec<u8> = format!("\u{feff}{}", " ".repeat(BEGINNING_BYTES))
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        let script: Vec<u8> = "<script>location.reload()</script>"
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        let mut fetched = served_page([filler, script].concat());
        assert_eq!(signature_of(&mut fetched), None);
        assert!(!fetched.body.is_empty());
    }

    #[test]
    fn a_plain_refusal_stays_an_error_of_its_page() {
        let mut fetched = refusal("<title>Forbidden</title><h1>Forbidden</h1>");
        assert_eq!(signature_of(&mut fetched), None);
        assert_eq!(fetched.outcome, Outcome::HttpError);
        assert!(matches!(fetched.answer, Answer::Served));
    }
}
