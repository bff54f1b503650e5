//! Identifies the slot (shared place) of a value by its label, its element, or its name in the page's data.

use std::collections::{BTreeSet, HashMap};

use webfill_document::NodeRef;

use super::{LONGEST, bare_label, words};
use crate::fold::collapse_white_space;
use crate::generated::looks_generated;
use crate::labels::Labels;
use crate::places::{PlaceKind, Places};

/// How many ancestors of a value are searched for its label, and how many neighbours may be between label and value.
const ANCESTORS: usize = 4;
const NEIGHBOURS: usize = 6;

/// The most siblings of a node that are examined.
const MOST_SIBLINGS: usize = 400;

/// The longest text that counts as a label.
const LONGEST_LABEL: usize = 40;

/// A value found on a page, with everything that identifies its slot (shared place).
#[derive(Default)]
pub(super) struct FoundValue {
    pub(super) key: String,
    pub(super) label: Option<String>,
    pub(super) names: BTreeSet<String>,
    pub(super) property: Option<String>,
    pub(super) is_heading: bool,
    /// The text of the value, if it is only a part of the whole text.
    pub(super) text: Option<String>,
}

pub(super) fn identify_place(
    at: &PlaceKind<'_>,
    text: &str,
    labels: &Labels,
    prefixes: &BTreeSet<String>,
) -> Option<FoundValue> {
    match at {
        PlaceKind::Text(node) => identify_text(*node, text, labels, prefixes, "t"),
        PlaceKind::Element(element) => is_inline_only(*element)
            .then(|| identify_text(*element, text, labels, prefixes, "e"))?,
        PlaceKind::Attribute(owner, name) => identify_attribute(*owner, name, text),
        PlaceKind::JsonLd(kind, path) => Some(identify_linked_data(kind, path)),
        PlaceKind::Json(_) | PlaceKind::ParsedJson(..) | PlaceKind::ScriptKey(..) => None,
    }
}

/// Whether an element contains only text and inline elements such as `b`.
fn is_inline_only(element: NodeRef<'_>) -> bool {
    let is_inline = |node: NodeRef<'_>| {
        let tag = node.tag();
        tag.is_none_or(|tag| {
            matches!(
                tag,
                "a" | "b"
                    | "i"
                    | "em"
                    | "strong"
                    | "span"
                    | "br"
                    | "sup"
                    | "sub"
                    | "font"
                    | "small"
                    | "u"
            )
        })
    };
    element.descendants().take(40).all(is_inline)
}

fn identify_text(
    node: NodeRef<'_>,
    text: &str,
    labels: &Labels,
    prefixes: &BTreeSet<String>,
    kind: &str,
) -> Option<FoundValue> {
    let element = if node.is_text() { node.parent()? } else { node };
    let tag = element.tag()?;
    if matches!(
        tag,
        "option" | "button" | "title" | "script" | "style" | "noscript"
    ) {
        return None;
    }
    let mut found = FoundValue {
        names: name_words(element),
        property: element.attribute("itemprop").map(str::to_owned),
        is_heading: nearest_ancestors(element, 2).any(|element| element.tag() == Some("h1")),
        ..FoundValue::default()
    };
    if let Some((label, value)) = inline_label(text, prefixes) {
        found.key = format!("i|{label}|{tag}");
        found.text = Some(value);
        found.label = Some(label);
        return Some(found);
    }
    if labels.has(text) && text.ends_with(':') {
        return None;
    }
    match label_of(node, labels) {
        Some(label) => {
            found.key = format!("l|{kind}|{label}|{}", ancestor_path(element, 2, false));
            let value = text.trim_start_matches([':', ' ']);
            found.text = (value.len() < text.len()).then(|| value.to_owned());
            found.label = Some(label);
        }
        None => found.key = format!("p|{kind}|{}", ancestor_path(element, 6, true)),
    }
    Some(found)
}

fn identify_attribute(owner: NodeRef<'_>, name: &str, text: &str) -> Option<FoundValue> {
    let property = ["itemprop", "property", "name"]
        .iter()
        .find_map(|name| owner.attribute(name));
    match (name, property) {
        ("content", Some(property)) => Some(FoundValue {
            key: format!("m|{property}|{}", ancestor_path(owner.parent()?, 2, false)),
            names: words(property),
            property: Some(property.rsplit(':').next().unwrap_or(property).to_owned()),
            ..FoundValue::default()
        }),
        ("datetime", _) => Some(FoundValue {
            key: format!("d|{}", ancestor_path(owner, 5, true)),
            names: name_words(owner),
            property: owner.attribute("itemprop").map(str::to_owned),
            ..FoundValue::default()
        }),
        ("href", _) if text.starts_with("http") => Some(FoundValue {
            key: format!("h|{}", ancestor_path(owner, 5, true)),
            names: name_words(owner)
                .into_iter()
                .chain(words(owner.text()))
                .take(12)
                .collect(),
            property: owner.attribute("itemprop").map(str::to_owned),
            ..FoundValue::default()
        }),
        _ => None,
    }
}

fn identify_linked_data(kind: &str, path: &str) -> FoundValue {
    let plain: String = {
        let mut inside = false;
        path.chars()
            .filter(|c| {
                inside = (inside || *c == '[') && *c != ']';
                !inside && *c != ']'
            })
            .collect()
    };
    let mut keys = plain.rsplit('.').filter(|key| *key != "$");
    let last = keys.next().unwrap_or_default();
    // A general last key does not name the property: in `author.name`, it is `author`.
    let property = match last {
        "name" | "value" | "url" => keys.next().unwrap_or(last),
        last => last,
    };
    FoundValue {
        key: format!("j|{kind}|{plain}"),
        names: words(property),
        property: Some(property.to_owned()),
        is_heading: false,
        ..FoundValue::default()
    }
}

