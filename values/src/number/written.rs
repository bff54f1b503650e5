//! Finds the first number of a text: its digits with the marks between them, and what around it changes its value.

use super::NumberNotation;
use super::marks::{DigitRun, is_fixed_space, is_mark, is_only_decimal, is_space};
use super::signs::{Before, brackets, has_point_currency};
use super::words::{
    Word, decimal_fraction, digit_value, is_currency_sign, raised_digit, vulgar_fraction,
    word_after,
};
use crate::blanks::is_invisible;
use crate::decimal::Decimal;

/// A number as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) runs: Vec<DigitRun>,
    pub(super) negative: bool,
    pub(super) brackets: Brackets,
    /// The power of ten by which it is multiplied.
    pub(super) power: i64,
    /// The digits of a fraction beside the whole part, such as `5` of 1½.
    fraction: Option<String>,
    /// It can be read in two ways, or is part of something else: a date, a time, a code.
    pub(super) is_undecided: bool,
    /// A currency stands in front of it, so that all digits with spaces between them are one number.
    has_currency_before: bool,
    /// The currency beside it is one of countries where commas stand between groups only.
    is_in_comma_groups: bool,
}

/// Brackets around a number that is all of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    None,
    Bare,
    /// With a currency: an accountant's minus.
    OfMoney,
}

/// A number that is read, perhaps as part of a word.
struct Found {
    written: Written,
    is_glued: bool,
    digits_end: usize,
}

impl Written {
    /// The first number that is no part of a word; else the first one.
    pub(super) fn first_in(text: &str, set: &NumberNotation) -> Option<Written> {
        let text = in_ascii(text);
        let mut glued = None;
        let mut at = 0;
        while let Some(start) = next_start(&text, at) {
            let found = Found::at(&text, start, set);
            if !found.is_glued {
                return Some(found.written);
            }
            // Behind its digits; those behind a space may be another number.
            at = match found.written.has_spaces() {
                true => start + digits(&text, start).len().max(1),
                false => found.digits_end.max(start + 1),
            };
            glued.get_or_insert(found.written);
        }
        glued
    }

    pub(super) fn has_spaces(&self) -> bool {
        self.runs.iter().any(|run| run.mark.is_some_and(is_space))
    }

    /// Whether the space in it may as well stand between two numbers.
    pub(super) fn may_end_at_space(&self) -> bool {
        let [_, last] = &self.runs[..] else {
            return false;
        };
        !self.has_currency_before
            && last
                .mark
                .is_some_and(|mark| is_space(mark) && !is_fixed_space(mark))
    }

    /// The decimal mark, if the currency decides it: `£1,299`, but not `£1.299`, which may be written elsewhere.
    pub(super) fn decimal_of_currency(&self) -> Option<char> {
        let has_comma = self.runs.iter().any(|run| run.mark == Some(','));
        (self.is_in_comma_groups && has_comma).then_some('.')
    }

    pub(super) fn number(&self, negative: bool, whole: &str, fraction: &str) -> Option<Decimal> {
        let fraction = match &self.fraction {
            Some(_) if !fraction.is_empty() => return None,
            Some(digits) => digits,
            None => fraction,
        };
        Decimal::new(negative, whole, fraction, self.power)
    }
}

/// The text with digits of all scripts and full-width signs in ASCII, and without invisible marks.
fn in_ascii(text: &str) -> Vec<char> {
    let seen = text.chars().filter(|c| !is_invisible(*c));
    seen.map(|c| match c {
        '\u{60c}' => ',',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        _ => digit_value(c)
            .and_then(|digit| char::from_digit(digit, 10))
            .unwrap_or(c),
    })
    .collect()
}

fn next_start(text: &[char], from: usize) -> Option<usize> {
    let is_start = |c: &char| c.is_ascii_digit() || vulgar_fraction(*c).is_some();
    text.get(from..)?
        .iter()
        .position(is_start)
        .map(|at| from + at)
}

