//! Columns that hold JSON, or a time as text.

use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::Fault;
use crate::timestamp::parse_iso_time;

/// A value as the JSON text of a column.
pub(super) fn to_json<T: Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| Fault::InvalidEntry(error.to_string()))
}

/// Parses the JSON text of a column. It is invalid only if another program has changed it.
pub(super) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, Fault> {
    let text = row.get_ref(column)?;
    let text = text.as_str().map_err(rusqlite::Error::from)?;
    serde_json::from_str(text).map_err(|error| {
        let name = row.as_ref().column_name(column).unwrap_or("a column");
        Fault::InvalidEntry(format!(
            "its stored `{name}` is not as webfill writes it: {error}"
        ))
    })
}

/// Reads a stored time.
pub(super) fn parse_time(text: &str) -> Result<i64, Fault> {
    parse_iso_time(text)
        .ok_or_else(|| Fault::InvalidEntry(format!("its stored time `{text}` is no time")))
}
