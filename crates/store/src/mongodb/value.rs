//! Converts JSON to BSON and back.
//!
//! A text always becomes a value, never an operator: if the server evaluates the values of a statement, the caller
//! puts them below `$literal`. BSON keys cannot contain NUL, so it is escaped as `␀0`, and the sign `␀` itself as
//! `␀␀`. Integers beyond the range of `i64` become decimals, because a double would lose some of their digits.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mongodb::bson::raw::{CStr, CString};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use serde_json::{Map, Number, Value};
use webfill_values::Decimal;

use super::fault::Fault;
use crate::timestamp::iso_time;

/// The deepest nesting of a value. The server refuses documents with more than 100 levels, and some of these are ours.
const MAX_DEPTH: usize = 80;

const ESCAPE: char = '\u{2400}';

/// The BSON key for the name of a member, with NUL escaped.
pub(super) fn key(name: &str) -> CString {
    let text = if name.contains(['\0', ESCAPE]) {
        Cow::Owned(
            name.replace(ESCAPE, "\u{2400}\u{2400}")
                .replace('\0', "\u{2400}0"),
        )
    } else {
        Cow::Borrowed(name)
    };
    CString::try_from(text.as_ref()).expect("no NUL is left in it")
}

/// The name that [`key`] has made a BSON key from.
pub(super) fn name(key: &str) -> String {
    if !key.contains(ESCAPE) {
        return key.to_owned();
    }
    let mut name = String::with_capacity(key.len());
    let mut letters = key.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ESCAPE if letters.next() == Some('0') => name.push('\0'),
            other => name.push(other),
        }
    }
    name
}

/// Converts an object to a document.
pub(super) fn document(object: &Map<String, Value>) -> Result<RawDocumentBuf, Fault> {
    nested_document(object, 1)
}

/// Converts any value.
pub(super) fn bson(value: &Value) -> Result<RawBson, Fault> {
    to_bson_at_depth(value, 1)
}

/// Converts a value, or `None` to null.
pub(super) fn or_null(value: Option<impl Into<RawBson>>) -> RawBson {
    value.map_or(RawBson::Null, Into::into)
}

/// Converts texts to an array.
pub(super) fn text_array(texts: &[String]) -> RawArrayBuf {
    texts.iter().map(String::as_str).collect()
}

/// Converts bytes to a binary value.
pub(super) fn binary(bytes: &[u8]) -> Binary {
    Binary {
        subtype: BinarySubtype::Generic,
        bytes: bytes.to_vec(),
    }
}

fn nested_document(object: &Map<String, Value>, depth: usize) -> Result<RawDocumentBuf, Fault> {
    let mut document = RawDocumentBuf::new();
    for (name, value) in object {
        append(&mut document, &key(name), value, depth)?;
    }
    Ok(document)
}

fn append(
    document: &mut RawDocumentBuf,
    key: &CStr,
    value: &Value,
    depth: usize,
) -> Result<(), Fault> {
    match value {
        // A text is appended directly, because it would be copied twice as a `RawBson`.
        Value::String(text) => document.append(key, text.as_str()),
        other => document.append(key, to_bson_at_depth(other, depth)?),
    }
    Ok(())
}

fn to_bson_at_depth(value: &Value, depth: usize) -> Result<RawBson, Fault> {
    if depth > MAX_DEPTH {
        return Err(Fault::InvalidEntry(format!(
            "it is nested deeper than {MAX_DEPTH} levels"
        )));
    }
    Ok(match value {
        Value::Null => RawBson::Null,
        Value::Bool(is_so) => RawBson::Boolean(*is_so),
        Value::Number(number) => bson_number(number),
        Value::String(text) => RawBson::String(text.clone()),
        Value::Array(items) => {
            let mut array = RawArrayBuf::new();
            for item in items {
                match item {
                    Value::String(text) => array.push(text.as_str()),
                    other => array.push(to_bson_at_depth(other, depth + 1)?),
                }
            }
            RawBson::Array(array)
        }
        Value::Object(object) => RawBson::Document(nested_document(object, depth + 1)?),
    })
}

