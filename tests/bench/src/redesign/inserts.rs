//! Adds a new block that repeats content of the page: "Recently viewed", "At a glance" or "Summary".

use super::choices::Choices;
use super::tree::{NodeId, Tree};

/// The most texts that are repeated.
const REPEATED: usize = 6;

pub(super) fn add_sidebar(tree: &mut Tree, choices: &Choices) {
    let Some(body) = tree.elements_of("body").first().copied() else {
        return;
    };
    let title = *choices.pick("sidebar", &["Recently viewed", "At a glance", "Summary"]);
    let aside = tree.create_element("aside", &[("class", "widget")]);
    let heading = tree.create_text_element("h4", &[], title);
    tree.append(aside, heading);
    let list = tree.create_element("ul", &[]);
    tree.append(aside, list);
    for text in repeated_texts(tree, choices) {
        let item = tree.create_text_element("li", &[("class", "widget-item")], &text);
        tree.append(list, item);
    }
    match choices.decide("sidebar first", 0.5) {
        true => tree.insert_first(body, aside),
        false => tree.append(body, aside),
    }
}

/// Short texts of the page for the new block. The heading is included. Which kinds of elements are repeated is chosen
/// at random for the whole site.
fn repeated_texts(tree: &Tree, choices: &Choices) -> Vec<String> {
    let is_chosen = |node: NodeId| {
        let parent = tree.parent(node);
        let signature = tree.element(parent).map(|element| element.signature());
        let what = format!("repeat {}", signature.unwrap_or_default());
        tree.tag(parent) == "h1" || choices.decide(&what, 0.2)
    };
    let mut found: Vec<String> = Vec::new();
    for node in tree.visible_texts() {
        let text = super::tree::normalise_spaces(tree.text(node).unwrap_or_default());
        if (2..=60).contains(&text.chars().count()) && is_chosen(node) && !found.contains(&text) {
            found.push(text);
        }
        if found.len() >= REPEATED {
            break;
        }
    }
    found
}
