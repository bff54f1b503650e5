//! Answers to browsers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use webfill_api::Refusal;
use webfill_service::http::{Answer, AnswerBody, complete_body};

/// The answer of a view, or the reason why it cannot be shown.
pub(crate) type Shown = Result<Answer, Problem>;

/// Why a view shows nothing or an action was not done, for people: one clause, in lower case, without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Problem {
    fn new(status: u16, text: impl ToString) -> Problem {
        let text = text.to_string();
        Problem { status, text }
    }

    /// What the visitor has requested does not exist.
    pub(crate) fn not_found(text: impl ToString) -> Problem {
        Problem::new(404, text)
    }

    /// The request itself is wrong.
    pub(crate) fn bad_request(text: impl ToString) -> Problem {
        Problem::new(400, text)
    }

    /// The visitor lacks the right to do this.
    pub(crate) fn forbidden(text: impl ToString) -> Problem {
        Problem::new(403, text)
    }

    /// A service that is needed, such as the store, is unavailable for now.
    pub(crate) fn unavailable(text: impl ToString) -> Problem {
        Problem::new(503, text)
    }

    /// The dashboard itself has failed.
    pub(crate) fn internal_error(text: impl ToString) -> Problem {
        Problem::new(500, text)
    }

    pub(crate) fn with_status(status: u16, text: impl ToString) -> Problem {
        Problem::new(status, text)
    }
}

/// Converts a refusal by the fleet. A refusal with the path `$` is not about a member of the request, so it counts as
/// "unavailable". Any other one is an error of the request.
impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        match refusal.path.as_str() {
            "$" => Problem::unavailable(refusal.message),
            _ => Problem::bad_request(refusal.message),
        }
    }
}

pub(crate) fn html(status: u16, text: String) -> Answer {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    with_header(
        with_content_type(status, kind, text.into_bytes()),
        CACHE_CONTROL,
        "no-store",
    )
}

pub(crate) fn json(status: u16, value: &serde_json::Value) -> Answer {
    let kind = HeaderValue::from_static("application/json");
    let answer = with_content_type(status, kind, value.to_string().into_bytes());
    with_header(answer, CACHE_CONTROL, "no-store")
}

/// An answer with this content type and body.
pub(crate) fn with_content_type(status: u16, kind: HeaderValue, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(complete_body(body));
    *answer.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// Redirects the browser to a path by status 303, so that it requests the path by GET even after a POST.
pub(crate) fn see_other(path: &str) -> Answer {
    let mut answer = Response::new(complete_body(Vec::new()));
    *answer.status_mut() = StatusCode::SEE_OTHER;
    with_header(answer, LOCATION, path)
}

/// Adds one header to an answer.
pub(crate) fn with_header(mut answer: Answer, name: HeaderName, value: &str) -> Answer {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().append(name, value);
    }
    answer
}

/// A body that is sent piece by piece, while later pieces are still being made.
pub(crate) fn streaming_body(pieces: mpsc::Receiver<Bytes>) -> AnswerBody {
    Pieces(pieces).boxed_unsync()
}

struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
