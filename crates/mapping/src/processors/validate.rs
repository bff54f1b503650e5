//! `validate`: drops invalid values.

use jiff::fmt::temporal::Pieces;
use webfill_urls::canonical_url;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::item::Item;
use crate::pattern::Pattern;
use crate::processors::compile_pattern;
use crate::run::{OutOfTime, Processor, Run};

const MAX_CHARACTERS: i64 = 1_000_000;

pub(crate) const VALIDATE: Entry = Entry {
    name: "validate",
    family: Family::List,
    summary: "Keeps the values that pass every given test and drops the others.",
    parameters: &[
        Parameter {
            name: "type",
            kind: Kind::Choice(&["integer", "number", "date", "email", "url"]),
            presence: Presence::Optional,
            meaning: "the kind of the value: a whole number, a decimal number, a date as `date` writes it (ISO 8601, with or without time and offset, or a year or month), a mail address, an absolute http or https URL",
        },
        Parameter {
            name: "pattern",
            kind: Kind::Text,
            presence: Presence::Optional,
            meaning: "a regular expression that must be found in the value",
        },
        Parameter {
            name: "one_of",
            kind: Kind::TextList,
            presence: Presence::Optional,
            meaning: "the values that are allowed",
        },
        Parameter {
            name: "min_length",
            kind: Kind::Integer(0, MAX_CHARACTERS),
            presence: Presence::Optional,
            meaning: "minimum number of characters",
        },
        Parameter {
            name: "max_length",
            kind: Kind::Integer(0, MAX_CHARACTERS),
            presence: Presence::Optional,
            meaning: "maximum number of characters",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"type": "email"}"#,
            input: Input::Values(&["ada@ada.example", "ada at ada.example"]),
            output: &["ada@ada.example"],
        },
        Example {
            parameters: r#"{"pattern": "^[A-Z]", "max_length": 8}"#,
            input: Input::Values(&["Ada", "ada", "Ada Lovelace"]),
            output: &["Ada"],
        },
    ],
    build: |parameters, _| {
        let tests = ["type", "pattern", "one_of", "min_length", "max_length"];
        if !tests.iter().any(|test| parameters.is_given(test)) {
            let message = format!("give at least one of {}", tests.join(", "));
            return Err(refusal("", message));
        }
        let lengths = (
            parameters.size("min_length").unwrap_or(0),
            parameters.size("max_length").unwrap_or(usize::MAX),
        );
        let pattern = parameters
            .optional_text("pattern")
            .map(|text| compile_pattern("pattern", text))
            .transpose();
        if lengths.0 > lengths.1 {
            let mut refusals = refusal("max_length", "must be at least min_length");
            refusals.extend(pattern.err().unwrap_or_default());
            return Err(refusals);
        }
        Ok(Box::new(Validate {
            is_type: parameters.optional_text("type").and_then(type_test),
            pattern: pattern?,
            one_of: parameters
                .texts("one_of")
                .into_iter()
                .map(str::to_owned)
                .collect(),
            lengths,
        }))
    },
};

struct Validate {
    is_type: Option<fn(&str) -> bool>,
    pattern: Option<Pattern>,
    /// The values that are allowed; empty if all are.
    one_of: Vec<String>,
    lengths: (usize, usize),
}

impl Processor for Validate {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        run.filter(items, |text| {
            let length = text.chars().count();
            (self.lengths.0..=self.lengths.1).contains(&length)
                && self.is_type.is_none_or(|is_type| is_type(text))
                && (self.one_of.is_empty() || self.one_of.iter().any(|allowed| allowed == text))
                && self.matches(text, run)
        })
    }
}

impl Validate {
    fn matches(&self, text: &str, run: &Run<'_>) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        pattern.is_match(text).unwrap_or_else(|_| {
            run.warn("validate: the expression took too many steps, a value was dropped");
            false
        })
    }
}

fn type_test(name: &str) -> Option<fn(&str) -> bool> {
    match name {
        "integer" => Some(is_integer),
        "number" => Some(is_number),
        "date" => Some(is_date),
        "email" => Some(is_email),
        "url" => Some(|text| canonical_url(text, None).is_ok()),
        _ => None,
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E');
    text.bytes().all(allowed) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Whether the text has the form that `date` writes: a year, a year and month, or a day, with an optional time and its
/// offset.
fn is_date(text: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match text.len() {
        4 => is_number(text),
        7 => text.split_once('-').is_some_and(|(year, month)| {
            let is_month = (1..=12).contains(&month.parse().unwrap_or(0));
            year.len() == 4 && is_number(year) && is_number(month) && is_month
        }),
        0..10 => false,
        _ => Pieces::parse(text).is_ok_and(|pieces| pieces.time_zone_annotation().is_none()),
    }
}

/// Whether the text has the form of a mail address, much as HTML's `input type=email` checks it: a name, and a host
/// with a dot.
fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else {
        return false;
    };
    let in_name = |c: char| c.is_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    !name.is_empty()
        && name.chars().all(in_name)
        && text.len() <= 254
        && host.contains('.')
        && host.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_distinguished() {
        for (name, good, bad) in [
            ("integer", ["0", "-12", "+7"], ["", "1.5", "seven"]),
            ("number", ["0.5", "-1e3", "12"], ["1,5", "NaN", "inf"]),
            (
                "date",
                ["2024-02-29", "2024-03-01T10:00:00", "2024-03-01 10:00"],
                ["2023-02-29", "1 March 2024", "2024-13"],
            ),
            (
                "date",
                ["2024", "2024-03", "2024-03-01T10:00:00.5+05:30"],
                ["20240", "2024-3-1", "2024-03-01T25:00:00"],
            ),
            (
                "date",
                [
                    "2024-03-01T10:00:00Z",
                    "1815-12-10",
                    "2024-03-01T10:00:00-03:00",
                ],
                ["10:00", "", "2024-03-01T10:00:00 CET"],
            ),
            (
                "email",
                ["a@b.example", "a.b+c@x-y.example", "ü@bücher.example"],
                ["a@b", "a b@c.example", "@c.example"],
            ),
            (
                "url",
                ["https://a.example/", "http://a.example", "http://[::1]/"],
                ["/a", "ftp://a.example/", "a.example"],
            ),
        ] {
            let test = type_test(name).unwrap();
            assert!(good.iter().all(|text| test(text)), "{name} {good:?}");
            assert!(!bad.iter().any(|text| test(text)), "{name} {bad:?}");
        }
    }
}
