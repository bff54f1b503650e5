//! The capitalisation of a column's values. Many pages write values only in capitals or only in small letters, unlike
//! the table.

/// A casing is recognised only from at least this many known values.
const LEAST: usize = 8;

/// A value of one word in capitals may be an abbreviation if it has at most this many letters.
const LONGEST_ABBREVIATION: usize = 5;

/// The capitalisation of a column's known values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Casing {
    /// Each word begins with a capital.
    Words,
    /// Only the first word begins with a capital.
    Sentence,
    /// Each value has both capitals and small letters. Which letters are capitals depends on the words.
    Mixed,
}

/// The casing of the known values that have letters. `None` if these are too few, or if any of them has only capitals
/// or only small letters.
pub fn casing<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Option<Casing> {
    let known = || known().filter(|value| value.contains(char::is_alphabetic));
    let are = |is: &dyn Fn(&String) -> bool| known().all(|value| is(&value));
    if known().take(LEAST).count() < LEAST || !are(&|value| has_small(value) && has_capital(value))
    {
        return None;
    }
    let has_words = known().any(|value| value.contains(' '));
    match () {
        () if are(&|value| capitalise_words(value) == *value) => Some(Casing::Words),
        () if has_words && are(&|value| capitalise_first(value) == *value) => {
            Some(Casing::Sentence)
        }
        () => Some(Casing::Mixed),
    }
}

/// The value in the casing of its column, or why it cannot be converted. A value with both capitals and small letters
/// stays as it is.
pub fn apply_casing(value: String, casing: Option<Casing>) -> Result<String, String> {
    let letters = value.chars().filter(|c| c.is_alphabetic());
    let letters = letters.count();
    let may_be_abbreviation = !value.contains(' ') && letters <= LONGEST_ABBREVIATION;
    let is_address =
        value.contains(['@', '/', '_']) || value.contains(|c: char| c.is_ascii_digit());
    let is_of_one_case = has_capital(&value) != has_small(&value);
    if !is_of_one_case || may_be_abbreviation && has_capital(&value) || is_address {
        return Ok(value);
    }
    match casing {
        None => Ok(value),
        Some(Casing::Words) => Ok(capitalise_words(&value)),
        Some(Casing::Sentence) => Ok(capitalise_first(&value)),
        Some(Casing::Mixed) => Err(String::from(
            "all its letters are of one case, and those of no known value of the column are",
        )),
    }
}

fn has_small(value: &str) -> bool {
    value.contains(char::is_lowercase)
}

fn has_capital(value: &str) -> bool {
    value.contains(char::is_uppercase)
}

fn capitalise_words(value: &str) -> String {
    let mut is_first = true;
    let letters = value.chars().flat_map(|c| {
        let written: Vec<char> = match is_first {
            true => c.to_uppercase().collect(),
            false => c.to_lowercase().collect(),
        };
        is_first = !c.is_alphanumeric() && !matches!(c, '\'' | '\u{2019}');
        written
    });
    letters.collect()
}

fn capitalise_first(value: &str) -> String {
    let mut letters = value.chars();
    match letters.next() {
        Some(first) => first
            .to_uppercase()
            .chain(letters.as_str().to_lowercase().chars())
            .collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_gets_the_case_of_its_column_or_is_refused() {
        let of = |words: &[&str]| {
            let known = words
                .iter()
                .cycle()
                .take(LEAST)
                .map(|word| (*word).to_owned());
            let known: Vec<String> = known.collect();
            casing(|| known.iter().cloned())
        };
        let words = of(&["Ada Lovelace", "Jean-Luc Picard", "Curie"]);
        let sentence = of(&["Quiet river", "Empty stone garden"]);
        let mixed = of(&["The Engine of Winter", "Ian McDonald"]);
        assert_eq!(
            (words, sentence),
            (Some(Casing::Words), Some(Casing::Sentence))
        );
        assert_eq!(mixed, Some(Casing::Mixed));
        assert_eq!(of(&["ADA", "Grace"]), None);
        assert_eq!(of(&["ada", "Grace"]), None);
        let table = [
            ("MARY SHELLEY", words, Some("Mary Shelley")),
            ("jean-luc godard", words, Some("Jean-Luc Godard")),
            ("Mary de la Cruz", words, Some("Mary de la Cruz")),
            ("IBM", words, Some("IBM")),
            ("ibm", words, Some("Ibm")),
            ("AB-1204", words, Some("AB-1204")),
            ("QUIET RIVER", sentence, Some("Quiet river")),
            ("QUIET RIVER", mixed, None),
            ("quiet river", mixed, None),
            ("QUIET RIVER", None, Some("QUIET RIVER")),
            ("1204", words, Some("1204")),
            (
                "\u{65e5}\u{672c}\u{8a9e}",
                words,
                Some("\u{65e5}\u{672c}\u{8a9e}"),
            ),
        ];
        for (value, casing, expected) in table {
            let written = apply_casing(value.to_owned(), casing).ok();
            assert_eq!(written.as_deref(), expected, "{value} as {casing:?}");
        }
    }
}
