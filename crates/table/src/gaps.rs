//! Gap markers: words such as `NA`, `-` and `null` that mean that a value is missing. They are determined for each
//! column, because `NA` may be the code of Namibia, and `null` may be a name.

use crate::cell::Cell;
use crate::kind::Kind;

/// How certain it is that a word means a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// The word is never a value: `N/A`.
    Certain,
    /// Programs write the word for a missing value: `null`.
    OfPrograms,
    /// The word is a sign in place of a value: `-`, `?`.
    Sign,
    /// The word may be a value, especially in a column of codes: `NA`.
    Code,
    /// The word is often a value, such as `none` in a column of allergens.
    Weak,
}

const WORDS: &[(&str, Word)] = &[
    ("N/A", Word::Certain),
    ("n/a", Word::Certain),
    ("#N/A", Word::Certain),
    ("#NULL!", Word::Certain),
    ("#DIV/0!", Word::Certain),
    ("#VALUE!", Word::Certain),
    ("#REF!", Word::Certain),
    ("#NAME?", Word::Certain),
    ("#NUM!", Word::Certain),
    ("\\N", Word::Certain),
    ("<null>", Word::Certain),
    ("(null)", Word::Certain),
    ("<NA>", Word::Certain),
    ("null", Word::OfPrograms),
    ("NULL", Word::OfPrograms),
    ("NaN", Word::OfPrograms),
    ("nan", Word::OfPrograms),
    ("-", Word::Sign),
    ("--", Word::Sign),
    ("---", Word::Sign),
    ("–", Word::Sign),
    ("—", Word::Sign),
    ("?", Word::Sign),
    ("??", Word::Sign),
    ("...", Word::Sign),
    ("NA", Word::Code),
    ("na", Word::Code),
    ("n.a.", Word::Code),
    ("k.A.", Word::Code),
    ("Null", Word::Weak),
    ("None", Word::Weak),
    ("none", Word::Weak),
    ("NONE", Word::Weak),
    ("nil", Word::Weak),
    ("unknown", Word::Weak),
    ("Unknown", Word::Weak),
    ("missing", Word::Weak),
    ("TBD", Word::Weak),
    ("undefined", Word::Weak),
];

/// The index of a text in [`WORDS`], if it is one of the known gap markers.
pub(crate) fn gap_word_index(text: &str) -> Option<usize> {
    const LONGEST: usize = 9;
    let text = match text.len() {
        0..=LONGEST => text,
        _ => text.trim(),
    };
    if text.len() > LONGEST + 1 {
        return None;
    }
    let text = text.trim();
    WORDS.iter().position(|(word, _)| *word == text)
}

/// The words that mean a gap (a missing value) in a column, as indexes in a list of known words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GapMarkers(Vec<usize>);

impl GapMarkers {
    /// Whether a cell holds one of these gap markers.
    pub fn contains(&self, cell: &Cell) -> bool {
        let (Cell::Text(text) | Cell::Number(text)) = cell else {
            return false;
        };
        !self.0.is_empty() && gap_word_index(text).is_some_and(|word| self.0.contains(&word))
    }

    /// The gap markers as the table writes them.
    pub fn marker_texts(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|word| WORDS[*word].0)
    }

    pub(crate) fn word_indexes(&self) -> &[usize] {
        &self.0
    }

    /// Decides which words of a column mean a gap. `counted` has each word with the number of its cells, `values` are
    /// other values of the column, and `cells` is the number of all its cells.
    pub(crate) fn from_counts(counted: &[(usize, u64)], values: &[&str], cells: u64) -> GapMarkers {
        let others = OtherValues::from_values(values);
        let is_gap = |(word, count): &(usize, u64)| {
            let (text, kind) = WORDS[*word];
            others.means_gap(text, kind, *count, cells)
        };
        let gaps = counted.iter().filter(|counted| is_gap(counted));
        GapMarkers(gaps.map(|(word, _)| *word).collect())
    }
}

/// Judges whether a word would mean a gap in a column, if some values of the column are known.
#[derive(Debug, Clone, Default)]
pub struct GapWords {
    others: OtherValues,
    /// Words that look like gap markers but occur as values of the column.
    values: Vec<usize>,
    /// Whether the column has enough values to show which words it uses.
    are_many: bool,
}

impl GapWords {
    /// Learns from the values of a column. They must not contain its gaps.
    pub fn of_column<'v>(values: impl Iterator<Item = &'v str>) -> GapWords {
        /// A word such as `unknown` is no value of a column if none of this many values is it.
        const MANY: usize = 12;
        let values: Vec<&str> = values.collect();
        let words = values.iter().filter_map(|value| gap_word_index(value));
        GapWords {
            others: OtherValues::from_values(&values),
            values: words.collect(),
            are_many: values.len() >= MANY,
        }
    }

    /// Whether a text would mean a gap in the column.
    pub fn contains(&self, text: &str) -> bool {
        gap_word_index(text).is_some_and(|index| {
            let (word, kind) = WORDS[index];
            let is_gap = self.others.means_gap(word, kind, 1, u64::MAX);
            !self.values.contains(&index) && (is_gap || kind == Word::Weak && self.are_many)
        })
    }
}

