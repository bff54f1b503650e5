//! Fractions written as one character: `2½` on a page is `2 1/2` or `2.5` in a record.

use serde_json::{Value, json};

use crate::fold::collapse_white_space;
use crate::forms::{ConvertedPlace, pattern_with_any_space, replace_processor};
use crate::labels::Leaks;
use crate::places::Places;

/// The most places on a page that are converted for one value.
const MOST_PLACES: usize = 6;

/// The longest text that is searched for a fraction, in bytes.
const LONGEST: usize = 40;

/// Each fraction character, its form with a slash, and its digits after the decimal point. These are empty if they
/// never end.
const FRACTIONS: [(char, &str, &str); 9] = [
    ('\u{bd}', "1/2", "5"),
    ('\u{bc}', "1/4", "25"),
    ('\u{be}', "3/4", "75"),
    ('\u{2153}', "1/3", ""),
    ('\u{2154}', "2/3", ""),
    ('\u{215b}', "1/8", "125"),
    ('\u{215c}', "3/8", "375"),
    ('\u{215d}', "5/8", "625"),
    ('\u{215e}', "7/8", "875"),
];

fn is_fraction(c: char) -> bool {
    FRACTIONS.iter().any(|(fraction, ..)| *fraction == c)
}

/// Finds texts with a fraction character that the record writes with a slash or a decimal point.
pub(crate) fn find(page: &Places<'_>, value: &str, leaks: &Leaks) -> Vec<ConvertedPlace> {
    if !value.contains(['/', '.']) || !value.bytes().any(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    let places = page.all.iter().enumerate();
    let places =
        places.filter(|(_, place)| place.text.len() <= LONGEST && place.text.contains(is_fraction));
    let found = places.flat_map(|(at, place)| {
        let ways = [
            (with_slashes(&place.text), slash_processors()),
            (with_decimals(&place.text), decimal_processors()),
        ];
        let ways = ways.into_iter().filter_map(|(text, mut processors)| {
            processors.extend(part_processor(&text, value, leaks)?);
            Some(ConvertedPlace {
                place: at,
                processors,
            })
        });
        ways.collect::<Vec<_>>()
    });
    found.take(MOST_PLACES).collect()
}

/// The processor that extracts the value from a longer text. `Some(None)` if the whole text is the value, and `None` if
/// there is no such processor.
fn part_processor(text: &str, value: &str, leaks: &Leaks) -> Option<Option<Value>> {
    if text == value {
        return Some(None);
    }
    let (before, after) = text.split_once(value)?;
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '/'));
    if joins(before.chars().next_back())
        || joins(after.chars().next())
        || leaks.occur_in(before)
        || leaks.occur_in(after)
    {
        return None;
    }
    let (before, after) = (
        pattern_with_any_space(before.trim()),
        pattern_with_any_space(after.trim()),
    );
    let pattern = format!(r"^{before}\s*(.+?)\s*{after}$");
    Some(Some(
        json!({"type": "regex", "parameters": {"pattern": pattern}}),
    ))
}

fn with_slashes(text: &str) -> String {
    let written = FRACTIONS
        .iter()
        .fold(text.to_owned(), |text, (fraction, slash, _)| {
            text.replace(*fraction, &format!(" {slash}"))
        });
    collapse_white_space(&written)
}

fn slash_processors() -> Vec<Value> {
    let replaced = FRACTIONS.iter().map(|(fraction, slash, _)| {
        json!({"type": "replace", "parameters": {"find": fraction, "with": format!(" {slash}")}})
    });
    replaced
        .chain([json!({"type": "collapse_whitespace"})])
        .collect()
}

fn with_decimals(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 4);
    for c in text.chars() {
        let decimals = FRACTIONS
            .iter()
            .find(|(fraction, _, decimals)| *fraction == c && !decimals.is_empty());
        let Some((_, _, decimals)) = decimals else {
            written.push(c);
            continue;
        };
        let before = written.trim_end().len();
        match written[..before].ends_with(|c: char| c.is_ascii_digit()) {
            true => written.truncate(before),
            false => written.push('0'),
        }
        written.push('.');
        written.push_str(decimals);
    }
    written
}

fn decimal_processors() -> Vec<Value> {
    let exact = FRACTIONS
        .iter()
        .filter(|(_, _, decimals)| !decimals.is_empty());
    let replaced = exact.flat_map(|(fraction, _, decimals)| {
        [
            replace_processor(&format!(r"(\d)\s*{fraction}"), &format!("${{1}}.{decimals}")),
            json!({"type": "replace", "parameters": {"find": fraction, "with": format!("0.{decimals}")}}),
        ]
    });
    replaced.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_written_in_two_ways() {
        let table = [
            ("2\u{bd} rooms", "2 1/2 rooms", "2.5 rooms"),
            ("\u{be} in", "3/4 in", "0.75 in"),
            ("12 \u{bc}", "12 1/4", "12.25"),
        ];
        for (text, slash, decimal) in table {
            assert_eq!(with_slashes(text), slash);
            assert_eq!(with_decimals(text), decimal);
        }
    }
}
