//! Rivals of the first number of a text: other numbers that could be meant instead, as in `1h 30min` or `+49 30
//! 123456`. A number that only describes the first one is no rival: its maximum, the amount that a price is for, a note
//! in brackets.

use super::marks::is_space;
use super::signs::{is_known_currency, word_before};
use super::words::is_currency_sign;
use super::written::LocatedNumber;

/// Words between a number and the number it refers to: `4.7 out of 5`, `12 € je 100 g`.
const OF: &[&str] = &[
    "of", "von", "sur", "de", "su", "van", "z", "av", "af", "per", "pro", "par", "por", "je",
    "ogni", "cada", "pr", "из", "за",
];

/// Words before an amount that a price includes or excludes: `12,50 € inkl. 19 % MwSt.`
const INCLUDED: &[&str] = &[
    "inkl",
    "incl",
    "inc",
    "including",
    "inclusive",
    "inklusive",
    "einschließlich",
    "zzgl",
    "zuzüglich",
    "excl",
    "exkl",
    "excluding",
    "exclusive",
    "exklusive",
    "plus",
    "dont",
    "incluye",
    "incluido",
    "inclusief",
    "exclusief",
];

/// Searches the text after the first number for numbers that could be meant instead.
pub(super) struct Rivals<'t> {
    text: &'t [char],
    /// The end of the last number that was compared, as an index in `text`.
    end: usize,
    /// How many brackets that were opened after the first number are still open.
    depth: usize,
    first: First,
}

/// The properties of the first number that others are compared to.
struct First {
    is_money: bool,
    is_whole: bool,
    unit: String,
}

impl<'t> Rivals<'t> {
    pub(super) fn new(text: &'t [char], first: &LocatedNumber) -> Rivals<'t> {
        let behind = &text[first.end..];
        let unit = unit_after(behind);
        let is_money = first.has_currency_before()
            || unit.starts_with(is_currency_sign)
            || is_known_currency(&unit);
        Rivals {
            text,
            end: first.end,
            depth: 0,
            first: First {
                is_money,
                is_whole: first.is_whole(),
                unit,
            },
        }
    }

    /// Whether more digits follow in the word of the first number, as in `1h30` and `10x20`. The 2 and 3 of units such
    /// as `m2` do not count.
    pub(super) fn is_glued_to_digits(&self) -> bool {
        let behind = &self.text[self.end..];
        let word: String = behind.iter().take_while(|c| c.is_alphanumeric()).collect();
        let unit = word.strip_suffix(['2', '3']).unwrap_or(&word);
        let is_area = matches!(
            unit,
            "mm" | "cm" | "dm" | "m" | "km" | "in" | "ft" | "yd" | "mi"
        );
        !is_area && word.contains(|c: char| c.is_ascii_digit())
    }

    /// Whether the next number could be meant instead of the first.
    pub(super) fn next_is_rival(&mut self, other: &LocatedNumber) -> bool {
        let between = &self.text[self.end..other.begin];
        for character in between {
            match character {
                '(' | '[' => self.depth += 1,
                ')' | ']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.end = other.end;
        if self.depth > 0 || between.last() == Some(&'^') {
            return false;
        }
        let is_apart = between.iter().any(|c| c.is_alphanumeric() || is_space(*c));
        if is_apart && self.is_in_word(other) {
            // A number in a word is a rival only after a multiplication sign, as in `10 x20`.
            return matches!(between, [.., space, 'x' | 'X'] if is_space(*space));
        }
        !(ends_with_reference_word(between)
            || mentions_included_amount(between)
            || self.is_reference_amount(between, other))
    }

    /// Whether the number is part of a word, as in `DDR4`. After a currency, as in `EUR4`, it is not.
    fn is_in_word(&self, other: &LocatedNumber) -> bool {
        let is_behind_letter = self.text[..other.begin]
            .last()
            .is_some_and(|c| c.is_alphabetic());
        other.is_glued || (is_behind_letter && !other.has_currency_before())
    }

    /// Whether the number after a slash only describes the first one: the amount that a price is for (`5 €/100 g`), or
    /// the best mark (`4.5/5`).
    fn is_reference_amount(&self, between: &[char], other: &LocatedNumber) -> bool {
        let plain: String = between.iter().filter(|c| !is_space(**c)).collect();
        if !plain.ends_with('/') || other.has_sign || !other.is_whole() {
            return false;
        }
        let unit = unit_after(&self.text[other.end..]);
        if unit.starts_with(is_currency_sign) {
            return false;
        }
        let is_round = other
            .digits()
            .all(|digits| matches!(digits, "1" | "100" | "1000"));
        let is_per_round = is_round && plain.len() > 1 && unit != self.first.unit;
        self.first.is_money || is_per_round || (!self.first.is_whole && plain == "/")
    }
}

/// Whether the text between two numbers ends in one of the words in [`OF`]: the `out of` in `4.7 out of 5`, the `je` in
/// `12 € je 100 g`.
fn ends_with_reference_word(between: &[char]) -> bool {
    let spaces = |c: &&char| is_space(**c) || is_currency_sign(**c) || **c == '.';
    let behind = between.iter().rev().take_while(spaces).count();
    let word: String = word_before(&between[..between.len() - behind])
        .iter()
        .collect();
    OF.contains(&word.to_lowercase().as_str())
}

/// Whether the text between two numbers ends in a clause such as `inkl.`, which says that a price includes or excludes
/// the second number.
fn mentions_included_amount(between: &[char]) -> bool {
    let is_end = |c: &char| matches!(c, ',' | ';' | '\n' | '|');
    let clause = between.rsplit(is_end).next().unwrap_or_default();
    let mut words = clause.split(|c| !c.is_alphabetic());
    words.any(|word| {
        let word: String = word.iter().collect();
        INCLUDED.contains(&word.to_lowercase().as_str())
    })
}

/// The first word or sign after a number.
fn unit_after(behind: &[char]) -> String {
    let behind = match behind {
        [space, rest @ ..] if is_space(*space) => rest,
        _ => behind,
    };
    match behind.first() {
        Some(sign) if !sign.is_alphanumeric() && !is_space(*sign) => sign.to_string(),
        _ => behind.iter().take_while(|c| c.is_alphabetic()).collect(),
    }
}
