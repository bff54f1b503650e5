//! Yes or no: records have one of two words, and pages have other words or signs.

use serde_json::{Map, Value, json};

/// The words that records have.
const OF_RECORDS: [(&str, &str); 5] = [
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("ja", "nein"),
    ("oui", "non"),
];

/// The words and signs that pages have instead of these words.
const YES: &[&str] = &[
    "\u{2713}", "\u{2714}", "\u{2611}", "\u{2705}", "\u{25cf}", "yes", "true", "y", "ja", "oui",
];
const NO: &[&str] = &[
    "\u{2717}", "\u{2718}", "\u{2715}", "\u{2716}", "\u{2612}", "\u{274c}", "\u{d7}", "\u{25cb}",
    "no", "false", "n", "nein", "non",
];

/// The words and signs that pages may have instead of this word of a record, and the processor that converts them to
/// the record's two words. `None` if the word is none of [`OF_RECORDS`].
pub(crate) fn page_words(value: &str) -> Option<(&'static [&'static str], Value)> {
    let lower = value.to_lowercase();
    let (yes, no) = OF_RECORDS
        .into_iter()
        .find(|(yes, no)| lower == *yes || lower == *no)?;
    let written = |word: &str| written_like(word, value);
    let table = YES.iter().map(|word| (*word, written(yes)));
    let table = table.chain(NO.iter().map(|word| (*word, written(no))));
    let table: Map<String, Value> = table
        .map(|(word, of_record)| (word.to_owned(), of_record.into()))
        .collect();
    let map = json!({"type": "map", "parameters": {"table": table, "others": "drop", "ignore_case": true}});
    let words = if lower == yes { YES } else { NO };
    Some((words, map))
}

/// The word, capitalised like the other one.
fn written_like(word: &str, other: &str) -> String {
    let mut letters = other.chars();
    let has_first = letters.next().is_some_and(char::is_uppercase);
    match (has_first, letters.next().is_some_and(char::is_uppercase)) {
        (true, true) => word.to_uppercase(),
        (true, false) => word[..1].to_uppercase() + &word[1..],
        (false, _) => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_become_the_words_of_the_record() {
        let (words, map) = page_words("True").unwrap();
        assert!(words.contains(&"\u{2713}") && !words.contains(&"\u{2717}"));
        assert_eq!(map["parameters"]["table"]["\u{2717}"], "False");
        assert_eq!(
            page_words("NO").unwrap().1["parameters"]["table"]["yes"],
            "YES"
        );
        assert!(page_words("maybe").is_none());
    }
}
