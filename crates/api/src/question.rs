//! One message of a client: crawl requests or an action.

use serde_json::Value;

use crate::action::{Action, parse_action};
use crate::batch::{self, Batch};
use crate::crawl_request::RequestParser;
use crate::json;
use crate::refusal::Refusal;

/// A valid message of a client.
#[derive(Debug)]
pub enum Question {
    /// One crawl request, or a list of them.
    Feed(Batch),
    Act(Action),
}

/// Parses a message: a list of crawl requests, one crawl request, or an action. `now_ms` is the time to compare
/// `expires` with, in milliseconds since the epoch.
pub fn parse_question(text: &[u8], now_ms: i64) -> Result<Question, Refusal> {
    match is_list(text) {
        true => batch::parse_list(text, now_ms).map(Question::Feed),
        false => parse_object(json::parse(text)?, now_ms),
    }
}

/// Whether a message is a list, which is parsed without holding all of it as JSON values.
pub fn is_list(text: &[u8]) -> bool {
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Parses a message that is not a list and is already JSON. An object with the key `action` is an action; anything else
/// is checked as a crawl request.
pub fn parse_object(message: Value, now_ms: i64) -> Result<Question, Refusal> {
    if message.get("action").is_some() {
        return parse_action(message).map(Question::Act);
    }
    let request = RequestParser::new(now_ms).parse(message, "$")?;
    let mut batch = Batch::default();
    batch.add(request, 0);
    Ok(Question::Feed(batch))
}
