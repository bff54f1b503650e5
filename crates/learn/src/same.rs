//! Compares texts of pages with known values, and converts values to a form that is the same for equal values.

use crate::fold::{KnownValue, Spelling};

/// Whether a text of a page means this known value, possibly in another spelling: white space, case, Unicode forms,
/// numbers, dates, digits of telephone numbers.
pub fn is_same_value(known: &str, read: &str) -> bool {
    // Compares the texts as they are first, because most pages write the value exactly as it is known.
    if known == read {
        return !webfill_values::is_blank(known);
    }
    KnownValue::new(known).is_some_and(|known| known.matches(&Spelling::new(read)))
}

/// Whether a text from a page differs from this known value by one typing error.
pub fn is_misspelt_value(known: &str, read: &str) -> bool {
    KnownValue::new(known).is_some_and(|known| known.is_misspelt(&Spelling::new(read)))
}

/// Whether a text of a page is only a part of this value, or contains it. A number without its sign or leading zeros is
/// also a part. A text with a typing error is not.
pub fn is_partly_same(known: &str, read: &str) -> bool {
    let read = Spelling::new(read);
    KnownValue::new(known).is_some_and(|known| {
        known.is_in_other_notation(&read) || known.overlaps(&read) && !known.is_misspelt(&read)
    })
}

/// The form that all spellings of a value have in common.
pub fn common_form(value: &str) -> String {
    let Some(wanted) = KnownValue::new(value) else {
        return String::new();
    };
    let kinds = [
        ("day", wanted.day),
        ("minute", wanted.minutes.map(|minutes| minutes.to_string())),
        ("number", wanted.number),
        ("telephone", wanted.digits),
    ];
    let of_kind = kinds
        .into_iter()
        .find_map(|(kind, form)| form.map(|form| format!("{kind} {form}")));
    of_kind.unwrap_or(wanted.folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_value_have_one_form() {
        for (one, other) in [
            ("1,234.50", "1234.5"),
            ("May 25, 2010", "2010-05-25"),
            ("  Ada\u{a0}Byron ", "ADA BYRON"),
            ("+1 (325) 674-2000", "+1.325.674.2000"),
        ] {
            assert!(is_same_value(one, other), "{one} {other}");
            assert_eq!(common_form(one), common_form(other));
        }
        assert!(!is_same_value("12", "1.2"));
        assert_ne!(common_form("12"), common_form("1.2"));
        assert_eq!(common_form(" "), "");
    }
}
