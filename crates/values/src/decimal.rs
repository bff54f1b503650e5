//! Exact decimal numbers, read from a text or a JSON number without losing a digit.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The most digits of a number, and the largest power of ten that they are multiplied by, positive or negative.
const MAX_DIGITS: usize = 400;
const MAX_EXPONENT: i64 = 400;

/// A number with more digits than this is written as a power of ten.
const MAX_PLAIN_DIGITS: i64 = 100;

/// A number: `digits` (an integer) times ten to the power of `exponent`. The digits have no zeros at either end, so
/// equal numbers compare equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// The digits; empty for zero.
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// The number with these digits before and after the point, times ten to the power of `exponent`.
    pub fn new(negative: bool, whole: &str, fraction: &str, exponent: i64) -> Option<Decimal> {
        let all = format!("{whole}{fraction}");
        if all.is_empty() || all.len() > MAX_DIGITS || !all.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let kept = all.trim_end_matches('0');
        let digits = kept.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Decimal {
                negative: false,
                digits: String::new(),
                exponent: 0,
            });
        }
        let shift = (all.len() - kept.len()) as i64 - fraction.len() as i64;
        let exponent = exponent.checked_add(shift)?;
        (exponent.abs() <= MAX_EXPONENT).then(|| Decimal {
            negative,
            digits: digits.to_owned(),
            exponent,
        })
    }

    /// Parses a text that is a number in the notation of JSON and programming languages: `-12.50`, `1e3`.
    pub fn from_text(text: &str) -> Option<Decimal> {
        let (negative, rest) = match text.strip_prefix(['-', '\u{2212}']) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?.into()),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Decimal::new(negative, whole, fraction, exponent)
    }

    /// Like [`Decimal::from_text`], but rejects texts that look like codes. Telephone numbers and postcodes begin with
    /// a plus or with zeros, which a number would lose.
    pub fn from_plain_text(text: &str) -> Option<Decimal> {
        let unsigned = text.strip_prefix(['-', '\u{2212}']).unwrap_or(text);
        let mut bytes = unsigned.bytes();
        let begins_as_code = match bytes.next() {
            Some(b'0') => bytes.next().is_some_and(|next| next.is_ascii_digit()),
            Some(first) => !first.is_ascii_digit(),
            None => true,
        };
        match begins_as_code {
            true => None,
            false => Decimal::from_text(text),
        }
    }

    pub fn from_number(number: &Number) -> Option<Decimal> {
        Decimal::from_text(&number.to_string())
    }

    /// The number times ten to the power of `exponent`.
    pub fn times_power_of_ten(self, exponent: i64) -> Option<Decimal> {
        Decimal::new(
            self.negative,
            &self.digits,
            if self.digits.is_empty() { "0" } else { "" },
            self.exponent.checked_add(exponent)?,
        )
    }

    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The number as text: all its digits, or a power of ten if there would be more than a hundred.
    pub fn plain(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let count = self.digits.len() as i64;
        let written = match self.exponent.cmp(&0) {
            Ordering::Less => count.max(-self.exponent),
            _ => count + self.exponent,
        };
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        if written > MAX_PLAIN_DIGITS {
            return format!("{sign}{}e{}", self.digits, self.exponent);
        }
        if self.exponent >= 0 {
            let zeros = "0".repeat(self.exponent as usize);
            return format!("{sign}{}{zeros}", self.digits);
        }
        let places = self.exponent.unsigned_abs() as usize;
        let padded = format!("{:0>width$}", self.digits, width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        format!("{sign}{whole}.{fraction}")
    }

    /// The JSON number: a 64-bit integer, or a double if a double holds every digit; otherwise `None`. With `fraction`,
    /// a whole number keeps a fraction, such as `5.0`.
    pub fn to_number(&self, fraction: bool) -> Option<Number> {
        let plain = self.plain();
        if self.is_integer() && !fraction {
            if let Ok(whole) = plain.parse::<i64>() {
                return Some(whole.into());
            }
            if let Ok(whole) = plain.parse::<u64>() {
                return Some(whole.into());
            }
        }
        let number = Number::from_f64(plain.parse().ok()?)?;
        (Decimal::from_number(&number).as_ref() == Some(self)).then_some(number)
    }

    /// Like [`Decimal::to_number`], but a number that JSON cannot hold exactly becomes a text of its digits.
    pub fn to_json(&self, fraction: bool) -> Value {
        self.to_number(fraction)
            .map_or_else(|| Value::String(self.plain()), Value::Number)
    }
}
