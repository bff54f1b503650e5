//! The sketch of a page: of which layout it is.
//!
//! The paths of tags from the root are hashed, down to [`DEPTH`] and without what only marks up text. Each
//! digit of the sketch is the last digit of the smallest hash under a function of its own (b-bit minwise
//! hashing), so two pages have about as great a share of equal digits as of equal paths. How often
//! something is repeated changes nothing, an optional block few digits.

use rustc_hash::FxHashSet;

use crate::document::Document;
use crate::tree::{Children, Kind, NodeId, ROOT, Tree};

/// Digits of a sketch.
const DIGITS: usize = 32;

/// Elements below this level say what a page tells, not how it is laid out.
const DEPTH: usize = 8;

/// Nodes that are looked at, at most.
const MOST_NODES: usize = 100_000;

/// Elements in which people write: they come and go with the text.
const OF_TEXT: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "del", "dfn", "em",
    "font", "i", "ins", "kbd", "mark", "nobr", "q", "s", "samp", "small", "span", "strike",
    "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
];

impl Document {
    /// Digits that pages of one layout share for the most part; `None` for a page without elements.
    pub fn sketch(&self) -> Option<String> {
        let mut paths = FxHashSet::default();
        let mut nodes = 0;
        collect(&self.tree, ROOT, 0, 0, &mut paths, &mut nodes);
        if paths.is_empty() {
            return None;
        }
        let digit = |function: usize| {
            let seed = mix(function as u64 + 1);
            let least = paths.iter().map(|path| mix(path ^ seed)).min();
            char::from_digit((least.unwrap_or_default() & 15) as u32, 16)
        };
        (0..DIGITS).map(digit).collect()
    }
}

/// Adds the hashes of the paths below a node.
fn collect(
    tree: &Tree,
    parent: NodeId,
    path: u64,
    depth: usize,
    paths: &mut FxHashSet<u64>,
    nodes: &mut usize,
) {
    if depth >= DEPTH {
        return;
    }
    let children: Children<'_> = tree.children(parent);
    for child in children {
        *nodes += 1;
        if *nodes > MOST_NODES {
            return;
        }
        let Kind::Element(name) = tree.kind(child) else {
            continue;
        };
        let name = tree.name(name);
        if OF_TEXT.contains(&name) {
            continue;
        }
        let path = mix(path.rotate_left(7) ^ hash(name));
        paths.insert(path);
        collect(tree, child, path, depth + 1, paths, nodes);
    }
}

/// FNV: the same in every release, because sketches are stored.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The finaliser of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn sketch(page: &str) -> String {
        let document = Document::parse_html(page, &Limits::default());
        document.sketch().unwrap()
    }

    fn equal(one: &str, other: &str) -> usize {
        one.chars()
            .zip(other.chars())
            .filter(|(a, b)| a == b)
            .count()
    }

    const PAGE: &str = "<header><nav><ul><li></ul></nav></header><main><h1>x</h1><table><tr><th>a<td>b\
        </table><div><p>text<p>more</div></main><aside><form><input></form></aside><footer><p>x</footer>";

    #[test]
    fn repeated_parts_and_texts_change_nothing() {
        let longer = PAGE
            .replace("<li>", "<li><li><li>")
            .replace("text", "a <b>b</b> <a href=x>c</a>");
        assert_eq!(sketch(PAGE), sketch(&longer));
        assert_eq!(sketch(PAGE).len(), DIGITS);
    }

    #[test]
    fn an_optional_block_changes_little_and_another_layout_much() {
        let block = PAGE.replace("</main>", "<section><img></section></main>");
        assert!(equal(&sketch(PAGE), &sketch(&block)) > DIGITS * 6 / 10);
        let other =
            "<div><div><div><section><h2>x</h2><dl><dt>a<dd>b</dl></section></div></div></div>";
        assert!(equal(&sketch(PAGE), &sketch(other)) < DIGITS / 2);
    }

    #[test]
    fn a_deep_page_is_sketched_as_well() {
        let deep = "<div>".repeat(10_000);
        assert_eq!(sketch(&deep).len(), DIGITS);
    }
}
