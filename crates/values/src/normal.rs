//! The normal form of a text, and whether two texts or values are spellings of one value.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::blanks::{collapse_white_space, is_invisible, is_tag};
use crate::decimal::Decimal;
use crate::telephone::is_equivalent_telephone;

/// The text as a reader sees it: composed letters, one width, single spaces, nothing invisible. Letter case, quotation
/// marks and dashes are kept. So are superscript and subscript digits, because `5²` is not `52`.
pub fn normal_form(text: &str) -> String {
    if text.is_ascii() {
        return collapse_white_space(text);
    }
    let seen: String = text
        .chars()
        .filter(|c| !is_invisible(*c) || is_tag(*c))
        .collect();
    let mut normal = String::with_capacity(seen.len());
    for part in seen.split_inclusive(is_raised_or_lowered) {
        let plain = part.trim_end_matches(is_raised_or_lowered);
        normal.extend(plain.nfkc());
        normal.push_str(&part[plain.len()..]);
    }
    collapse_white_space(&normal)
}

fn is_raised_or_lowered(character: char) -> bool {
    matches!(character, '²' | '³' | '¹' | '\u{2070}'..='\u{209c}')
}

/// The normal form in lower case, with one kind of quotation mark and one kind of dash. Two texts with the same folded
/// form are spellings of one value.
pub fn folded_form(text: &str) -> String {
    let normal = normal_form(text);
    if normal.is_ascii() {
        return normal.to_ascii_lowercase();
    }
    normal.to_lowercase().chars().map(fold_character).collect()
}

fn fold_character(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2b9}' | '\u{2bb}' | '\u{2bc}' | '\u{b4}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        'ς' => 'σ',
        other => other,
    }
}

/// Whether two texts are spellings of one value: their folded forms are equal, or they are the same telephone number.
pub fn is_equivalent_text(one: &str, other: &str) -> bool {
    one == other || folded_form(one) == folded_form(other) || is_equivalent_telephone(one, other)
}

/// Whether two values are spellings of one value. Numbers are compared exactly: 5 equals 5.00, and the text `5.00` if
/// it is written as a plain number. Two texts are compared as texts, because the version `1.10` is not `1.1`. Lists
/// are compared entry by entry, objects member by member.
pub fn is_equivalent_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => is_equivalent_text(one, other),
        (Value::Number(one), Value::Number(other)) => {
            one == other || Decimal::from_number(one) == Decimal::from_number(other)
        }
        (Value::Number(number), Value::String(text))
        | (Value::String(text), Value::Number(number)) => {
            let written = Decimal::from_plain_text(&normal_form(text));
            written.is_some() && written == Decimal::from_number(number)
        }
        (Value::Array(one), Value::Array(other)) => {
            let pairs = || one.iter().zip(other);
            one.len() == other.len() && pairs().all(|(one, other)| is_equivalent_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_same = |(name, value): (&String, &Value)| {
                other
                    .get(name)
                    .is_some_and(|other| is_equivalent_value(value, other))
            };
            one.len() == other.len() && one.iter().all(is_same)
        }
        _ => one == other,
    }
}