fn digits(text: &[char], at: usize) -> String {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().take_while(|c| c.is_ascii_digit()).collect()
}

fn is_digit(text: &[char], at: usize) -> bool {
    text.get(at).is_some_and(char::is_ascii_digit)
}

impl Found {
    fn at(text: &[char], start: usize, set: &NumberNotation) -> Found {
        let begins_with_mark = start
            .checked_sub(1)
            .filter(|mark| is_leading_mark(text, *mark, set));
        let begin = begins_with_mark.unwrap_or(start);
        let (runs, digits_end) = match begins_with_mark {
            Some(mark) => {
                let run = DigitRun {
                    mark: Some(text[mark]),
                    digits: digits(text, start),
                };
                let end = start + run.digits.len();
                (vec![empty_run(), run], end)
            }
            None => digit_runs(text, start, set),
        };
        let before = Before::of(&text[..begin]);
        let mut written = Written {
            runs,
            negative: before.negative,
            brackets: Brackets::None,
            power: 0,
            fraction: None,
            is_undecided: before.is_undecided,
            has_currency_before: before.has_currency,
            is_in_comma_groups: has_point_currency(&text[..begin], &text[digits_end..]),
        };
        let end = written.read_behind(text, digits_end);
        written.brackets = brackets(&text[..begin], &text[end..]);
        Found {
            written,
            is_glued: before.is_glued,
            digits_end,
        }
    }
}

fn empty_run() -> DigitRun {
    DigitRun {
        mark: None,
        digits: String::new(),
    }
}

/// Whether a mark begins a number, as in `.75`.
fn is_leading_mark(text: &[char], mark: usize, set: &NumberNotation) -> bool {
    let is_decimal = matches!(text[mark], '.' | ',' | '\u{66b}') || set.decimal == Some(text[mark]);
    let begins = mark.checked_sub(1).is_none_or(|before| {
        let before = text[before];
        !before.is_alphanumeric() && !is_mark(before, set) && before != ')'
    });
    is_decimal && begins && is_digit(text, mark + 1)
}

/// The digits from `start` on, with the marks between them, and where they end.
fn digit_runs(text: &[char], start: usize, set: &NumberNotation) -> (Vec<DigitRun>, usize) {
    let first = digits(text, start);
    let mut end = start + first.len();
    let mut runs = vec![DigitRun {
        mark: None,
        digits: first,
    }];
    while let Some(&mark) = text.get(end).filter(|_| is_digit(text, end + 1)) {
        let next = digits(text, end + 1);
        let joins = match mark {
            _ if is_space(mark) => continues_at_space(&runs, &next),
            _ if is_currency_sign(mark) => next.len() == 2,
            // A point in the middle multiplies a number that has a fraction already.
            _ if is_only_decimal(mark) => runs.len() == 1,
            _ => is_mark(mark, set),
        };
        if !joins || runs[0].digits.is_empty() {
            break;
        }
        end += 1 + next.len();
        runs.push(DigitRun {
            mark: Some(mark),
            digits: next,
        });
        if is_currency_sign(mark) {
            break;
        }
    }
    (runs, end)
}

/// A space is part of a number only between groups of three digits.
fn continues_at_space(runs: &[DigitRun], next: &str) -> bool {
    let are_spaced = runs[1..].iter().all(|run| run.mark.is_some_and(is_space));
    let first = &runs[0].digits;
    are_spaced && next.len() == 3 && first.len() <= 3 && !first.starts_with('0')
}

impl Written {
    /// Reads what stands behind the digits; returns where the rest of the text begins.
    fn read_behind(&mut self, text: &[char], end: usize) -> usize {
        let end = self.read_dash_for_fraction(text, end);
        let mut end = self.read_fraction(text, end);
        if let Some((power, behind)) = exponent(text, end).or_else(|| power_of_ten(text, end)) {
            self.power = power;
            end = behind;
        } else {
            match word_after(&text[end..]) {
                Word::Power(power) => self.power = power,
                Word::Doubtful => self.is_undecided = true,
                Word::Other => {}
            }
        }
        self.is_undecided |= self.is_part_of_more(text, end);
        end
    }

