//! The cells of a CSV file.

use std::borrow::Cow;

use serde_json::Value;
use webfill_table::escape_formula;

/// The intended readers of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellStyle {
    /// Programs: texts are written unchanged.
    Plain,
    /// People who open the file in a spreadsheet: no text may act as a formula.
    Spreadsheet,
}

impl CellStyle {
    pub fn format_value(self, value: &Value) -> Cow<'_, str> {
        match value {
            Value::Null => Cow::Borrowed(""),
            Value::String(text) => self.format_text(text),
            other => Cow::Owned(other.to_string()),
        }
    }

    pub fn format_text(self, text: &str) -> Cow<'_, str> {
        match self {
            CellStyle::Plain => Cow::Borrowed(text),
            CellStyle::Spreadsheet => escape_formula(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spreadsheet_cells_get_an_apostrophe_before_a_formula() {
        assert_eq!(CellStyle::Spreadsheet.format_text("=1"), "'=1");
        assert_eq!(CellStyle::Plain.format_text("=1"), "=1");
    }
}
