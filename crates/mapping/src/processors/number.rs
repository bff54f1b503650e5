//! `number`: reads a number, in the notation that is set, or else in the one that all values of a field together show.

use webfill_values::{NumberNotation, NumberReading, Numbers};

use serde_json::Value;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::fault::quote;
use crate::item::Item;
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const NUMBER: Entry = Entry {
    name: "number",
    family: Family::Convert,
    summary: "Reads the number in every value and yields it as a number, with all its digits. These are dropped with a warning: a value that can be read in two ways, such as `1,234` without `decimal` if no other value of the field shows the notation; dates, times, telephone numbers, codes and fractions; a value that is not in the given notation; and a value with several numbers, such as `1h 30min` or `10 x 20`, if nothing shows which is meant. Cut out the right one with `regex` first. `4.7 out of 5`, `5 €/100 g` and `12 (3 new)` show it: the first. Values without a digit are dropped. Text on a line of its own, or raised, is a separate number: `12<br>34` has two. Raised cents beside a currency belong to their amount: `$19<sup>99</sup>` is 19.99. Hidden text is left out, and so are struck-out text beside other digits and marks of notes that are links.",
    parameters: &[
        Parameter {
            name: "decimal",
            kind: Kind::Text,
            presence: Presence::Optional,
            meaning: "the character before the fraction; by default as all values of the field show together",
        },
        Parameter {
            name: "group",
            kind: Kind::Text,
            presence: Presence::Optional,
            meaning: "the characters allowed between groups of digits; a space stands for every kind of space; by default the usual ones",
        },
    ],
    examples: &[
        Example {
            parameters: "{}",
            input: Input::Values(&["1,234.50 each", "12,50 €", "none"]),
            output: &["1234.5", "12.5"],
        },
        Example {
            parameters: "{}",
            input: Input::Values(&["1.299 €", "99,95 €"]),
            output: &["1299", "99.95"],
        },
        Example {
            parameters: r#"{"decimal": ",", "group": ". "}"#,
            input: Input::Values(&["1.234,5 €", "−12 000 km", "5.00"]),
            output: &["1234.5", "-12000"],
        },
        Example {
            parameters: "{}",
            input: Input::Values(&["4.7 out of 5", "1h 30min", "90 min"]),
            output: &["4.7", "90"],
        },
    ],
    build: |parameters, _| {
        let decimal = parameters.optional_text("decimal");
        let decimal = decimal.map(parse_single_character).transpose()?;
        let group: Option<Vec<char>> = parameters
            .optional_text("group")
            .map(|group| group.chars().collect());
        let is_separator = |c: &char| *c != '+' && *c != '-' && !c.is_ascii_digit();
        if !decimal.as_ref().is_none_or(is_separator) {
            return Err(refusal("decimal", "a digit or sign separates nothing"));
        }
        let mut marks = group.iter().flatten();
        if !marks.all(|mark| is_separator(mark) && Some(*mark) != decimal) {
            let message = "must hold neither the decimal character nor digits or signs";
            return Err(refusal("group", message));
        }
        Ok(Box::new(ReadNumber(NumberNotation { decimal, group })))
    },
};

fn parse_single_character(text: &str) -> Result<char, Vec<crate::entry::Refusal>> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(refusal("decimal", "exactly one character is needed")),
    }
}

/// The mark before raised cents. It is always a decimal mark, and shows nothing about the other values of the field.
const RAISED_POINT: char = '\u{b7}';

struct ReadNumber(NumberNotation);

impl Processor for ReadNumber {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        run.check_time()?;
        // A JSON number needs no parsing, and does not show how numbers are written in texts, so it counts as empty
        // here.
        let decimal = self.0.decimal.unwrap_or(RAISED_POINT);
        let texts: Vec<_> = items
            .iter()
            .map(|item| match item {
                Item::Number(_) => "".into(),
                other => run.number_text(other, decimal),
            })
            .collect();
        let numbers = Numbers::find(&texts, &self.0);
        let readings = numbers.read(&run.columns.number_evidence(self, &numbers));
        self.warn_of_undecided(&texts, &readings, run);
        warn_of_several(&texts, &readings, run);
        let mut output = run.new_output();
        for (item, reading) in items.iter().zip(readings) {
            let number = match (item, reading) {
                (Item::Number(number), _) => Item::Number(number.clone()),
                (_, NumberReading::Number(decimal, fraction)) => match decimal.to_json(fraction) {
                    Value::Number(number) => Item::Number(number),
                    other => other.as_str().unwrap_or_default().to_owned().into(),
                },
                (_, NumberReading::None | NumberReading::Undecided | NumberReading::Several) => {
                    continue;
                }
            };
            if !output.push(number) {
                break;
            }
        }
        output.finish()
    }
}

impl ReadNumber {
    fn warn_of_undecided<T: AsRef<str>>(
        &self,
        texts: &[T],
        readings: &[NumberReading],
        run: &Run<'_>,
    ) {
        let undecided = |reading: &&NumberReading| **reading == NumberReading::Undecided;
        let Some(first) = readings.iter().position(|reading| undecided(&reading)) else {
            return;
        };
        let count = readings.iter().filter(undecided).count();
        let example = quote(texts[first].as_ref().trim());
        let is_set = self.0.decimal.is_some() || self.0.group.is_some();
        run.warn_undecided(match is_set {
            true => format!("number: {count} dropped: not numbers in this notation, or readable in two ways, such as {example}"),
            false => format!("number: {count} dropped: readable in two ways, such as {example}; set `decimal` or `group`"),
        });
    }
}

fn warn_of_several<T: AsRef<str>>(texts: &[T], readings: &[NumberReading], run: &Run<'_>) {
    let several = |reading: &&NumberReading| **reading == NumberReading::Several;
    let Some(first) = readings.iter().position(|reading| several(&reading)) else {
        return;
    };
    let count = readings.iter().filter(several).count();
    let example = quote(texts[first].as_ref().trim());
    run.warn_undecided(format!(
        "number: {count} dropped: several numbers, such as {example}; cut out the one you mean with `regex`"
    ));
}
