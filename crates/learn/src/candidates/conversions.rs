//! Converts a text on a page to the known value, if both mean the same.

use serde_json::{Value, json};

use crate::dates;
use crate::fold::{KnownValue, Spelling, number_in};

/// All ways to convert a text with the same meaning to the known value, each as a list of processors. Empty if there is
/// none. `has_numbers` says whether numbers that are written differently count as equal.
pub(super) fn conversions(wanted: &KnownValue, text: &str, has_numbers: bool) -> Vec<Vec<Value>> {
    let read = Spelling::new(text);
    if wanted.folded == read.folded {
        return vec![Vec::new()];
    }
    if let Some(processor) = shortening_processor(wanted, text) {
        return vec![vec![processor]];
    }
    if let Some(day) = &wanted.day {
        let with_time = dates::date_interpretations(&wanted.text)
            .iter()
            .any(|way| way.has_time);
        let mut ways = dates::date_interpretations(text);
        ways.retain(|way| way.day == *day);
        return ways.iter().map(|way| way.processors(with_time)).collect();
    }
    if wanted.matches(&read) {
        return vec![Vec::new()];
    }
    number_conversion(wanted, text, has_numbers)
        .into_iter()
        .collect()
}

fn number_conversion(wanted: &KnownValue, text: &str, has_numbers: bool) -> Option<Vec<Value>> {
    let number = wanted.number.as_ref().filter(|_| has_numbers)?;
    if number_in(text).as_ref() != Some(number) {
        return None;
    }
    let comma = number.contains('.') && text.rfind(',') > text.rfind('.');
    let groups =
        number.len() > 3 && !number.contains('.') && text.contains('.') && !text.contains(',');
    let has_apostrophe = text.contains(['\'', '\u{2019}']);
    Some(vec![if has_apostrophe && !comma {
        json!({"type": "number", "parameters": {"decimal": ".", "group": "'\u{2019}"}})
    } else if comma || groups {
        json!({"type": "number", "parameters": {"decimal": ",", "group": ". "}})
    } else {
        json!({"type": "number", "parameters": {"decimal": ".", "group": ", "}})
    }])
}

/// The processor that shortens a text to the record's spelling: it drops the time after a date, or the marks between
/// digits.
fn shortening_processor(wanted: &KnownValue, text: &str) -> Option<Value> {
    if wanted.text.len() == 10 && dates::iso_day(text).as_ref() == Some(&wanted.text) {
        return Some(dates::day_processor());
    }
    if wanted.digits.is_none() || wanted.digits != Spelling::new(text).into_phone_digits() {
        return None;
    }
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let has_marks = is_digits(&wanted.text) && !is_digits(text);
    has_marks.then(|| {
        let digits = json!({"find": r"\D+", "with": "", "regex": true});
        json!({"type": "replace", "parameters": digits})
    })
}
