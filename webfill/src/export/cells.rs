//! The cells of a CSV file.

use std::borrow::Cow;

use serde_json::Value;

/// The reader that the cells of a CSV file are meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// Programs: the texts as they are.
    Plain,
    /// People who open the file in a spreadsheet: no text may be a formula.
    Spreadsheet,
}

impl Cells {
    pub fn of(self, value: &Value) -> Cow<'_, str> {
        match value {
            Value::Null => Cow::Borrowed(""),
            Value::String(text) => self.text(text),
            other => Cow::Owned(other.to_string()),
        }
    }

    pub fn text(self, text: &str) -> Cow<'_, str> {
        match self {
            Cells::Plain => Cow::Borrowed(text),
            Cells::Spreadsheet => unlike_a_formula(text),
        }
    }
}

/// The text, with an apostrophe if a spreadsheet would take it for a formula. A number is not a formula, even with a
/// sign.
fn unlike_a_formula(text: &str) -> Cow<'_, str> {
    let begins_one = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    if begins_one && text.parse::<f64>().is_err() {
        return Cow::Owned(format!("'{text}"));
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_formulas_of_spreadsheets_get_an_apostrophe() {
        for formula in [
            "=1", "+a", "-a", "@x", "\tx", "\rx", "-", "＝1", "+49 30", "@handle", "-q",
        ] {
            assert_eq!(unlike_a_formula(formula), format!("'{formula}"));
            assert_eq!(Cells::Plain.text(formula), formula);
        }
        for text in ["", "-5", "+3.5e2", "a=b", "https://x/", "'x", " x"] {
            assert_eq!(unlike_a_formula(text), text);
        }
    }
}
