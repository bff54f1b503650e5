//! Makes the sketch of a page: a short text that identifies the layout of the page.
//!
//! The paths of tags from the root to each element, such as `html body div`, are hashed, down to [`DEPTH`]. Markup
//! within texts is left out. The frame of a page (header, navigation, footer) is left out as well if it is large,
//! because all pages of a site share it. Each digit of the sketch is the last digit of the smallest hash, by a
//! different hash function for each (b-bit minwise hashing). So the fraction of equal digits of two pages is about the
//! fraction of their equal paths. Repeated blocks change nothing, and an optional block changes few digits.

use html5ever::LocalName;
use rustc_hash::FxHashSet;

use crate::document::Document;
use crate::tree::{Children, Kind, NameId, NodeId, ROOT, Tree};

/// The number of digits of a sketch.
const DIGITS: usize = 32;

/// Elements below this level belong to the content, not to the layout.
const DEPTH: usize = 8;

/// How many nodes of a page are read at most.
const MOST_NODES: usize = 100_000;

/// Elements that mark up words within a text, such as `b`. They vary with the text, so they are left out.
const OF_TEXT: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "del", "dfn", "em",
    "font", "i", "ins", "kbd", "mark", "nobr", "q", "s", "samp", "small", "span", "strike",
    "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
];

/// Elements that are not shown, or that other sites insert into a page.
const UNSEEN: &[&str] = &[
    "head", "iframe", "link", "meta", "noscript", "script", "style", "template",
];

/// Elements with headers and footers of their own, which do not belong to the frame of the page.
const OF_CONTENT: &[&str] = &["main", "article", "section"];

/// Values of the attribute `role` that mark parts of a page's frame: header, navigation, footer and the like.
const ROLES: &[&str] = &[
    "banner",
    "complementary",
    "contentinfo",
    "navigation",
    "search",
];

/// Classes and ids that mark parts of a page's frame: header, navigation, footer and the like.
const NAMES: &[&str] = &[
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "footer",
    "header",
    "main-nav",
    "masthead",
    "menu",
    "nav",
    "navbar",
    "navigation",
    "page-footer",
    "page-header",
    "sidebar",
    "site-footer",
    "site-header",
    "topbar",
];

/// A frame with fewer paths than this is part of the sketch, because it hardly changes it.
const FEWEST_OF_FRAME: usize = 8;

/// If a page has fewer paths than this outside its frame, the frame is part of the sketch, too.
const FEWEST_PATHS: usize = 4;

impl Document {
    /// Returns the sketch of the page, a text of digits. Pages with the same layout have most digits in common. `None`
    /// for a page without elements.
    pub fn sketch(&self) -> Option<String> {
        let paths = self.path_hashes();
        if paths.is_empty() {
            return None;
        }
        let digit = |function: usize| {
            let seed = mix_bits(function as u64 + 1);
            let least = paths.iter().map(|path| mix_bits(path ^ seed)).min();
            char::from_digit((least.unwrap_or_default() & 15) as u32, 16)
        };
        (0..DIGITS).map(digit).collect()
    }
}

impl Document {
    fn path_hashes(&self) -> FxHashSet<u64> {
        let number = |name: &str| self.tree.name_id(&LocalName::from(name));
        let mut collected = PathHashes {
            tree: &self.tree,
            names: self.tree.names().map(NameOf::new).collect(),
            role: number("role"),
            class_and_id: [number("class"), number("id")],
            all: FxHashSet::default(),
            main: FxHashSet::default(),
            frame: FxHashSet::default(),
            nodes: 0,
        };
        let whole = Place {
            path: 0,
            depth: 0,
            part: Part::Main,
            in_content: false,
        };
        collected.add_paths_below(ROOT, whole);
        let has_frame = collected.frame.len() >= FEWEST_OF_FRAME;
        match has_frame && collected.main.len() >= FEWEST_PATHS {
            true => collected.main,
            false => collected.all,
        }
    }
}

/// The hashes of the paths of all elements, of those in the page's frame (header, navigation, footer), and of those
/// outside it.
struct PathHashes<'t> {
    tree: &'t Tree,
    /// Properties of each element name of the tree, by the number of the name.
    names: Vec<NameOf>,
    /// The numbers of the names of attributes that mark parts of a page: `role`, and `class` and `id`.
    role: NameId,
    class_and_id: [NameId; 2],
    all: FxHashSet<u64>,
    main: FxHashSet<u64>,
    frame: FxHashSet<u64>,
    nodes: usize,
}

/// Properties of an element name.
struct NameOf {
    hash: u64,
    is_of_text: bool,
    is_unseen: bool,
    is_of_content: bool,
    is_navigation: bool,
    /// Whether it names a header, a footer or the like, which may belong to the frame of the page.
    is_frame: bool,
}

impl NameOf {
    fn new(name: &str) -> NameOf {
        NameOf {
            hash: hash(name),
            is_of_text: OF_TEXT.contains(&name),
            is_unseen: UNSEEN.contains(&name),
            is_of_content: OF_CONTENT.contains(&name),
            is_navigation: name == "nav",
            is_frame: matches!(name, "header" | "footer" | "aside"),
        }
    }
}

