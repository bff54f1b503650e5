//! The characters of a column that have several forms: apostrophes, quotation marks, hyphens, and letters with accents.
//! Pages often use other forms than the table.

use unicode_normalization::UnicodeNormalization;

/// A form is recognised only if at least this many known values have it.
const LEAST: usize = 3;

/// ASCII characters, each with its typographic forms. Long dashes are not hyphens, and angle quotes belong to a language.
const FORMS: [(char, &[char]); 3] = [
    ('\'', &['\u{2018}', '\u{2019}', '\u{2bc}', '\u{b4}']),
    ('"', &['\u{201c}', '\u{201d}', '\u{201e}']),
    ('-', &['\u{2010}', '\u{2011}', '\u{2013}', '\u{2212}']),
];

/// The forms of characters in the known values of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typography {
    /// The ASCII characters that the column has, without any of their typographic forms.
    plain: Vec<char>,
    /// Whether any known value has letters with separate accents.
    is_decomposed: bool,
}

impl Typography {
    pub fn of_column<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Typography {
        let is_plain = |(ascii, others): &(char, &[char])| {
            let plain = known().filter(|value| value.contains(*ascii));
            plain.take(LEAST).count() == LEAST && !known().any(|value| value.contains(*others))
        };
        let plain = FORMS.iter().filter(|form| is_plain(form));
        Typography {
            plain: plain.map(|(ascii, _)| *ascii).collect(),
            is_decomposed: known().any(|value| composed(&value) != value),
        }
    }

    /// Writes a value with the characters that the column has.
    pub fn format(&self, value: String) -> String {
        if value.is_ascii() {
            return value;
        }
        let mut value = match self.is_decomposed {
            true => value,
            false => composed(&value),
        };
        for (ascii, others) in FORMS {
            if self.plain.contains(&ascii) {
                value = value.replace(others, ascii.encode_utf8(&mut [0; 4]));
            }
        }
        value
    }
}

/// The text with one character for a letter with its accent, where there is one.
fn composed(text: &str) -> String {
    text.nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_written_as_their_column_has_them() {
        let of = |known: &[&str]| {
            Typography::of_column(|| known.iter().map(|value| (*value).to_owned()))
        };
        let plain = ["O'Neill", "it's", "Rock'n'Roll", "Caf\u{e9}"];
        let typographic = ["O\u{2019}Neill", "it's", "Rock'n'Roll", "D'Arcy"];
        let hyphens = ["a-b", "1-2", "Anne-Marie"];
        let few = ["O'Neill", "it's"];
        let decomposed = ["Zoe\u{308}"];
        // Each entry has the known values of a column, a value, and the value as the column writes it.
        let table: [(&[&str], &str, &str); 7] = [
            (&plain, "D\u{2019}Arcy", "D'Arcy"),
            (&plain, "Zoe\u{308} \u{2013} 5", "Zo\u{eb} \u{2013} 5"),
            (&typographic, "D\u{2019}Arcy", "D\u{2019}Arcy"),
            (
                &hyphens,
                "3\u{2013}4 \u{2014} D\u{2019}Arcy",
                "3-4 \u{2014} D\u{2019}Arcy",
            ),
            (&few, "D\u{2019}Arcy", "D\u{2019}Arcy"),
            (&decomposed, "Zoe\u{308}", "Zoe\u{308}"),
            (&[], "Zoe\u{308}", "Zo\u{eb}"),
        ];
        for (known, value, expected) in table {
            assert_eq!(
                of(known).format(value.to_owned()),
                expected,
                "{value} in {known:?}"
            );
        }
    }
}
