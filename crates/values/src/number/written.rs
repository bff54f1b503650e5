//! Finds the number of a text: its digits with the marks between them, and everything around it that changes its
//! value.

use super::marks::{DigitRun, is_fixed_space, is_number_mark, is_only_decimal, is_space};
use super::notation::NumberNotation;
use super::parts::{self, is_dash};
use super::rivals::Rivals;
use super::signs::{Prefix, brackets_around, has_point_currency};
use super::words::{
    Word, decimal_fraction, digit_value, is_currency_sign, superscript_digit, vulgar_fraction,
    word_after,
};
use crate::blanks::is_invisible;
use crate::decimal::Decimal;

/// A number as it is written: its digits, and the signs and words that change its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenNumber {
    pub(super) runs: Vec<DigitRun>,
    pub(super) negative: bool,
    pub(super) brackets: Brackets,
    /// The power of ten that the number is multiplied by.
    pub(super) power: i64,
    /// The digits of a fraction that is written as such: `5` for the ½ in `1½`.
    fraction: Option<String>,
    /// The text is ambiguous, or the digits are part of a date, a time, a code and so on.
    pub(super) is_undecided: bool,
    /// Another number of the text could be meant instead.
    pub(super) has_rival: bool,
    /// A currency precedes the number, so digits separated by spaces are one number.
    has_currency_before: bool,
    /// The number has a currency of countries where a comma is never a decimal mark, such as `£`.
    is_in_comma_groups: bool,
}

/// Whether brackets enclose the whole text of a number, and with or without a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    None,
    Bare,
    /// Brackets around a number with a currency. Accountants write a negative amount in this way: `(5 €)` is -5 €.
    OfMoney,
}

/// A number and its position in the text. It may be part of a word (`is_glued`).
pub(super) struct LocatedNumber {
    written: WrittenNumber,
    pub(super) is_glued: bool,
    pub(super) has_sign: bool,
    pub(super) begin: usize,
    digits_end: usize,
    pub(super) end: usize,
}

impl WrittenNumber {
    /// Finds the number of a text: the first one that is not part of a word, or else the first part of a word.
    pub(super) fn find(text: &str, set: &NumberNotation) -> Option<WrittenNumber> {
        let text = to_ascii(text);
        let mut all = NumberScanner {
            text: &text,
            set,
            at: 0,
        };
        let first = all.next()?;
        if !first.is_glued {
            return Some(first.mark_rivals(&text, all));
        }
        if let Some(whole) = all.find(|found| !found.is_glued) {
            return Some(whole.mark_rivals(&text, all));
        }
        let is_only = next_number_start(&text, first.end).is_none()
            && text.get(first.end).is_none_or(|c| !c.is_alphanumeric());
        let mut written = first.written;
        written.is_undecided |= !is_only;
        Some(written)
    }

    pub(super) fn has_spaces(&self) -> bool {
        self.runs.iter().any(|run| run.mark.is_some_and(is_space))
    }

    /// Whether the space between the two groups of digits may instead separate two numbers.
    pub(super) fn may_end_at_space(&self) -> bool {
        let [_, last] = &self.runs[..] else {
            return false;
        };
        !self.has_currency_before
            && last
                .mark
                .is_some_and(|mark| is_space(mark) && !is_fixed_space(mark))
    }

    /// The decimal mark, if the currency decides it. In `£1,299` it must be the point. In `£1.299` it stays open,
    /// because the point may be a group mark of another country.
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

/// The characters of a text without invisible marks. Digits of all scripts and full-width signs become ASCII
/// characters.
fn to_ascii(text: &str) -> Vec<char> {
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

fn next_number_start(text: &[char], from: usize) -> Option<usize> {
    let is_start = |c: &char| c.is_ascii_digit() || vulgar_fraction(*c).is_some();
    text.get(from..)?
        .iter()
        .position(is_start)
        .map(|at| from + at)
}

pub(super) fn digits_at(text: &[char], at: usize) -> String {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().take_while(|c| c.is_ascii_digit()).collect()
}

pub(super) fn is_digit(text: &[char], at: usize) -> bool {
    text.get(at).is_some_and(char::is_ascii_digit)
}

/// Iterates over the numbers of a text.
struct NumberScanner<'t> {
    text: &'t [char],
    set: &'t NumberNotation,
    at: usize,
}

impl Iterator for NumberScanner<'_> {
    type Item = LocatedNumber;

    fn next(&mut self) -> Option<LocatedNumber> {
        let start = next_number_start(self.text, self.at)?;
        let found = LocatedNumber::read_number_at(self.text, start, self.set);
        // After a number that is part of a word, the search continues after its first digits, because digits after a
        // space may be another number.
        self.at = match (found.is_glued, found.written.has_spaces()) {
            (false, _) => found.end,
            (true, true) => start + digits_at(self.text, start).len(),
            (true, false) => found.digits_end,
        };
        self.at = self.at.max(start + 1);
        Some(found)
    }
}

