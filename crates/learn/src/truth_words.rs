//! Yes or no: converts words, signs or classes of pages to one of the two words that records use.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

/// The pairs of words for yes and no that records may use.
const OF_RECORDS: [(&str, &str); 5] = [
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("ja", "nein"),
    ("oui", "non"),
];

/// The words and signs for yes and no that pages may use.
const YES: &[&str] = &[
    "\u{2713}", "\u{2714}", "\u{2611}", "\u{2705}", "\u{25cf}", "yes", "true", "y", "ja", "oui",
];
const NO: &[&str] = &[
    "\u{2717}", "\u{2718}", "\u{2715}", "\u{2716}", "\u{2612}", "\u{274c}", "\u{d7}", "\u{25cb}",
    "no", "false", "n", "nein", "non",
];

/// The words and signs that pages may use for this word of a record, and the processor that converts them to the
/// record's words. `None` if the word is not in [`OF_RECORDS`].
pub(crate) fn page_words(value: &str) -> Option<(&'static [&'static str], Value)> {
    let lower = value.to_lowercase();
    let (yes, no) = OF_RECORDS
        .into_iter()
        .find(|(yes, no)| lower == *yes || lower == *no)?;
    let written = |word: &str| match_capitalization(word, value);
    let table = YES.iter().map(|word| (*word, written(yes)));
    let table = table.chain(NO.iter().map(|word| (*word, written(no))));
    let table: Map<String, Value> = table
        .map(|(word, of_record)| (word.to_owned(), of_record.into()))
        .collect();
    let map = json!({"type": "map", "parameters": {"table": table, "others": "drop", "ignore_case": true}});
    let words = if lower == yes { YES } else { NO };
    Some((words, map))
}

/// The words that mean yes or no in classes of elements without text, such as icons.
const YES_CLASSES: [&str; 12] = [
    "in-stock",
    "instock",
    "available",
    "check",
    "checked",
    "tick",
    "check-circle",
    "yes",
    "true",
    "on",
    "enabled",
    "active",
];
const NO_CLASSES: [&str; 19] = [
    "out-of-stock",
    "outofstock",
    "sold-out",
    "soldout",
    "not-available",
    "unavailable",
    "times",
    "times-circle",
    "cross",
    "xmark",
    "close",
    "no",
    "false",
    "off",
    "disabled",
    "inactive",
    "unchecked",
    "not-in-stock",
    "remove",
];

static CLASS_WORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&class_pattern()).expect("constant words"));

/// The only prefixes that a class may have before such a word. Other prefixes may mean the opposite:
/// `no-longer-available`.
const CLASS_PREFIXES: &str = "fas?|far|fab|bi|mdi|icons?|ion|ti|la|ri|oi|uil|glyphicon|status|badge|label|stock|availability|is";

/// A pattern for the first word that means yes or no in a `class` attribute, as a whole class or at the end of one.
/// Longer words are tried first.
fn class_pattern() -> String {
    let mut words: Vec<&str> = YES_CLASSES.into_iter().chain(NO_CLASSES).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    format!(
        r"(?:^|\s)(?:(?:{CLASS_PREFIXES})[_-]|[a-z0-9_]+--)?({})(?:\s|$)",
        words.join("|")
    )
}

/// The word in a `class` attribute that means yes or no, if there is one.
fn class_word(class: &str) -> Option<&str> {
    Some(CLASS_WORD.captures(class)?.get(1)?.as_str())
}

/// Whether a `class` attribute means yes or no.
pub(crate) fn is_truth_class(class: &str) -> bool {
    class_word(class).is_some()
}

/// A function that tests whether a class means this word of a record, and the processors that convert classes to the
/// record's words. `None` if the word is not in [`OF_RECORDS`].
pub(crate) fn class_test_and_processors(
    value: &str,
) -> Option<(impl Fn(&str) -> bool, Vec<Value>)> {
    let lower = value.to_lowercase();
    let (yes, no) = OF_RECORDS
        .into_iter()
        .find(|(yes, no)| lower == *yes || lower == *no)?;
    let words: &'static [&'static str] = if lower == yes {
        &YES_CLASSES
    } else {
        &NO_CLASSES
    };
    let table = YES_CLASSES
        .iter()
        .map(|word| (*word, match_capitalization(yes, value)));
    let table = table.chain(
        NO_CLASSES
            .iter()
            .map(|word| (*word, match_capitalization(no, value))),
    );
    let table: Map<String, Value> = table
        .map(|(word, of_record)| (word.to_owned(), of_record.into()))
        .collect();
    let processors = vec![
        json!({"type": "regex", "parameters": {"pattern": class_pattern()}}),
        json!({"type": "map", "parameters": {"table": table, "others": "drop"}}),
    ];
    let means = move |class: &str| class_word(class).is_some_and(|word| words.contains(&word));
    Some((means, processors))
}

/// Converts `word` to the letter case of `other`: capitals, a capital initial or small letters.
fn match_capitalization(word: &str, other: &str) -> String {
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

    #[test]
    fn classes_of_icons_mean_yes_or_no() {
        let means = |value: &str, class: &str| class_test_and_processors(value).unwrap().0(class);
        for class in [
            "stock in-stock",
            "icon icon-check",
            "fa fa-check-circle",
            "yes",
        ] {
            assert!(means("yes", class) && !means("no", class), "{class}");
        }
        for class in [
            "stock out-of-stock",
            "fa fa-times",
            "not-available",
            "is-inactive",
        ] {
            assert!(means("False", class) && !means("True", class), "{class}");
        }
        assert!(!is_truth_class("stockings") && !is_truth_class("checkout button"));
    }
}
