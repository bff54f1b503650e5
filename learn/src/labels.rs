//! Labels: short texts that stand on most pages of a group and say what stands after them.

use std::collections::{BTreeSet, HashMap};

use crate::places::{At, Places};

/// Characters of a label.
const LONGEST: usize = 40;

/// Shorter known values, such as `2`, are in too many texts by chance.
const SHORTEST: usize = 3;

/// Known values from this length on are no parts of other words by chance.
const LONG: usize = 6;

/// Known values, by which no candidate may hold on: it would be right for one page only.
pub(crate) struct Leaks(BTreeSet<String>);

impl Leaks {
    pub(crate) fn new(known: impl Iterator<Item = String>) -> Leaks {
        Leaks(known.collect())
    }

    /// Whether a text is a known value, or holds one as whole words; a long one may be a part of a word.
    pub(crate) fn holds(&self, text: &str) -> bool {
        let folded = crate::fold::folded(text);
        let bare = folded.trim_end_matches([':', ' ']);
        let is_in = |known: &String| match known.chars().count() {
            length if length >= LONG => folded.contains(known.as_str()),
            length if length >= SHORTEST => is_word_of(known, &folded),
            _ => false,
        };
        let has = |text: &str| self.0.contains(text);
        // As the value stands in a class, an id or an address.
        let spaced = folded.replace(['-', '_', '/', '.'], " ");
        let is_slug =
            |known: &String| known.chars().count() >= SHORTEST && is_word_of(known, &spaced);
        let is_written = has(&folded) || has(bare) || has(spaced.trim());
        is_written || self.0.iter().any(|known| is_in(known) || is_slug(known))
    }
}

fn is_word_of(known: &str, text: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(known).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + known.len()..].chars().next();
        !joins(before) && !joins(after)
    })
}

/// The labels of a group of pages.
pub(crate) struct Labels(BTreeSet<String>);

impl Labels {
    pub(crate) fn new(pages: &[Places<'_>], leaks: &Leaks) -> Labels {
        let mut counts: HashMap<&str, (usize, bool)> = HashMap::new();
        for page in pages {
            let mut here = BTreeSet::new();
            for &index in &page.texts {
                let place = &page.all[index];
                if place.text.len() <= LONGEST * 2 && place.text.chars().count() <= LONGEST {
                    here.insert((place.text.as_str(), is_marked(&place.at, &place.text)));
                }
            }
            for (text, marked) in here {
                let count = counts.entry(text).or_default();
                count.0 += 1;
                count.1 |= marked;
            }
        }
        let most = (pages.len() / 2).max(2);
        let labels = counts.into_iter().filter(|(text, (count, marked))| {
            // On a few pages nothing can be counted: what looks like a label is one.
            let is_common = *count >= most;
            let is_likely = *marked && (pages.len() < 3 || *count >= (pages.len() / 5).max(2));
            (is_common || is_likely) && text.chars().any(char::is_alphabetic) && !leaks.holds(text)
        });
        Labels(labels.map(|(text, _)| text.to_owned()).collect())
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.contains(text)
    }
}

fn is_marked(at: &At<'_>, text: &str) -> bool {
    let At::Text(node) = at else { return false };
    let tag = node.parent().and_then(|parent| parent.tag());
    text.ends_with(':')
        || matches!(
            tag,
            Some(
                "dt" | "th"
                    | "label"
                    | "b"
                    | "strong"
                    | "h1"
                    | "h2"
                    | "h3"
                    | "h4"
                    | "h5"
                    | "h6"
                    | "legend"
            )
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_known_value_is_no_anchor() {
        let leaks = Leaks::new(["ada", "boston", "12"].map(str::to_owned).into_iter());
        for text in ["Ada:", "Works by Ada", "ada-works", "bostonians"] {
            assert!(leaks.holds(text), "{text}");
        }
        for text in ["Canada", "Madame", "12 works", "Works by"] {
            assert!(!leaks.holds(text), "{text}");
        }
    }
}