/// Converts a number to the shortest integer type that holds it. Shells show 64-bit integers as function calls.
fn bson_number(number: &Number) -> RawBson {
    match number.as_i64() {
        Some(integer) => match i32::try_from(integer) {
            Ok(short) => RawBson::Int32(short),
            Err(_) => RawBson::Int64(integer),
        },
        None => match number.as_u64().map(|integer| integer.to_string().parse()) {
            Some(Ok(decimal)) => RawBson::Decimal128(decimal),
            _ => RawBson::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
    }
}

/// Converts a stored document to an object. Dates become text, bytes become Base64, and types that webfill never
/// writes become text too.
pub(super) fn object(document: &RawDocument) -> Map<String, Value> {
    let members = document.iter().filter_map(Result::ok);
    members
        .map(|(key, bson)| (name(key.as_str()), value(bson)))
        .collect()
}

/// Converts a stored value.
pub(super) fn value(bson: RawBsonRef<'_>) -> Value {
    match bson {
        RawBsonRef::Double(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        RawBsonRef::String(text) => Value::from(text),
        RawBsonRef::Array(items) => {
            let items = items.into_iter().filter_map(Result::ok);
            Value::Array(items.map(value).collect())
        }
        RawBsonRef::Document(document) => Value::Object(object(document)),
        RawBsonRef::Boolean(is_so) => Value::Bool(is_so),
        RawBsonRef::Null | RawBsonRef::Undefined => Value::Null,
        RawBsonRef::Int32(integer) => Value::from(integer),
        RawBsonRef::Int64(integer) => Value::from(integer),
        RawBsonRef::DateTime(time) => Value::String(iso_time(time.timestamp_millis())),
        RawBsonRef::ObjectId(id) => Value::String(id.to_hex()),
        RawBsonRef::Binary(binary) => Value::String(BASE64_STANDARD.encode(binary.bytes)),
        RawBsonRef::Decimal128(number) => match number.to_string() {
            text if text == "NaN" => Value::Null,
            text => decimal(text),
        },
        other => Value::String(format!("{other:?}")),
    }
}

/// Converts a decimal to a 64-bit integer if possible, and otherwise to a text of its digits, because a double would
/// lose some of them.
fn decimal(text: String) -> Value {
    let is_integer = !text.contains(['.', 'E', 'e']);
    let number = Decimal::from_text(&text).filter(|_| is_integer);
    match number.and_then(|number| number.to_number(false)) {
        Some(number) if !number.is_f64() => Value::Number(number),
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn round_trip(given: &Value) -> Value {
        let Value::Object(members) = given else {
            panic!("{given} is no object");
        };
        Value::Object(object(&document(members).unwrap()))
    }

    #[test]
    fn whatever_json_holds_comes_back() {
        let given = json!({
            "z": null, "a": true, "n": [0, -1, 2_147_483_648_i64, i64::MIN, 1.5, 1.0, 1e300],
            "$where": {"$oid": "x", "$date": 1, "a.b": {"": "nul\0"}},
            "nul\0key": 1, "\u{2400}": 2, "\u{2400}0": 3, "\0\u{2400}\0": 4,
            "\u{1F980}": ["\u{1F980}", [[], {}]],
        });
        assert_eq!(round_trip(&given), given);
        let text = |value: &Value| serde_json::to_string(value).unwrap();
        assert_eq!(text(&round_trip(&given)), text(&given), "the order too");
    }

    #[test]
    fn no_number_loses_digits() {
        for number in [
            "0",
            "-1",
            "5",
            "5.0",
            "1.1",
            "-0.5",
            "0.1",
            "1e300",
            "2147483648",
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "-9223372036854775808",
        ] {
            let given: Value = serde_json::from_str(&format!(r#"{{"n": {number}}}"#)).unwrap();
            assert_eq!(round_trip(&given), given, "{number}");
        }
    }

    #[test]
    fn decimals_of_others_keep_their_digits() {
        for (written, read) in [
            ("5", json!(5)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!("18446744073709551616")),
            ("12.50", json!("12.50")),
            ("NaN", Value::Null),
        ] {
            let decimal = RawBson::Decimal128(written.parse().unwrap());
            assert_eq!(value(decimal.as_raw_bson_ref()), read, "{written}");
        }
    }

    #[test]
    fn values_nested_too_deep_are_refused() {
        let nest = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(bson(&nest(MAX_DEPTH - 1)).is_ok());
        let refusal = bson(&nest(MAX_DEPTH)).unwrap_err();
        assert!(matches!(refusal, Fault::InvalidEntry(_)), "{refusal:?}");
    }
}
