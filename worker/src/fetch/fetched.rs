//! The result of a request: its outcome and the fetched data.

use std::time::Instant;

use reqwest::header::HeaderMap;
use webfill_wire::Outcome;

use crate::archive::Exchange;
use crate::politeness::Answer;

/// The result of a request: its outcome and the fetched data.
#[derive(Debug)]
pub struct Fetched {
    pub outcome: Outcome,
    pub status_code: Option<u16>,
    pub content_type: Option<String>,
    /// The answer's headers, if there was an answer.
    pub headers: HeaderMap,
    /// The decoded body of a page worth reading; empty otherwise.
    pub body: Vec<u8>,
    /// The beginning of a refusal's HTML, only for recognising blocks; empty otherwise.
    pub refusal_body: Vec<u8>,
    /// The address of a redirect, absolute or relative, as the server sent it.
    pub redirect: Option<String>,
    /// Why the request failed, or why its answer cannot be used, in words for the log and for users.
    pub error: Option<String>,
    /// Whether the request failed because this machine has no route to the host; see
    /// [`FetchError`](crate::fetch_error::FetchError).
    pub no_route: bool,
    /// When the answer began, or when the attempt ended without an answer. The site's delay counts from this moment.
    pub answered_at: Instant,
    pub answer: Answer,
    /// The exchange for the archive, if there is one.
    pub exchange: Option<Box<Exchange>>,
}

impl Fetched {
    /// A request that ended without a response.
    pub fn unanswered(outcome: Outcome, error: impl ToString) -> Fetched {
        Fetched {
            outcome,
            status_code: None,
            content_type: None,
            headers: HeaderMap::new(),
            body: Vec::new(),
            refusal_body: Vec::new(),
            redirect: None,
            error: Some(error.to_string()),
            no_route: false,
            answered_at: Instant::now(),
            answer: Answer::Silent,
            exchange: None,
        }
    }
}
