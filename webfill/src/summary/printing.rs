//! Texts and counts as the summary prints them.

use std::collections::BTreeMap;

/// The first 40 characters of a name, with line breaks and control characters escaped.
pub fn escape_and_shorten(name: &str) -> String {
    name.chars()
        .take(40)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

/// Escapes line breaks and control characters.
pub(super) fn printable_text(text: &str) -> String {
    text.escape_debug().to_string()
}

/// Formats counts as one line, such as `12 ok, 3 http_error`, with the highest count first.
pub(super) fn format_counts(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let parts = sorted.iter().map(|(name, count)| format!("{count} {name}"));
    parts.collect::<Vec<_>>().join(", ")
}
