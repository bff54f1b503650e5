//! Reads the body of a refusal, which is an error page. Only its beginning is read, and only to find out whether the
//! site blocks the crawler ([`crate::blocks`]).

use std::time::Duration;

use reqwest::header::CONTENT_ENCODING;
use tokio::time::{Instant, timeout_at};

use super::Fetched;
use super::incoming::IncomingBody;
use crate::blocks::BEGINNING_BYTES;
use crate::charset::{self, Kind};

/// How long the beginning of a refusal's body may take to arrive.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Whether a response has a status that sites use to refuse robots, and a body that may show whether it is a refusal.
pub fn is_readable(fetched: &Fetched) -> bool {
    let is_html = |declared: &str| charset::declared_kind(declared) == Some(Kind::Html);
    matches!(fetched.status_code, Some(401 | 403 | 405 | 429 | 503))
        && !fetched.headers.contains_key(CONTENT_ENCODING)
        && fetched.content_type.as_deref().is_some_and(is_html)
}

/// The beginning of the body; empty if it does not arrive soon enough. One byte more than will be judged is read, to
/// notice a longer body.
pub async fn read_beginning(incoming: &mut IncomingBody, deadline: Instant) -> Vec<u8> {
    let limit = deadline.min(Instant::now() + LONGEST_WAIT);
    let mut body = Vec::new();
    while body.len() <= BEGINNING_BYTES {
        match timeout_at(limit, incoming.next_chunk()).await {
            Ok(Ok(Some(chunk))) => {
                let room = BEGINNING_BYTES + 1 - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Ok(Ok(None)) => break,
            Ok(Err(_)) | Err(_) => return Vec::new(),
        }
    }
    body
}
