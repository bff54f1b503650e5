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

use crate::decimal::Decimal;
use marks::{Group, Notation};
use written::{Brackets, WrittenNumber};

/// The result of reading a text.
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

/// The numbers in several texts of a field. How to read them is not decided yet.
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
            notations: marks::notations(set),
        }
    }

    /// The evidence of these texts for the notation of the field.
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
                || alone.readings(written, &self.notations, |_| true).len() > 1
        })
    }

    /// Reads the numbers in the notation that all texts of the field show.
    pub fn read(&self, evidence: &NumberEvidence) -> Vec<NumberReading> {
        let readings = self.found.iter().map(|written| match written {
            None => NumberReading::None,
            Some(written) => evidence.read(written, &self.notations),
        });
        readings.collect()
    }
}

/// The evidence of a field's texts for the notation of its numbers.
#[derive(Debug, Clone, Default)]
pub struct NumberEvidence {
    /// Decimal marks, each the only possible one for some text.
    decimals: Vec<char>,
    /// Some number has spaces between groups of digits.
    spaced: bool,
    /// Some numbers are in brackets.
    in_brackets: bool,
    /// Some numbers are not in brackets. If others are, their brackets are an accountant's minus.
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
        let mut readings = self.readings(written, notations, |_| true);
        if readings.len() > 1
            && let Some(decimal) = self.decimal().or(written.decimal_of_currency())
        {
            readings = self.readings(written, notations, |notation| notation.decimal == decimal);
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
    fn readings(
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

    /// Whether the number is negative; `None` if its brackets may or may not be an accountant's minus.
    fn is_negative(&self, written: &WrittenNumber) -> Option<bool> {
        match written.brackets {
            Brackets::None => Some(written.negative),
            Brackets::OfMoney => Some(true),
            Brackets::Bare if self.in_brackets && self.without_brackets => Some(true),
            // A count in brackets, such as the number of reviews.
            Brackets::Bare if written.runs.len() == 1 => Some(written.negative),
            Brackets::Bare => None,
        }
    }
}
