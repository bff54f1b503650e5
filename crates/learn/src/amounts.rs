//! Amounts that a page writes in another form than the record. The sign or unit, its side, or the marks between digits
//! may differ. The units may be a power of ten apart: `1.2 kg` and `1200 g`, `1.2 million` and `1200000`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::forms::{ConvertedPlace, LONGEST_AFFIX, pattern_with_any_space, replace_processor};
use crate::labels::Leaks;
use crate::places::Places;

/// The most places on a page that are converted for one value and one power of ten.
const MOST_PLACES: usize = 6;

/// The powers of ten that the units of page and record may differ by.
const SHIFTS: [i32; 8] = [1, 2, 3, 6, -1, -2, -3, -6];

/// A regular expression for the positions where marks between groups of three digits belong, in a number without such
/// marks. Positions in a fraction do not match. A fraction is taken to have at most 16 digits, because a 64-bit float
/// distinguishes no more.
static BEFORE_GROUP: LazyLock<String> = LazyLock::new(|| {
    let not_in_fraction: String = (1..=16).map(|n| format!(r"(?<![.,]\d{{{n}}})")).collect();
    format!(r"(?<=\d){not_in_fraction}(?=(?:\d{{3}})+(?:[.,]|$))")
});

static AMOUNT: LazyLock<Regex> = LazyLock::new(|| {
    let mark = r"[.,'\x{2019} \x{a0}\x{2009}\x{202f}]";
    let affix = format!(r"[^\d]{{0,{LONGEST_AFFIX}}}");
    let pattern = format!(r"^({affix}?)(\d(?:{mark}?\d)*)({affix})$");
    Regex::new(&pattern).expect("a constant pattern")
});

/// A number, with the texts before and after it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Amount<'t> {
    pub(crate) before: &'t str,
    pub(crate) after: &'t str,
    /// Whether white space stands between the number and the text before it, and the text after it.
    is_apart: (bool, bool),
    pub(crate) whole: String,
    pub(crate) fraction: String,
    group: Option<char>,
    decimal: Option<char>,
}

