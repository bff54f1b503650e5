//! What the values of a field usually look like: their forms, lengths, words and range.

use std::collections::{BTreeMap, BTreeSet};

/// The most runs of characters that a shape keeps. The rest of the text counts as one more run.
const MOST_RUNS: usize = 10;

/// A kind of values with a smaller share than this is taken for errors.
const LEAST_SHARE: f64 = 0.05;

/// The share of values with each form, kind or length, by the name of it.
type Shares = BTreeMap<String, f64>;

/// What a field's values look like: the share of each form, kind and length, their words, and their range.
#[derive(Debug, Default, Clone)]
pub(super) struct Profile {
    shapes: Shares,
    kinds: Shares,
    lengths: Shares,
    forms: BTreeSet<String>,
    words: BTreeSet<String>,
    /// The 10th and the 90th percentile of the numbers.
    range: Option<(f64, f64)>,
    /// The length of the longest value, in characters.
    longest: usize,
}

impl Profile {
    /// Makes the profile of these values. Each is given with the form that all of its spellings share.
    pub(super) fn from_values<'v>(values: impl Iterator<Item = (&'v str, &'v str)>) -> Profile {
        let mut profile = Profile::default();
        let (mut numbers, mut count) = (Vec::new(), 0.0);
        for (text, form) in values {
            count += 1.0;
            profile.longest = profile.longest.max(text.chars().count());
            *profile.shapes.entry(shape(text)).or_default() += 1.0;
            *profile.kinds.entry(text_kind(text).to_owned()).or_default() += 1.0;
            *profile.lengths.entry(length_step(text)).or_default() += 1.0;
            profile.words.extend(words(text));
            profile.forms.insert(form.to_owned());
            numbers.extend(parse_number(text));
        }
        for shares in [
            &mut profile.shapes,
            &mut profile.kinds,
            &mut profile.lengths,
        ] {
            shares.values_mut().for_each(|share| *share /= count);
        }
        numbers.sort_by(f64::total_cmp);
        if numbers.len() as f64 * 2.0 >= count && !numbers.is_empty() {
            let at = |share: f64| numbers[((numbers.len() - 1) as f64 * share).round() as usize];
            profile.range = Some((at(0.1), at(0.9)));
        }
        profile
    }

    /// How similar the forms of two fields' values are, from 0 to 1.
    pub(super) fn shape_similarity(&self, other: &Profile) -> f64 {
        overlap(&self.shapes, &other.shapes)
    }

    pub(super) fn kind_similarity(&self, other: &Profile) -> f64 {
        overlap(&self.kinds, &other.kinds)
    }

    pub(super) fn length_similarity(&self, other: &Profile) -> f64 {
        overlap(&self.lengths, &other.lengths)
    }

    /// The share of this profile's different values that the other profile has too.
    pub(super) fn value_overlap(&self, other: &Profile) -> f64 {
        share_in(&self.forms, &other.forms)
    }

    /// The share of the words in this profile's values that the other profile's values have too.
    pub(super) fn word_overlap(&self, other: &Profile) -> f64 {
        share_in(&self.words, &other.words)
    }

    /// Whether a text is of a kind that these values have, and not much longer than the longest of them.
    pub(super) fn fits(&self, text: &str) -> bool {
        let share = self.kinds.get(text_kind(text)).copied().unwrap_or_default();
        share >= LEAST_SHARE && text.chars().count() <= self.longest * 3 / 2
    }

    /// How far the two ranges of numbers overlap, from 0 to 1. It is 0.5 if neither profile has numbers, and 0 if only
    /// one has.
    pub(super) fn range_overlap(&self, other: &Profile) -> f64 {
        match (self.range, other.range) {
            (Some((low, high)), Some((less, more))) => {
                let overlap = high.min(more) - low.max(less);
                let whole = high.max(more) - low.min(less);
                if whole <= 0.0 {
                    return 1.0;
                }
                (overlap / whole).max(0.0)
            }
            (None, None) => 0.5,
            _ => 0.0,
        }
    }
}

