//! Converts values to the form of the column into which they are written.

use serde_json::{Number, Value};
use webfill_values::Decimal;

use crate::kind::Kind;
use crate::shape::Shape;

/// The entries of a value that is a JSON array of texts, numbers and booleans; `None` for other values.
fn parse_json_entries(value: &str) -> Option<Vec<String>> {
    let entries: Vec<Value> = match value.starts_with('[') {
        true => serde_json::from_str(value).ok()?,
        false => return None,
    };
    let text = |entry: Value| match entry {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    };
    entries.into_iter().map(text).collect()
}

/// Splits a value for a list column into entries. A value that is not a JSON array is a single entry.
pub(crate) fn list_entries(value: &str) -> Vec<String> {
    parse_json_entries(value).unwrap_or_else(|| vec![value.to_owned()])
}

/// The text of a value for a column without types. Several values are joined with the column's separator.
pub(crate) fn cell_text(value: String, shape: &Shape) -> Result<String, String> {
    let Some(separator) = &shape.separator else {
        return Ok(value);
    };
    let Some(entries) = parse_json_entries(&value) else {
        return Ok(value);
    };
    let sign = separator.trim();
    let sign = if sign.is_empty() { separator } else { sign };
    match entries.iter().find(|entry| entry.contains(sign)) {
        Some(entry) => Err(format!("`{entry:.40}` holds the separator of lists")),
        None => Ok(entries.join(separator)),
    }
}

/// Converts a value to JSON, in the type of its column.
pub(crate) fn typed_json(value: &str, shape: &Shape) -> Result<Value, String> {
    if shape.is_list {
        let entries = list_entries(value);
        let entries = entries.iter().map(|entry| single_to_json(entry, shape));
        return entries.collect::<Result<_, _>>().map(Value::Array);
    }
    match shape.separator {
        Some(_) => cell_text(value.to_owned(), shape).map(Value::String),
        None => single_to_json(value, shape),
    }
}

fn single_to_json(value: &str, shape: &Shape) -> Result<Value, String> {
    if !shape.is_typed {
        return match shape.kind {
            Kind::Other => Err(String::from("the column holds objects")),
            _ => Ok(Value::String(value.to_owned())),
        };
    }
    match shape.kind {
        Kind::Integer | Kind::Number => parse_number(value, shape.kind).map(Value::Number),
        Kind::Bool => match value.trim() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(String::from("the column holds true or false")),
        },
        Kind::Other => Err(String::from("the column holds objects")),
        _ => Ok(Value::String(value.to_owned())),
    }
}

/// Converts a value to a number without loss.
fn parse_number(value: &str, kind: Kind) -> Result<Number, String> {
    let decimal = Decimal::from_plain_text(value.trim());
    let decimal =
        decimal.ok_or_else(|| String::from("it is no number, as all values of the column are"))?;
    if kind == Kind::Integer && !decimal.is_integer() {
        return Err(String::from(
            "it is no whole number, as all values of the column are",
        ));
    }
    let has_fraction = kind == Kind::Number && value.contains('.');
    decimal
        .to_number(has_fraction)
        .ok_or_else(|| String::from("no number of JSON has all its digits"))
}