fn nearest_ancestors(element: NodeRef<'_>, most: usize) -> impl Iterator<Item = NodeRef<'_>> {
    std::iter::successors(Some(element), |element| element.parent()).take(most)
}

/// Words in the classes and ids of an element, and of up to two elements around it that contain little besides it.
fn name_words(element: NodeRef<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let text = element.text().len();
    for (far, one) in nearest_ancestors(element, 3).enumerate() {
        if far > 0 && one.text().len() > text * 2 + 40 {
            break;
        }
        for name in ["class", "id", "itemprop"] {
            let tokens = one.attribute(name).unwrap_or_default().split_whitespace();
            let tokens = tokens.filter(|token| !looks_generated(token));
            names.extend(tokens.take(6).flat_map(words));
        }
    }
    names
}

/// The tags and classes of an element and its ancestors. If `numbered`, with their numbers among siblings.
fn ancestor_path(element: NodeRef<'_>, most: usize, numbered: bool) -> String {
    let mut path = String::new();
    for (far, one) in nearest_ancestors(element, most).enumerate() {
        let Some(tag) = one.tag() else { break };
        path += tag;
        for name in ["class", "id", "itemprop"] {
            let value = one.attribute(name).unwrap_or_default();
            let tokens = value
                .split_whitespace()
                .filter(|token| !looks_generated(token));
            for token in tokens.take(4) {
                path.push('.');
                path.extend(token.chars().filter(|c| !c.is_ascii_digit()));
            }
        }
        if numbered && far < 3 {
            path += &format!("[{}]", number_among_siblings(one));
        }
        path.push('<');
    }
    path
}

/// The number of an element among its siblings with the same tag. In long lists, all later ones have the same number.
fn number_among_siblings(element: NodeRef<'_>) -> usize {
    let Some(parent) = element.parent() else {
        return 0;
    };
    let siblings = parent.children().take(MOST_SIBLINGS);
    let same = siblings.filter(|sibling| sibling.tag() == element.tag());
    let place = same.take_while(|sibling| *sibling != element).count();
    if place > 12 { 12 } else { place }
}

/// The nearest label before a node or before one of its ancestors.
fn label_of(node: NodeRef<'_>, labels: &Labels) -> Option<String> {
    let mut at = node;
    for _ in 0..ANCESTORS {
        let parent = at.parent()?;
        let siblings = parent.children().take(MOST_SIBLINGS);
        let before: Vec<NodeRef<'_>> = siblings.take_while(|sibling| *sibling != at).collect();
        let mut left = NEIGHBOURS;
        for sibling in before.into_iter().rev() {
            let text = sibling.text();
            if text.len() > LONGEST {
                break;
            }
            let text = collapse_white_space(text);
            if text.is_empty() {
                continue;
            }
            if text.chars().count() <= LONGEST_LABEL && labels.has(&text) {
                return Some(bare_label(&text)).filter(|label| !label.is_empty());
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        if matches!(at.tag(), Some("td"))
            && let Some(label) = head_of_column(at, labels)
        {
            return Some(label);
        }
        at = parent;
    }
    None
}

fn head_of_column(cell: NodeRef<'_>, labels: &Labels) -> Option<String> {
    let row = cell.parent()?;
    let column = row
        .children()
        .filter(|child| child.is_element())
        .take(MOST_SIBLINGS)
        .take_while(|child| *child != cell)
        .count();
    let body = row.parent()?;
    let table = match body.tag() {
        Some("tbody") => body.parent()?,
        _ => body,
    };
    let first = table.descendants().find(|node| node.tag() == Some("tr"))?;
    if first == row {
        return None;
    }
    let head = first
        .children()
        .filter(|child| child.is_element())
        .nth(column)?;
    let text = collapse_white_space(head.text());
    let is_head = head.tag() == Some("th") && text.chars().count() <= LONGEST_LABEL;
    (is_head && labels.has(&text)).then(|| bare_label(&text))
}

/// Beginnings of texts up to a colon that occur on several pages, such as `Author: ` before names.
pub(super) fn find_prefixes(pages: &[Places<'_>]) -> BTreeSet<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for page in pages {
        let texts = page
            .all
            .iter()
            .filter(|place| matches!(place.at, PlaceKind::Text(_) | PlaceKind::Element(_)));
        let here: BTreeSet<String> = texts
            .filter_map(|place| Some(split_label(&place.text)?.0))
            .collect();
        for prefix in here {
            *counts.entry(prefix).or_default() += 1;
        }
    }
    let least = (pages.len() / 4).max(2);
    counts.retain(|_, count| *count >= least);
    counts.into_keys().collect()
}

fn split_label(text: &str) -> Option<(String, &str)> {
    let (label, value) = text.split_once(':')?;
    let is_label = label.chars().count() <= LONGEST_LABEL
        && label.chars().any(char::is_alphabetic)
        && !label.chars().any(|c| c.is_ascii_digit() || c == '/');
    let value = value.trim();
    (is_label && !value.is_empty() && !value.starts_with("//")).then(|| (bare_label(label), value))
}

fn inline_label(text: &str, prefixes: &BTreeSet<String>) -> Option<(String, String)> {
    let (label, value) = split_label(text)?;
    prefixes.contains(&label).then(|| (label, value.to_owned()))
}
