//! A readable difference, with a line for each block or field. Within a line, removed text is in `[-…-]` and added
//! text in `{+…+}`.

use serde_json::{Map, Value};
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, capture_diff_slices};

/// The most bytes of a difference. The same limit applies to all blocks reported as gone, and to all blocks reported as
/// new.
const MOST_BYTES: usize = 16 << 10;

/// The longest line, in characters. Longer lines are truncated.
const MOST_LINE_CHARS: usize = 1_000;

/// The longest lines, in bytes, that are compared word by word.
const MOST_COMPARED_BYTES: usize = 8 << 10;

/// The most lines that are compared with each other.
const MOST_LINES: usize = 1_000;

/// How many characters are shown on each side of a differing word.
const CONTEXT_CHARS: usize = 60;

/// The texts as a JSON list, up to the limit of bytes.
pub(crate) fn limit_texts(texts: &[&str]) -> Value {
    let mut bytes = 0;
    let fits = |text: &&&str| {
        bytes += text.len();
        bytes <= MOST_BYTES
    };
    let shown: Vec<&str> = texts.iter().take_while(fits).copied().collect();
    let left = texts.len() - shown.len();
    let mut shown: Vec<Value> = shown.into_iter().map(Value::from).collect();
    if left > 0 {
        shown.push(format!("(and {left} more)").into());
    }
    shown.into()
}

/// The difference of two lists of texts.
pub(crate) fn diff_texts(old: &[&str], new: &[&str]) -> String {
    let mut lines = Lines::default();
    if old.len() > MOST_LINES || new.len() > MOST_LINES {
        lines.add_replaced(old, new);
        return lines.text;
    }
    for operation in capture_diff_slices(Algorithm::Myers, old, new) {
        match operation {
            DiffOp::Equal { .. } => {}
            DiffOp::Delete {
                old_index, old_len, ..
            } => lines.add_removed(&old[old_index..old_index + old_len]),
            DiffOp::Insert {
                new_index, new_len, ..
            } => lines.add_added(&new[new_index..new_index + new_len]),
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } => lines.add_replaced(
                &old[old_index..old_index + old_len],
                &new[new_index..new_index + new_len],
            ),
        }
    }
    lines.text
}

/// The difference of the fields that differ.
pub(crate) fn diff_fields(old: &Map<String, Value>, new: &Map<String, Value>) -> String {
    let mut lines = Lines::default();
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    for (name, value) in old {
        let was = format!("{name}: {}", text(value));
        match new.get(name) {
            None => lines.add_removed(&[&was]),
            Some(value) => lines.add_replaced(&[&was], &[&format!("{name}: {}", text(value))]),
        }
    }
    for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        lines.add_added(&[&format!("{name}: {}", text(value))]);
    }
    lines.text
}

#[derive(Default)]
struct Lines {
    text: String,
    is_full: bool,
}

impl Lines {
    fn add_removed(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.add('-', text));
    }

    fn add_added(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.add('+', text));
    }

    /// Adds texts that replace others. If two have much in common, one line shows their differing words.
    fn add_replaced(&mut self, old: &[&str], new: &[&str]) {
        if old.len() != new.len() {
            self.add_removed(old);
            self.add_added(new);
            return;
        }
        for (old, new) in old.iter().zip(new) {
            match diff_words(old, new) {
                Some(words) => self.add('~', &words),
                None => {
                    self.add('-', old);
                    self.add('+', new);
                }
            }
        }
    }

    fn add(&mut self, sign: char, text: &str) {
        if self.is_full {
            return;
        }
        let mut line: String = text.chars().take(MOST_LINE_CHARS).collect();
        if line.len() < text.len() {
            line.push('…');
        }
        if self.text.len() + line.len() > MOST_BYTES {
            self.is_full = true;
            self.text.push_str("\n…");
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push(sign);
        self.text.push(' ');
        self.text.push_str(&line);
    }
}

/// One line that shows the differing words of both texts; `None` if less than half of the text is the same.
fn diff_words(old: &str, new: &str) -> Option<String> {
    if old.len().max(new.len()) > MOST_COMPARED_BYTES {
        return None;
    }
    let difference = TextDiff::from_words(old, new);
    if difference.ratio() < 0.5 {
        return None;
    }
    let mut parts: Vec<(ChangeTag, String)> = Vec::new();
    for change in difference.iter_all_changes() {
        match parts.last_mut() {
            Some((tag, text)) if *tag == change.tag() => text.push_str(change.value()),
            _ => parts.push((change.tag(), change.value().to_owned())),
        }
    }
    let last = parts.len().saturating_sub(1);
    let shown = parts
        .iter()
        .enumerate()
        .map(|(index, (tag, text))| match tag {
            ChangeTag::Equal => shorten_unchanged(text, index > 0, index < last),
            ChangeTag::Delete => format!("[-{text}-]"),
            ChangeTag::Insert => format!("{{+{text}+}}"),
        });
    Some(shown.collect())
}

/// An unchanged text, shortened to the parts next to a difference.
fn shorten_unchanged(text: &str, is_after: bool, is_before: bool) -> String {
    let letters: Vec<char> = text.chars().collect();
    let sides = usize::from(is_after) + usize::from(is_before);
    if letters.len() <= CONTEXT_CHARS * sides.max(1) + CONTEXT_CHARS {
        return text.to_owned();
    }
    let beginning = letters
        .iter()
        .take(if is_after { CONTEXT_CHARS } else { 0 });
    let end = if is_before { CONTEXT_CHARS } else { 0 };
    let end = letters.iter().skip(letters.len() - end);
    beginning.chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_word_is_marked_in_its_line() {
        let (old, new) = (
            ["The lamp costs 10 €", "b"],
            ["The lamp costs 12 €", "b", "c"],
        );
        let difference = diff_texts(&old, &new);
        assert_eq!(difference, "~ The lamp costs [-10-]{+12+} €\n+ c");
    }

    #[test]
    fn texts_with_nothing_in_common_get_two_lines() {
        assert_eq!(
            diff_texts(&["in stock"], &["sold out"]),
            "- in stock\n+ sold out"
        );
    }

    #[test]
    fn a_long_text_is_shown_around_the_differing_word() {
        let long =
            |word: &str| format!("{} {word} {}", "before ".repeat(100), "after ".repeat(100));
        let difference = diff_texts(&[&long("one")], &[&long("two")]);
        assert!(difference.contains("[-one-]{+two+}"), "{difference}");
        assert!(difference.len() < 250, "{difference}");
    }

    #[test]
    fn fields_are_named() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let old = object(json!({"price": 10, "old": "x"}));
        let new = object(json!({"price": 12, "sizes": ["S"]}));
        let difference = diff_fields(&old, &new);
        assert_eq!(
            difference,
            "~ price: [-10-]{+12+}\n- old: x\n+ sizes: [\"S\"]"
        );
    }

    #[test]
    fn a_difference_is_bounded() {
        let many: Vec<String> = (0..100_000)
            .map(|number| format!("line {number}"))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(diff_texts(&[], &many).len() <= MOST_BYTES + 10);
        let shown = limit_texts(&many);
        assert!(shown.to_string().len() < 3 * MOST_BYTES);
    }
}
