//! Parses bytes as JSON, with refusals that fit the source: a whole message, or one line of many.

use serde_json::Value;
use webfill_values::parse_exact_json;

use crate::crawl_request::NOT_AN_OBJECT;
use crate::refusal::Refusal;

/// Parses a text as one JSON value. A number that would lose digits becomes a text of its digits.
pub fn parse(text: &[u8]) -> Result<Value, Refusal> {
    let text = decode_utf8(text)?;
    parse_exact_json(text).map_err(|error| invalid_json(text, &error))
}

/// Parses a line that holds one crawl request or one record. The object's keys are not checked yet.
pub fn parse_line(line: &[u8]) -> Result<Value, Refusal> {
    match parse(line)? {
        object @ Value::Object(_) => Ok(object),
        Value::Array(_) => Err(Refusal::new(
            "$",
            "a line holds one object, not a list: jq -c '.[]' makes lines of it",
        )),
        _ => Err(Refusal::new("$", NOT_AN_OBJECT)),
    }
}

pub(crate) fn decode_utf8(text: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(text).map_err(|error| {
        let byte = error.valid_up_to() + 1;
        Refusal::new("$", format!("invalid UTF-8 at byte {byte}"))
    })
}

/// Refuses text that is not JSON, with the position of the fault. If the text is one line, only the column is named:
/// "line 1" would be mistaken for a line of the file that the text comes from.
pub(crate) fn invalid_json(text: &str, error: &serde_json::Error) -> Refusal {
    let mut message = format!("invalid JSON: {error}");
    if !text.trim_end().contains('\n') {
        message = message.replace(" at line 1 column", " at column");
    }
    Refusal::new("$", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal_message(line: &str) -> String {
        let refusal = parse_line(line.as_bytes()).unwrap_err();
        assert_eq!(refusal.path, "$");
        refusal.message
    }

    #[test]
    fn a_line_that_is_no_object_is_refused_with_the_reason() {
        assert_eq!(
            refusal_message(r#"{"url": "http://a.org/""#),
            "invalid JSON: EOF while parsing an object at column 23"
        );
        assert!(refusal_message("[{}]").contains("jq -c"));
        assert!(refusal_message("7").contains("an object"));
        let refusal = parse_line(b"{\"url\": \"\xff\"}").unwrap_err();
        assert_eq!(refusal.message, "invalid UTF-8 at byte 10");
    }

    #[test]
    fn a_text_of_several_lines_keeps_the_number_of_the_line() {
        let refusal = parse(b"{\n\"url\": }").unwrap_err();
        assert!(refusal.message.contains("line 2"), "{}", refusal.message);
    }
}