impl<'t> Amount<'t> {
    pub(crate) fn parse(text: &'t str) -> Option<Amount<'t>> {
        let parts = AMOUNT.captures(text)?;
        let (before, number, after) = (parts.get(1)?, parts.get(2)?, parts.get(3)?);
        // With a minus sign it would be another number, and with a slash or bracket a part of something else.
        let is_other = |text: &str| text.contains(['-', '\u{2212}', '/', '(', ')']);
        if is_other(before.as_str()) || is_other(after.as_str()) {
            return None;
        }
        let number = number.as_str();
        let marks: Vec<(usize, char)> = number
            .char_indices()
            .filter(|(_, c)| !c.is_ascii_digit())
            .collect();
        let (decimal, group) = match marks.as_slice() {
            [] => (None, None),
            [.., (at, last)] => {
                let behind = number.len() - at - last.len_utf8();
                let is_alone = marks.iter().filter(|(_, mark)| mark == last).count() == 1;
                let is_group = behind == 3 && marks.len() == 1 && &number[..*at] != "0";
                let is_decimal = matches!(last, '.' | ',') && is_alone && !is_group;
                let group = marks.first().map(|(_, first)| *first);
                match is_decimal {
                    true => (Some((*at, *last)), group.filter(|first| first != last)),
                    false => (None, group),
                }
            }
        };
        let (whole, fraction) = match decimal {
            Some((at, mark)) => (&number[..at], &number[at + mark.len_utf8()..]),
            None => (number, ""),
        };
        let groups: Vec<&str> =
            group.map_or_else(|| vec![whole], |mark| whole.split(mark).collect());
        let is_digits = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let are_groups = groups[0].len() <= 3 || groups.len() == 1;
        let is_valid = groups.iter().all(is_digits)
            && are_groups
            && groups[1..].iter().all(|group| group.len() == 3);
        is_valid.then(|| Amount {
            before: before.as_str().trim(),
            after: after.as_str().trim(),
            is_apart: (
                before.as_str().ends_with(char::is_whitespace),
                after.as_str().starts_with(char::is_whitespace),
            ),
            whole: groups.concat(),
            fraction: fraction.to_owned(),
            group,
            decimal: decimal.map(|(_, mark)| mark),
        })
    }

    /// The number multiplied by 10 to the power `by`, in the form for looking up places of the page.
    fn shift_decimal_point(&self, by: i32) -> String {
        let digits = format!("{}{}", self.whole, self.fraction);
        let point = self.whole.len() as i32 + by;
        let (whole, fraction) = match usize::try_from(point) {
            Ok(point) if point >= digits.len() => (
                format!("{digits}{}", "0".repeat(point - digits.len())),
                String::new(),
            ),
            Ok(point) => (digits[..point].to_owned(), digits[point..].to_owned()),
            Err(_) => (
                String::new(),
                format!("{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
            ),
        };
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        match fraction.trim_end_matches('0') {
            "" => whole.to_owned(),
            fraction => format!("{whole}.{fraction}"),
        }
    }
}

/// Finds places of the page that have the known amount in another form.
pub(crate) fn find(page: &Places<'_>, value: &str, leaks: &Leaks) -> Vec<ConvertedPlace> {
    /// The most characters of a currency code before a number, such as `CHF`. A longer word is not a currency.
    const LONGEST_CODE: usize = 4;
    let Some(wanted) = Amount::parse(value) else {
        return Vec::new();
    };
    let is_name = wanted.before.contains(char::is_alphabetic);
    if is_name && wanted.before.chars().count() > LONGEST_CODE {
        return Vec::new();
    }
    let mut found = Vec::new();
    for by in std::iter::once(0).chain(SHIFTS) {
        let places = page.find_text(&format!("\u{1}{}", wanted.shift_decimal_point(-by)));
        for &place in places.iter().take(MOST_PLACES) {
            let Some(read) = Amount::parse(&page.all[place].text) else {
                continue;
            };
            let has_unit = [read.before, read.after]
                .iter()
                .any(|text| text.contains(char::is_alphabetic));
            // `1.820 m` may mean 1.82 metres or 1820 metres.
            let is_ambiguous =
                read.group.is_some() && read.whole.len() <= 6 && read.decimal.is_none();
            let is_unlikely =
                by != 0 && (!has_unit || is_ambiguous || wanted.shift_decimal_point(0) == "0");
            if is_unlikely || leaks.occur_in(read.before) || leaks.occur_in(read.after) {
                continue;
            }
            for read in with_possible_groups(read, &wanted) {
                let ways = conversions(&read, &wanted, by).into_iter();
                found.extend(ways.map(|processors| ConvertedPlace { place, processors }));
            }
        }
    }
    found
}

/// The amount as it is written, and perhaps a variant of it. If it is below 1000 and has a fraction, its decimal mark
/// shows which mark larger amounts have between groups of digits; the variant has this mark.
fn with_possible_groups<'t>(read: Amount<'t>, wanted: &Amount<'_>) -> Vec<Amount<'t>> {
    let is_small = read.group.is_none() && read.whole.len() <= 3;
    let is_bare = wanted.before.is_empty() && wanted.after.is_empty();
    let group = match read.decimal {
        Some('.') => Some(','),
        Some(',') => Some('.'),
        _ => None,
    };
    let grouped = group.filter(|_| is_small && !is_bare).map(|_| Amount {
        group,
        ..read.clone()
    });
    std::iter::once(read).chain(grouped).collect()
}

/// The processors (extraction steps) that convert one amount to the other, in several ways.
fn conversions(read: &Amount<'_>, wanted: &Amount<'_>, by: i32) -> Vec<Vec<Value>> {
    let is_same_form = read.group == wanted.group && read.decimal == wanted.decimal;
    let has_same_affixes = wanted.before == read.before && wanted.after == read.after;
    // A bare number in the record's form needs no conversion, because the patterns for any value extract it from its
    // text.
    let is_bare = wanted.before.is_empty() && wanted.after.is_empty();
    // The record may lack the zeros of the page: `$12` for `USD 12.00`.
    let lacks_zeros = wanted.fraction.is_empty() && read.fraction.bytes().all(|b| b == b'0');
    let is_other = read.fraction != wanted.fraction && !lacks_zeros;
    if by == 0 && (is_other || is_same_form && (is_bare || has_same_affixes)) {
        return Vec::new();
    }
    let mut processors = vec![number_processor(read)];
    if let Some(mark) = read.group {
        let mark = if mark.is_whitespace() {
            r"\s".to_owned()
        } else {
            regex::escape(&mark.to_string())
        };
        processors.push(replace_processor(&mark, ""));
    }
    if read.decimal == Some(',') {
        processors.push(json!({"type": "replace", "parameters": {"find": ",", "with": "."}}));
    }
    if by == 0 && lacks_zeros && !read.fraction.is_empty() {
        processors.push(replace_processor(r"\.0+$", ""));
    }
    processors.extend(shift_processors(by));
    if wanted.decimal == Some(',') {
        processors.push(json!({"type": "replace", "parameters": {"find": ".", "with": ","}}));
    }
    let is_large = wanted.whole.len() > 3;
    // A number below 1000 does not show whether larger numbers have marks between groups of digits.
    let groups = match wanted.group {
        Some(mark) => vec![Some(mark)],
        None if is_large || is_bare => vec![None],
        None => vec![
            None,
            Some(if wanted.decimal == Some(',') {
                '.'
            } else {
                ','
            }),
        ],
    };
    let affixes = affix_processors(wanted);
    let with_groups = |mark: Option<char>| {
        let grouped = mark.map(|mark| replace_processor(&BEFORE_GROUP, &mark.to_string()));
        let processors = processors.iter().cloned().chain(grouped);
        processors.chain(affixes.clone()).collect()
    };
    groups.into_iter().map(with_groups).collect()
}

/// The processor that extracts the number from a text with the same words and signs. If its digits are grouped, exactly
/// three digits must follow a group mark, so `1.8` does not match.
fn number_processor(read: &Amount<'_>) -> Value {
    let escaped = |mark: char| match mark.is_whitespace() {
        true => r"\s".to_owned(),
        false => regex::escape(&mark.to_string()),
    };
    let whole = match read.group.map(escaped) {
        Some(group) => format!(r"\d{{1,3}}(?:{group}\d{{3}})+|\d{{1,3}}"),
        None => r"\d+".to_owned(),
    };
    let fraction = match (read.decimal.map(escaped), read.group) {
        (Some(decimal), Some(_)) => format!(r"(?:{decimal}\d{{1,2}})?"),
        (Some(decimal), None) => format!(r"(?:{decimal}\d+)?"),
        (None, _) => String::new(),
    };
    let (before, after) = (
        pattern_with_any_space(read.before),
        pattern_with_any_space(read.after),
    );
    let pattern = format!(r"^{before}\s*((?:{whole}){fraction})\s*{after}$");
    json!({"type": "regex", "parameters": {"pattern": pattern}})
}

/// The processors that write the texts around a number as the record does.
pub(crate) fn affix_processors(wanted: &Amount<'_>) -> Vec<Value> {
    let space = |is_apart| if is_apart { " " } else { "" };
    let mut processors = Vec::new();
    if !wanted.before.is_empty() {
        let text = format!("{}{}", wanted.before, space(wanted.is_apart.0));
        processors.push(json!({"type": "prefix", "parameters": {"text": text}}));
    }
    if !wanted.after.is_empty() {
        let text = format!("{}{}", space(wanted.is_apart.1), wanted.after);
        processors.push(json!({"type": "suffix", "parameters": {"text": text}}));
    }
    processors
}

/// The processors that move the decimal point.
fn shift_processors(by: i32) -> Vec<Value> {
    if by == 0 {
        return Vec::new();
    }
    let (places, zeros) = (by.unsigned_abs(), "0".repeat(by.unsigned_abs() as usize));
    let moved = match by > 0 {
        true => vec![
            replace_processor(r"^(\d+)$", "$1."),
            replace_processor("$", &zeros),
            replace_processor(&format!(r"^(\d+)\.(\d{{{places}}})(\d*)$"), "${1}${2}.${3}"),
        ],
        false => vec![
            replace_processor("^", &zeros),
            replace_processor(
                &format!(r"^(\d+)(\d{{{places}}})(?:\.(\d+))?$"),
                "${1}.${2}${3}",
            ),
        ],
    };
    let zeros = [
        replace_processor(r"^0+(?=\d)", ""),
        replace_processor(r"(\.\d*?)0+$", "$1"),
        replace_processor(r"\.$", ""),
    ];
    moved.into_iter().chain(zeros).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_moved_by_powers_of_ten() {
        let table = [
            ("1.2 kg", 3, "1200"),
            ("1,234.50", 0, "1234.5"),
            ("1200", -3, "1.2"),
            ("5", -3, "0.005"),
            ("0.05", 1, "0.5"),
            ("1'234'567", 0, "1234567"),
            ("1 234,5 m", 2, "123450"),
        ];
        for (text, by, shifted) in table {
            assert_eq!(
                Amount::parse(text).unwrap().shift_decimal_point(by),
                shifted,
                "{text}"
            );
        }
        for text in ["-5", "1-2", "12 (3)", "a", "1,23,4", "12.5 / 5"] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }
}
