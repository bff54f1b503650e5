//! The shape of values that consist of digits and fixed characters between them, as telephone numbers do.

use crate::score::Label;

/// Distinct values that show a shape.
const ENOUGH: usize = 3;

/// A pattern that all known values match from end to end; `None`: they have no common shape, or one so loose
/// that it would tell nothing.
pub(crate) fn common(labels: &[Label]) -> Option<String> {
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
        parts = joined(&parts, &parts_of(value)?)?;
    }
    let digits = parts.iter().filter(|part| !matches!(part, Part::Fixed(_)));
    // One number alone is everywhere.
    if digits.count() < 2 {
        return None;
    }
    let written: String = parts.iter().map(Part::written).collect();
    Some(format!("^{written}$"))
}

/// Shorter runs of digits may be longer elsewhere, as inches and hours are.
const FIXED: usize = 3;

#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// So many digits at least, and at most.
    Digits(usize, usize),
    /// Digits in groups of three, if they are many enough for groups.
    Grouped,
    Fixed(String),
}

impl Part {
    fn written(&self) -> String {
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

/// `None` for a value with letters, or one that is too long.
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

/// `1,234,567` as one part.
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

fn joined(one: &[Part], other: &[Part]) -> Option<Vec<Part>> {
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
    use crate::fold::Wanted;

    fn label(values: &[&str]) -> Label {
        Label {
            wanted: values
                .iter()
                .filter_map(|value| Wanted::new(value))
                .collect(),
            ..Label::default()
        }
    }

    #[test]
    fn telephone_numbers_have_a_shape_and_names_have_none() {
        let numbers = ["(325) 674-2000", "(800) 460-6228", "(952) 851-0066"];
        let shape = common(&[label(&numbers)]).unwrap();
        let pattern = regex::Regex::new(&shape).unwrap();
        assert!(pattern.is_match("(719) 587-7011"), "{shape}");
        assert!(!pattern.is_match("Fax: (719) 587-7011"), "{shape}");
        assert!(!pattern.is_match("(719) 587-70112"), "{shape}");
        assert_eq!(common(&[label(&["Ada", "Mary", "Emmy"])]), None);
        assert_eq!(common(&[label(&["18", "1", "7"])]), None);
        assert_eq!(common(&[label(&numbers[..2])]), None);
    }

    #[test]
    fn numbers_with_groups_and_without_have_one_shape() {
        let shape = common(&[label(&["$1,250.40", "$12,010.50", "$7.99"])]).unwrap();
        let pattern = regex::Regex::new(&shape).unwrap();
        for value in ["$3,123,456.70", "$950.00", "$1,000.00"] {
            assert!(pattern.is_match(value), "{shape} {value}");
        }
        assert!(!pattern.is_match("$5"), "{shape}");
    }

    #[test]
    fn short_runs_and_runs_of_different_length_are_any_digits() {
        let shape = common(&[label(&["1.25", "10.50", "7.99"])]).unwrap();
        assert_eq!(shape, r"^\d+\.\d+$");
    }
}