    /// `1.299,–`: the mark before the dash is that of fractions.
    fn read_dash_for_fraction(&mut self, text: &[char], end: usize) -> usize {
        let mark = text.get(end).copied().unwrap_or(' ');
        let last = self.runs.last().and_then(|run| run.mark);
        let dash = text.get(end + 1).copied().is_some_and(is_dash);
        let is_it = dash && matches!(mark, '.' | ',') && !is_digit(text, end + 2);
        if !is_it || last.is_none_or(|last| last == mark) {
            return end;
        }
        self.runs.push(DigitRun {
            mark: Some(mark),
            digits: String::new(),
        });
        let behind = &text[end + 1..];
        end + 1 + behind.iter().take_while(|c| is_dash(**c)).count()
    }

    /// `½`, ` 1/2`, `⁄2`.
    fn read_fraction(&mut self, text: &[char], end: usize) -> usize {
        let is_whole = self.runs.len() == 1;
        let space = usize::from(text.get(end).copied().is_some_and(is_space));
        let vulgar = text.get(end + space).copied().and_then(vulgar_fraction);
        if let Some((numerator, denominator)) = vulgar.filter(|_| is_whole) {
            self.add_fraction(decimal_fraction(numerator, denominator));
            return end + space + 1;
        }
        if is_whole && space == 1 && is_digit(text, end + 1) {
            let numerator = digits(text, end + 1);
            let slash = end + 1 + numerator.len();
            let denominator = digits(text, slash + 1);
            let behind = slash + 1 + denominator.len();
            let is_one = matches!(text.get(slash), Some('/' | '\u{2044}'))
                && numerator.len() <= 2
                && (1..=3).contains(&denominator.len())
                && text.get(behind) != Some(&'/');
            if is_one {
                let parts = (numerator.parse(), denominator.parse());
                let fraction = match parts {
                    (Ok(numerator), Ok(denominator)) => decimal_fraction(numerator, denominator),
                    _ => None,
                };
                self.add_fraction(fraction);
                return behind;
            }
        }
        if is_whole && text.get(end) == Some(&'\u{2044}') && is_digit(text, end + 1) {
            let denominator = digits(text, end + 1);
            let parts = (self.runs[0].digits.parse(), denominator.parse());
            self.runs[0].digits.clear();
            self.add_fraction(match parts {
                (Ok(numerator), Ok(denominator)) => decimal_fraction(numerator, denominator),
                _ => None,
            });
            return end + 1 + denominator.len();
        }
        end
    }

    /// A fraction that has no end as a decimal number is none.
    fn add_fraction(&mut self, digits: Option<String>) {
        if self.runs[0].digits.is_empty() {
            self.runs[0].digits.push('0');
        }
        self.is_undecided |= digits.is_none();
        self.fraction = digits;
    }

    /// Whether what follows makes the number a part of a date, a time, a code, a fraction or a range of millions.
    fn is_part_of_more(&self, text: &[char], end: usize) -> bool {
        let next = text.get(end).copied().unwrap_or(' ');
        let is_last = text
            .get(end + 1..)
            .is_none_or(|rest| rest.iter().all(|c| is_space(*c)));
        let is_whole = self.runs.len() == 1;
        let leads_with_zero =
            is_whole && self.runs[0].digits.len() > 1 && self.runs[0].digits.starts_with('0');
        if raised_digit(next).is_some() && is_whole_word(text, end) {
            return true;
        }
        if is_hexadecimal(text, end) || is_split_price(text, end) {
            return true;
        }
        if is_digit(text, end + 1) {
            let is_power = next == '^';
            let is_code = leads_with_zero && (is_dash(next) || next == '/' || is_space(next));
            let is_fraction = next == '/' && is_whole && self.fraction.is_none();
            if next == ':' || is_power || is_code || is_fraction {
                return true;
            }
        }
        if is_dash(next) && is_last && text.len() > end {
            return true;
        }
        self.power == 0 && is_range_of_more(text, end)
    }
}

