//! What is kept of an answer for the applications that ask for it: its headers, and its text.
//!
//! A text is in memory from the fetch until the store has it. Its bytes take their part of a room
//! of fixed size as long, and fetches wait while there is none: so a store that is slow, or away,
//! costs no more memory than a fast one.

use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderName};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A longer text is not kept: with the rest of its page it may be more than a store takes.
pub const MAX_KEPT_BYTES: usize = 10 << 20;

/// All texts that are in memory at once; a store may need the same again to write them.
const ROOM_BYTES: usize = 32 << 20;

/// Of all headers of an answer, names and values.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// The room is counted in KiB: a semaphore has no more than some hundred million permits.
const UNIT: usize = 1 << 10;

/// The room for texts that are to be kept.
#[derive(Debug, Clone)]
pub struct KeptRoom {
    free: Arc<Semaphore>,
}

/// A page's text, and its part of the room.
#[derive(Debug)]
pub struct KeptBody {
    pub text: Arc<str>,
    _room: OwnedSemaphorePermit,
}

impl KeptRoom {
    pub fn new() -> KeptRoom {
        KeptRoom {
            free: Arc::new(Semaphore::new(ROOM_BYTES / UNIT)),
        }
    }

    /// Waits for the room of a body of so many bytes. Its text may have more: a letter of one byte
    /// may become one of three, but few do.
    pub async fn take(&self, body_bytes: usize) -> OwnedSemaphorePermit {
        let units = (2 * body_bytes).min(ROOM_BYTES).div_ceil(UNIT) as u32;
        let permit = Arc::clone(&self.free).acquire_many_owned(units).await;
        permit.expect("the room is never closed")
    }
}

/// The text of a page as it was decoded: what is no valid text of its encoding is U+FFFD in it.
/// `None` if it is too long.
pub fn body(text: &str, room: OwnedSemaphorePermit) -> Option<KeptBody> {
    let fits = text.len() <= MAX_KEPT_BYTES;
    fits.then(|| KeptBody {
        text: text.into(),
        _room: room,
    })
}

/// The headers of an answer, `{"Content-Type": ["text/html"]}`. Bytes outside UTF-8 are U+FFFD; what
/// comes behind the first 64 KiB is left out.
pub fn headers(headers: &HeaderMap) -> Map<String, Value> {
    let mut kept = Map::new();
    let mut bytes = 0;
    for (name, value) in headers {
        bytes += name.as_str().len() + value.len();
        if bytes > MAX_HEADER_BYTES {
            break;
        }
        let text = Value::from(String::from_utf8_lossy(value.as_bytes()));
        let values = kept
            .entry(spelled(name))
            .or_insert(Value::Array(Vec::new()));
        if let Value::Array(values) = values {
            values.push(text);
        }
    }
    kept
}

/// The name as people spell it: each word with a capital letter.
fn spelled(name: &HeaderName) -> String {
    let mut begins_word = true;
    let spell = |letter: char| {
        let spelled = match begins_word {
            true => letter.to_ascii_uppercase(),
            false => letter,
        };
        begins_word = letter == '-';
        spelled
    };
    name.as_str().chars().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn headers_are_lists_under_the_names_that_people_know() {
        let mut given = HeaderMap::new();
        given.append("content-type", HeaderValue::from_static("text/html"));
        given.append("set-cookie", HeaderValue::from_static("a=1"));
        given.append("set-cookie", HeaderValue::from_static("b=2"));
        given.append("x-odd", HeaderValue::from_bytes(b"caf\xe9").unwrap());
        let expected = json!({
            "Content-Type": ["text/html"], "Set-Cookie": ["a=1", "b=2"], "X-Odd": ["caf\u{FFFD}"],
        });
        assert_eq!(Value::Object(headers(&given)), expected);
    }

    #[test]
    fn a_flood_of_headers_is_cut() {
        let mut given = HeaderMap::new();
        let value = HeaderValue::from_str(&"x".repeat(1_000)).unwrap();
        for number in 0..200 {
            let name: HeaderName = format!("x-{number}").parse().unwrap();
            given.append(name, value.clone());
        }
        let kept = headers(&given);
        assert!((60..=65).contains(&kept.len()), "{}", kept.len());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_finds_the_room_full_waits_for_the_store() {
        let room = KeptRoom::new();
        let first = body("<p>", room.take(ROOM_BYTES).await).unwrap();
        let second = room.take(1);
        tokio::pin!(second);
        let waits = tokio::time::timeout(Duration::from_secs(1), &mut second);
        assert!(waits.await.is_err(), "there is no room");
        drop(first);
        drop(second.await);
    }

    #[tokio::test]
    async fn a_text_that_is_too_long_is_not_kept_and_takes_no_room() {
        let room = KeptRoom::new();
        let long = "x".repeat(MAX_KEPT_BYTES + 1);
        assert!(body(&long, room.take(long.len()).await).is_none());
        assert_eq!(room.free.available_permits(), ROOM_BYTES / UNIT);
    }
}
