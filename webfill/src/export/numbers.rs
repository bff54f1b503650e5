//! Gives all numbers of a field the same kind and format, because tables have them as texts (`1664.00`) and pages as
//! numbers (193.0). A text with leading zeros or further characters is not a number. If a field has only texts, its
//! numbers stay texts.

use serde_json::{Number, Value};

use super::columns::{Kind, is_long_number};

/// A double can hold every number with at most this many digits.
const EXACT_DIGITS: usize = 15;

/// The kinds of a field's values seen so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NumberKinds {
    /// The kind of the values that are not texts.
    others: Option<Kind>,
    texts: Texts,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Texts {
    #[default]
    None,
    /// All texts are plain numbers. `decimals` is set if all of them have the same number of decimals.
    Numbers {
        kind: Kind,
        decimals: Option<usize>,
    },
    Any,
}

impl NumberKinds {
    pub fn note(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.note_text(text),
            other => {
                self.others = match (self.others, Kind::of_value(other)) {
                    (Some(one), Some(other)) => Some(one.common_kind(other)),
                    (one, other) => one.or(other),
                }
            }
        }
    }

    fn note_text(&mut self, text: &str) {
        let texts = std::mem::take(&mut self.texts);
        self.texts = match (texts, kind_of_number_text(text)) {
            (Texts::Any, _) | (_, None) => Texts::Any,
            (Texts::None, Some((kind, decimals))) => Texts::Numbers { kind, decimals },
            (
                Texts::Numbers {
                    kind: before,
                    decimals: all,
                },
                Some((kind, decimals)),
            ) => Texts::Numbers {
                kind: before.common_kind(kind),
                decimals: all.filter(|_| all == decimals),
            },
        };
    }

    fn has_numbers(&self) -> bool {
        self.others.is_some_and(Kind::is_of_numbers)
    }

    /// A kind that can hold all values; `None` if no record has a value.
    pub fn kind(&self) -> Option<Kind> {
        match (self.others, &self.texts) {
            (others, Texts::None) => others,
            (None, _) => Some(Kind::Text),
            (Some(others), Texts::Numbers { kind, .. }) if self.has_numbers() => {
                Some(others.common_kind(*kind))
            }
            (Some(others), _) => Some(others.common_kind(Kind::Text)),
        }
    }

    /// The number of decimals when numbers are written as text; `None` if they are written unchanged.
    pub fn decimals(&self) -> Option<usize> {
        match &self.texts {
            Texts::Numbers { decimals, .. } if self.has_numbers() => Some(decimals.unwrap_or(0)),
            _ => None,
        }
    }
}

/// The kind of a number written as text, and the number of its decimals. The number of decimals is `None` if a JSON
/// number cannot hold all digits.
fn kind_of_number_text(text: &str) -> Option<(Kind, Option<usize>)> {
    if is_long_number(text) {
        return Some((Kind::LongDigits, None));
    }
    let (number, decimals) = parse_plain(text)?;
    let kind = Kind::of_value(&Value::Number(number))?;
    Some((kind, Some(decimals)))
}

/// Parses a number that has only digits, a sign and a point. Returns it with its number of decimals.
fn parse_plain(text: &str) -> Option<(Number, usize)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    if !are_digits(whole) || !are_digits(fraction) || has_leading_zero {
        return None;
    }
    let decimals = match digits.contains('.') {
        true => fraction.len(),
        false => 0,
    };
    let is_exact = decimals == 0 || whole.len() + decimals <= EXACT_DIGITS;
    let number: Number = serde_json::from_str(text).ok().filter(|_| is_exact)?;
    Some((number, decimals))
}

/// Formats a number with this many decimals, or more if it has more.
pub fn format_with_decimals(number: &Number, decimals: usize) -> String {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    match text.contains('e') || fraction.len() > decimals {
        true => text,
        false if decimals == 0 => whole.to_owned(),
        false => format!("{whole}.{fraction:0<decimals$}"),
    }
}

/// Converts a value to the form of a column of this kind. In a column of digits, a text of digits stays unchanged.
pub fn convert_to_kind(kind: Kind, value: Value) -> Value {
    match &value {
        Value::String(text) if kind.is_of_numbers() && kind != Kind::Digits => {
            parse_plain(text).map_or(value, |(number, _)| Value::Number(number))
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds_of_values(values: &[Value]) -> NumberKinds {
        let mut noted = NumberKinds::default();
        values.iter().for_each(|value| noted.note(value));
        noted
    }

    #[test]
    fn a_field_has_one_kind_and_one_number_of_decimals() {
        use Kind::{Digits, Integer, Json, Number, Text};
        let table = [
            (vec![json!("1664.00"), json!(193.0)], Some(Number), Some(2)),
            (vec![json!("12"), json!(193)], Some(Integer), Some(0)),
            (vec![json!("12"), json!(193.0)], Some(Number), Some(0)),
            (
                vec![json!("5"), json!("7.25"), json!(1.5)],
                Some(Number),
                Some(0),
            ),
            (
                vec![json!("-5.0"), json!(null), json!(1.5)],
                Some(Number),
                Some(1),
            ),
            (
                vec![json!("9007199254740993"), json!(1.5)],
                Some(Digits),
                Some(0),
            ),
            // Numbers written as texts stay texts if no page gave a number, or if the field has other texts.
            (vec![json!("1664.00"), json!("193")], Some(Text), None),
            (vec![json!("01067"), json!(1067)], Some(Json), None),
            (vec![json!("+5"), json!(5)], Some(Json), None),
            (vec![json!("1e3"), json!(5)], Some(Json), None),
            (vec![json!("12 €"), json!(5)], Some(Json), None),
            (
                vec![json!("0.12345678901234567"), json!(5)],
                Some(Digits),
                Some(0),
            ),
            (
                vec![json!("18446744073709551616"), json!(1.5)],
                Some(Digits),
                Some(0),
            ),
            (vec![json!("12"), json!(["a"])], Some(Json), None),
            (vec![json!(193.0), json!(1664)], Some(Number), None),
            (vec![json!(null)], None, None),
        ];
        for (of, kind, decimals) in table {
            let noted = kinds_of_values(&of);
            assert_eq!((noted.kind(), noted.decimals()), (kind, decimals), "{of:?}");
        }
    }

    #[test]
    fn numbers_are_written_in_the_format_of_the_table() {
        let table = [
            (json!(193.0), 2, "193.00"),
            (json!(193), 2, "193.00"),
            (json!(12.5), 2, "12.50"),
            (json!(12.345), 2, "12.345"),
            (json!(193.0), 0, "193"),
            (json!(0.5), 0, "0.5"),
            (json!(-0.1), 1, "-0.1"),
            (json!(100), 0, "100"),
            (json!(1e300), 2, "1e+300"),
        ];
        for (value, decimals, text) in table {
            let number = value.as_number().unwrap();
            let written = format_with_decimals(number, decimals);
            assert_eq!(written, text);
            let read: f64 = written.parse().unwrap();
            assert_eq!(Some(read), value.as_f64(), "{text}");
        }
    }
}
