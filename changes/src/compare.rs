//! Compares two lists of blocks: what went, and what came. Where on the page a block stands, and in which
//! order, is no difference.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::blocks::{Block, by_place};
use crate::masks::{masked, timeless};

/// Places that are not compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unsteady {
    /// All blocks at these places.
    #[serde(default)]
    whole: Vec<u32>,
    /// Only the blocks with these numbers at these places.
    #[serde(default)]
    parts: Vec<(u32, u32)>,
}

impl Unsteady {
    fn holds(&self, place: u32, number: u32) -> bool {
        self.whole.contains(&place) || self.parts.contains(&(place, number))
    }

    fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.parts.is_empty()
    }
}

/// Where two fetches of one page differ. A place at which most is the same is compared but for what differs.
pub(crate) fn unsteady_places(first: Side<'_>, second: Side<'_>) -> Unsteady {
    let (one, other) = (by_place(first.blocks), by_place(second.blocks));
    let mut unsteady = Unsteady::default();
    let mut places: Vec<u32> = one.keys().chain(other.keys()).copied().collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        let of = |blocks: Option<&Vec<&Block>>, at_ms| -> Vec<String> {
            let texts = blocks.into_iter().flatten();
            texts
                .map(|block| masked(&block.text, at_ms).into_owned())
                .collect()
        };
        let one = of(one.get(&place), first.at_ms);
        let other = of(other.get(&place), second.at_ms);
        let (gone, come) = (numbers_without(&one, &other), numbers_without(&other, &one));
        if gone.is_empty() && come.is_empty() {
            continue;
        }
        let same = one.len() - gone.len();
        match same >= gone.len().max(come.len()) {
            true => unsteady
                .parts
                .extend(gone.into_iter().chain(come).map(|number| (place, number))),
            false => unsteady.whole.push(place),
        }
    }
    unsteady
}

/// The numbers of the texts that the others lack.
fn numbers_without(texts: &[String], others: &[String]) -> Vec<u32> {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for text in others {
        *left.entry(text).or_default() += 1;
    }
    let is_missing = |text: &String| match left.get_mut(text.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let numbers = texts.iter().map(is_missing).zip(0..);
    numbers
        .filter_map(|(is_missing, number)| is_missing.then_some(number))
        .collect()
}

/// Blocks and when they were seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side<'b> {
    pub(crate) blocks: &'b [Block],
    pub(crate) at_ms: i64,
}

impl<'b> Side<'b> {
    /// Without what is not compared.
    fn steady(self, unsteady: &Unsteady) -> Vec<&'b Block> {
        if unsteady.is_empty() {
            return self.blocks.iter().collect();
        }
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let is_steady = |block: &&Block| {
            let next = numbers.entry(block.place).or_default();
            *next += 1;
            !unsteady.holds(block.place, *next - 1)
        };
        self.blocks.iter().filter(is_steady).collect()
    }
}

/// What differs: blocks that went and blocks that came, each in the order of its page.
#[derive(Debug, Default)]
pub(crate) struct Difference<'b> {
    pub(crate) gone: Vec<&'b Block>,
    pub(crate) come: Vec<&'b Block>,
}

impl Difference<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.come.is_empty()
    }
}

pub(crate) fn compare<'b>(old: Side<'b>, new: Side<'b>, unsteady: &Unsteady) -> Difference<'b> {
    let mut differing = Difference {
        gone: old.steady(unsteady),
        come: new.steady(unsteady),
    };
    cancel(&mut differing, |block, _| Some(Cow::Borrowed(&*block.text)));
    if differing.is_empty() {
        return differing;
    }
    cancel(&mut differing, |block, is_old| {
        let at_ms = if is_old { old.at_ms } else { new.at_ms };
        Some(masked(&block.text, at_ms))
    });
    if !differing.is_empty() {
        cancel_relative(&mut differing);
    }
    differing
}

/// Removes what is on both sides under a key, as often as it is on both.
fn cancel<'b>(
    differing: &mut Difference<'b>,
    key: impl Fn(&'b Block, bool) -> Option<Cow<'b, str>>,
) {
    let mut left: HashMap<Cow<'b, str>, usize> = HashMap::new();
    for block in &differing.gone {
        if let Some(key) = key(block, true) {
            *left.entry(key).or_default() += 1;
        }
    }
    let mut met: HashMap<Cow<'b, str>, usize> = HashMap::new();
    differing.come.retain(|block| {
        let Some(key) = key(block, false) else {
            return true;
        };
        match left.get_mut(&key) {
            Some(count) if *count > 0 => {
                *count -= 1;
                *met.entry(key).or_default() += 1;
                false
            }
            _ => true,
        }
    });
    differing.gone.retain(|block| {
        let met = key(block, true).and_then(|key| met.get_mut(&key));
        match met {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        }
    });
}

/// "2 days ago" becomes a date after a while: the same block, if nothing else in it differs.
fn cancel_relative(differing: &mut Difference<'_>) {
    let is_relative = |block: &&Block| timeless(&block.text).1;
    if !differing.gone.iter().any(is_relative) {
        return;
    }
    cancel(differing, |block, is_old| {
        let (text, is_relative) = timeless(&block.text);
        (is_relative || !is_old).then_some(Cow::Owned(text))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(texts: &[&str]) -> Vec<Block> {
        let block = |text: &&str| Block {
            place: 1,
            text: (*text).to_owned(),
        };
        texts.iter().map(block).collect()
    }

    fn differing(old: &[&str], new: &[&str]) -> (Vec<String>, Vec<String>) {
        let (old, new) = (blocks(old), blocks(new));
        let side = |blocks| Side { blocks, at_ms: 0 };
        let found = compare(side(&old), side(&new), &Unsteady::default());
        let texts = |blocks: &[&Block]| blocks.iter().map(|block| block.text.clone()).collect();
        (texts(&found.gone), texts(&found.come))
    }

    #[test]
    fn what_moved_is_no_difference_and_what_is_there_twice_counts_twice() {
        assert_eq!(differing(&["a", "b"], &["b", "a"]), (vec![], vec![]));
        let (gone, come) = differing(&["a", "a", "b"], &["a", "c"]);
        assert_eq!(gone, ["a", "b"]);
        assert_eq!(come, ["c"]);
    }

    #[test]
    fn an_age_that_becomes_a_date_is_no_difference() {
        let (old, new) = (["Posted 6 days ago"], ["Posted Nov 17, 2026"]);
        assert_eq!(differing(&old, &new), (vec![], vec![]));
        assert_eq!(differing(&new, &["Posted Nov 18, 2026"]).0, new);
    }

    #[test]
    fn one_paragraph_that_rotates_leaves_the_others_compared() {
        let one = blocks(&["first", "an ad", "second", "third"]);
        let other = blocks(&["first", "another ad", "second", "third"]);
        let side = |blocks| Side { blocks, at_ms: 0 };
        let unsteady = unsteady_places(side(&one), side(&other));
        let next = blocks(&["first", "a third ad", "second", "new"]);
        let found = compare(side(&one), side(&next), &unsteady);
        assert_eq!(found.come[0].text, "new");
        assert_eq!(found.come.len(), 1);
    }

    #[test]
    fn a_place_that_rotates_as_a_whole_is_not_compared() {
        let (one, other) = (blocks(&["a", "b"]), blocks(&["c", "d", "e"]));
        let side = |blocks| Side { blocks, at_ms: 0 };
        let unsteady = unsteady_places(side(&one), side(&other));
        assert_eq!(unsteady.whole, [1]);
        let steady = unsteady_places(side(&one), side(&one));
        assert!(steady.is_empty());
    }
}
