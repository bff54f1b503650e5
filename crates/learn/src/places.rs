//! Places: the texts of a page and where they are. They are text nodes, whole elements, attributes, and values in
//! linked data, JSON and scripts.

mod json;
mod scripts;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use webfill_document::{Document, NodeRef};
use webfill_mapping::{PageKind, value_text};

use crate::clock::minutes_of_day;
use crate::dates::{self, DateInterpretation};
use crate::fold::{KnownValue, Spelling, collapse_white_space, fold_text};
use crate::part_numbers::is_part_of_number;
use crate::sentences::is_word_of_sentence;
use crate::survival::Anchor;
use crate::truth_words::is_truth_class;
use crate::types::Page;

pub(crate) use self::json::member_path;
pub(crate) use self::scripts::{ParsedQuote, ScriptNotation};

/// The most places of a page that are read. The rest is ignored.
const MOST_PLACES: usize = 120_000;

/// The most bytes of text of a page that are compared.
const MOST_BYTES: usize = 4 << 20;

/// The longest type name of linked data, in bytes. An object with a longer one gets no places.
const LONGEST_KIND: usize = 80;

/// The longest text that counts as a value, in bytes.
const LONGEST: usize = 4_000;

/// The longest text of an element that counts as a value, in bytes. Elements with more text are sections of the page.
const LONGEST_ELEMENT: usize = 1_000;

/// How many places that contain a value among other words are examined. At least in one of them, the value must be more
/// than a word of a sentence.
const MOST_AROUND: usize = 20;

/// The attributes whose texts may be values.
const ATTRIBUTES: &[&str] = &[
    "content", "href", "datetime", "title", "alt", "src", "value",
];

/// The attributes of an element without text that a person points at, in the order they are tried as the value.
const POINTED_ATTRIBUTES: &[&str] = &["content", "value", "src", "href", "alt", "title"];

/// A place on a page.
pub(crate) struct Place<'d> {
    pub(crate) at: PlaceKind<'d>,
    /// The text of the place, with white space collapsed.
    pub(crate) text: String,
}

#[derive(Clone)]
pub(crate) enum PlaceKind<'d> {
    Text(NodeRef<'d>),
    /// The whole text of an element that contains several texts.
    Element(NodeRef<'d>),
    Attribute(NodeRef<'d>, &'d str),
    /// A member of a linked-data object: the type of the object, and the path within it.
    JsonLd(String, String),
    /// A value in the JSON data of a script, or in a JSON page, by its path.
    Json(String),
    /// A value in the JSON that a script parses, as in `JSON.parse("{...}")`, by its path.
    ParsedJson(String, ParsedQuote),
    /// A text or number after a key, in a script that is not JSON: the key, the notation, and the name of the object
    /// that has the key.
    ScriptKey(String, ScriptNotation, Option<String>),
}

impl PlaceKind<'_> {
    /// The bytes of the strings in this value. They count towards the limit of a page, because the page determines
    /// their length.
    fn bytes(&self) -> usize {
        match self {
            PlaceKind::Text(_) | PlaceKind::Element(_) | PlaceKind::Attribute(..) => 0,
            PlaceKind::JsonLd(kind, path) => kind.len() + path.len(),
            PlaceKind::Json(path) | PlaceKind::ParsedJson(path, _) => path.len(),
            PlaceKind::ScriptKey(key, _, owner) => {
                key.len() + owner.as_ref().map_or(0, String::len)
            }
        }
    }
}

/// An element that is searched for the places of a row: the row itself, or a part of it such as a cell.
pub(crate) struct Root<'d> {
    pub(crate) node: NodeRef<'d>,
    /// The processor that leads from the row to the cell; `None` if `path` alone leads to the element.
    pub(crate) lead: Option<Value>,
    /// The XPath from the row, or from the cell, to the element.
    pub(crate) path: String,
    /// By which kind of anchor `lead` or `path` finds the element.
    pub(crate) anchor: Anchor,
    pub(crate) burden: f64,
}

/// A page, or a row of a page, with all its places.
pub(crate) struct Places<'d> {
    pub(crate) page: &'d Page,
    pub(crate) document: &'d Document,
    /// The elements that were searched for the places of a row. Empty for a page.
    pub(crate) roots: Vec<Root<'d>>,
    pub(crate) all: Vec<Place<'d>>,
    /// The text nodes in page order, as indexes of `all`.
    pub(crate) texts: Vec<usize>,
    /// The elements by tag and whole `class` attribute, in page order.
    pub(crate) by_class: BTreeMap<(&'d str, &'d str), Vec<usize>>,
    by_text: HashMap<String, Vec<usize>>,
    /// How many objects of linked data there are, by type.
    linked: BTreeMap<String, usize>,
    bytes: usize,
}

