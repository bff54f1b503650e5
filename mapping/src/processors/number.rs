//! `number`: reads a number with the separators of a country.

use serde_json::Number;

use crate::catalogue::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::item::Item;
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const NUMBER: Entry = Entry {
    name: "number",
    family: Family::Convert,
    summary: "Reads the first number in every value and yields it as a number; values without one are dropped.",
    parameters: &[
        Parameter {
            name: "decimal",
            kind: Kind::Text,
            presence: Presence::Text("."),
            meaning: "the character before the fraction",
        },
        Parameter {
            name: "group",
            kind: Kind::Text,
            presence: Presence::Text(","),
            meaning: "the characters that may stand between groups of digits; a space stands for every kind of space",
        },
    ],
    examples: &[
        Example {
            parameters: "{}",
            input: Input::Values(&["$1,234.50 each", "none"]),
            output: &["1234.5"],
        },
        Example {
            parameters: r#"{"decimal": ",", "group": ". "}"#,
            input: Input::Values(&["1.234,5 €", "−12 000 km"]),
            output: &["1234.5", "-12000"],
        },
    ],
    build: |parameters, _| {
        let decimal = parameters.text("decimal");
        let mut characters = decimal.chars();
        let (Some(decimal), None) = (characters.next(), characters.next()) else {
            return Err(refusal("decimal", "exactly one character is needed"));
        };
        let group: Vec<char> = parameters.text("group").chars().collect();
        let is_separator = |c: &char| *c != '+' && *c != '-' && !c.is_ascii_digit();
        if !is_separator(&decimal) {
            return Err(refusal("decimal", "a digit or sign separates nothing"));
        }
        if group.contains(&decimal) || !group.iter().all(is_separator) {
            let message = "must hold neither the decimal character nor digits or signs";
            return Err(refusal("group", message));
        }
        Ok(Box::new(ReadNumber(Separators { decimal, group })))
    },
};

struct ReadNumber(Separators);

impl Processor for ReadNumber {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.output();
        for item in items {
            let number = self.0.first_number(&run.text(&item));
            if !number.is_none_or(|number| output.push(Item::Number(number))) {
                break;
            }
        }
        output.finish()
    }
}

/// How a number is written.
struct Separators {
    decimal: char,
    group: Vec<char>,
}

impl Separators {
    fn first_number(&self, text: &str) -> Option<Number> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let (before, rest) = text.split_at(start);
        let mut plain = String::new();
        if before.ends_with(['-', '\u{2212}']) {
            plain.push('-');
        }
        let after_whole = self.whole_part(rest, &mut plain);
        self.fraction(before, after_whole, &mut plain);
        number(&plain)
    }

    /// Adds the digits before the fraction; returns the rest of the text.
    fn whole_part<'t>(&self, text: &'t str, plain: &mut String) -> &'t str {
        let mut rest = digits(text, plain);
        while let Some(group) = self.next_group(rest) {
            rest = digits(group, plain);
        }
        rest
    }

    /// The text after a group separator, if two or three digits follow it: in India, groups have two.
    fn next_group<'t>(&self, text: &'t str) -> Option<&'t str> {
        let separator = text.chars().next().filter(|c| self.is_group(*c))?;
        let group = &text[separator.len_utf8()..];
        let length = group.bytes().take_while(u8::is_ascii_digit).count();
        matches!(length, 2 | 3).then_some(group)
    }

    fn is_group(&self, character: char) -> bool {
        let space = character.is_whitespace() && self.group.contains(&' ');
        space || self.group.contains(&character)
    }

    /// Adds the fraction; `.5` begins with one.
    fn fraction(&self, before: &str, after: &str, plain: &mut String) {
        let only_fraction = before.ends_with(self.decimal)
            && !before[..before.len() - self.decimal.len_utf8()].ends_with(char::is_alphanumeric);
        if only_fraction {
            let negative = before
                .trim_end_matches(self.decimal)
                .ends_with(['-', '\u{2212}']);
            *plain = format!("{}0.{plain}", if negative { "-" } else { "" });
        } else if let Some(fraction) = after.strip_prefix(self.decimal)
            && fraction.starts_with(|c: char| c.is_ascii_digit())
        {
            plain.push('.');
            digits(fraction, plain);
        }
    }
}

/// Moves the leading digits of `text` to `plain`.
fn digits<'t>(text: &'t str, plain: &mut String) -> &'t str {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    plain.push_str(&text[..length]);
    &text[length..]
}

/// Integers are exact up to 64 bits.
fn number(plain: &str) -> Option<Number> {
    if let Ok(whole) = plain.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = plain.parse::<u64>() {
        return Some(whole.into());
    }
    plain.parse::<f64>().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, decimal: char, group: &str) -> Option<String> {
        let separators = Separators {
            decimal,
            group: group.chars().collect(),
        };
        separators
            .first_number(text)
            .map(|number| number.to_string())
    }

    #[test]
    fn numbers_are_read_as_they_are_written_around_the_world() {
        for (text, decimal, group, expected) in [
            ("1,234,567.89", '.', ",", "1234567.89"),
            ("12,34,567", '.', ",", "1234567"),
            ("1.234.567,89", ',', ".", "1234567.89"),
            ("1\u{202f}234,5", ',', " ", "1234.5"),
            ("1'234.50", '.', "'", "1234.5"),
            ("-7", '.', ",", "-7"),
            ("\u{2212}0.5", '.', ",", "-0.5"),
            (".75 in", '.', ",", "0.75"),
            ("-.75 in", '.', ",", "-0.75"),
            ("in 1999, 2000 came", '.', ",", "1999"),
            ("v. 12", '.', ",", "12"),
            ("page 3.", '.', ",", "3"),
            ("1,2", '.', ",", "1"),
            ("18446744073709551615", '.', ",", "18446744073709551615"),
            ("00042", '.', ",", "42"),
        ] {
            assert_eq!(
                read(text, decimal, group).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        assert_eq!(read("none", '.', ","), None);
        assert_eq!(read(&"9".repeat(400), '.', ","), None);
    }
}
