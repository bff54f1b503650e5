//! Whether a value looks like other values of its field: its length, its kinds of characters, its range of numbers.

use std::collections::HashMap;

/// The number of buckets of [`Profile::fit_bucket`]: usual, rare, and unlike any other value.
pub(crate) const FITS: usize = 3;
/// A profile judges only from this many values on. With fewer different values, it judges only the kinds of characters.
const LEAST_VALUES: usize = 20;

/// The usual appearance of one field's values.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    values: usize,
    different: usize,
    kinds: HashMap<u8, usize>,
    shapes: HashMap<Shape, usize>,
    numbers: Vec<f64>,
}

/// The kinds of characters in a text as bits, and the number of the range of its length. Ranges are wider for longer
/// texts.
type Shape = (u8, u8);

impl Profile {
    /// Adds a value, with the number of table cells that have it.
    pub fn add(&mut self, text: &str, cells: usize) {
        self.values += cells;
        self.different += 1;
        let shape = shape(text);
        *self.kinds.entry(shape.0).or_default() += cells;
        *self.shapes.entry(shape).or_default() += cells;
        if let Ok(number) = text.parse::<f64>()
            && number.is_finite()
        {
            self.numbers.extend(std::iter::repeat_n(number, cells));
        }
    }

    /// Completes the profile. It must be called after the last value was added, and each value is added only once.
    pub fn finish(&mut self) {
        self.numbers.sort_by(f64::total_cmp);
    }

    /// The bucket of a value: 0 if it looks like many other values of its field, 1 if it looks like few, 2 if like
    /// none.
    pub fn fit_bucket(&self, text: &str) -> u8 {
        if self.values < LEAST_VALUES {
            return 0;
        }
        let shape = shape(text);
        // The counts include the value itself, so a count below two means that no other value has its kinds of
        // characters.
        if self.different < LEAST_VALUES {
            let is_alone = self.kinds.get(&shape.0).is_none_or(|count| *count < 2);
            let by_kind = if is_alone { 2 } else { 0 };
            return by_kind.max(self.number_fit_bucket(text));
        }
        let alike = self.shapes.get(&shape).map_or(0, |count| count - 1) as f64;
        let share = alike / self.values as f64;
        let by_shape = match share {
            _ if share >= 0.02 => 0,
            _ if alike >= 1.0 => 1,
            _ => 2,
        };
        by_shape.max(self.number_fit_bucket(text))
    }

    fn number_fit_bucket(&self, text: &str) -> u8 {
        if self.numbers.len() * 10 < self.values * 9 {
            return 0;
        }
        let Ok(number) = text.parse::<f64>() else {
            return 2;
        };
        let at = |share: f64| self.numbers[(share * (self.numbers.len() - 1) as f64) as usize];
        let (low, high) = (at(0.05), at(0.95));
        let spread = (high - low).max(low.abs().max(high.abs()) * 0.01);
        match number {
            _ if number < low - 3.0 * spread || number > high + 3.0 * spread => 2,
            _ if number < low - spread || number > high + spread => 1,
            _ => 0,
        }
    }
}

fn shape(text: &str) -> Shape {
    let mut kinds = 0;
    let mut length = 0_u32;
    for character in text.chars() {
        length += 1;
        kinds |= match character {
            _ if character.is_numeric() => 1,
            _ if character.is_uppercase() => 2,
            _ if character.is_alphabetic() => 4,
            _ if character.is_whitespace() => 8,
            '.' | ',' | '-' | '\'' => 16,
            _ => 32,
        };
    }
    (kinds, (u32::BITS - length.leading_zeros()) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(values: impl Iterator<Item = String>) -> Profile {
        let mut profile = Profile::default();
        values.for_each(|value| profile.add(&value, 1));
        profile.finish();
        profile
    }

    #[test]
    fn prices_and_labels_are_unlike_years() {
        let mut years = profile((0..100).map(|age| (1920 + age).to_string()));
        for odd in ["Year:", "19"] {
            years.add(odd, 1);
        }
        years.finish();
        assert_eq!([years.fit_bucket("1987"), years.fit_bucket("2025")], [0, 0]);
        assert_eq!([years.fit_bucket("Year:"), years.fit_bucket("19")], [2, 2]);
    }

    #[test]
    fn few_different_values_show_which_characters_are_usual() {
        let mut makers = profile(["Fuji", "Panasonic", "12 MP"].map(String::from).into_iter());
        makers.add("Canon", 18);
        assert_eq!(makers.fit_bucket("Panasonic"), 0);
        assert_eq!(makers.fit_bucket("12 MP"), 2);
    }

    #[test]
    fn few_values_have_no_profile() {
        assert_eq!(
            profile(["1", "2"].map(String::from).into_iter()).fit_bucket("a text"),
            0
        );
    }
}
