//! Builds HTTP answers, which are always JSON.

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use webfill_api::Refusal;
pub(super) use webfill_service::http::Answer;
use webfill_service::http::complete_body;

pub(super) fn json_answer(status: u16, value: Value) -> Answer {
    let mut text = value.to_string();
    text.push('\n');
    let mut answer = Response::new(complete_body(text));
    *answer.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}

/// The answer with one additional header.
pub(super) fn with_header(mut answer: Answer, name: HeaderName, value: &str) -> Answer {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
    answer
}

pub(super) fn refusal_answer(status: u16, why: &str) -> Answer {
    json_answer(status, Refusal::new("$", why).to_answer())
}
