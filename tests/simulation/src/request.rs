//! Requests of workers, and the answers of sites.

use std::time::Duration;

use webfill_wire::{CrawlKey, Outcome};
use webfill_worker::Answer;

/// A worker process, by the index of its machine, its own index, and its incarnation (which differs after each
/// restart).
pub(crate) type Process = (usize, u16, u32);

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// A request for robots.txt, after `hop` redirects.
    Robots { hop: u32 },
    /// A request for a page of a crawl, permitted at `decided_ms`.
    Page {
        crawl: CrawlKey,
        page: usize,
        decided_ms: u64,
    },
}

/// The answer of a site.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) outcome: Outcome,
    pub(crate) status: Option<u16>,
    pub(crate) body: String,
    pub(crate) redirect: Option<String>,
    pub(crate) answer: Answer,
    /// The reason for a missing answer.
    pub(crate) error: Option<String>,
    /// Whether the failure may be due to the requesting machine.
    pub(crate) no_route: bool,
    /// Whether the requesting machine has lost its way to the web, so that the site is not to blame.
    pub(crate) is_lost: bool,
}

impl Response {
    pub(crate) fn with_status(status: u16, outcome: Outcome) -> Response {
        Response {
            outcome,
            status: Some(status),
            body: String::new(),
            redirect: None,
            answer: Answer::Served,
            error: None,
            no_route: false,
            is_lost: false,
        }
    }

    pub(crate) fn overloaded(status: u16, retry_after_ms: Option<u64>) -> Response {
        Response {
            answer: overload_answer(retry_after_ms),
            ..Response::with_status(status, Outcome::HttpError)
        }
    }

    /// The answer of a site that blocks the crawler: a challenge in place of the page.
    pub(crate) fn blocked() -> Response {
        Response {
            outcome: Outcome::Blocked,
            ..Response::overloaded(403, None)
        }
    }

    /// The result of a request that gets no answer.
    pub(crate) fn without_answer(outcome: Outcome) -> Response {
        Response {
            status: None,
            answer: Answer::Silent,
            error: Some(format!("{outcome} of the site")),
            ..Response::with_status(0, outcome)
        }
    }
}

/// An overload as the crawler understands it: the site asks to wait.
fn overload_answer(retry_after_ms: Option<u64>) -> Answer {
    Answer::Overloaded {
        retry_after: retry_after_ms.map(Duration::from_millis),
    }
}