/// `0x1F`.
fn is_hexadecimal(text: &[char], end: usize) -> bool {
    let is_zero = end > 0 && text[end - 1] == '0' && (end < 2 || !text[end - 2].is_alphanumeric());
    let is_digit = |c: &char| c.is_ascii_hexdigit();
    is_zero && text.get(end) == Some(&'x') && text.get(end + 1).is_some_and(is_digit)
}

/// `19 € 95`: the cents, or another number.
fn is_split_price(text: &[char], end: usize) -> bool {
    let [first, sign, second, cents @ ..] = &text[end..] else {
        return false;
    };
    let digits = cents.iter().take_while(|c| c.is_ascii_digit()).count();
    is_space(*first) && is_currency_sign(*sign) && is_space(*second) && digits == 2
}

/// A raised digit directly behind a number is an exponent, or the number of a note.
fn is_whole_word(text: &[char], end: usize) -> bool {
    end > 0 && text[end - 1].is_ascii_digit()
}

fn is_dash(character: char) -> bool {
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

/// `2024-03-01` is no range but a date; and in `10-20 million` the word is for both numbers.
fn is_range_of_more(text: &[char], end: usize) -> bool {
    let Some(second) = second_of_range(text, end) else {
        return false;
    };
    let is_part = |c: &&char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let length = text[second..].iter().take_while(is_part).count();
    let behind = &text[second + length..];
    let goes_on = matches!(behind, [dash, digit, ..] if is_dash(*dash) && digit.is_ascii_digit());
    goes_on || word_after(behind) != Word::Other
}

fn second_of_range(text: &[char], end: usize) -> Option<usize> {
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

/// `e3`, `E-7`: the power, and where the text goes on.
fn exponent(text: &[char], end: usize) -> Option<(i64, usize)> {
    matches!(text.get(end)?, 'e' | 'E').then_some(())?;
    let sign = text.get(end + 1).copied();
    let signed = usize::from(matches!(sign, Some('+' | '-' | '\u{2212}')));
    let power = digits(text, end + 1 + signed);
    let behind = end + 1 + signed + power.len();
    let ends = text.get(behind).is_none_or(|c| !c.is_alphanumeric());
    let power: i64 = power.parse().ok().filter(|_| ends)?;
    let is_negative = signed == 1 && sign != Some('+');
    Some((if is_negative { -power } else { power }, behind))
}

/// `× 10^6`, `x10⁻³`.
fn power_of_ten(text: &[char], end: usize) -> Option<(i64, usize)> {
    let skip_space = |at: usize| at + usize::from(text.get(at).copied().is_some_and(is_space));
    let times = skip_space(end);
    matches!(
        text.get(times)?,
        '×' | 'x' | 'X' | '*' | '\u{b7}' | '\u{22c5}'
    )
    .then_some(())?;
    let ten = skip_space(times + 1);
    (digits(text, ten) == "10").then_some(())?;
    let at = ten + 2;
    if text.get(at) == Some(&'^') {
        let is_negative = matches!(text.get(at + 1), Some('-' | '\u{2212}'));
        let from = at + 1 + usize::from(is_negative);
        let power = digits(text, from);
        let number: i64 = power.parse().ok()?;
        return Some((
            if is_negative { -number } else { number },
            from + power.len(),
        ));
    }
    let is_negative = text.get(at) == Some(&'\u{207b}');
    let from = at + usize::from(is_negative);
    let raised = text.get(from..)?.iter().map_while(|c| raised_digit(*c));
    let values: Vec<u32> = raised.take(4).collect();
    (!values.is_empty()).then_some(())?;
    let number = values
        .iter()
        .fold(0, |sum, digit| sum * 10 + i64::from(*digit));
    Some((
        if is_negative { -number } else { number },
        from + values.len(),
    ))
}