fn overlap(one: &Shares, other: &Shares) -> f64 {
    let smaller = one
        .iter()
        .map(|(what, share)| share.min(other.get(what).copied().unwrap_or(0.0)));
    smaller.sum()
}

fn share_in(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    one.intersection(other).count() as f64 / one.len().max(1) as f64
}

/// The shape of a text: its runs of digits, words and marks. Consecutive words are one run, and all long runs of digits
/// count as equal.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut runs = 0;
    let mut digits = 0;
    let end = |shape: &mut String, digits: &mut usize| {
        if *digits > 0 {
            *shape += &format!("9{}", (*digits).min(5));
            *digits = 0;
        }
    };
    for c in text.chars() {
        let kind = match c {
            _ if c.is_ascii_digit() => '9',
            _ if c.is_alphabetic() => 'a',
            _ if c.is_whitespace() => ' ',
            mark => mark,
        };
        if kind == '9' {
            digits += 1;
        } else {
            end(&mut shape, &mut digits);
            let continues = kind == ' ' || (kind == 'a' && shape.ends_with('a'));
            if !continues {
                shape.push(kind);
                runs += 1;
            }
        }
        if runs > MOST_RUNS {
            shape.push('…');
            return shape;
        }
    }
    end(&mut shape, &mut digits);
    shape
}

fn text_kind(text: &str) -> &'static str {
    let count = |is: &dyn Fn(char) -> bool| text.chars().filter(|c| is(*c)).count();
    let digits = count(&|c| c.is_ascii_digit());
    let letters = count(&char::is_alphabetic);
    let words = text.split_whitespace().count();
    let money = text.contains(['$', '€', '£', '¥']);
    match (digits, letters) {
        _ if text.contains("://") => "address",
        _ if text.contains('@') && words == 1 => "mail",
        (1.., _) if money => "money",
        (1.., 0) if digits >= 7 => "long number",
        (4, 0) if words == 1 && text.len() == 4 => "four digits",
        (1.., 0) if text.contains(['/', ':', '-']) => "marked number",
        (1.., 0) => "number",
        (1.., 1..) if is_day(text) => "day",
        (1.., 1..) if words == 1 => "code",
        (1.., 1..) if words <= 3 => "number and words",
        (0, 1..) if words == 1 => "word",
        (0, 1..) if words <= 4 => "words",
        _ if words <= 12 => "phrase",
        _ => "text",
    }
}

fn is_day(text: &str) -> bool {
    text.len() <= 40 && crate::dates::day_of(text).is_some()
}

/// The class of lengths that a text belongs to, as a name. Classes of longer texts are wider.
fn length_step(text: &str) -> String {
    let count = text.chars().count();
    (f64::from(u32::try_from(count).unwrap_or(u32::MAX)).log2() * 1.5)
        .round()
        .to_string()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let is_word = |word: &&str| word.chars().count() > 1 && word.chars().any(char::is_alphabetic);
    words.filter(is_word).map(str::to_lowercase)
}

fn parse_number(text: &str) -> Option<f64> {
    let plain: String = text
        .chars()
        .filter(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let has_words = text.split_whitespace().count() > 2;
    if has_words || plain.is_empty() {
        return None;
    }
    plain.trim_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_form_have_one_shape() {
        assert_eq!(shape("Ada Lovelace"), shape("Mary Wollstonecraft Shelley"));
        assert_eq!(shape("$12.50"), shape("$ 99.00"));
        assert_ne!(shape("$12.50"), shape("12.50"));
        assert_ne!(shape("978-3"), shape("9783"));
    }

    #[test]
    fn alike_values_have_alike_profiles() {
        let of =
            |values: &[&str]| Profile::from_values(values.iter().map(|value| (*value, *value)));
        let years = of(&["1998", "2004", "2010"]);
        let pages = of(&["320 pages", "96 pages", "1200 pages"]);
        let others = of(&["1999", "2001", "2011"]);
        assert!(years.shape_similarity(&others) > 0.99);
        assert!(years.shape_similarity(&pages) < 0.01);
        assert!(years.range_overlap(&others) > 0.7);
        assert!(years.fits("2020") && !years.fits("Mar 15, 2007") && !years.fits("Ada"));
    }
}
