//! The common shape of values that consist of digits with fixed characters between them, such as telephone numbers.
//! Codes may also have capital letters.

use std::collections::BTreeSet;

use crate::score::Label;

/// How many different values are needed to show a shape.
const ENOUGH: usize = 3;

/// A pattern that matches each known value as a whole. `None` if the values have no common shape, or if the pattern
/// would be too loose to be useful.
pub(crate) fn common_pattern(labels: &[Label]) -> Option<String> {
    let mut values: Vec<&str> = labels
        .iter()
        .flat_map(|label| &label.wanted)
        .map(|wanted| wanted.text.as_str())
        .collect();
    values.sort_unstable();
    values.dedup();
    if values.len() < ENOUGH {
        return None;
    }
    let mut parts = parts_of(values[0])?;
    for value in &values[1..] {
        parts = join_parts(&parts, &parts_of(value)?)?;
    }
    let digits = parts.iter().filter(|part| !matches!(part, Part::Fixed(_)));
    // A single number occurs everywhere, so its shape is no evidence.
    if digits.count() < 2 {
        return None;
    }
    let written: String = parts.iter().map(Part::to_pattern).collect();
    Some(format!("^{written}$"))
}

/// How long the runs of digits or capital letters in a code may be on other pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// Runs must be as long as in the known values. With fewer than six known values they may have any length, except
    /// in a code of a single run.
    AsKnown,
    /// Runs may have any length, unless at least fifty known values or leading zeros prove a fixed length.
    Proven,
}

/// A pattern for codes such as postcodes and article numbers: runs of digits or capital letters with the same marks
/// between them. It may match inside a longer text. `None` if the values are not codes, or have no common shape.
pub(crate) fn code_pattern<'v>(
    values: impl Iterator<Item = &'v str>,
    lengths: Lengths,
) -> Option<String> {
    let values: BTreeSet<&str> = values.collect();
    if values.len() < ENOUGH {
        return None;
    }
    let mut shapes = values.iter().map(|value| runs_of(value));
    let first = shapes.next()??;
    let shape = shapes.try_fold(first, |shape, other| widen(shape, &other?))?;
    if !is_code(&shape) {
        return None;
    }
    let is_loose = |run: &Run| match lengths {
        // A single run of digits has a fixed length, as in a postcode.
        Lengths::AsKnown => values.len() < MANY && shape.len() > 1,
        Lengths::Proven => values.len() < PROVEN && !run.is_padded,
    };
    Some(
        shape
            .iter()
            .map(|run| run.to_pattern(is_loose(run)))
            .collect(),
    )
}

/// Whether the shape is that of a code. Numbers and amounts of money are not codes, because their lengths and marks may
/// differ on other pages.
fn is_code(shape: &[Run]) -> bool {
    let has_digits = shape.iter().any(|run| run.kind == Kind::Digit);
    let is_amount = |run: &Run| match run.kind {
        Kind::Mark(mark) => !matches!(mark, '-' | '/' | ' ' | '_' | ':' | '#' | '+'),
        Kind::Digit | Kind::Capital => false,
    };
    let is_number = match shape {
        [only] => only.least != only.most || only.most < FIXED,
        _ => false,
    };
    has_digits && !is_number && !shape.iter().any(is_amount)
}

/// How many different values are needed to show how long runs are.
const MANY: usize = 6;

/// How many different values are needed to prove how long runs are. After fifty values of one length, still about one
/// value in fifty may have another length. The three-digit page counts of thirteen books do not exclude a book of 96
/// pages.
const PROVEN: usize = 50;

/// The longest value that can be a code. Longer ones are ordinary text.
const LONGEST_CODE: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Digit,
    Capital,
    Mark(char),
}

/// A run of characters of one kind in a code, with its shortest and longest length.
#[derive(Debug, Clone, Copy)]
struct Run {
    kind: Kind,
    least: usize,
    most: usize,
    /// Whether this run begins with a zero in some known value. Then it is padded with zeros to a fixed length.
    is_padded: bool,
}