/// The position of an element, as the paths below it need it.
#[derive(Clone, Copy)]
struct Place {
    path: u64,
    depth: usize,
    part: Part,
    /// Whether the element is within an article or the like. Headers and footers there do not belong to the page's
    /// frame.
    in_content: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Main,
    Frame,
    Unseen,
}

impl PathHashes<'_> {
    /// Adds the hashes of the paths below a node.
    fn add_paths_below(&mut self, parent: NodeId, place: Place) {
        if place.depth >= DEPTH {
            return;
        }
        let children: Children<'_> = self.tree.children(parent);
        // Most siblings are like the one before: items, rows, paragraphs.
        let mut added = None;
        for child in children {
            self.nodes += 1;
            if self.nodes > MOST_NODES {
                return;
            }
            let Kind::Element(name) = self.tree.kind(child) else {
                continue;
            };
            let name = &self.names[name as usize];
            if name.is_of_text {
                continue;
            }
            let path = mix_bits(place.path.rotate_left(7) ^ name.hash);
            let part = match place.part {
                Part::Main if name.is_unseen => Part::Unseen,
                Part::Main if self.is_boilerplate(child, name, place.in_content) => Part::Frame,
                part => part,
            };
            let in_content = place.in_content || name.is_of_content;
            if added != Some((path, part)) {
                added = Some((path, part));
                self.add_path(path, part);
            }
            let inner = Place {
                path,
                depth: place.depth + 1,
                part,
                in_content,
            };
            self.add_paths_below(child, inner);
        }
    }

    fn add_path(&mut self, path: u64, part: Part) {
        self.all.insert(path);
        match part {
            Part::Main => self.main.insert(path),
            Part::Frame => self.frame.insert(path),
            Part::Unseen => false,
        };
    }

    fn is_boilerplate(&self, node: NodeId, name: &NameOf, in_content: bool) -> bool {
        if name.is_navigation || (!in_content && name.is_frame) {
            return true;
        }
        self.tree.attributes(node).any(|index| {
            let names = match self.tree.attribute(index).name {
                attribute if attribute == self.role => ROLES,
                attribute if self.class_and_id.contains(&attribute) => NAMES,
                _ => return false,
            };
            let mut words = self.tree.attribute_value(index).split_ascii_whitespace();
            words.any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
        })
    }
}

/// Hashes a text by FNV. Unlike other hash functions, FNV never changes, and sketches are stored.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Mixes the bits of a number, in the same way as the last step of the random generator SplitMix64.
fn mix_bits(number: u64) -> u64 {
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

    fn count_equal_digits(one: &str, other: &str) -> usize {
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
        assert!(count_equal_digits(&sketch(PAGE), &sketch(&block)) > DIGITS * 6 / 10);
        let other =
            "<div><div><div><section><h2>x</h2><dl><dt>a<dd>b</dl></section></div></div></div>";
        assert!(count_equal_digits(&sketch(PAGE), &sketch(other)) < DIGITS / 2);
    }

    /// Six layouts, each within the same frame, which has more elements than any of them. The sites mark their header,
    /// navigation and footer by elements, or by classes and ids.
    #[test]
    fn layouts_in_a_common_frame_get_different_sketches() {
        let links = "<ul><li><a href=x>x</a><li><a href=x>x</a></ul>";
        let top = format!(
            "<div><a><img></a><form><input><button>s</button></form></div><nav>{links}</nav>"
        );
        let end = format!(
            "<div>{links}</div><p>c</p><table><tr><td>x</table><form><label>x</label><select><option>x</select></form>"
        );
        let layouts = [
            "<main><h1>x</h1><div><img></div><dl><dt>a<dd>b</dl><p>text</main>",
            "<main><article><h1>x</h1><p>t<p>t<figure><img><figcaption>x</figcaption></figure></article></main>",
            "<main><h1>x</h1><table><tr><th>a<td>b</table></main>",
            "<main><h1>x</h1><ul><li><h2>a</h2><p>b</ul></main>",
            "<div id=content><h2>x</h2><div><p>a<div>b</div></div><hr></div>",
            "<main><section><div><h3>a</h3><div><img></div><p>b</div></section></main>",
        ];
        for [begin, middle, close] in [
            ["<header>", "</header>", "<footer>"],
            ["<div id=header>", "</div>", "<div class='footer dark'>"],
            ["<div role=banner>", "</div>", "<div role=contentinfo>"],
        ] {
            let page = |layout: &&str| sketch(&format!("{begin}{top}{middle}{layout}{close}{end}"));
            let sketches: Vec<String> = layouts.iter().map(page).collect();
            for (at, one) in sketches.iter().enumerate() {
                for other in &sketches[at + 1..] {
                    assert!(count_equal_digits(one, other) < DIGITS / 2, "{begin} {at}");
                }
            }
        }
        assert_eq!(sketch("<header><h1>x</h1></header>").len(), DIGITS);
    }

    #[test]
    fn a_deep_page_is_sketched_as_well() {
        let deep = "<div>".repeat(10_000);
        assert_eq!(sketch(&deep).len(), DIGITS);
    }
}
