//! Compares two lists of blocks: finds blocks that are gone and blocks that are new. Neither the order of the blocks
//! nor their position on the page matters.

use std::borrow::Cow;
use std::collections::HashMap;

use jiff::civil::Date;

use crate::blocks::Block;
use crate::masks::{differing_days_by_zone, mask_date, mask_relative_times, strip_times};
use crate::unsteady::Unsteady;

/// Blocks, and the time when they were seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side<'b> {
    pub(crate) blocks: &'b [Block],
    pub(crate) at_ms: i64,
}

/// The difference: blocks that are gone and blocks that are new, each in the order of its page.
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

/// If more blocks differ, the page counts as changed. Whether the blocks change without meaning is not checked, because
/// that would take too long.
const MOST_DIFFERING: usize = 500;

/// Compares two sides. Parts of the page or of its site that are known to change without meaning are ignored.
pub(crate) fn compare<'b>(old: Side<'b>, new: Side<'b>, unsteady: &[&Unsteady]) -> Difference<'b> {
    let compared = |side: Side<'b>| {
        let is_compared =
            |block: &&Block| !unsteady.iter().any(|masks| masks.is_whole(block.place));
        side.blocks.iter().filter(is_compared).collect()
    };
    let mut differing = Difference {
        gone: compared(old),
        come: compared(new),
    };
    cancel_equal_keys(&mut differing, |block, _| Some(Cow::Borrowed(&*block.text)));
    if differing.is_empty() {
        return differing;
    }
    if differing.gone.len().max(differing.come.len()) > MOST_DIFFERING {
        return differing;
    }
    cancel_equal_keys(&mut differing, |block, _| {
        let text = mask_relative_times(&block.text);
        let form = |masks: &&Unsteady| masks.form_name(block.place, &text);
        Some(unsteady.iter().find_map(form).map_or(text, Cow::Owned))
    });
    cancel_equal_keys(&mut differing, |block, _| {
        sorted_list_items(&block.text).map(Cow::Owned)
    });
    for (old_day, new_day) in differing_days_by_zone(old.at_ms, new.at_ms) {
        cancel_current_dates(&mut differing, old_day, new_day);
    }
    if !differing.is_empty() {
        cancel_relative_times(&mut differing);
    }
    for masks in unsteady {
        cancel_free_blocks(&mut differing.gone, old.blocks, masks);
        cancel_free_blocks(&mut differing.come, new.blocks, masks);
    }
    // Texts that were seen to come and go, such as banners, are ignored even if the other version has nothing in their
    // place.
    let is_compared = |block: &&Block| {
        let text = mask_relative_times(&block.text);
        let mut masks = unsteady.iter();
        !masks.any(|masks| masks.is_form(block.place, &text))
    };
    differing.gone.retain(is_compared);
    differing.come.retain(is_compared);
    differing
}

/// The items of a text such as `Tags: red, green, blue`, sorted; `None` for any other text.
fn sorted_list_items(text: &str) -> Option<String> {
    const FEWEST_ITEMS: usize = 3;
    const LONGEST_ITEM_BYTES: usize = 40;
    let (label, list) = text.split_once(": ").unwrap_or(("", text));
    let mut items: Vec<&str> = list
        .split([',', ';', '|', '·', '•'])
        .map(str::trim)
        .collect();
    if items.len() < FEWEST_ITEMS || items.iter().any(|item| item.len() > LONGEST_ITEM_BYTES) {
        return None;
    }
    items.sort_unstable();
    Some(format!("{label}: {}", items.join(", ")))
}

/// Removes blocks that differ only because each side shows the date of its own day.
fn cancel_current_dates(differing: &mut Difference<'_>, old_day: Date, new_day: Date) {
    if differing.is_empty() {
        return;
    }
    cancel_equal_keys(differing, |block, is_old| {
        let text = mask_relative_times(&block.text);
        let day = if is_old { old_day } else { new_day };
        mask_date(&text, day).map(Cow::Owned)
    });
}

/// For each position where any text may appear, such as an advertisement, removes one differing block near it.
fn cancel_free_blocks(differing: &mut Vec<&Block>, blocks: &[Block], masks: &Unsteady) {
    if masks.free_positions().is_empty() || differing.is_empty() {
        return;
    }
    let mut betweens = masks.block_positions(differing, blocks);
    for free in masks.free_positions() {
        if let Some(at) = betweens.iter().rposition(|between| between.is_near(*free)) {
            differing.remove(at);
            betweens.remove(at);
        }
    }
}

/// Removes blocks with the same key from both sides, each as often as both sides have it.
fn cancel_equal_keys<'b>(
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

