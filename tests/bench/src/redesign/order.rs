//! Changes the order of blocks within their parent, and of rows within their table.

use std::collections::HashSet;

use super::choices::Choices;
use super::tree::{NodeId, Tree};

/// Elements that can be moved by themselves. Headings and paragraphs stay, because they belong to the element after
/// them.
const BLOCKS: [&str; 8] = [
    "div", "section", "article", "aside", "ul", "table", "form", "dl",
];

const HEADINGS: [&str; 9] = ["h1", "h2", "h3", "h4", "h5", "h6", "dt", "label", "p"];

/// The most children of an element that are reordered. An element with more children is a list or a text.
const MOST: usize = 60;

pub(super) fn rearrange_elements(tree: &mut Tree, choices: &Choices) {
    for node in tree.elements() {
        let Some(signature) = tree.element(node).map(|element| element.signature()) else {
            continue;
        };
        match tree.tag(node) {
            "tbody" | "table" if choices.decide(&format!("rows of {signature}"), 0.4) => {
                sort_rows(tree, node, choices);
            }
            "ul" | "ol" | "dl" | "tr" | "pre" => {}
            _ => move_blocks(tree, node, &signature, choices),
        }
    }
}

/// Moves blocks to the beginning or the end of their parent, at random.
fn move_blocks(tree: &mut Tree, parent: NodeId, signature: &str, choices: &Choices) {
    let children = tree.element_children(parent);
    if !(2..=MOST).contains(&children.len()) {
        return;
    }
    let own = |node: NodeId| tree.element(node).map(|element| element.signature());
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for (at, child) in children.iter().enumerate() {
        let Some(own_signature) = own(*child) else {
            continue;
        };
        // Several similar blocks are a list and stay in order. A block that follows a heading stays after it.
        let alike = children
            .iter()
            .filter(|one| own(**one).as_ref() == Some(&own_signature));
        let follows = at > 0 && HEADINGS.contains(&tree.tag(children[at - 1]));
        if !BLOCKS.contains(&tree.tag(*child)) || alike.count() > 1 || follows {
            continue;
        }
        let what = format!("move {own_signature} in {signature}");
        if choices.decide(&what, 0.25) {
            match choices.decide(&format!("forward {what}"), 0.5) {
                true => first.push(*child),
                false => last.push(*child),
            }
        }
    }
    let mut all = tree.children(parent).to_vec();
    all.retain(|child| !first.contains(child) && !last.contains(child));
    all.splice(0..0, first);
    all.extend(last);
    tree.set_children(parent, all);
}

/// Sorts the rows of a table by their labels, in an order that is random for the site.
fn sort_rows(tree: &mut Tree, table: NodeId, choices: &Choices) {
    let children = tree.children(table).to_vec();
    let is_row = |node: &NodeId| tree.tag(*node) == "tr" && tree.element_children(*node).len() == 2;
    let mut rows: Vec<NodeId> = children.iter().copied().filter(is_row).collect();
    if rows.len() < 3 {
        return;
    }
    let is_place: HashSet<NodeId> = rows.iter().copied().collect();
    rows.sort_by_cached_key(|row| {
        let label = tree
            .element_children(*row)
            .first()
            .map(|cell| tree.text_within(*cell));
        choices.number(&format!("row {}", label.unwrap_or_default()))
    });
    let mut sorted = rows.into_iter();
    let reordered = children.iter().map(|child| match is_place.contains(child) {
        true => sorted.next().unwrap_or(*child),
        false => *child,
    });
    let reordered: Vec<NodeId> = reordered.collect();
    tree.set_children(table, reordered);
}