impl Run {
    fn to_pattern(self, is_loose: bool) -> String {
        let of = match self.kind {
            Kind::Digit => r"\d".to_owned(),
            Kind::Capital => "[A-Z]".to_owned(),
            Kind::Mark(mark) => regex::escape(&mark.to_string()),
        };
        let is_mark = matches!(self.kind, Kind::Mark(_));
        let is_fixed = self.least == self.most && (is_mark || !is_loose);
        match (is_fixed, self.most) {
            (true, 1) => of,
            (true, length) => format!("{of}{{{length}}}"),
            (false, _) => format!("{of}+"),
        }
    }
}

fn runs_of(value: &str) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    if value.len() > LONGEST_CODE {
        return None;
    }
    for c in value.chars() {
        let kind = match c {
            '0'..='9' => Kind::Digit,
            'A'..='Z' => Kind::Capital,
            c if c.is_alphanumeric() || c.is_control() => return None,
            mark => Kind::Mark(mark),
        };
        match runs.last_mut().filter(|run| run.kind == kind) {
            Some(run) => (run.least, run.most) = (run.least + 1, run.most + 1),
            None => runs.push(Run {
                kind,
                least: 1,
                most: 1,
                is_padded: c == '0',
            }),
        }
    }
    Some(runs)
}

fn widen(mut one: Vec<Run>, other: &[Run]) -> Option<Vec<Run>> {
    let is_alike = one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.kind == b.kind);
    if !is_alike {
        return None;
    }
    for (run, other) in one.iter_mut().zip(other) {
        run.least = run.least.min(other.least);
        run.most = run.most.max(other.most);
        run.is_padded |= other.is_padded;
    }
    Some(one)
}

/// The fewest digits of a run with a fixed length. Shorter runs, such as inches and hours, may be longer on other
/// pages.
const FIXED: usize = 3;

#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// The fewest and the most digits of a run.
    Digits(usize, usize),
    /// Digits in groups of three, if there are enough digits for groups.
    Grouped,
    Fixed(String),
}

impl Part {
    fn to_pattern(&self) -> String {
        match self {
            Part::Digits(least, most) if least == most && *least >= FIXED => {
                format!(r"\d{{{least}}}")
            }
            Part::Digits(..) => r"\d+".to_owned(),
            Part::Grouped => r"\d+(?:[.,]\d{3})*".to_owned(),
            Part::Fixed(text) => regex::escape(text),
        }
    }
}

/// Splits a value into its parts; `None` if it has letters, or is too long.
fn parts_of(value: &str) -> Option<Vec<Part>> {
    if value.len() > 40 || value.chars().any(char::is_alphabetic) {
        return None;
    }
    let mut parts: Vec<Part> = Vec::new();
    for c in value.chars() {
        match (c.is_ascii_digit(), parts.last_mut()) {
            (true, Some(Part::Digits(least, most))) => {
                *least += 1;
                *most += 1;
            }
            (true, _) => parts.push(Part::Digits(1, 1)),
            (false, Some(Part::Fixed(text))) => text.push(c),
            (false, _) => parts.push(Part::Fixed(c.to_string())),
        }
    }
    Some(with_groups(parts))
}

/// Joins grouped digits such as `1,234,567` into a single part.
fn with_groups(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        let is_group = part == Part::Digits(3, 3);
        match joined.as_mut_slice() {
            [
                ..,
                first @ (Part::Digits(_, ..=3) | Part::Grouped),
                Part::Fixed(mark),
            ] if is_group && matches!(mark.as_str(), "," | ".") => {
                *first = Part::Grouped;
                joined.pop();
            }
            _ => joined.push(part),
        }
    }
    joined
}

