//! The text before a number (signs, currencies, attached letters), and brackets around the number.

use super::marks::is_space;
use super::words::{is_currency_sign, is_currency_word};
use super::written::Brackets;

/// What the text before a number shows about the number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) negative: bool,
    /// A sign directly precedes the number or its currency.
    pub(super) has_sign: bool,
    /// A dash before the number may or may not be a minus.
    pub(super) is_undecided: bool,
    /// The number is part of a word, such as the `2` of `H2O`.
    pub(super) is_glued: bool,
    /// The word before the number is certainly a currency, not only three capital letters.
    pub(super) has_currency: bool,
}

/// Currency codes. A hyphen after one of them may be a minus (`EUR-5`); after any other word, it is part of a product
/// code.
const CODES: &[&str] = &[
    "USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "INR", "SEK", "NOK", "DKK",
    "PLN", "CZK", "HUF", "BRL", "MXN", "ZAR", "TRY", "RUB", "KRW",
];

const WORDS: &[&str] = &["kr", "Kr", "Kč", "zł", "Ft", "Rs", "TL", "Euro", "euro"];

/// Words that mean minus, in lower case.
const MINUS: &[&str] = &[
    "minus",
    "moins",
    "menos",
    "meno",
    "miinus",
    "eksi",
    "минус",
    "мінус",
    "マイナス",
    "负",
    "負",
];

fn is_hyphen(character: char) -> bool {
    matches!(character, '-' | '\u{2010}' | '\u{2011}' | '\u{2013}')
}

fn is_minus(character: char) -> bool {
    matches!(character, '\u{2212}' | '\u{207b}')
}

fn is_sign(character: char) -> bool {
    is_hyphen(character) || is_minus(character) || matches!(character, '+' | '±' | '\u{2014}')
}

impl Prefix {
    /// Reads the text before a number.
    pub(super) fn parse(text: &[char]) -> Prefix {
        let (rest, has_currency) = strip_currency(text);
        let currency: String = text[rest.len()..].iter().collect();
        let currency = currency.trim_end();
        let is_sign = !currency.is_empty() && currency.chars().all(is_currency_sign);
        let is_known = is_known_currency(currency);
        Prefix {
            has_currency: is_sign || is_known,
            ..Prefix::parse_at(rest, has_currency)
        }
    }

    fn parse_at(rest: &[char], has_currency: bool) -> Prefix {
        if let Some((sign, before)) = rest.split_last()
            && is_sign(*sign)
        {
            return Prefix::from_adjacent_sign(*sign, before);
        }
        if let [before @ .., sign, space] = rest
            && is_space(*space)
            && is_sign(*sign)
        {
            return Prefix::from_distant_sign(*sign, before);
        }
        if let Some(before) = strip_minus_word(rest) {
            let plus: String = word_before(before).iter().collect();
            return Prefix {
                negative: true,
                has_sign: true,
                is_undecided: before.last() == Some(&'/') || plus.to_lowercase() == "plus",
                ..Prefix::default()
            };
        }
        Prefix {
            is_glued: !has_currency
                && rest
                    .last()
                    .is_some_and(|last| last.is_alphanumeric() || *last == '_'),
            ..Prefix::default()
        }
    }

    /// The result if the sign directly precedes the number or its currency: `-5`, `-€5`.
    fn from_adjacent_sign(sign: char, before: &[char]) -> Prefix {
        let word: String = word_before(before).iter().collect();
        if CODES.contains(&word.as_str()) && sign != '+' {
            return Prefix {
                is_undecided: true,
                ..Prefix::default()
            };
        }
        let begins = before.last().is_none_or(|last| {
            is_space(*last) || is_currency_sign(*last) || "([{\"'“„«:=|<>~≈/;,".contains(*last)
        });
        if !begins {
            return Prefix {
                is_glued: before.last().is_some_and(|last| last.is_alphanumeric()),
                is_undecided: sign == '±' || before.last().is_some_and(|last| is_sign(*last)),
                ..Prefix::default()
            };
        }
        Prefix {
            negative: is_hyphen(sign) || is_minus(sign),
            has_sign: true,
            is_undecided: matches!(sign, '±' | '\u{2014}'),
            ..Prefix::default()
        }
    }

    /// The result if a space follows the sign: `- 5`. At the beginning of the text, such a dash may be a bullet.
    fn from_distant_sign(sign: char, before: &[char]) -> Prefix {
        let begins = before.iter().all(|c| is_space(*c));
        Prefix {
            negative: is_minus(sign),
            is_undecided: sign == '±' || (begins && sign != '+' && !is_minus(sign)),
            ..Prefix::default()
        }
    }
}