impl<'d> Places<'d> {
    fn without_places(page: &'d Page, document: &'d Document, roots: Vec<Root<'d>>) -> Places<'d> {
        Places {
            page,
            document,
            roots,
            all: Vec::new(),
            texts: Vec::new(),
            by_class: BTreeMap::new(),
            by_text: HashMap::new(),
            linked: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Finds the places of a row. `page` has the known values of this row, not those of the whole page.
    pub(crate) fn from_row(
        page: &'d Page,
        document: &'d Document,
        roots: Vec<Root<'d>>,
    ) -> Places<'d> {
        let mut nodes: Vec<NodeRef<'d>> = roots.iter().map(|root| root.node).collect();
        nodes.sort_by_key(|node| node.position());
        let mut places = Places::without_places(page, document, roots);
        let mut before: Option<NodeRef<'d>> = None;
        for node in nodes {
            // An element inside an earlier one, such as a cell in its row, was already read.
            if before.is_none_or(|before| !before.contains(node)) {
                before = Some(node);
                places.read_nodes(std::iter::once(node).chain(node.descendants()));
            }
        }
        places
    }

    /// Finds the places of a row that is a JSON object.
    pub(crate) fn from_object(page: &'d Page, document: &'d Document, row: &Value) -> Places<'d> {
        let mut places = Places::without_places(page, document, Vec::new());
        places.read_members(row, "$", 0, &|path| PlaceKind::Json(path));
        places
    }

    pub(crate) fn new(page: &'d Page, document: &'d Document) -> Places<'d> {
        let mut places = Places::without_places(page, document, Vec::new());
        match page.kind {
            PageKind::Html | PageKind::Xml => places.read_tree(),
            PageKind::Json => places.read_json(&page.text),
            PageKind::Text => {}
        }
        places
    }

    fn add(&mut self, at: PlaceKind<'d>, text: &str) -> Option<usize> {
        let full = self.all.len() >= MOST_PLACES || self.bytes >= MOST_BYTES;
        if full || text.len() > LONGEST * 2 {
            return None;
        }
        let text = collapse_white_space(text);
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        self.bytes += text.len() + at.bytes();
        let index = self.all.len();
        for key in lookup_keys(&text) {
            let places = self.by_text.entry(key).or_default();
            // A text that occurs in 64 places or more identifies none of them, so further places are not indexed.
            if places.len() < 64 {
                places.push(index);
            }
        }
        self.all.push(Place { at, text });
        Some(index)
    }

    fn read_tree(&mut self) {
        self.read_nodes(self.document.root().descendants());
    }

    fn read_nodes(&mut self, nodes: impl Iterator<Item = NodeRef<'d>>) {
        for node in nodes {
            if node.is_text() {
                let inside = node.parent().and_then(NodeRef::tag);
                if !matches!(inside, Some("script" | "style"))
                    && let Some(index) = self.add(PlaceKind::Text(node), node.text())
                {
                    self.texts.push(index);
                }
            } else if let Some(tag) = node.tag() {
                self.read_element(node, tag);
            }
        }
    }

    fn read_element(&mut self, node: NodeRef<'d>, tag: &'d str) {
        match tag {
            // Scripts inside a row are skipped, because an extraction chain that runs in a row cannot read them.
            "script" if !self.roots.is_empty() => return,
            "script" => return self.read_script(node),
            "style" => return,
            _ => {}
        }
        for attribute in node.attributes() {
            let name = attribute.name();
            if name == "class" {
                let key = (tag, attribute.value());
                self.by_class.entry(key).or_default().push(node.position());
                if is_truth_class(attribute.value()) && node.text().trim().is_empty() {
                    self.add(PlaceKind::Attribute(node, name), attribute.value());
                }
            } else if ATTRIBUTES.contains(&name) || name.starts_with("data-") {
                self.add(PlaceKind::Attribute(node, name), attribute.value());
            }
        }
        if matches!(tag, "html" | "head" | "body") {
            return;
        }
        if node.text().len() <= LONGEST_ELEMENT && node.children().take(2).count() > 1 {
            let text = match is_within_lines(node) || has_struck_text(node) {
                true => value_text(node),
                false => node.text().into(),
            };
            self.add(PlaceKind::Element(node), &text);
        }
    }

