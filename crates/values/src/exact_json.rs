//! JSON whose numbers keep all digits. A number that fits neither a 64-bit integer nor a double is read as a text of
//! its digits. Zero loses its sign, because `-0` would be read as a double.

use std::borrow::Cow;

use serde_json::Value;

use crate::decimal::Decimal;

/// A number in JSON with fewer characters than this never loses a digit, because a double holds 15 decimal digits.
const LONG: usize = 16;

/// Whether any number in a JSON text would lose digits as a JSON number.
pub fn loses_digits(json: &str) -> bool {
    matches!(rewrite_numbers(json, quote_if_lossy), Cow::Owned(_))
}

/// Parses JSON without losing a digit of its numbers.
pub fn parse_exact_json(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(&exact_json_text(text))
}

/// The JSON text with quotation marks around the numbers that would lose digits, and without signs before zeros. A
/// text that is not JSON is unchanged.
pub fn exact_json_text(text: &str) -> Cow<'_, str> {
    let exact = |number: &str| quote_if_lossy(number).or_else(|| strip_zero_sign(number));
    match rewrite_numbers(text, exact) {
        Cow::Owned(quoted) if serde_json::from_str::<Value>(text).is_ok() => Cow::Owned(quoted),
        _ => Cow::Borrowed(text),
    }
}

/// The JSON text with each number replaced if `rewrite` returns a text for it.
fn rewrite_numbers(text: &str, rewrite: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let (mut written, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at += string_length(&bytes[at..]),
            b'-' | b'0'..=b'9' => {
                let end = at + bytes[at..].iter().take_while(|b| is_of_number(b)).count();
                if let Some(other) = rewrite(&text[at..end]) {
                    written.push_str(&text[copied..at]);
                    written.push_str(&other);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    written.push_str(&text[copied..]);
    Cow::Owned(written)
}

/// The length in bytes of the JSON string at the start, quotation marks included.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn quote_if_lossy(number: &str) -> Option<String> {
    if number.len() < LONG && !number.contains(['e', 'E']) {
        return None;
    }
    let is_whole = |number: Decimal| number.to_number(false).is_some();
    let is_cut = !Decimal::from_text(number).is_some_and(is_whole);
    is_cut.then(|| format!("\"{number}\""))
}

fn strip_zero_sign(number: &str) -> Option<String> {
    let unsigned = number.strip_prefix('-')?;
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    is_zero.then(|| unsigned.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_number_loses_a_digit() {
        for (text, expected) in [
            ("9007199254740993", json!(9007199254740993_u64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!("18446744073709551616")),
            ("[100000000000000000000]", json!([1e20])),
            (
                "[123456789012345678901234567890, 1.10]",
                json!(["123456789012345678901234567890", 1.1]),
            ),
            ("12345678901234567.89", json!("12345678901234567.89")),
            ("-0.30000000000000004", json!(-0.30000000000000004)),
            (
                r#"{"a\"12345678901234567890123": "12345678901234567890123", "b": 12345678901234567890123 }"#,
                json!({"a\"12345678901234567890123": "12345678901234567890123", "b": "12345678901234567890123"}),
            ),
            ("1e3", json!(1000.0)),
            (
                "[-0, -0.0, -0e5, -0.05, \"-0\"]",
                json!([0, 0.0, 0.0, -0.05, "-0"]),
            ),
            ("null", Value::Null),
        ] {
            assert_eq!(parse_exact_json(text).unwrap(), expected, "{text}");
        }
        assert_eq!(parse_exact_json("-0").unwrap().to_string(), "0");
        assert!(!loses_digits("[-0]"));
        for broken in [
            "",
            "{",
            "-",
            "-00",
            "1e999",
            "12345678901234567890123x",
            "1234567890123456.7.8",
        ] {
            assert!(parse_exact_json(broken).is_err(), "{broken}");
        }
    }
}