/// The text before a word that means minus, if such a word directly precedes the number; otherwise `None`.
fn strip_minus_word(text: &[char]) -> Option<&[char]> {
    let near = match text {
        [rest @ .., space] if is_space(*space) => rest,
        _ => text,
    };
    let word: String = word_before(near).iter().collect();
    let lower = word.to_lowercase();
    let is_apart = near.len() < text.len() || !lower.is_ascii();
    let known = MINUS.iter().find(|known| lower == **known)?;
    let before = &near[..near.len() - known.chars().count()];
    let before = match before {
        [rest @ .., space] if is_space(*space) => rest,
        _ => before,
    };
    is_apart.then_some(before)
}

/// Whether a word is certainly a currency, not only three capital letters.
pub(super) fn is_known_currency(word: &str) -> bool {
    [CODES, WORDS].iter().any(|list| list.contains(&word))
}

/// Whether a text begins with a currency: a sign or a known code or word.
pub fn begins_with_currency(text: &str) -> bool {
    let word = text.split(|c: char| !c.is_alphabetic()).next();
    text.starts_with(is_currency_sign) || word.is_some_and(is_known_currency)
}

/// Whether a text ends with a currency: a sign or a known code or word.
pub fn ends_with_currency(text: &str) -> bool {
    let word = text.rsplit(|c: char| !c.is_alphabetic()).next();
    text.ends_with(is_currency_sign) || word.is_some_and(is_known_currency)
}

/// Splits off the currency that directly precedes a number. Returns the text before the currency, and whether there was
/// one.
fn strip_currency(text: &[char]) -> (&[char], bool) {
    let near = match text {
        [rest @ .., space] if is_space(*space) => rest,
        _ => text,
    };
    let signs = near
        .iter()
        .rev()
        .take_while(|c| is_currency_sign(**c))
        .count();
    if signs > 0 {
        return (&near[..near.len() - signs], true);
    }
    let word = word_before(near);
    let is_word = !word.is_empty() && is_currency_word(&word.iter().collect::<String>());
    match is_word {
        true => (&near[..near.len() - word.len()], true),
        false => (text, false),
    }
}

/// The letters at the end of a text, at most twelve.
pub(super) fn word_before(text: &[char]) -> &[char] {
    let letters = text.iter().rev().take(12).take_while(|c| c.is_alphabetic());
    &text[text.len() - letters.count()..]
}

/// Whether the currency beside a number belongs to countries that write a decimal point, or no fractions at all: `£`,
/// `¥`.
pub(super) fn has_point_currency(before: &[char], after: &[char]) -> bool {
    let is_near = |c: &&char| !is_space(**c);
    let sign = |c: Option<&char>| c.is_some_and(|c| "£¥₹₩円원元".contains(*c));
    let behind: Vec<char> = after.iter().filter(is_near).take(4).copied().collect();
    let spaces = before.iter().rev().take_while(|c| is_space(**c)).count();
    let before = &before[..before.len() - spaces.min(1)];
    let is_code = |word: &[char]| {
        let word: String = word.iter().collect();
        ["GBP", "JPY", "KRW", "INR", "CNY", "Rs"].contains(&word.as_str())
    };
    let code_behind = &behind[..behind.len().min(3)];
    let ends = behind.get(3).is_none_or(|c| !c.is_alphanumeric());
    sign(before.last())
        || sign(behind.first())
        || is_code(word_before(before))
        || (ends && is_code(code_behind))
}

/// The kind of brackets around the number, if they enclose the whole text.
pub(super) fn brackets_around(before: &[char], after: &[char]) -> Brackets {
    const NEAR: usize = 12;
    if before.len() > NEAR || after.len() > NEAR {
        return Brackets::None;
    }
    let rest = |side: &[char], bracket: char| {
        let seen: String = side.iter().filter(|c| !is_space(**c)).collect();
        let once = seen.matches(bracket).count() == 1;
        once.then(|| seen.replace(bracket, ""))
    };
    let (Some(before), Some(after)) = (rest(before, '('), rest(after, ')')) else {
        return Brackets::None;
    };
    // Whether a text is a currency, such as `US$` or `€`.
    let is_money = |text: &str| {
        let letters = text.trim_end_matches(is_currency_sign);
        let has_sign = letters.len() < text.len() && letters.len() <= 3;
        (has_sign && letters.bytes().all(|byte| byte.is_ascii_uppercase()))
            || is_currency_word(text)
    };
    match (before.as_str(), after.as_str()) {
        ("", "" | "%") => Brackets::Bare,
        (before, "") if is_money(before) => Brackets::OfMoney,
        ("", after) if is_money(after) => Brackets::OfMoney,
        _ => Brackets::None,
    }
}
