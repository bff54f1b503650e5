//! Values in the cells of an exported CSV file.

use serde_json::Value;
use webfill_values::parse_exact_json;

/// Parses a cell written by [`crate::export`]. Lists and objects are written as JSON. A text that would otherwise be
/// read as a list or an object is written as JSON, too.
pub fn parse_exported_cell(cell: String) -> Value {
    let is_json = cell.starts_with(['[', '{']) || is_marked_text(&cell);
    let value = is_json.then(|| parse_exact_json(&cell).ok()).flatten();
    value.unwrap_or(Value::String(cell))
}

/// Whether a cell is a text that was written as JSON, because it would otherwise be read as a list or an object.
fn is_marked_text(cell: &str) -> bool {
    cell.starts_with("\"[") || cell.starts_with("\"{") || cell.starts_with("\"\\\"")
}
