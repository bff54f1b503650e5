//! Converts the headers of a response to JSON, which is stored with the page if its crawl wants it.

use reqwest::header::{HeaderMap, HeaderName};
use serde_json::{Map, Value};

/// The limit on the total length of all names and values that are kept of one response.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Returns the headers as lists of values, `{"Content-Type": ["text/html"]}`. Bytes outside UTF-8 become U+FFFD;
/// headers beyond [`MAX_HEADER_BYTES`] are omitted.
pub fn to_json(headers: &HeaderMap) -> Map<String, Value> {
    let mut kept = Map::new();
    let mut bytes = 0;
    for (name, value) in headers {
        bytes += name.as_str().len() + value.len();
        if bytes > MAX_HEADER_BYTES {
            break;
        }
        let text = Value::from(String::from_utf8_lossy(value.as_bytes()));
        let values = kept
            .entry(capitalise(name))
            .or_insert(Value::Array(Vec::new()));
        if let Value::Array(values) = values {
            values.push(text);
        }
    }
    kept
}

/// The name as it is usually written, with a capital letter at the start of each word: `Content-Type`.
fn capitalise(name: &HeaderName) -> String {
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
    use reqwest::header::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn headers_are_lists_under_their_usual_names() {
        let mut given = HeaderMap::new();
        given.append("content-type", HeaderValue::from_static("text/html"));
        given.append("set-cookie", HeaderValue::from_static("a=1"));
        given.append("set-cookie", HeaderValue::from_static("b=2"));
        given.append("x-odd", HeaderValue::from_bytes(b"caf\xe9").unwrap());
        let expected = json!({
            "Content-Type": ["text/html"], "Set-Cookie": ["a=1", "b=2"], "X-Odd": ["caf\u{FFFD}"],
        });
        assert_eq!(Value::Object(to_json(&given)), expected);
    }

    #[test]
    fn headers_beyond_the_limit_are_left_out() {
        let mut given = HeaderMap::new();
        let value = HeaderValue::from_str(&"x".repeat(1_000)).unwrap();
        for number in 0..200 {
            let name: HeaderName = format!("x-{number}").parse().unwrap();
            given.append(name, value.clone());
        }
        let kept = to_json(&given);
        assert!((60..=65).contains(&kept.len()), "{}", kept.len());
    }
}