impl LocatedNumber {
    /// Sets `has_rival` of the number, and returns it.
    fn mark_rivals(mut self, text: &[char], mut others: NumberScanner<'_>) -> WrittenNumber {
        let mut rivals = Rivals::new(text, &self);
        self.written.has_rival =
            rivals.is_glued_to_digits() || others.any(|other| rivals.next_is_rival(&other));
        self.written
    }

    /// Whether the number consists only of digits.
    pub(super) fn is_whole(&self) -> bool {
        self.written.runs.len() == 1 && self.written.fraction.is_none()
    }

    pub(super) fn has_currency_before(&self) -> bool {
        self.written.has_currency_before
    }

    /// The digits of each group, as they are written.
    pub(super) fn digits(&self) -> impl Iterator<Item = &str> {
        self.written.runs.iter().map(|run| run.digits.as_str())
    }

    fn read_number_at(text: &[char], start: usize, set: &NumberNotation) -> LocatedNumber {
        let begins_with_mark = start
            .checked_sub(1)
            .filter(|mark| is_leading_mark(text, *mark, set));
        let begin = begins_with_mark.unwrap_or(start);
        let (runs, digits_end) = match begins_with_mark {
            Some(mark) => {
                let run = DigitRun {
                    mark: Some(text[mark]),
                    digits: digits_at(text, start),
                };
                let end = start + run.digits.len();
                (vec![empty_run(), run], end)
            }
            None => read_digit_runs(text, start, set),
        };
        let before = Prefix::parse(&text[..begin]);
        let mut written = WrittenNumber {
            runs,
            negative: before.negative,
            brackets: Brackets::None,
            power: 0,
            fraction: None,
            is_undecided: before.is_undecided,
            has_rival: false,
            has_currency_before: before.has_currency,
            is_in_comma_groups: has_point_currency(&text[..begin], &text[digits_end..]),
        };
        let end = written.read_suffix(text, digits_end);
        written.brackets = brackets_around(&text[..begin], &text[end..]);
        let has_plus = before.has_sign && !written.negative;
        let has_mark = written.runs.len() > 1;
        written.is_undecided |= parts::is_address(&written.runs, set)
            || (has_plus && parts::is_international_telephone_number(&written.runs))
            || (has_mark && parts::is_version(&text[..begin]))
            || text[..begin].ends_with(&[':', ':']);
        LocatedNumber {
            written,
            is_glued: before.is_glued,
            has_sign: before.has_sign,
            begin,
            digits_end,
            end,
        }
    }
}

fn empty_run() -> DigitRun {
    DigitRun {
        mark: None,
        digits: String::new(),
    }
}

/// Whether this mark begins a number, as in `.75`.
fn is_leading_mark(text: &[char], mark: usize, set: &NumberNotation) -> bool {
    let is_decimal = matches!(text[mark], '.' | ',' | '\u{66b}') || set.decimal == Some(text[mark]);
    let begins = mark.checked_sub(1).is_none_or(|before| {
        let before = text[before];
        !before.is_alphanumeric() && !is_number_mark(before, set) && before != ')'
    });
    is_decimal && begins && is_digit(text, mark + 1)
}

