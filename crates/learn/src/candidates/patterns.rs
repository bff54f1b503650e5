//! Patterns that extract a value from a longer text by the words and marks around it.

use crate::labels::Leaks;
use crate::places::{Place, PlaceKind};

/// Patterns that extract the value from a longer text. Some require everything before the value, others only the last
/// word before it.
pub(super) fn surrounding_patterns(
    place: &Place<'_>,
    start: usize,
    length: usize,
    leaks: &Leaks,
) -> Vec<String> {
    let (before, after) = (&place.text[..start], &place.text[start + length..]);
    let mut patterns = Vec::new();
    if matches!(place.at, PlaceKind::ScriptKey(..)) {
        return patterns;
    }
    for prefix in prefixes(before) {
        for suffix in suffixes(after) {
            let is_name = prefix.contains(' ') && leaks.share_name_with(&prefix);
            if is_name || leaks.occur_in(&prefix) || leaks.occur_in(&suffix) {
                continue;
            }
            let to = match suffix.as_str() {
                "" => "$".to_owned(),
                suffix => pattern_with_any_digits(suffix),
            };
            for from in pattern_beginnings(&prefix, before) {
                let pattern = format!("{from}\\s*(.+?)\\s*{to}");
                if !patterns.contains(&pattern) {
                    patterns.push(pattern);
                }
            }
        }
    }
    patterns
}

/// The possible beginnings of a pattern with this prefix. One of them searches for the last occurrence of the prefix,
/// because it may also occur earlier in the text.
fn pattern_beginnings(prefix: &str, before: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["^".to_owned()];
    }
    let escaped = pattern_with_any_digits(prefix);
    if prefix.len() == before.trim_end().len() {
        return vec![format!("^{escaped}")];
    }
    match prefix.starts_with(char::is_alphanumeric) {
        true => vec![format!(r"\b{escaped}\b"), format!(r"^.*\b{escaped}\b")],
        false => vec![escaped.clone(), format!("^.*{escaped}")],
    }
}

/// Turns a text into a pattern that accepts any digits in place of its digits, because numbers differ between pages.
pub(crate) fn pattern_with_any_digits(text: &str) -> String {
    let mut pattern = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() < part.len() {
            pattern.push_str(r"\d+");
        }
        pattern.push_str(&regex::escape(rest));
    }
    pattern
}

fn prefixes(before: &str) -> Vec<String> {
    if before.is_empty() {
        return vec![String::new()];
    }
    let mut found = Vec::new();
    if before.len() <= 40 {
        found.push(before.trim_end().to_owned());
    }
    // Possible prefixes are the last two words, the last word with the mark after it, and the mark alone.
    let trimmed = before.trim_end();
    found.extend(last_two_words(trimmed).map(str::to_owned));
    if let Some(word) = trimmed.rsplit(' ').next() {
        found.push(word.to_owned());
    }
    if let Some(mark) = trimmed.chars().next_back().filter(|c| !c.is_alphanumeric()) {
        found.push(mark.to_string());
    }
    found.retain(|prefix| !prefix.is_empty());
    found.dedup();
    found
}

/// The last two words of a text that has more. A single word such as `by` would be ambiguous: `Translated by`,
/// `Published by`.
fn last_two_words(text: &str) -> Option<&str> {
    const LONGEST: usize = 40;
    let (first, _) = text.rsplit_once(' ')?;
    let (before, _) = first.rsplit_once(' ')?;
    let words = &text[before.len() + 1..];
    let is_word =
        |word: &str| word.starts_with(char::is_alphabetic) && !word.ends_with(['.', ',', ';']);
    let mut both = words.split(' ');
    (words.len() <= LONGEST && both.all(is_word)).then_some(words)
}

fn suffixes(after: &str) -> Vec<String> {
    if after.is_empty() {
        return vec![String::new()];
    }
    let mut found = Vec::new();
    if after.len() <= 24 {
        found.push(after.to_owned());
    }
    let trimmed = after.trim_start();
    if let Some(mark) = trimmed.chars().next().filter(|c| !c.is_alphanumeric()) {
        found.push(mark.to_string());
    } else if let Some(word) = trimmed.split(' ').next() {
        found.push(format!(" {word}"));
    }
    found.dedup();
    found
}

/// Whether a pattern contains a word, and does not depend on marks or positions alone.
pub(crate) fn has_word(pattern: &str) -> bool {
    let mut letters = 0;
    let mut is_escaped = false;
    for c in pattern.chars() {
        letters = match c.is_alphabetic() && !is_escaped {
            true => letters + 1,
            false => 0,
        };
        is_escaped = c == '\\' && !is_escaped;
        if letters == 2 {
            return true;
        }
    }
    false
}
