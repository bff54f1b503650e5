//! Labels: short texts on many pages of a group that describe the text that follows them.

use std::collections::{BTreeSet, HashMap};

use crate::places::{Place, PlaceKind, Places};

/// The most characters of a label.
const LONGEST: usize = 40;

/// Known values with fewer characters, such as `2`, occur in too many texts by chance.
const SHORTEST: usize = 3;

/// Known values with at least this many characters do not occur inside other words by chance.
const LONG: usize = 6;

/// The known values, in the role of texts that an extraction chain must not contain: it would work on one page only.
pub(crate) struct Leaks(BTreeSet<String>);

impl Leaks {
    pub(crate) fn new(known: impl Iterator<Item = String>) -> Leaks {
        Leaks(known.collect())
    }

    /// Whether a text is a known value, or contains one as whole words. A long known value may also be part of a word.
    pub(crate) fn occur_in(&self, text: &str) -> bool {
        let folded = crate::fold::fold_text(text);
        let bare = folded.trim_end_matches([':', ' ']);
        let is_in = |known: &String| match known.chars().count() {
            length if length >= LONG => folded.contains(known.as_str()),
            length if length >= SHORTEST => is_word_of(known, &folded),
            _ => false,
        };
        let has = |text: &str| self.0.contains(text);
        // A class, an id or a URL may contain the value with separators such as `-` in place of spaces.
        let spaced = folded.replace(['-', '_', '/', '.'], " ");
        let is_slug =
            |known: &String| known.chars().count() >= SHORTEST && is_word_of(known, &spaced);
        let is_written = has(&folded) || has(bare) || has(spaced.trim());
        is_written || self.0.iter().any(|known| is_in(known) || is_slug(known))
    }

    /// Whether a capitalised word of a text is also a word of a known value: `Hopper in` shares a name with `Grace
    /// Hopper`.
    pub(crate) fn share_name_with(&self, text: &str) -> bool {
        let mut names = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.starts_with(char::is_uppercase))
            .map(crate::fold::fold_text);
        names.any(|name| self.0.iter().any(|known| is_word_of(&name, known)))
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

/// The labels of a group of pages. Some pages may write a label with a colon, and others without.
pub(crate) struct Labels(HashMap<String, Forms>);

/// The forms that pages write a label in.
#[derive(Clone, Copy, Default)]
struct Forms {
    with_colon: bool,
    without: bool,
    /// Whether one page has the label both with and without a colon. Then these are two different labels.
    differ: bool,
}

impl Forms {
    /// Adds the forms that another page writes the label in.
    fn merge(&mut self, here: Forms) {
        self.differ |= here.with_colon && here.without;
        self.with_colon |= here.with_colon;
        self.without |= here.without;
    }
}

/// On how many pages a text occurs, and the evidence that it is a label.
#[derive(Default)]
struct Count {
    pages: usize,
    is_marked: bool,
    forms: Forms,
}

impl Labels {
    pub(crate) fn new(pages: &[Places<'_>], leaks: &Leaks) -> Labels {
        let mut counts: HashMap<&str, Count> = HashMap::new();
        for page in pages {
            let mut here: HashMap<&str, Forms> = HashMap::new();
            for &index in &page.texts {
                let Place { at, text } = &page.all[index];
                if text.len() > LONGEST * 2 || text.chars().count() > LONGEST {
                    continue;
                }
                let bare = without_colon(text);
                counts.entry(bare).or_default().is_marked |= is_marked_as_label(at, text);
                let forms = here.entry(bare).or_default();
                forms.with_colon |= bare.len() < text.len();
                forms.without |= bare.len() == text.len();
            }
            for (text, forms) in here {
                let count = counts.entry(text).or_default();
                count.pages += 1;
                count.forms.merge(forms);
            }
        }
        let most = (pages.len() / 2).max(2);
        counts.retain(|text, count| {
            // In a small group, the number of pages proves nothing. So every text that looks like a label counts as
            // one.
            let is_common = count.pages >= most;
            let is_likely =
                count.is_marked && (pages.len() < 3 || count.pages >= (pages.len() / 5).max(2));
            (is_common || is_likely)
                && text.chars().any(char::is_alphabetic)
                && !leaks.occur_in(text)
        });
        let labels = counts.into_iter();
        Labels(
            labels
                .map(|(text, count)| (text.to_owned(), count.forms))
                .collect(),
        )
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.contains_key(without_colon(text))
    }

    /// The label as other pages write it (with or without a colon), if they write it differently.
    pub(crate) fn other_form(&self, text: &str) -> Option<String> {
        let bare = without_colon(text);
        let forms = self.0.get(bare).filter(|forms| !forms.differ)?;
        match bare.len() < text.len() {
            true => forms.without.then(|| bare.to_owned()),
            false => forms.with_colon.then(|| format!("{bare}:")),
        }
    }
}

/// The label without a colon at its end.
fn without_colon(text: &str) -> &str {
    text.strip_suffix(':').map_or(text, str::trim_end)
}

fn is_marked_as_label(at: &PlaceKind<'_>, text: &str) -> bool {
    let PlaceKind::Text(node) = at else {
        return false;
    };
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
    fn a_colon_is_no_part_of_a_label() {
        assert_eq!(without_colon("Born:"), "Born");
        assert_eq!(without_colon("Born :"), "Born");
        assert_eq!(without_colon("Born"), "Born");
    }

    #[test]
    fn a_text_with_a_known_value_is_no_anchor() {
        let leaks = Leaks::new(["ada", "boston", "12"].map(str::to_owned).into_iter());
        for text in ["Ada:", "Works by Ada", "ada-works", "bostonians"] {
            assert!(leaks.occur_in(text), "{text}");
        }
        for text in ["Canada", "Madame", "12 works", "Works by"] {
            assert!(!leaks.occur_in(text), "{text}");
        }
    }
}
