//! Recognises digits that are no number of their own. They are part of a time of day, a coordinate, an internet
//! address, a telephone number, a version and so on.

use super::marks::{DigitRun, is_space};
use super::notation::NumberNotation;
use super::signs::word_before;
use super::words::{Word, is_currency_sign, word_after};
use super::written::is_digit;

/// Whether the number is a time of day: `10.30 Uhr`, `5 pm`, `9 a.m.`, but not `5 am Lager`.
pub(super) fn is_time(behind: &[char]) -> bool {
    let behind = match behind {
        [space, rest @ ..] if is_space(*space) => rest,
        _ => behind,
    };
    let seen: String = behind.iter().take(8).collect();
    let seen = seen.to_lowercase();
    let rest = |word: &str| {
        seen.strip_prefix(word)
            .filter(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let is_last = |rest: &str| !rest.trim_start().starts_with(char::is_alphanumeric);
    ["uhr", "a.m", "p.m", "o'clock", "o’clock"]
        .iter()
        .any(|word| rest(word).is_some())
        || ["am", "pm"]
            .iter()
            .any(|word| rest(word).is_some_and(is_last))
}

/// Whether the number is a coordinate such as `33.87° S`, whose letter may change its sign.
pub(super) fn is_coordinate(behind: &[char]) -> bool {
    let seen: Vec<char> = behind
        .iter()
        .filter(|c| !is_space(**c))
        .take(3)
        .copied()
        .collect();
    match seen[..] {
        ['°', 'S' | 'W' | 'O', ref rest @ ..] => rest.first().is_none_or(|c| !c.is_alphanumeric()),
        _ => false,
    }
}

/// Whether the number is a group of an internet or hardware address, such as `2001:db8::1` or `00:1b:44`: a colon
/// directly follows it, and then a hexadecimal number.
pub(super) fn is_group_of_address(behind: &[char]) -> bool {
    let [':', rest @ ..] = behind else {
        return false;
    };
    let digits = rest.iter().take_while(|c| c.is_ascii_hexdigit()).count();
    rest.first() == Some(&':')
        || ((1..=4).contains(&digits) && rest.get(digits).is_none_or(|c| !c.is_alphanumeric()))
}

/// Whether the digits are an IPv4 address such as `192.168.100.200`, whose dots could be group marks.
pub(super) fn is_address(runs: &[DigitRun], set: &NumberNotation) -> bool {
    let is_octet =
        |digits: &str| digits.parse::<u8>().is_ok() && (digits == "0" || !digits.starts_with('0'));
    let is_set = set.group.as_ref().is_some_and(|group| group.contains(&'.'));
    runs.len() == 4
        && !is_set
        && runs[1..].iter().all(|run| run.mark == Some('.'))
        && runs.iter().all(|run| is_octet(&run.digits))
}

/// Whether digits after a plus sign are a telephone number: `+493012345678`, `+34 612 345 678`. Ten or more digits are.
pub(super) fn is_international_telephone_number(runs: &[DigitRun]) -> bool {
    let digits: usize = runs.iter().map(|run| run.digits.len()).sum();
    let is_spaced = |run: &DigitRun| run.mark.is_some_and(is_space);
    digits >= 10 && runs.iter().skip(1).all(is_spaced)
}

/// Whether the word before the digits makes them a version (`v1.10`, `Version 1.10`), which is not a decimal number.
pub(super) fn is_version(before: &[char]) -> bool {
    const WORDS: &[&str] = &[
        "v", "ver", "version", "versión", "versione", "versie", "versão", "wersja", "release",
        "firmware",
    ];
    let spaces = |c: &&char| is_space(**c) || matches!(c, '.' | ':');
    let behind = before.iter().rev().take_while(spaces).count();
    let word: String = word_before(&before[..before.len() - behind])
        .iter()
        .collect();
    WORDS.contains(&word.to_lowercase().as_str())
}

/// Whether the zero that ends here begins a hexadecimal number: `0x1F`.
pub(super) fn is_hexadecimal(text: &[char], end: usize) -> bool {
    let is_zero = end > 0 && text[end - 1] == '0' && (end < 2 || !text[end - 2].is_alphanumeric());
    let is_digit = |c: &char| c.is_ascii_hexdigit();
    is_zero && text.get(end) == Some(&'x') && text.get(end + 1).is_some_and(is_digit)
}

/// Whether two digits follow the currency sign, as in `19 € 95`. They may be the cents or another number.
pub(super) fn is_split_price(text: &[char], end: usize) -> bool {
    let [first, sign, second, cents @ ..] = &text[end..] else {
        return false;
    };
    let digits = cents.iter().take_while(|c| c.is_ascii_digit()).count();
    is_space(*first) && is_currency_sign(*sign) && is_space(*second) && digits == 2
}

pub(super) fn is_dash(character: char) -> bool {
    matches!(
        character,
        '-' | '\u{2010}'
            | '\u{2011}'
            | '\u{2012}'
            | '\u{2013}'
            | '\u{2014}'
            | '\u{2212}'
            | '~'
            | '\u{301c}'
    )
}

/// Whether the number begins a date (`2024-03-01`), or a range whose unit applies to both ends (`10-20 million`).
pub(super) fn begins_date_or_range(text: &[char], end: usize) -> bool {
    let Some(second) = second_number_start(text, end) else {
        return false;
    };
    let is_part = |c: &&char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let length = text[second..].iter().take_while(is_part).count();
    let behind = &text[second + length..];
    let goes_on = matches!(behind, [dash, digit, ..] if is_dash(*dash) && digit.is_ascii_digit());
    goes_on || word_after(behind) != Word::Other
}

fn second_number_start(text: &[char], end: usize) -> Option<usize> {
    let skip_space = |at: usize| at + usize::from(text.get(at).copied().is_some_and(is_space));
    let at = skip_space(end);
    let word: String = text
        .get(at..)?
        .iter()
        .take(4)
        .take_while(|c| c.is_alphabetic())
        .collect();
    let joiner = match word.as_str() {
        "" if text.get(at).copied().is_some_and(is_dash) => 1,
        "to" | "bis" | "or" | "and" | "tot" | "do" | "à" | "a" => word.chars().count(),
        _ => return None,
    };
    let second = skip_space(at + joiner);
    is_digit(text, second).then_some(second)
}
