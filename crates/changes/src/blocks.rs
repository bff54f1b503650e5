//! The text of a page as blocks: each is one paragraph, heading, list item or table cell.
//!
//! Always left out: scripts, styles and other elements that show no text, navigation, dialogs (such as those about
//! cookies), and everything that the page itself hides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webfill_document::{Document, NodeRef};
use webfill_values::{is_blank, normal_form};

use crate::{hash, masks};

/// The most bytes of text and the most blocks that are stored of a page. The rest is stored as a hash and counts as one
/// block.
const MOST_TEXT_BYTES: usize = 128 << 10;
const MOST_BLOCKS: usize = 4_000;

/// How many bytes of a page are searched for times to mask. A longer search would take too long.
const MOST_MASKED_BYTES: usize = 1 << 20;

/// The most bytes of a block. Longer text is split at the ends of sentences.
const LONG_BLOCK_BYTES: usize = 1_000;

/// The longest path of names to a JSON value, in bytes. It may exceed the limit by one name.
const MOST_PATH_BYTES: usize = 200;

/// The deepest level of elements. Deeper ones are read as if they were at this level.
const MOST_DEPTH: usize = 256;

/// Elements whose text belongs to the block around them.
const INLINE: [&str; 41] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "ins", "kbd", "label", "mark", "meter", "nobr", "output", "q", "rp", "rt", "ruby",
    "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var",
    "wbr", "picture", "slot",
];

const LEFT_OUT: [&str; 15] = [
    "script", "style", "noscript", "template", "iframe", "object", "svg", "canvas", "audio",
    "video", "map", "nav", "dialog", "meta", "link",
];

const LEFT_OUT_ROLES: [&str; 5] = ["navigation", "dialog", "alertdialog", "search", "menu"];

/// A piece of a page's text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The place of the block: a hash of the names, ids and classes of the elements around it, or of its path in JSON.
    pub place: u32,
    /// The text in its normal form, ready to compare.
    pub text: String,
    /// The number of the row that the block belongs to, such as a table row; see [`rows`](crate::rows). 0 if it
    /// belongs to none.
    #[serde(default, rename = "r", skip_serializing_if = "is_zero")]
    pub(crate) row: u32,
    /// The rank of the item in an ordered list, from 1; 0 outside of such lists.
    #[serde(default, rename = "k", skip_serializing_if = "is_zero")]
    pub(crate) rank: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The blocks of an element tree.
pub(crate) fn blocks_of_tree(document: &Document) -> Vec<Block> {
    let mut blocks = Blocks::default();
    blocks.walk(document.root(), 0, 0);
    blocks.end_block(0);
    blocks.into_blocks()
}

/// The blocks of plain text, which are its paragraphs.
pub(crate) fn blocks_of_text(text: &str) -> Vec<Block> {
    let mut blocks = Blocks::default();
    for line in text.lines() {
        match is_blank(line) {
            true => blocks.end_block(0),
            false => {
                blocks.open.push_str(line);
                blocks.open.push('\n');
            }
        }
    }
    blocks.end_block(0);
    blocks.into_blocks()
}

/// The blocks of JSON: each value, with the path of names that leads to it. Invalid JSON is read as plain text.
pub(crate) fn blocks_of_json(text: &str) -> Vec<Block> {
    let Ok(value) = serde_json::from_str(text) else {
        return blocks_of_text(text);
    };
    let mut blocks = Blocks::default();
    blocks.add_members(&value, &mut String::new());
    blocks.into_blocks()
}

/// The state that earlier siblings pass on to an element: ranks in a list, and the current term and definition.
#[derive(Default)]
struct Siblings {
    is_ordered: bool,
    rank: u32,
    is_behind_term: bool,
    /// The row of the current term and its definition.
    definition: u32,
}

/// The blocks read from a page so far. They are limited while they grow, because JSON may expand to much more than its
/// bytes.
#[derive(Default)]
struct Blocks {
    blocks: Vec<Block>,
    /// The bytes of text in all blocks.
    bytes: usize,
    /// The hash of the text beyond the limits, if there is any.
    rest: Option<u64>,
    /// The text of the current block.
    open: String,
    /// The number of rows so far, and (in `within`) the row and the rank of the current element.
    rows: u32,
    within: (u32, u32),
}

impl Blocks {
    fn walk(&mut self, node: NodeRef<'_>, place: u32, depth: usize) {
        let mut siblings = Siblings {
            is_ordered: node.tag() == Some("ol"),
            ..Siblings::default()
        };
        for child in node.children() {
            if child.is_text() {
                self.open.push_str(child.text());
                continue;
            }
            let Some(tag) = child.tag() else { continue };
            if is_left_out(child, tag) {
                continue;
            }
            if depth >= MOST_DEPTH {
                self.open.push_str(child.text());
                continue;
            }
            if INLINE.contains(&tag) {
                self.walk(child, place, depth + 1);
                continue;
            }
            self.end_block(place);
            let inner = place_of(child, tag, place);
            let within = self.assign_row(tag, &mut siblings);
            let around = std::mem::replace(&mut self.within, within);
            self.walk(child, inner, depth + 1);
            self.end_block(inner);
            self.within = around;
        }
    }

