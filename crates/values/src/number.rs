//! Numbers in texts: `1.234,50 €` is 1234.50. The notation is set by the user, or inferred from all texts of a field
//! together. A text that stays ambiguous is not a number. Neither is one with two numbers if nothing shows which is
//! meant.
//!
//! [`written`] finds the number of a text and everything around it that changes its value. [`rivals`] finds other
//! numbers that could be meant instead. This module decides which mark begins the fraction.

mod marks;
mod notation;
mod parts;
mod rivals;
mod signs;
mod words;
mod written;

pub use notation::NumberNotation;
pub use signs::{begins_with_currency, ends_with_currency};

use crate::decimal::Decimal;
use marks::{Group, Notation};
use written::{Brackets, WrittenNumber};

/// The result of reading a text as a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumberReading {
    /// The text has no digit.
    None,
    /// The number, and whether it is written with a fraction, such as `5.00`.
    Number(Decimal, bool),
    /// The text is ambiguous, or violates the notation.
    Undecided,
    /// The text has several numbers, and nothing shows which is meant.
    Several,
}

/// Reads the number of each text. The texts are values of one field: if one of them shows the notation, it applies to
/// all.
pub fn read_numbers<T: AsRef<str>>(texts: &[T], set: &NumberNotation) -> Vec<NumberReading> {
    let numbers = Numbers::find(texts, set);
    numbers.read(&numbers.evidence())
}

/// The numbers found in several texts of a field, before their notation is decided.
pub struct Numbers {
    found: Vec<Option<WrittenNumber>>,
    notations: Vec<Notation>,
}

impl Numbers {
    pub fn find<T: AsRef<str>>(texts: &[T], set: &NumberNotation) -> Numbers {
        let found = texts
            .iter()
            .map(|text| WrittenNumber::find(text.as_ref(), set));
        Numbers {
            found: found.collect(),
            notations: marks::allowed_notations(set),
        }
    }

    /// What these texts show about the notation of the field's numbers.
    pub fn evidence(&self) -> NumberEvidence {
        let mut evidence = NumberEvidence::default();
        for written in self.found.iter().flatten() {
            evidence.add(written, &self.notations);
        }
        evidence
    }

    /// Whether further texts of the field could change how one of these numbers is read.
    pub fn depend_on_others(&self) -> bool {
        let alone = NumberEvidence::default();
        self.found.iter().flatten().any(|written| {
            written.brackets == Brackets::Bare
                || alone
                    .possible_readings(written, &self.notations, |_| true)
                    .len()
                    > 1
        })
    }

    /// Reads the numbers. `evidence` decides between notations where a number can be read in several.
    pub fn read(&self, evidence: &NumberEvidence) -> Vec<NumberReading> {
        let readings = self.found.iter().map(|written| match written {
            None => NumberReading::None,
            Some(written) => evidence.read(written, &self.notations),
        });
        readings.collect()
    }
}

/// What the texts of a field show about the notation of its numbers.
#[derive(Debug, Clone, Default)]
pub struct NumberEvidence {
    /// Decimal marks (`.` or `,`). Each is the only possible one in some text.
    decimals: Vec<char>,
    /// Some number has spaces between groups of digits.
    spaced: bool,
    /// Some numbers are in brackets.
    in_brackets: bool,
    /// Some numbers are not in brackets. If other numbers of the field are, their brackets mean minus, as in
    /// accounting.
    without_brackets: bool,
}

impl NumberEvidence {
    /// Adds the evidence of other texts of the same field.
    pub fn merge(&mut self, other: &NumberEvidence) {
        for decimal in &other.decimals {
            self.add_decimal(*decimal);
        }
        self.spaced |= other.spaced;
        self.in_brackets |= other.in_brackets;
        self.without_brackets |= other.without_brackets;
    }

    fn add(&mut self, written: &WrittenNumber, notations: &[Notation]) {
        let mut allowed: Vec<char> = Vec::new();
        for notation in notations {
            if notation.split(&written.runs).is_some() && !allowed.contains(&notation.decimal) {
                allowed.push(notation.decimal);
            }
        }
        if let [only] = allowed[..] {
            self.add_decimal(only);
        }
        self.spaced |= written.has_spaces() && !written.may_end_at_space();
        match written.brackets {
            Brackets::None => self.without_brackets = true,
            Brackets::Bare | Brackets::OfMoney => self.in_brackets = true,
        }
    }

    fn add_decimal(&mut self, decimal: char) {
        if !self.decimals.contains(&decimal) {
            self.decimals.push(decimal);
        }
    }

    /// The decimal mark of the field, if the texts with only one possible mark agree on it.
    fn decimal(&self) -> Option<char> {
        match self.decimals[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    fn read(&self, written: &WrittenNumber, notations: &[Notation]) -> NumberReading {
        if written.is_undecided {
            return NumberReading::Undecided;
        }
        if written.has_rival {
            return NumberReading::Several;
        }
        let mut readings = self.possible_readings(written, notations, |_| true);
        if readings.len() > 1
            && let Some(decimal) = self.decimal().or(written.decimal_of_currency())
        {
            readings =
                self.possible_readings(written, notations, |notation| notation.decimal == decimal);
        }
        let ([reading], Some(negative)) = (&readings[..], self.is_negative(written)) else {
            return NumberReading::Undecided;
        };
        written.number(negative, &reading.0, &reading.1).map_or(
            NumberReading::Undecided,
            |decimal| {
                let has_fraction = !reading.1.is_empty() && written.power == 0;
                NumberReading::Number(decimal, has_fraction)
            },
        )
    }

    /// The possible readings of the digits, each as whole part and fraction.
    fn possible_readings(
        &self,
        written: &WrittenNumber,
        notations: &[Notation],
        allows: impl Fn(&Notation) -> bool,
    ) -> Vec<(String, String)> {
        let mut readings = Vec::new();
        for notation in notations.iter().filter(|notation| allows(notation)) {
            let Some(reading) = notation.split(&written.runs) else {
                continue;
            };
            if !readings.contains(&reading) {
                readings.push(reading);
            }
            let is_set = notation.group == Group::Set;
            if written.may_end_at_space() && !is_set && !self.spaced {
                let cut = (written.runs[0].digits.clone(), String::new());
                if !readings.contains(&cut) {
                    readings.push(cut);
                }
            }
        }
        readings
    }

    /// Whether the number is negative; `None` if it is unclear whether its brackets mean minus, as in accounting.
    fn is_negative(&self, written: &WrittenNumber) -> Option<bool> {
        match written.brackets {
            Brackets::None => Some(written.negative),
            Brackets::OfMoney => Some(true),
            Brackets::Bare if self.in_brackets && self.without_brackets => Some(true),
            // Plain digits in brackets are a count, such as the number of reviews.
            Brackets::Bare if written.runs.len() == 1 => Some(written.negative),
            Brackets::Bare => None,
        }
    }
}
