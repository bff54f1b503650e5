//! Finds the members of a JSON object, and their positions in its text.

use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::cell::Cell;

pub(super) struct Member {
    pub(super) name: String,
    /// The position of the key, its quotes included.
    pub(super) key: Range<usize>,
    pub(super) value: Range<usize>,
}

/// Parses a text that is one JSON object into its members. An error says what is wrong.
pub(super) fn parse_members(text: &str) -> Result<Vec<Member>, String> {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        let with_numbers = replace_missing_numbers(text);
        let is_valid =
            with_numbers.is_some_and(|text| serde_json::from_str::<IgnoredAny>(&text).is_ok());
        if !is_valid {
            return Err(format!("invalid JSON: {error}"));
        }
    }
    let bytes = text.as_bytes();
    let mut at = skip_blanks(bytes, 0);
    if bytes[at] != b'{' {
        return Err(String::from("it is no object"));
    }
    let mut members: Vec<Member> = Vec::new();
    loop {
        // `at` is the position of the opening brace, or of a comma.
        at = skip_blanks(bytes, at + 1);
        if bytes[at] == b'}' {
            return Ok(members);
        }
        let key = at..value_end(bytes, at);
        let colon = skip_blanks(bytes, key.end);
        let start = skip_blanks(bytes, colon + 1);
        let value = start..value_end(bytes, start);
        at = skip_blanks(bytes, value.end);
        let name: String = serde_json::from_str(&text[key.clone()])
            .map_err(|error| format!("invalid JSON: {error}"))?;
        members.push(Member { name, key, value });
        if bytes[at] == b'}' {
            return Ok(members);
        }
    }
}

/// The words that Python and JavaScript write for numbers that are none. JSON has no such values.
const MISSING_NUMBERS: [(&str, &str); 2] = [("NaN", "100"), ("Infinity", "10000000")];

/// The text with a number in place of each `NaN` and `Infinity` outside texts, at the same positions. `None` if there are
/// none.
fn replace_missing_numbers(text: &str) -> Option<String> {
    if !MISSING_NUMBERS.iter().any(|(word, _)| text.contains(word)) {
        return None;
    }
    let (bytes, mut replaced) = (text.as_bytes(), String::with_capacity(text.len()));
    let mut at = 0;
    while at < bytes.len() {
        let end = memchr::memchr(b'"', &bytes[at..]).map_or(bytes.len(), |found| at + found);
        let outside = text.get(at..end)?;
        let with_numbers = MISSING_NUMBERS
            .iter()
            .fold(outside.to_owned(), |text, (word, number)| {
                text.replace(word, number)
            });
        replaced.push_str(&with_numbers);
        at = match end < bytes.len() {
            true => string_end(bytes, end),
            false => end,
        };
        replaced.push_str(text.get(end..at)?);
    }
    Some(replaced)
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    let blanks = bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace());
    at + blanks.count()
}

/// The position after the JSON value that starts here. The JSON must be valid.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    loop {
        match bytes.get(at) {
            Some(b'"') => at = string_end(bytes, at),
            Some(b'{' | b'[') => {
                depth += 1;
                at += 1;
            }
            Some(b'}' | b']') if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            Some(b',' | b':') if depth > 0 => at += 1,
            Some(byte) if byte.is_ascii_whitespace() && depth > 0 => at += 1,
            Some(byte) if !byte.is_ascii_whitespace() && !b",:}]".contains(byte) => {
                at += 1;
                if depth == 0 && is_word_end(bytes, at) {
                    return at;
                }
                continue;
            }
            _ => return at,
        }
        if depth == 0 {
            return at;
        }
    }
}

/// Whether a number, `true`, `false` or `null` ends before this position.
fn is_word_end(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at)
        .is_none_or(|byte| byte.is_ascii_whitespace() || b",:}]".contains(byte))
}

/// The position after the closing quote of the JSON string that starts here.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
        if at >= bytes.len() {
            break;
        }
    }
    bytes.len()
}

/// Converts a JSON value to a cell.
pub(super) fn cell_from_json(json: &str) -> Cell {
    match json.as_bytes().first() {
        Some(b'n' | b'N' | b'I') | None => Cell::Missing,
        Some(b'-') if json.ends_with(['y', 'N']) => Cell::Missing,
        Some(b't') => Cell::Bool(true),
        Some(b'f') => Cell::Bool(false),
        Some(b'-' | b'0'..=b'9') => Cell::Number(json.to_owned()),
        _ => serde_json::from_str(json).map_or(Cell::Other(Value::Null), cell_from_value),
    }
}

fn cell_from_value(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Missing,
        Value::Bool(value) => Cell::Bool(value),
        Value::Number(number) => Cell::Number(number.to_string()),
        Value::String(text) => Cell::Text(text),
        Value::Array(values) => Cell::List(values.into_iter().map(cell_from_value).collect()),
        object => Cell::Other(object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_the_right_positions() {
        let text =
            r#" { "a" : 1, "b":"x,\"}","c" : [1, {"d": "]"}, "y"] ,"e":{}, "f":null,"g":-1.5e3} "#;
        let found: Vec<(String, &str)> = parse_members(text)
            .unwrap()
            .into_iter()
            .map(|member| (member.name, &text[member.value]))
            .collect();
        let expected = [
            ("a", "1"),
            ("b", r#""x,\"}""#),
            ("c", r#"[1, {"d": "]"}, "y"]"#),
            ("e", "{}"),
            ("f", "null"),
            ("g", "-1.5e3"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(found, expected);
        let text = r#"{"a": NaN, "b": "NaN \"NaN", "c": [-Infinity, 1], "d": -Infinity, "Infinity":Infinity}"#;
        let members = parse_members(text).unwrap();
        let values: Vec<&str> = members
            .iter()
            .map(|member| &text[member.value.clone()])
            .collect();
        assert_eq!(
            values,
            [
                "NaN",
                r#""NaN \"NaN""#,
                "[-Infinity, 1]",
                "-Infinity",
                "Infinity"
            ]
        );
        assert!(
            [0, 3, 4]
                .iter()
                .all(|at| cell_from_json(values[*at]) == Cell::Missing)
        );
        assert!(parse_members("{}").unwrap().is_empty());
        assert!(parse_members("{ }").unwrap().is_empty());
    }

    #[test]
    fn texts_that_are_not_objects_are_refused() {
        for text in [
            "",
            "1",
            "[1]",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":1,}",
            "nul",
            "{}{}",
            "{\"a\":nan}",
            "{\"a\":NaNa}",
            "{NaN:1}",
            "NaN",
        ] {
            assert!(parse_members(text).is_err(), "{text}");
        }
    }
}