    /// The row and the rank of an element; 0 if it has none.
    fn assign_row(&mut self, tag: &str, siblings: &mut Siblings) -> (u32, u32) {
        let is_new = match tag {
            "tr" => true,
            "li" => siblings.is_ordered,
            "dt" => !std::mem::replace(&mut siblings.is_behind_term, true),
            "dd" => {
                siblings.is_behind_term = false;
                false
            }
            _ => false,
        };
        self.rows += u32::from(is_new);
        match tag {
            "tr" => (self.rows, 0),
            "li" if is_new => {
                siblings.rank += 1;
                (self.rows, siblings.rank)
            }
            "dt" | "dd" => {
                if is_new {
                    siblings.definition = self.rows;
                }
                (siblings.definition, 0)
            }
            _ => self.within,
        }
    }

    fn add_members(&mut self, value: &Value, path: &mut String) {
        let length = path.len();
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    if path.len() < MOST_PATH_BYTES {
                        path.push('.');
                        path.push_str(&name[..name.floor_char_boundary(MOST_PATH_BYTES)]);
                    }
                    self.add_members(member, path);
                    path.truncate(length);
                }
            }
            Value::Array(items) => {
                if path.len() < MOST_PATH_BYTES {
                    path.push_str("[]");
                }
                items.iter().for_each(|item| self.add_members(item, path));
                path.truncate(length);
            }
            Value::String(text) => self.add_member(path, text),
            other => self.add_member(path, &other.to_string()),
        }
    }

    fn add_member(&mut self, path: &str, text: &str) {
        self.open = format!("{path}: {text}");
        self.end_block(hash(path) as u32);
    }

    /// Ends the current block of text, and begins a new one.
    fn end_block(&mut self, place: u32) {
        let text = normal_form(&without_control_characters(&self.open));
        self.open.clear();
        if !text.chars().any(char::is_alphanumeric) {
            return;
        }
        for_each_part(&text, |part| self.add(place, part));
    }

    fn add(&mut self, place: u32, text: &str) {
        self.bytes += text.len();
        let fits = self.bytes <= MOST_TEXT_BYTES && self.blocks.len() < MOST_BLOCKS;
        if fits && self.rest.is_none() {
            let text = text.to_owned();
            let (row, rank) = self.within;
            self.blocks.push(Block {
                place,
                text,
                row,
                rank,
            });
            return;
        }
        let before = self.rest.unwrap_or_default();
        let text = match self.bytes <= MOST_MASKED_BYTES {
            true => hash(&masks::mask_relative_times(text)),
            false => hash(text),
        };
        self.rest = Some(before.rotate_left(5) ^ text);
    }

    fn into_blocks(mut self) -> Vec<Block> {
        if let Some(rest) = self.rest {
            let text = format!("(the rest of the page, {rest:016x})");
            self.blocks.push(Block {
                text,
                ..Block::default()
            });
        }
        self.blocks
    }
}

fn is_left_out(element: NodeRef<'_>, tag: &str) -> bool {
    if LEFT_OUT.contains(&tag) {
        return true;
    }
    element
        .attributes()
        .any(|attribute| match attribute.name() {
            "hidden" => true,
            "aria-hidden" => attribute.value() == "true",
            "role" => LEFT_OUT_ROLES.contains(&attribute.value()),
            "style" => is_hiding(attribute.value()),
            _ => false,
        })
}

fn is_hiding(style: &str) -> bool {
    let mut rules = style.split(';').filter_map(|rule| rule.split_once(':'));
    rules.any(|(name, value)| name.trim() == "display" && value.trim().starts_with("none"))
}

/// The place of an element inside another place. Parts of names with digits are ignored, because they are often
/// generated anew for each response.
fn place_of(element: NodeRef<'_>, tag: &str, around: u32) -> u32 {
    let mut name = format!("{around}/{tag}");
    for attribute in ["id", "class"] {
        let value = element.attribute(attribute).unwrap_or_default();
        let mut words: Vec<String> = value.split_whitespace().map(without_numbers).collect();
        words.sort_unstable();
        name.push('.');
        name.push_str(&words.join("."));
    }
    hash(&name) as u32
}

fn without_numbers(word: &str) -> String {
    let part = |part: &str| match part.contains(|letter: char| letter.is_ascii_digit()) {
        true => String::from("#"),
        false => part.to_owned(),
    };
    let parts: Vec<String> = word.split(['-', '_']).map(part).collect();
    parts.join("-")
}