/// Removes blocks whose only difference is that a relative time has become a date: sites replace "2 days ago" with the
/// date after a while.
fn cancel_relative_times(differing: &mut Difference<'_>) {
    let is_relative = |block: &&Block| strip_times(&block.text).1;
    if !differing.gone.iter().any(is_relative) {
        return;
    }
    cancel_equal_keys(differing, |block, is_old| {
        let (text, is_relative) = strip_times(&block.text);
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
            ..Block::default()
        };
        texts.iter().map(block).collect()
    }

    fn differing_blocks(old: &[&str], new: &[&str]) -> (Vec<String>, Vec<String>) {
        let (old, new) = (blocks(old), blocks(new));
        let side = |blocks| Side { blocks, at_ms: 0 };
        let found = compare(side(&old), side(&new), &[]);
        let texts = |blocks: &[&Block]| blocks.iter().map(|block| block.text.clone()).collect();
        (texts(&found.gone), texts(&found.come))
    }

    #[test]
    fn moved_blocks_are_no_difference_and_repeated_blocks_count_each() {
        assert_eq!(differing_blocks(&["a", "b"], &["b", "a"]), (vec![], vec![]));
        let (gone, come) = differing_blocks(&["a", "a", "b"], &["a", "c"]);
        assert_eq!(gone, ["a", "b"]);
        assert_eq!(come, ["c"]);
    }

    #[test]
    fn an_age_that_becomes_a_date_is_no_difference() {
        let (old, new) = (["Posted 6 days ago"], ["Posted Nov 17, 2026"]);
        assert_eq!(differing_blocks(&old, &new), (vec![], vec![]));
        assert_eq!(differing_blocks(&new, &["Posted Nov 18, 2026"]).0, new);
    }

    #[test]
    fn pages_that_differ_everywhere_take_no_long_time() {
        let page = |number: usize| -> Vec<Block> {
            let words = "word ".repeat(90);
            let text = |block: usize| format!("{words}{block} {}", block * 7 + number);
            let block = |block: usize| Block {
                place: block as u32 % 3,
                text: text(block),
                ..Block::default()
            };
            (0..4_000).map(block).collect()
        };
        let (one, other, next) = (page(1), page(2), page(3));
        let unsteady = Unsteady::from_fetches(&one, &other);
        let side = |blocks| Side { blocks, at_ms: 0 };
        let found = compare(side(&one), side(&next), &[&unsteady, &unsteady]);
        // Without limits on the work, this comparison would take far too long.
        assert!(!found.is_empty());
    }

    /// The texts that count as new on `next`, if differences between two earlier fetches moments apart are ignored.
    fn new_texts_after_fetches(first: &[&str], second: &[&str], next: &[&str]) -> Vec<String> {
        let (one, other, next) = (blocks(first), blocks(second), blocks(next));
        let side = |blocks| Side { blocks, at_ms: 0 };
        let unsteady = Unsteady::from_fetches(&one, &other);
        let found = compare(side(&one), side(&next), &[&unsteady]);
        found.come.iter().map(|block| block.text.clone()).collect()
    }

    #[test]
    fn only_text_that_differs_at_each_fetch_is_left_out() {
        type Case<'c> = (&'c [&'c str], &'c [&'c str], &'c [&'c str], &'c [&'c str]);
        let cases: [Case<'_>; 9] = [
            // One paragraph among others differs at each fetch.
            (
                &["first", "an ad", "second", "third"],
                &["first", "other words", "second", "third"],
                &["first", "a third ad", "second", "new"],
                &["new"],
            ),
            (
                &["first", "an ad", "second", "third"],
                &["first", "other words", "second", "third"],
                &["first", "fresh", "a third ad", "second", "third"],
                &["fresh"],
            ),
            // A counter is recognised although the list above it grows.
            (
                &["one", "two", "7 visits"],
                &["one", "two", "8 visits"],
                &["zero", "one", "two", "9 visits"],
                &["zero"],
            ),
            // A new item appears next to a counter, or among items that each have a counter.
            (
                &["one", "7 visits"],
                &["one", "8 visits"],
                &["one", "9 visits", "two"],
                &["two"],
            ),
            (
                &["Lamp, 3 views", "Chair, 9 views"],
                &["Lamp, 4 views", "Chair, 10 views"],
                &["Lamp, 8 views", "Chair, 11 views", "Desk, 1 views"],
                &["Desk, 1 views"],
            ),
            // The text in place of a counter has other words.
            (
                &["7 visits", "x"],
                &["8 visits", "x"],
                &["no visits", "x"],
                &["no visits"],
            ),
            // All texts of the place differ at each fetch.
            (&["a", "b"], &["c", "d", "e"], &["f"], &[]),
            // Nothing differs between the two fetches.
            (&["a", "b"], &["a", "b"], &["a", "c"], &["c"]),
            // A clock moves, which is ignored; a closing time changes, which is not.
            (
                &["It is 08:02", "Open until 18:00"],
                &["It is 08:03", "Open until 18:00"],
                &["It is 09:02", "Open until 19:00"],
                &["Open until 19:00"],
            ),
        ];
        for (first, second, next, expected) in cases {
            assert_eq!(
                new_texts_after_fetches(first, second, next),
                expected,
                "{first:?} {next:?}"
            );
        }
    }
}