    /// The places whose whole text is a known value.
    pub(crate) fn find_exact(&self, wanted: &KnownValue) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut find = |key: String| {
            found.extend(self.by_text.get(&key).into_iter().flatten());
        };
        find(wanted.folded.clone());
        if let Some(number) = &wanted.number {
            find(format!("\u{1}{number}"));
        }
        if let Some(digits) = &wanted.digits {
            find(format!("\u{2}{digits}"));
        }
        if let Some(day) = &wanted.day {
            find(day_key(day));
        }
        if let Some(minutes) = wanted.minutes {
            find(minutes_key(minutes));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether the page has several objects of this type in its linked data.
    pub(crate) fn has_several_linked_objects(&self, kind: &str) -> bool {
        self.linked.get(kind).is_some_and(|count| *count > 1)
    }

    /// The places whose whole text, folded (brought into the form for comparison), is this text.
    pub(crate) fn find_text(&self, folded: &str) -> &[usize] {
        self.by_text.get(folded).map_or(&[], Vec::as_slice)
    }

    /// The folded texts of the page with at most this many bytes, each with its places.
    pub(crate) fn short_texts(&self, longest: usize) -> impl Iterator<Item = (&str, &[usize])> {
        let is_text =
            move |text: &str| text.len() <= longest && !text.starts_with(char::is_control);
        let texts = self.by_text.iter().filter(move |(text, _)| is_text(text));
        texts.map(|(text, places)| (text.as_str(), places.as_slice()))
    }

    /// The last text node before a node, in page order, with its text.
    pub(crate) fn text_before(&self, node: NodeRef<'_>) -> Option<(NodeRef<'d>, &str)> {
        let position = |index: usize| match &self.all[index].at {
            PlaceKind::Text(text) => text.position(),
            _ => usize::MAX,
        };
        let before = self
            .texts
            .partition_point(|&index| position(index) < node.position());
        let place = &self.all[*self.texts.get(before.checked_sub(1)?)?];
        match place.at {
            PlaceKind::Text(text) => Some((text, place.text.as_str())),
            _ => None,
        }
    }

    /// The element that contains a place; `None` for places in JSON and scripts.
    pub(crate) fn element_of(&self, place: usize) -> Option<NodeRef<'d>> {
        match self.all[place].at {
            PlaceKind::Text(text) => text.parent(),
            PlaceKind::Element(element) => Some(element),
            PlaceKind::Attribute(owner, _) => Some(owner),
            PlaceKind::JsonLd(..)
            | PlaceKind::Json(_)
            | PlaceKind::ParsedJson(..)
            | PlaceKind::ScriptKey(..) => None,
        }
    }

    /// Whether the page contains the value as the record writes it.
    pub(crate) fn contains_exactly(&self, wanted: &KnownValue) -> bool {
        self.by_text.contains_key(&wanted.folded) || !self.find_containing(wanted, 1).is_empty()
    }

