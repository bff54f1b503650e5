//! A pattern for the texts of a column whose values are one number each, perhaps with a sign or unit. Ranges such as
//! `120 - 140 g`, estimates such as `approx. 12` and words such as `unknown` do not match it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::forms::LONGEST_AFFIX;

/// The most different texts before the numbers of a column, such as currencies.
const MOST_BEFORE: usize = 3;

/// A number, with or without marks between its digits.
const NUMBER: &str =
    r"(?:\d{1,3}(?:[ \x{a0}\x{2009}\x{202f}]\d{3})+(?:[.,]\d+)?|\d+(?:[.,'\x{2019}]\d+)*)";

static ONE_NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = format!(
        r"^([^\d]{{0,{LONGEST_AFFIX}}}?)[-+\x{{2212}}]?{NUMBER}([^\d]{{0,{LONGEST_AFFIX}}})$"
    );
    Regex::new(&pattern).expect("a constant pattern")
});

/// The texts before and after the only number of a text. `None` if it has other numbers, or if a word precedes the
/// number, as in the names of things.
fn texts_around(text: &str) -> Option<(&str, &str)> {
    /// The most characters of a currency code, such as `CHF`.
    const LONGEST_CODE: usize = 4;
    let parts = ONE_NUMBER.captures(text)?;
    let (before, after) = (parts.get(1)?.as_str().trim(), parts.get(2)?.as_str().trim());
    let is_code = before.chars().count() <= LONGEST_CODE && !before.contains(char::is_lowercase);
    let is_sign = !before.contains(char::is_alphabetic);
    (is_code || is_sign).then_some((before, after))
}

/// Whether a text is one number, perhaps with a sign or unit.
pub(crate) fn is_one_number(text: &str) -> bool {
    texts_around(text).is_some()
}

/// The pattern for these values; `None` if any of them is not one number, or if too many texts stand before the
/// numbers.
pub(crate) fn pattern(values: &[&str]) -> Option<String> {
    let mut before = BTreeSet::new();
    let mut has_after = false;
    for value in values {
        let (sign, unit) = texts_around(value)?;
        before.insert(sign);
        has_after |= !unit.is_empty();
    }
    if before.len() > MOST_BEFORE {
        return None;
    }
    let before: Vec<String> = before.into_iter().map(regex::escape).collect();
    // Other things may have other units, but no text before the number.
    let after = match has_after {
        true => format!(r"[^\d]{{0,{LONGEST_AFFIX}}}"),
        false => String::new(),
    };
    Some(format!(
        r"^(?:{})?\s*[-+\x{{2212}}]?{NUMBER}{after}$",
        before.join("|")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_than_one_number_do_not_match() {
        let table: [(&[&str], &[&str], &[&str]); 4] = [
            (
                &["120", "95", "1310"],
                &["7", "-3", "12.5", "1,299", "12 000"],
                &[
                    "120 - 140",
                    "120-140",
                    "approx. 12",
                    "unknown",
                    "-",
                    "12 g",
                    "120 14",
                ],
            ),
            (
                &["120 g", "95 g", "1310 g"],
                &["7 g", "1.2 kg", "12"],
                &["120 - 140 g", "120 g (4 oz)", "about 12 g", "N/A"],
            ),
            (
                &["$12.50", "$7.99", "$1,310.00"],
                &["$3", "12.50"],
                &["from $3", "$3 - $5", "ask us"],
            ),
            (
                &["EUR 3", "USD 4", "EUR 5", "USD 6"],
                &["EUR 12", "USD 12"],
                &["about EUR 12"],
            ),
        ];
        for (values, right, wrong) in table {
            let regex = Regex::new(&pattern(values).unwrap()).unwrap();
            for text in right {
                assert!(regex.is_match(text), "{text} like {values:?}");
            }
            for text in wrong {
                assert!(!regex.is_match(text), "{text} unlike {values:?}");
            }
        }
        for values in [
            &["12", "7 - 9", "3"] as &[&str],
            &["Apollo 13", "District 9", "Ocean 8"],
            &["Ada 13", "Ada 9", "Ada 8"],
            &["2010-05-25", "2010-06-01", "2011-01-01"],
            &["12", "a", "3"],
        ] {
            assert_eq!(pattern(values), None, "{values:?}");
        }
    }
}
