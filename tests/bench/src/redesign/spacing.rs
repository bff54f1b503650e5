//! Changes white space: the indentation, the space around texts, and the space between words.

use super::choices::Choices;
use super::tree::{NodeId, Tree};

/// Elements where white space is visible, so it stays.
const KEPT: [&str; 4] = ["pre", "textarea", "script", "style"];

pub(super) fn change_spacing(tree: &mut Tree, choices: &Choices) {
    let is_padded = choices.decide("padded texts", 0.5);
    let is_joined = choices.decide("no-break spaces", 0.3);
    for node in tree.visible_texts() {
        let Some(text) = tree.text(node) else {
            continue;
        };
        if is_kept(tree, node) {
            continue;
        }
        let new = match text.trim().is_empty() {
            // White space between two words is visible, so it must remain.
            true => "\n  ".to_owned(),
            false if is_joined && text.trim().chars().count() <= 30 => text.replace(' ', "\u{a0}"),
            false if is_padded => pad_at_spaces(text),
            false => continue,
        };
        tree.set_text(node, new);
    }
}

/// Adds white space where the text already begins or ends with some.
fn pad_at_spaces(text: &str) -> String {
    let begins = text.starts_with(char::is_whitespace);
    let ends = text.ends_with(char::is_whitespace);
    let (before, after) = (
        if begins { "\n      " } else { "" },
        if ends { "\n    " } else { "" },
    );
    format!("{before}{}{after}", text.trim())
}

fn is_kept(tree: &Tree, node: NodeId) -> bool {
    let mut above = tree.parent(node);
    while above != super::tree::ROOT {
        if KEPT.contains(&tree.tag(above)) {
            return true;
        }
        above = tree.parent(above);
    }
    false
}