    /// The places whose text contains the value among other words, each with the value's byte index in the text.
    pub(crate) fn find_containing(&self, wanted: &KnownValue, most: usize) -> Vec<(usize, usize)> {
        let value = wanted.text.as_str();
        if value.chars().count() < 2 {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (index, place) in self.all.iter().enumerate() {
            if place.text.len() <= value.len() || matches!(place.at, PlaceKind::ScriptKey(..)) {
                continue;
            }
            let starts = place.text.match_indices(value).map(|(start, _)| start);
            let bounded = |start: &usize| is_at_word_boundaries(&place.text, *start, value.len());
            if let Some(start) = starts.take(20).find(bounded) {
                found.push((index, start));
                if found.len() >= most {
                    break;
                }
            }
        }
        found
    }

    /// The places whose text contains the date among other words, each with the range of the date and the ways to read
    /// it.
    pub(crate) fn find_containing_date(
        &self,
        day: &str,
        most: usize,
    ) -> Vec<(usize, usize, usize, Vec<DateInterpretation>)> {
        let year = day.get(2..4).unwrap_or(day);
        let places = self.all.iter().enumerate();
        let texts = places.filter(|(_, place)| {
            let is_text = !matches!(place.at, PlaceKind::ScriptKey(..));
            is_text && place.text.len() <= LONGEST_ELEMENT && place.text.contains(year)
        });
        let found = texts.filter_map(|(index, place)| {
            let (start, end, ways) = dates::find_day(&place.text, day)?;
            Some((index, start, end, ways))
        });
        found.take(most).collect()
    }

    /// Whether the page contains the value in any spelling. A word of a sentence and a part of a longer number do not
    /// count, because they may be there by chance.
    pub(crate) fn mentions(&self, wanted: &KnownValue) -> bool {
        let has_date = |day: &String| !self.find_containing_date(day, 1).is_empty();
        let is_value = |&(place, start): &(usize, usize)| {
            let (text, length) = (&self.all[place].text, wanted.text.len());
            !is_word_of_sentence(text, start, length) && !is_part_of_number(text, start, length)
        };
        let around = self.find_containing(wanted, MOST_AROUND);
        around.iter().any(is_value)
            || !self.find_exact(wanted).is_empty()
            || wanted.day.as_ref().is_some_and(has_date)
    }

    /// The place of an attribute that a person pointed at.
    pub(crate) fn find_attribute(&self, owner: NodeRef<'_>, name: &str) -> Option<usize> {
        self.all.iter().position(|place| match &place.at {
            PlaceKind::Attribute(node, attribute) => *node == owner && *attribute == name,
            _ => false,
        })
    }

    /// The place of a text or element that a person pointed at. An element without text (`img`, `meta`, `input`) has
    /// its value in an attribute, so the place of that attribute is returned.
    pub(crate) fn find_node(&self, node: NodeRef<'_>) -> Option<usize> {
        let text = self.all.iter().position(|place| match &place.at {
            PlaceKind::Text(text) => {
                *text == node || (text.parent() == Some(node) && text.text() == node.text())
            }
            PlaceKind::Element(element) => *element == node,
            _ => false,
        });
        let value = |name: &&str| {
            let is_it = |place: &Place<'_>| matches!(&place.at, PlaceKind::Attribute(owner, of) if *owner == node && of == name);
            self.all.iter().position(is_it)
        };
        text.or_else(|| POINTED_ATTRIBUTES.iter().find_map(value))
    }
}

/// The keys that a place can be found by: its text, and the number, telephone number or days that it means.
fn lookup_keys(text: &str) -> Vec<String> {
    let mut keys = vec![fold_text(text)];
    if text.len() <= 40 && text.bytes().any(|b| b.is_ascii_digit()) {
        if let Some(number) = crate::fold::number_in(text) {
            keys.push(format!("\u{1}{number}"));
        }
        if let Some(digits) = Spelling::new(text).into_phone_digits() {
            keys.push(format!("\u{2}{digits}"));
        }
    }
    if let Some(minutes) = minutes_of_day(text) {
        keys.push(minutes_key(minutes));
    }
    let mut days: Vec<String> = dates::date_interpretations(text)
        .into_iter()
        .map(|way| way.day)
        .collect();
    days.extend(dates::iso_day(text));
    days.sort_unstable();
    days.dedup();
    keys.extend(days.iter().map(|day| day_key(day)));
    keys
}

fn day_key(day: &str) -> String {
    format!("\u{3}{day}")
}

fn minutes_key(minutes: u32) -> String {
    format!("\u{4}{minutes}")
}

fn is_at_word_boundaries(text: &str, start: usize, length: usize) -> bool {
    let before = text[..start].chars().next_back();
    let after = text[start + length..].chars().next();
    let first = text[start..].chars().next();
    let last = text[..start + length].chars().next_back();
    let joins = |one: Option<char>, other: Option<char>| {
        one.is_some_and(char::is_alphanumeric) && other.is_some_and(char::is_alphanumeric)
    };
    !joins(before, first) && !joins(last, after)
}

/// Whether an element contains text that is struck out by its tag. No extraction chain reads it with the rest.
fn has_struck_text(node: NodeRef<'_>) -> bool {
    let mut tags = node.descendants().filter_map(NodeRef::tag);
    tags.any(|tag| matches!(tag, "del" | "s" | "strike"))
}

/// Whether an element contains only text, perhaps on several lines. The text of an element with other blocks inside is
/// not a value.
fn is_within_lines(node: NodeRef<'_>) -> bool {
    const WITHIN_LINES: [&str; 24] = [
        "a", "abbr", "b", "bdi", "bdo", "br", "data", "del", "em", "font", "i", "ins", "mark", "p",
        "s", "small", "span", "strike", "strong", "sub", "sup", "time", "u", "wbr",
    ];
    let mut tags = node.descendants().filter_map(NodeRef::tag);
    tags.all(|tag| WITHIN_LINES.contains(&tag))
}
