//! Escapes texts that a spreadsheet would run as formulas.

use std::borrow::Cow;

/// The text, with an apostrophe before it if a spreadsheet would take it for a formula. A number is not a formula, even
/// with a sign.
pub fn escape_formula(text: &str) -> Cow<'_, str> {
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
            assert_eq!(escape_formula(formula), format!("'{formula}"));
        }
        for text in ["", "-5", "+3.5e2", "a=b", "https://x/", "'x", " x"] {
            assert_eq!(escape_formula(text), text);
        }
    }
}