/// The digits from `start` on with the marks between them, and the position where they end.
fn read_digit_runs(text: &[char], start: usize, set: &NumberNotation) -> (Vec<DigitRun>, usize) {
    let first = digits_at(text, start);
    let mut end = start + first.len();
    let mut runs = vec![DigitRun {
        mark: None,
        digits: first,
    }];
    while let Some(&mark) = text.get(end).filter(|_| is_digit(text, end + 1)) {
        let next = digits_at(text, end + 1);
        let joins = match mark {
            _ if is_space(mark) => continues_at_space(&runs, &next),
            _ if is_currency_sign(mark) => next.len() == 2,
            // An Arabic decimal separator may come after groups of digits. Any other mark that can only begin a
            // fraction must be the first mark: after a fraction, a middle point is a multiplication sign.
            '\u{66b}' => runs.iter().all(|run| run.mark != Some(mark)),
            _ if is_only_decimal(mark) => runs.len() == 1,
            _ => is_number_mark(mark, set),
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

/// Whether a group of digits after a space still belongs to the number: it must have three digits, like the groups
/// before it.
fn continues_at_space(runs: &[DigitRun], next: &str) -> bool {
    let are_spaced = runs[1..].iter().all(|run| run.mark.is_some_and(is_space));
    let first = &runs[0].digits;
    are_spaced && next.len() == 3 && first.len() <= 3 && !first.starts_with('0')
}

impl WrittenNumber {
    /// Reads the text directly after the digits, and changes the number by it. Returns the index of the rest of the
    /// text.
    fn read_suffix(&mut self, text: &[char], end: usize) -> usize {
        let end = self.read_dash_for_fraction(text, end);
        let mut end = self.read_fraction(text, end);
        if let Some((power, behind)) =
            parse_exponent(text, end).or_else(|| parse_power_of_ten(text, end))
        {
            self.power = power;
            end = behind;
        } else {
            match word_after(&text[end..]) {
                Word::Power(power) => self.power = power,
                Word::Doubtful => self.is_undecided = true,
                Word::Other => {}
            }
        }
        self.is_undecided |= self.is_part_of_longer_notation(text, end);
        end
    }

    /// Reads a dash in place of a fraction, as in `1.299,–`: the mark before it is the decimal mark.
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

    /// Reads a fraction that follows the digits: `½`, ` 1/2`, `⁄2`.
    fn read_fraction(&mut self, text: &[char], end: usize) -> usize {
        let is_whole = self.runs.len() == 1;
        let space = usize::from(text.get(end).copied().is_some_and(is_space));
        let vulgar = text.get(end + space).copied().and_then(vulgar_fraction);
        if let Some((numerator, denominator)) = vulgar.filter(|_| is_whole) {
            self.add_fraction(decimal_fraction(numerator, denominator));
            return end + space + 1;
        }
        if is_whole && space == 1 && is_digit(text, end + 1) {
            let numerator = digits_at(text, end + 1);
            let slash = end + 1 + numerator.len();
            let denominator = digits_at(text, slash + 1);
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
            let denominator = digits_at(text, end + 1);
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

    /// Adds a fraction to the number. Without a finite decimal form (`digits` is `None`), the number is undecided.
    fn add_fraction(&mut self, digits: Option<String>) {
        if self.runs[0].digits.is_empty() {
            self.runs[0].digits.push('0');
        }
        self.is_undecided |= digits.is_none();
        self.fraction = digits;
    }

    /// Whether the text after the number shows that the digits belong to a date, a time, a code, a fraction or a range
    /// such as `10-20 million`.
    fn is_part_of_longer_notation(&self, text: &[char], end: usize) -> bool {
        let next = text.get(end).copied().unwrap_or(' ');
        let is_last = text
            .get(end + 1..)
            .is_none_or(|rest| rest.iter().all(|c| is_space(*c)));
        let is_whole = self.runs.len() == 1;
        let leads_with_zero =
            is_whole && self.runs[0].digits.len() > 1 && self.runs[0].digits.starts_with('0');
        if superscript_digit(next).is_some() && is_after_plain_digit(text, end) {
            return true;
        }
        if parts::is_hexadecimal(text, end) || parts::is_split_price(text, end) {
            return true;
        }
        if parts::is_time(&text[end..]) || parts::is_coordinate(&text[end..]) {
            return true;
        }
        if parts::is_group_of_address(&text[end..]) {
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
        self.power == 0 && parts::begins_date_or_range(text, end)
    }
}

/// Whether a plain digit stands before this position. A superscript digit directly after it is an exponent, or refers
/// to a footnote.
fn is_after_plain_digit(text: &[char], end: usize) -> bool {
    end > 0 && text[end - 1].is_ascii_digit()
}

/// The power of ten of `e3` or `E-7`, and the position where the text continues.
fn parse_exponent(text: &[char], end: usize) -> Option<(i64, usize)> {
    matches!(text.get(end)?, 'e' | 'E').then_some(())?;
    let sign = text.get(end + 1).copied();
    let signed = usize::from(matches!(sign, Some('+' | '-' | '\u{2212}')));
    let power = digits_at(text, end + 1 + signed);
    let behind = end + 1 + signed + power.len();
    let ends = text.get(behind).is_none_or(|c| !c.is_alphanumeric());
    let power: i64 = power.parse().ok().filter(|_| ends)?;
    let is_negative = signed == 1 && sign != Some('+');
    Some((if is_negative { -power } else { power }, behind))
}

/// The power of ten of `× 10^6` or `x10⁻³`, and the position where the text continues.
fn parse_power_of_ten(text: &[char], end: usize) -> Option<(i64, usize)> {
    let skip_space = |at: usize| at + usize::from(text.get(at).copied().is_some_and(is_space));
    let times = skip_space(end);
    matches!(
        text.get(times)?,
        '×' | 'x' | 'X' | '*' | '\u{b7}' | '\u{22c5}'
    )
    .then_some(())?;
    let ten = skip_space(times + 1);
    (digits_at(text, ten) == "10").then_some(())?;
    let at = ten + 2;
    if text.get(at) == Some(&'^') {
        let is_negative = matches!(text.get(at + 1), Some('-' | '\u{2212}'));
        let from = at + 1 + usize::from(is_negative);
        let power = digits_at(text, from);
        let number: i64 = power.parse().ok()?;
        return Some((
            if is_negative { -number } else { number },
            from + power.len(),
        ));
    }
    let is_negative = text.get(at) == Some(&'\u{207b}');
    let from = at + usize::from(is_negative);
    let raised = text
        .get(from..)?
        .iter()
        .map_while(|c| superscript_digit(*c));
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