/// The text with spaces in place of control characters.
fn without_control_characters(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Calls `each` with the sentences of a long block, one by one, or with a short block as a whole.
fn for_each_part(text: &str, mut each: impl FnMut(&str)) {
    let mut rest = text;
    while rest.len() > LONG_BLOCK_BYTES {
        let (sentence, others) = rest.split_at(sentence_end(rest));
        each(sentence.trim_end());
        rest = others;
    }
    if !rest.is_empty() {
        each(rest);
    }
}

/// Where a long text is split: at the start of its second sentence, or else of the last word that begins within
/// [`LONG_BLOCK_BYTES`], or else anywhere. Only the beginning of the text is searched.
fn sentence_end(text: &str) -> usize {
    let beginning = &text[..text.floor_char_boundary(4 * LONG_BLOCK_BYTES)];
    let is_end = |pair: &[u8]| matches!(pair, [b'.' | b'!' | b'?' | b';', b' ']);
    let end = beginning.as_bytes().windows(2).position(is_end);
    let word = || beginning[..beginning.floor_char_boundary(LONG_BLOCK_BYTES)].rfind(' ');
    match end {
        Some(end) => end + 2,
        None => word().map_or(beginning.len(), |space| space + 1),
    }
}

/// The blocks at each place, in order.
pub(crate) fn group_by_place(blocks: &[Block]) -> BTreeMap<u32, Vec<&Block>> {
    let mut places: BTreeMap<u32, Vec<&Block>> = BTreeMap::new();
    for block in blocks {
        places.entry(block.place).or_default().push(block);
    }
    places
}

#[cfg(test)]
mod tests {
    use webfill_document::Limits;

    use super::*;

    fn texts(page: &str) -> Vec<String> {
        let document = Document::parse_html(page, &Limits::default());
        let blocks = blocks_of_tree(&document);
        blocks.into_iter().map(|block| block.text).collect()
    }

    #[test]
    fn blocks_are_what_people_read() {
        let page = "<title>Shop</title><script>var a</script><nav>Home</nav><h1>A  <b>red</b>\n lamp</h1>\
            <p hidden>x<p>It\u{ad}em 7<br>in stock<ul><li>one<li>two</ul>tail<div role=dialog>Cookies?</div>\
            <p style='color: red; display : none'>y<p>\u{2022}";
        let read = [
            "Shop",
            "A red lamp",
            "Item 7",
            "in stock",
            "one",
            "two",
            "tail",
        ];
        assert_eq!(texts(page), read);
    }

    #[test]
    fn a_place_is_the_same_with_another_number() {
        let places = |page: &str| {
            let document = Document::parse_html(page, &Limits::default());
            blocks_of_tree(&document)[0].place
        };
        let one = places("<div id=ad-8371 class='b a'><p>x");
        assert_eq!(one, places("<div id=ad-77 class='a b'><p>y"));
        assert_ne!(one, places("<div id=text class='a b'><p>y"));
    }

    #[test]
    fn a_long_page_is_bounded_and_its_end_still_counts() {
        let page = |end: &str| format!("{}<p>{end}", "<p>A paragraph of some words.".repeat(6_000));
        let (one, other) = (texts(&page("one")), texts(&page("other")));
        assert!(one.len() <= MOST_BLOCKS + 1);
        assert_eq!(one[..MOST_BLOCKS - 1], other[..MOST_BLOCKS - 1]);
        assert_ne!(one.last(), other.last());
        let words = "word ".repeat(100_000);
        let split = texts(&format!("<p>{words}"));
        assert!(split.iter().all(|text| text.len() <= LONG_BLOCK_BYTES));
    }

    #[test]
    fn large_and_slow_texts_are_read_within_limits() {
        let name = "n".repeat(1 << 20);
        let values = "1,".repeat(1 << 20);
        let json = blocks_of_json(&format!("{{\"{name}\":[{values}1]}}"));
        assert!(json.len() <= MOST_BLOCKS + 1);
        for text in ["a. ", "word ", "\u{6f22}"] {
            let blocks = blocks_of_text(&text.repeat(1 << 20));
            let bytes: usize = blocks.iter().map(|block| block.text.len()).sum();
            assert!(blocks.len() > 2 && bytes <= MOST_TEXT_BYTES + 100, "{text}");
        }
    }

    #[test]
    fn a_long_block_is_split_at_its_sentences() {
        let long = format!(
            "First one. {} Last one here",
            "And more words follow. ".repeat(60)
        );
        let parts = texts(&format!("<p>{long}"));
        assert_eq!(parts[0], "First one.");
        assert_eq!(parts.join(" "), normal_form(&long));
    }

    #[test]
    fn json_is_read_by_its_names() {
        let read = blocks_of_json(r#"{"a": [{"b": 1}, {"b": "x"}]}"#);
        let texts: Vec<&str> = read.iter().map(|block| &*block.text).collect();
        assert_eq!(texts, [".a[].b: 1", ".a[].b: x"]);
        assert_eq!(read[0].place, read[1].place);
    }
}
