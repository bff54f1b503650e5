//! Gives headings another level, or turns them into blocks with a class.

use super::choices::Choices;
use super::tree::Tree;

const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

pub(super) fn change_heading_levels(tree: &mut Tree, choices: &Choices) {
    for node in tree.elements() {
        let Some(element) = tree.element_mut(node) else {
            continue;
        };
        let Some(level) = HEADINGS.iter().position(|tag| *tag == element.tag) else {
            continue;
        };
        let what = format!("heading {}", element.signature());
        // The main heading (`h1`) keeps its level with a higher probability than other headings.
        let (kept, deeper, higher) = if level == 0 { (8, 9, 9) } else { (4, 7, 9) };
        let new = match choices.number(&what) % 10 {
            number if number < kept => continue,
            number if number < deeper => HEADINGS[(level + 1).min(5)],
            number if number < higher => HEADINGS[level.saturating_sub(1)],
            _ => "div",
        };
        new.clone_into(&mut element.tag);
        if new == "div" {
            let class = element.get("class").unwrap_or_default();
            let class = format!("{class} heading-{}", level + 1);
            element.set("class", class.trim().to_owned());
        }
    }
}