fn join_parts(one: &[Part], other: &[Part]) -> Option<Vec<Part>> {
    let join = |(one, other): (&Part, &Part)| match (one, other) {
        (Part::Digits(least, most), Part::Digits(less, more)) => {
            Some(Part::Digits(*least.min(less), *most.max(more)))
        }
        (Part::Grouped, Part::Digits(..)) | (Part::Digits(..), Part::Grouped) => {
            Some(Part::Grouped)
        }
        (one, other) => (one == other).then(|| one.clone()),
    };
    (one.len() == other.len())
        .then(|| one.iter().zip(other).map(join).collect())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::KnownValue;

    fn label(values: &[&str]) -> Label {
        Label {
            wanted: values
                .iter()
                .filter_map(|value| KnownValue::new(value))
                .collect(),
            ..Label::default()
        }
    }

    #[test]
    fn telephone_numbers_have_a_shape_and_names_have_none() {
        let numbers = ["(325) 674-2000", "(800) 460-6228", "(952) 851-0066"];
        let shape = common_pattern(&[label(&numbers)]).unwrap();
        let pattern = regex::Regex::new(&shape).unwrap();
        assert!(pattern.is_match("(719) 587-7011"), "{shape}");
        assert!(!pattern.is_match("Fax: (719) 587-7011"), "{shape}");
        assert!(!pattern.is_match("(719) 587-70112"), "{shape}");
        assert_eq!(common_pattern(&[label(&["Ada", "Mary", "Emmy"])]), None);
        assert_eq!(common_pattern(&[label(&["18", "1", "7"])]), None);
        assert_eq!(common_pattern(&[label(&numbers[..2])]), None);
    }

    #[test]
    fn numbers_with_groups_and_without_have_one_shape() {
        let shape = common_pattern(&[label(&["$1,250.40", "$12,010.50", "$7.99"])]).unwrap();
        let pattern = regex::Regex::new(&shape).unwrap();
        for value in ["$3,123,456.70", "$950.00", "$1,000.00"] {
            assert!(pattern.is_match(value), "{shape} {value}");
        }
        assert!(!pattern.is_match("$5"), "{shape}");
    }

    #[test]
    fn codes_have_a_shape_and_words_have_none() {
        for (values, expected) in [
            (&["10115", "20095", "01067"][..], Some(r"\d{5}")),
            (&["AB-12", "CD-7", "XY-301"], Some(r"[A-Z]+\-\d+")),
            (
                &["978-3-16", "978-0-30", "978-1-55"],
                Some(r"\d+\-\d+\-\d+"),
            ),
            (&["1.20", "2.10", "3.40"], None),
            (&["$1.20", "$2.10", "$3.40"], None),
            (&["5", "20", "300"], None),
            (&["10115", "20095"], None),
            (&["10115", "D-20095", "01067"], None),
            (&["Berlin", "Bonn", "Ulm"], None),
            (&["USA", "UK", "EU"], None),
        ] {
            let shape = code_pattern(values.iter().copied(), Lengths::AsKnown);
            assert_eq!(shape.as_deref(), expected, "{values:?}");
        }
    }

    #[test]
    fn few_values_prove_no_length() {
        let proven =
            |values: &[String]| code_pattern(values.iter().map(String::as_str), Lengths::Proven);
        let numbers = |count: usize| -> Vec<String> {
            let number = |at: usize| (100 + at * 17 % 900).to_string();
            (0..count).map(number).collect()
        };
        assert_eq!(proven(&numbers(13)).as_deref(), Some(r"\d+"));
        assert_eq!(proven(&numbers(50)).as_deref(), Some(r"\d{3}"));
        let codes = ["10115", "20095", "01067"].map(String::from);
        assert_eq!(proven(&codes).as_deref(), Some(r"\d{5}"));
        let articles = |at: usize| format!("AB-{}", 100 + at);
        let articles: Vec<String> = (0..20).map(articles).collect();
        assert_eq!(proven(&articles).as_deref(), Some(r"[A-Z]+\-\d+"));
    }

    #[test]
    fn short_runs_and_runs_of_different_length_are_any_digits() {
        let shape = common_pattern(&[label(&["1.25", "10.50", "7.99"])]).unwrap();
        assert_eq!(shape, r"^\d+\.\d+$");
    }
}
