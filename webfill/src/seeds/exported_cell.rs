//! Values in the cells of an exported CSV file.

use serde_json::Value;
use webfill_values::exact_json;

/// The value of a cell written by [`crate::export`]: lists and objects are JSON, and texts that would read as such
/// are JSON texts.
pub fn value_of(cell: String) -> Value {
    let is_json = cell.starts_with(['[', '{']) || is_marked_text(&cell);
    let value = is_json.then(|| exact_json(&cell).ok()).flatten();
    value.unwrap_or(Value::String(cell))
}

/// A list of an exported file that is a field of a record stays a list; a text in quotes is one that reads as a list.
fn is_marked_text(cell: &str) -> bool {
    cell.starts_with("\"[") || cell.starts_with("\"{") || cell.starts_with("\"\\\"")
}
