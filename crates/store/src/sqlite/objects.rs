//! Converts rows of tables to JSON objects.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use super::fault::Fault;
use crate::record::explain_doubts;

/// The most rows, and bytes of text in them, that are read in one step.
pub(super) const STEP_ROWS: usize = 256;
pub(super) const STEP_BYTES: usize = 1 << 20;

/// The columns whose text is JSON.
const JSON_COLUMNS: [&str; 17] = [
    "parent_fields",
    "doubts",
    "alternatives",
    "row_counts",
    "records",
    "fields",
    "links",
    "attrs",
    "sources",
    "candidates",
    "history",
    "missing",
    "tries",
    "headers",
    "document",
    "urls",
    "row",
];

/// Converts a row of a table to a JSON object. The first column, which is the row's position, is left out. Adds the
/// length of the texts to `bytes`.
pub(super) fn row_object(row: &Row<'_>, bytes: &mut usize) -> Result<Map<String, Value>, Fault> {
    let columns = row.as_ref().column_count();
    let mut object = Map::with_capacity(columns);
    for column in 1..columns {
        let name = row.as_ref().column_name(column)?;
        let value = match row.get_ref(column)? {
            ValueRef::Integer(number) => Value::from(number),
            ValueRef::Text(text) => {
                *bytes += text.len();
                text_value(name, text)?
            }
            ValueRef::Blob(blob) => {
                *bytes += blob.len();
                Value::String(BASE64.encode(blob))
            }
            // These members are left out if they are null, because most records are not rows of pages.
            _ if name == "row" || name == "parent_fields" => continue,
            _ => Value::Null,
        };
        object.insert(name.to_owned(), value);
    }
    explain_doubts(&mut object);
    Ok(object)
}

fn text_value(name: &str, text: &[u8]) -> Result<Value, Fault> {
    if JSON_COLUMNS.contains(&name) {
        return serde_json::from_slice(text).map_err(|error| {
            Fault::InvalidEntry(format!(
                "a stored `{name}` is not as webfill writes it: {error}"
            ))
        });
    }
    Ok(Value::String(String::from_utf8_lossy(text).into_owned()))
}
