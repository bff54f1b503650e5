//! How likely a proposal is right, judged by whether it looks like the known values of its column.

use webfill_learn::Appearance;

use super::table::Table;

/// How many known values, and how many bytes of them, are used.
const MOST_VALUES: usize = 10_000;
const MOST_BYTES: usize = 32 << 20;

/// The highest confidence in a proposal that does not look like the known values. It is never filled in.
const MOST_IF_UNLIKE: f64 = 0.9;

/// The typical appearance of a column's values.
pub(super) struct Likeness {
    appearance: Appearance,
    /// The number of known values that show it.
    known: usize,
}

impl Likeness {
    pub(super) fn from_field(table: &Table, field: usize) -> Likeness {
        let known = table.rows.iter().flat_map(|row| row.known_values(field));
        let mut bytes = 0;
        let is_within = |value: &String| {
            bytes += value.len();
            bytes <= MOST_BYTES
        };
        let known: Vec<String> = known.take(MOST_VALUES).take_while(is_within).collect();
        Likeness {
            appearance: Appearance::from_values(known.iter().map(String::as_str)),
            known: known.len(),
        }
    }

    /// The probability that these values are right, if it is `confidence` for values that look like the known ones.
    pub(super) fn weigh(&self, confidence: f64, values: &[String]) -> f64 {
        match values.iter().all(|value| self.appearance.fits(value)) {
            true => confidence,
            false => confidence_if_unlike(confidence, self.known),
        }
    }
}

/// If few values are known, it says little that another one looks different: by the rule of succession, a right value
/// is unlike `known` others with a probability of 1 in `known` + 2.
fn confidence_if_unlike(confidence: f64, known: usize) -> f64 {
    /// The probability that a value of something else is unlike the known ones.
    const IF_WRONG: f64 = 0.5;
    let if_right = (1.0 / (known as f64 + 2.0)).min(IF_WRONG);
    let right = confidence * if_right;
    let wrong = (1.0 - confidence) * IF_WRONG;
    (right / (right + wrong)).min(MOST_IF_UNLIKE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_value_is_the_more_doubtful_the_more_values_are_known() {
        let table = [
            (0.8, 0, 0.8),
            (0.8, 2, 0.667),
            (0.8, 10, 0.4),
            (0.8, 100, 0.073),
            (0.999, 2, 0.9),
            (0.999, 1_000, 0.666),
        ];
        for (confidence, known, expected) in table {
            let found = confidence_if_unlike(confidence, known);
            assert!(
                (found - expected).abs() < 0.001,
                "{confidence}, {known}: {found}"
            );
        }
    }
}