/// Counts the values of a column that are not gap markers, by their form.
#[derive(Debug, Clone, Default)]
struct OtherValues {
    count: usize,
    /// Whether nearly all values are numbers, dates, links or booleans.
    are_typed: bool,
    short_codes: usize,
    signs: usize,
    lower_words: usize,
    upper_words: usize,
}

impl OtherValues {
    fn from_values(values: &[&str]) -> OtherValues {
        let count = |is: &dyn Fn(&str) -> bool| values.iter().filter(|value| is(value)).count();
        let is_word = |text: &str| !text.is_empty() && text.chars().all(char::is_alphabetic);
        let typed = count(&|text| Kind::from_text(text) != Kind::Text);
        OtherValues {
            count: values.len(),
            are_typed: !values.is_empty() && typed * 10 >= values.len() * 9,
            short_codes: count(&|text| text.len() <= 3 && is_word(text)),
            signs: count(&|text| !text.chars().any(char::is_alphanumeric)),
            lower_words: count(&|text| is_word(text) && text.chars().all(char::is_lowercase)),
            upper_words: count(&|text| is_word(text) && text.chars().all(char::is_uppercase)),
        }
    }

    fn is_nearly_all(&self, some: usize) -> bool {
        self.count > 0 && some * 10 >= self.count * 9
    }

    /// Whether a word means a gap in a column with these other values. `count` of its `cells` have the word.
    fn means_gap(&self, text: &str, word: Word, count: u64, cells: u64) -> bool {
        let is_frequent = count >= 3 && count * 50 >= cells;
        match word {
            Word::Certain => true,
            _ if self.are_typed => true,
            // A column without any other value gives no evidence that these words are values.
            Word::OfPrograms | Word::Sign | Word::Code if self.count == 0 => true,
            Word::OfPrograms => {
                let like_it = match text.chars().all(char::is_lowercase) {
                    true => self.lower_words,
                    false => self.upper_words,
                };
                is_frequent || !self.is_nearly_all(like_it)
            }
            Word::Sign => self.signs * 10 < self.count,
            Word::Code => self.short_codes * 10 < self.count,
            Word::Weak => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_words_are_not_gaps_in_columns_that_use_them_as_values() {
        let titles = ["The Sea", "A House in Town", "Dune", "Emma"];
        let names = ["SMITH", "JONES", "BAKER", "WONG"];
        let tags = ["poetry", "drama", "crime", "essay"];
        let countries = ["DE", "FR", "ZA", "US"];
        let prices = ["12.50", "7", "1.99", "100"];
        let grades = ["+", "++", "o", "+"];
        let table: [(&[&str], &str, u64, bool); 23] = [
            (&titles, "N/A", 1, true),
            (&titles, "-", 1, true),
            (&titles, "NA", 1, true),
            (&titles, "null", 1, true),
            (&titles, "None", 5, false),
            (&titles, "unknown", 5, false),
            (&titles, " - ", 1, true),
            (&names, "NULL", 1, false),
            (&names, "NULL", 30, true),
            (&names, "\\N", 1, true),
            (&tags, "null", 1, false),
            (&tags, "none", 30, false),
            (&tags, "NaN", 1, true),
            (&countries, "NA", 30, false),
            (&countries, "N/A", 1, true),
            (&countries, "-", 1, true),
            (&prices, "NA", 1, true),
            (&prices, "none", 1, true),
            (&prices, "unknown", 1, true),
            (&prices, "NaN", 1, true),
            (&grades, "-", 9, false),
            (&[], "-", 9, true),
            (&[], "none", 9, false),
        ];
        for (values, text, count, expected) in table {
            let word = gap_word_index(text).unwrap();
            let gaps = GapMarkers::from_counts(&[(word, count)], values, 1_000);
            let is_gap = gaps.contains(&Cell::Text(text.to_owned()));
            assert_eq!(is_gap, expected, "{text} among {values:?}");
        }
    }

    #[test]
    fn a_word_means_a_gap_unless_the_column_has_it_as_a_value() {
        let titles = GapWords::of_column(["The Sea", "Dune", "None"].into_iter());
        assert!(titles.contains("N/A") && titles.contains("\u{2014}") && titles.contains(" - "));
        assert!(!titles.contains("None") && !titles.contains("Emma") && !titles.contains(""));
        let countries = GapWords::of_column(["DE", "NA", "FR"].into_iter());
        assert!(!countries.contains("NA") && countries.contains("-"));
        let prices = GapWords::of_column(["12.50", "7"].into_iter());
        assert!(prices.contains("unknown") && prices.contains("TBD"));
        let makers = ["Acorn", "Birch", "Cedar"].repeat(4);
        assert!(GapWords::of_column(makers.iter().copied()).contains("unknown"));
        assert!(!GapWords::of_column(makers[1..].iter().copied()).contains("unknown"));
        let with_none = makers.iter().chain(&["none"]).copied();
        assert!(!GapWords::of_column(with_none).contains("none"));
        assert!(GapWords::default().contains("n/a"));
    }

    #[test]
    fn every_word_is_found() {
        for (number, (word, _)) in WORDS.iter().enumerate() {
            assert_eq!(gap_word_index(word), Some(number), "{word}");
        }
        assert_eq!(gap_word_index("nothing at all"), None);
        assert_eq!(gap_word_index(""), None);
    }
}
