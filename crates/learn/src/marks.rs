//! Marks: a page writes a value with other marks between its letters and digits than the record: `AB-1234` for `AB1234`,
//! `red / green` for `red/green`, `No. 5` for `No 5`.

use serde_json::{Value, json};

use crate::fold::KnownValue;
use crate::places::Places;

/// The most places on a page that are converted for one value.
const MOST_PLACES: usize = 6;

/// The shortest and the longest value, in bytes. Short texts are equal by chance without their marks.
const SHORTEST: usize = 4;
const LONGEST: usize = 80;

/// The longest marks between two letters, in bytes.
const LONGEST_MARKS: usize = 4;

/// The most marks that are converted.
const MOST_MARKS: usize = 2;

/// Finds texts with the letters and digits of the value, and with other marks between them: the places, each with the
/// processors that convert its text to the value.
pub(crate) fn find(page: &Places<'_>, wanted: &KnownValue) -> Vec<(usize, Vec<Value>)> {
    let text = &wanted.text;
    let has_letters = text.contains(char::is_alphabetic);
    if !(SHORTEST..=LONGEST).contains(&text.len()) || !has_letters {
        return Vec::new();
    }
    let places = page.all.iter().enumerate();
    let formed = places.filter_map(|(place, at)| {
        let difference = at.text.len().abs_diff(text.len());
        let is_like = difference <= MOST_MARKS * LONGEST_MARKS && at.text != *text;
        let processors = is_like.then(|| conversions(&at.text, text)).flatten()?;
        Some((place, processors))
    });
    formed.take(MOST_PLACES).collect()
}

/// The processors that replace the marks of a page by those of the record; `None` if the texts differ in anything else.
fn conversions(read: &str, wanted: &str) -> Option<Vec<Value>> {
    let (mut read_chars, mut wanted_chars) = (read.chars().peekable(), wanted.chars().peekable());
    let mut changed: Vec<(String, String)> = Vec::new();
    let mut last = None;
    loop {
        let change = (take_marks(&mut read_chars), take_marks(&mut wanted_chars));
        let next = read_chars.next();
        if next != wanted_chars.next() {
            return None;
        }
        if change.0 != change.1 && !changed.contains(&change) {
            // Other processors cut off marks at the ends. Marks that are missing on the page have no place there.
            let is_between = last.is_some() && next.is_some();
            let is_short = change.0.len().max(change.1.len()) <= LONGEST_MARKS;
            let digits = [last, next].map(|c| c.is_some_and(|c: char| c.is_ascii_digit()));
            // Such a mark may belong to a number.
            let is_of_number = digits == [true; 2] && is_of_number(&change.0, &change.1);
            // The name of a page, such as `blue-green-lamp`, does not show which hyphens belong to the value.
            let is_of_name = matches!(change.0.as_str(), "-" | "_") && change.1 == " ";
            let is_other = change.0.is_empty() || is_of_number || is_of_name;
            if is_other || !is_between || !is_short {
                return None;
            }
            changed.push(change);
        }
        last = next;
        if next.is_none() {
            break;
        }
    }
    let replaced = |text: String, (find, with): &(String, String)| text.replace(find, with);
    let is_it = changed.iter().fold(read.to_owned(), replaced) == wanted;
    let processor = |(find, with): &(String, String)| json!({"type": "replace", "parameters": {"find": find, "with": with}});
    let is_changed = (1..=MOST_MARKS).contains(&changed.len());
    (is_it && is_changed).then(|| changed.iter().map(processor).collect())
}

fn is_of_number(read: &str, wanted: &str) -> bool {
    [read, wanted]
        .iter()
        .any(|marks| matches!(*marks, "." | ","))
}

/// The marks and spaces before the next letter or digit.
fn take_marks(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut marks = String::new();
    while let Some(mark) = chars.next_if(|c| !c.is_alphanumeric()) {
        marks.push(mark);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a page, the value of the record, and the replacements that turn one into the other.
    type Example = (
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
    );

    #[test]
    fn marks_between_letters_and_digits_are_replaced() {
        let table: [Example; 5] = [
            ("AB-1234", "AB1234", &[("-", "")]),
            ("red / green / blue", "red/green/blue", &[(" / ", "/")]),
            ("No. 5 Street", "No 5 Street", &[(". ", " ")]),
            (
                "A4, red - new",
                "A4 red: new",
                &[(", ", " "), (" - ", ": ")],
            ),
            ("12-A 5", "12/A 5", &[("-", "/")]),
        ];
        for (read, wanted, replacements) in table {
            let expected: Vec<Value> = replacements
                .iter()
                .map(|(find, with)| json!({"type": "replace", "parameters": {"find": find, "with": with}}))
                .collect();
            assert_eq!(conversions(read, wanted), Some(expected), "{read}");
        }
        for (read, wanted) in [
            ("AB1234", "AB-1234"),
            ("AB-1235", "AB1234"),
            ("AB-1234.", "AB1234"),
            ("AB-12-34", "AB12-34"),
            ("a-b/c d", "a b-c/d"),
            ("12.5 kg", "125 kg"),
            ("blue-lamp", "blue lamp"),
            ("same", "same"),
        ] {
            assert_eq!(conversions(read, wanted), None, "{read}");
        }
    }
}
