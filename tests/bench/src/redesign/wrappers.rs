//! Puts elements around blocks, removes such elements, and marks up the texts of small elements.

use super::choices::Choices;
use super::tree::{NodeId, Tree};

/// Elements around which a wrapper may be put.
const BLOCKS: [&str; 15] = [
    "div",
    "section",
    "article",
    "table",
    "ul",
    "ol",
    "dl",
    "form",
    "h1",
    "h2",
    "h3",
    "blockquote",
    "pre",
    "main",
    "p",
];

/// Elements where a wrapper is allowed. A browser would move it out of other elements.
const PLACES: [&str; 11] = [
    "body",
    "div",
    "section",
    "article",
    "main",
    "td",
    "li",
    "form",
    "aside",
    "dd",
    "blockquote",
];

/// Small elements that mostly contain a value or a label.
const LEAVES: [&str; 9] = ["td", "th", "dd", "dt", "li", "p", "h1", "div", "span"];

/// Class names that page builders give to wrappers.
const NAMES: [&str; 6] = ["inner", "container", "wrap", "layout", "box", ""];

pub(super) fn wrap_elements(tree: &mut Tree, choices: &Choices) {
    for node in tree.elements() {
        let Some(signature) = tree.element(node).map(|element| element.signature()) else {
            continue;
        };
        let of = format!("{signature} in {}", tree.tag(tree.parent(node)));
        if may_be_wrapped(tree, node) && choices.decide(&format!("wrap {of}"), 0.25) {
            let name = choices.pick(&format!("wrapper of {of}"), &NAMES);
            let class = [("class", *name)];
            let attributes = if name.is_empty() { &[][..] } else { &class };
            tree.wrap(node, "div", attributes);
        } else if let Some(child) = sole_child(tree, node)
            && choices.decide(&format!("unwrap {of}"), 0.2)
        {
            tree.unwrap(node, child);
        } else if LEAVES.contains(&tree.tag(node)) && choices.decide(&format!("mark up {of}"), 0.15)
        {
            mark_up_text(tree, node, choices, &of);
        }
    }
}

fn may_be_wrapped(tree: &Tree, node: NodeId) -> bool {
    BLOCKS.contains(&tree.tag(node)) && PLACES.contains(&tree.tag(tree.parent(node)))
}

/// The only element within a `div`, if it has no other content.
fn sole_child(tree: &Tree, node: NodeId) -> Option<NodeId> {
    let is_blank = |child: &NodeId| tree.text(*child).is_none_or(|text| text.trim().is_empty());
    let is_wrapper = tree.tag(node) == "div" && PLACES.contains(&tree.tag(tree.parent(node)));
    if !is_wrapper || tree.children(node).len() > 3 || !tree.children(node).iter().all(is_blank) {
        return None;
    }
    match *tree.element_children(node) {
        [only] => Some(only),
        _ => None,
    }
}

fn mark_up_text(tree: &mut Tree, node: NodeId, choices: &Choices, of: &str) {
    let tag = *choices.pick(
        &format!("mark-up of {of}"),
        &["span", "strong", "span", "em"],
    );
    if let [only] = *tree.children(node)
        && tree.text(only).is_some_and(|text| !text.trim().is_empty())
    {
        tree.wrap(only, tag, &[]);
    }
}
