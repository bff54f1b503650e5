//! [`Template`]: the common words of two forms of a block, with holes where they differ: `⟨*⟩ visits since ⟨*⟩`.
//!
//! A template is learned from two forms with the same meaning: from two fetches moments apart, or from times that have
//! moved with the clock. Texts without a common word make no template, because any text would match it.

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// By how many tokens the text in a hole may exceed the longest text seen there. A hole of numbers may have one more,
/// for numbers such as `1 234 567`.
const MORE_TOKENS: usize = 1;
const MORE_NUMBERS: usize = 2;

/// The most tokens of blocks that are compared token by token. The time grows with the square of their number.
const MOST_TOKENS: usize = 120;

/// The fixed words and holes of a block's text, in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Part {
    #[serde(rename = "f")]
    Fixed(String),
    #[serde(rename = "h")]
    Hole {
        /// Whether the hole only had numbers, and marks around them.
        #[serde(rename = "n")]
        is_number: bool,
        #[serde(rename = "m")]
        most: usize,
    },
}

/// The tokens that fill a hole in the first form, and those that fill it in the second form.
pub(crate) type HoleTokens<'t> = (Vec<&'t str>, Vec<&'t str>);

impl Template {
    /// The template of two forms; `None` if they have too little in common.
    pub(crate) fn from_forms(one: &str, other: &str) -> Option<Template> {
        Some(Template::from_forms_with_holes(one, other)?.0)
    }

    /// The template of two forms, and the tokens in its holes.
    pub(crate) fn from_forms_with_holes<'t>(
        one: &'t str,
        other: &'t str,
    ) -> Option<(Template, Vec<HoleTokens<'t>>)> {
        let (one, other) = (tokens(one), tokens(other));
        if one.len().max(other.len()) > MOST_TOKENS {
            return None;
        }
        let (mut parts, mut holes) = (Vec::new(), Vec::new());
        let mut fixed = 0;
        for step in capture_diff_slices(Algorithm::Myers, &one, &other) {
            if let DiffOp::Equal { old_index, len, .. } = step {
                let same = &one[old_index..old_index + len];
                fixed += same.iter().filter(|token| is_word(token)).count();
                parts.extend(same.iter().map(|token| Part::Fixed((*token).to_owned())));
                continue;
            }
            let held: HoleTokens<'t> = (
                one[step.old_range()].to_vec(),
                other[step.new_range()].to_vec(),
            );
            let is_number = are_numbers(&held.0) && are_numbers(&held.1);
            let more = if is_number { MORE_NUMBERS } else { MORE_TOKENS };
            let most = held.0.len().max(held.1.len()) + more;
            parts.push(Part::Hole { is_number, most });
            holes.push(held);
        }
        let only_numbers = parts.iter().all(|part| {
            !matches!(
                part,
                Part::Hole {
                    is_number: false,
                    ..
                }
            )
        });
        let words = |tokens: &[&str]| tokens.iter().filter(|token| is_word(token)).count();
        let all = words(&one).max(words(&other));
        let is_alike = match only_numbers {
            true => fixed > 0,
            false => fixed * 3 >= all * 2,
        };
        is_alike.then_some((Template(parts), holes))
    }

    /// Whether a text is a form of this template.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let tokens = tokens(text);
        tokens.len() <= MOST_TOKENS && parts_fit(&self.0, &tokens)
    }
}

/// Whether a text matches the parts. After each part, `taken` shows how many tokens the parts up to it may have
/// matched.
fn parts_fit(parts: &[Part], text: &[&str]) -> bool {
    let mut taken = vec![false; text.len() + 1];
    taken[0] = true;
    for part in parts {
        let mut next = vec![false; text.len() + 1];
        for start in (0..=text.len()).filter(|start| taken[*start]) {
            match part {
                Part::Fixed(token) => {
                    if text.get(start).is_some_and(|first| first == token) {
                        next[start + 1] = true;
                    }
                }
                Part::Hole { is_number, most } => {
                    let last = text.len().min(start + most);
                    for end in start..=last {
                        next[end] |= !is_number || are_numbers(&text[start..end]);
                    }
                }
            }
        }
        if !next.contains(&true) {
            return false;
        }
        taken = next;
    }
    taken[text.len()]
}

fn is_word(token: &str) -> bool {
    token.contains(char::is_alphanumeric)
}

fn are_numbers(tokens: &[&str]) -> bool {
    let has_digit = |token: &&&str| token.contains(|letter: char| letter.is_ascii_digit());
    let mut words = tokens.iter().filter(|token| is_word(token)).peekable();
    words.peek().is_some() && words.all(|token| has_digit(&token))
}

/// The tokens of a text: words, numbers with the marks between their digits, and single marks, without white space.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first.is_alphanumeric() {
            true => word_end(rest),
            false => first.len_utf8(),
        };
        tokens.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    tokens
}

fn word_end(text: &str) -> usize {
    let mut letters = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, letter)) = letters.next() {
        let joins = matches!(letter, '.' | ',' | ':' | '\'' | '’' | '-' | '/')
            && before.is_ascii_digit()
            && letters
                .peek()
                .is_some_and(|(_, next)| next.is_ascii_digit());
        if !letter.is_alphanumeric() && !joins {
            return at;
        }
        before = letter;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_numbers_and_marks() {
        for (text, expected) in [
            (
                "1,234 visits (today)",
                vec!["1,234", "visits", "(", "today", ")"],
            ),
            ("Visits:12", vec!["Visits", ":", "12"]),
            ("at 08:02:11, 5ms.", vec!["at", "08:02:11", ",", "5ms", "."]),
            (
                "a-b 2026-11-27T08:00Z",
                vec!["a", "-", "b", "2026-11-27T08:00Z"],
            ),
            ("", vec![]),
        ] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn two_forms_make_a_template_that_further_forms_fit() {
        for (one, other, form, another) in [
            ("99 visits", "101 visits", "1 234 visits", "visits closed"),
            ("Visits:99", "Visits:100", "Visits:7", "Visits: none"),
            (
                "Rendered in 5 ms, session a1",
                "Rendered in 12 ms, session 9f",
                "Rendered in 1 ms, session 77",
                "Rendered in 5 ms, session a1, slowly",
            ),
            (
                "Lamp, red, 3 viewers",
                "Lamp, red, 4 viewers",
                "Lamp, red, 5 viewers",
                "Lamp, blue, 4 viewers",
            ),
            (
                "Hello dear visitor from Oslo and welcome to us",
                "Hello dear visitor from Rome and welcome to us",
                "Hello dear visitor from Bern and welcome to us",
                "Hello dear visitor, we are closed",
            ),
        ] {
            let template = Template::from_forms(one, other).unwrap();
            assert!(template.matches(one) && template.matches(other), "{one}");
            assert!(template.matches(form), "{form}");
            assert!(!template.matches(another), "{another}");
        }
    }

    #[test]
    fn texts_with_too_little_in_common_make_no_template() {
        for (one, other) in [
            ("12", "13"),
            ("river stone", "paper stone"),
            ("Buy lamps now", "Call us"),
            ("", "a"),
        ] {
            assert_eq!(Template::from_forms(one, other), None, "{one}");
        }
    }
}
