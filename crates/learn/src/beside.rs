//! Routes from a label (a short text that describes a value) to the value beside, below or after it.

use webfill_document::NodeRef;

use crate::anchors::{is_short_class, is_valid_step_name, text_condition, xpath_literal};
use crate::labels::Labels;
use crate::places::{PlaceKind, Places};
use crate::steps::relative_paths;

/// How many texts before a value are searched for its label.
const NEAR: usize = 12;

/// The most labels of one value.
const MOST: usize = 3;

/// A heading counts as a label of the value if at most this many texts are between them.
const FAR: usize = 60;

/// How much lower the burden of a route is if it leads only to the element right after the label. The difference
/// decides between two routes that read the same.
const STRICT: f64 = 0.01;

/// Calls `found` with each route from a label to the value: the XPath, its burden, and whether it ends at a text node.
/// In a row, only texts in the same part of the row count as labels.
pub(crate) fn add_label_routes(
    page: &Places<'_>,
    part: Option<NodeRef<'_>>,
    index: usize,
    end: NodeRef<'_>,
    labels: &Labels,
    found: &mut dyn FnMut(&str, f64, bool),
) {
    let is_text = matches!(page.all[index].at, PlaceKind::Text(_));
    // Positions of nodes show which texts come before the value.
    let start = match &page.all[index].at {
        PlaceKind::Text(node) => node.position(),
        _ => end.position(),
    };
    let before = page
        .texts
        .partition_point(|&text| position(page, text) < start);
    let mut near = 0;
    for distance in 1..=before.min(FAR) {
        let text = page.texts[before - distance];
        let PlaceKind::Text(label) = page.all[text].at else {
            continue;
        };
        let Some(parent) = label.parent() else {
            continue;
        };
        if part.is_some_and(|part| !part.contains(label)) {
            return;
        }
        if parent.tag() == Some("title") {
            continue;
        }
        let is_heading = matches!(
            parent.tag(),
            Some("h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "th" | "dt")
        );
        if !(distance <= NEAR || is_heading) || !labels.has(&page.all[text].text) {
            continue;
        }
        let Some(written) = text_condition(label.text(), &page.all[text].text, labels) else {
            continue;
        };
        // A nearby text that does not look like a label gets a higher burden: it may be any text that all pages share.
        let doubt = match distance {
            _ if is_heading || page.all[text].text.ends_with(':') => 0.0,
            1 => 0.05,
            _ => 0.15,
        };
        let burden = 0.04 * distance as f64 + doubt;
        // Rows get no such route: if a row lacks the value, `following` would lead into the next row.
        if is_text && distance <= 4 && part.is_none() {
            let after =
                format!("//text()[{written}]/following::text()[normalize-space(.)][{distance}]");
            found(&after, 0.25 + 0.1 * distance as f64, true);
        }
        add_tree_routes(label, parent, end, &written, burden, found);
        near += 1;
        if near >= MOST {
            return;
        }
    }
}

fn position(page: &Places<'_>, index: usize) -> usize {
    match &page.all[index].at {
        PlaceKind::Text(node) => node.position(),
        _ => usize::MAX,
    }
}

/// Routes through the tree of the page: up from the label to the element that contains both label and value, and down
/// to the value.
fn add_tree_routes(
    label: NodeRef<'_>,
    parent: NodeRef<'_>,
    end: NodeRef<'_>,
    written: &str,
    burden: f64,
    found: &mut dyn FnMut(&str, f64, bool),
) {
    let Some(tag) = parent.tag() else { return };
    let is_whole = parent.text().trim() == label.text().trim();
    let mut from = match is_whole {
        true => format!("//{tag}[{written}]"),
        false => format!("//{tag}[text()[{written}]]"),
    };
    if is_whole {
        add_route_to_next_label(tag, written, parent, end, burden, found);
    }
    let mut node = parent;
    for level in 0..5 {
        let more = burden + 0.06 * level as f64;
        if node.contains(end) {
            for (steps, burden) in relative_paths(node, end) {
                found(&format!("{from}{steps}"), more + burden, false);
            }
            add_route_after_label(label, node, end, &from, more, found);
            return;
        }
        let Some(up) = node.parent().filter(|up| up.is_element()) else {
            return;
        };
        if up.contains(end) && up != end {
            add_sibling_routes(node, up, end, &from, more, found);
        }
        if up == end {
            // A route to the text right after the label, in the same element.
            let after = format!("{from}/following-sibling::text()[normalize-space(.)][1]");
            found(&after, more + 0.1, true);
        }
        from.push_str("/..");
        node = up;
    }
}

/// A route to all siblings up to the next label. An example are the values (`dd`) of one `dt`.
fn add_route_to_next_label(
    tag: &str,
    written: &str,
    label: NodeRef<'_>,
    end: NodeRef<'_>,
    burden: f64,
    found: &mut dyn FnMut(&str, f64, bool),
) {
    let Some(up) = label.parent().filter(|up| up.contains(end) && *up != end) else {
        return;
    };
    let after = up.children().skip_while(|child| *child != label).skip(1);
    let siblings = after.filter(|child| child.is_element()).take(30);
    let mut siblings = siblings.take_while(|sibling| sibling.tag() != Some(tag));
    let Some(sibling) = siblings.find(|sibling| sibling.contains(end)) else {
        return;
    };
    let Some(value) = sibling.tag() else { return };
    for (steps, more) in relative_paths(sibling, end) {
        let all = format!(
            "//{tag}[{written}]/following-sibling::{value}[preceding-sibling::{tag}[1][{written}]]{steps}"
        );
        found(&all, burden + more + 0.05, false);
    }
}

/// A route to a value in the same element as the label's text, where only the position identifies the value.
fn add_route_after_label(
    label: NodeRef<'_>,
    node: NodeRef<'_>,
    end: NodeRef<'_>,
    from: &str,
    burden: f64,
    found: &mut dyn FnMut(&str, f64, bool),
) {
    if label.parent() == Some(node) && end == node {
        found(
            &format!("{from}/text()[normalize-space(.)][2]"),
            burden + 0.2,
            true,
        );
    }
}

/// An XPath step that selects the sibling right after the element of a label, but not if the sibling looks like another
/// label. The step names the sibling's tag and, if the label has the same tag, its class. `None` if both also have the
/// same class.
fn step_unlike_label(label: NodeRef<'_>, sibling: NodeRef<'_>, tag: &str) -> Option<String> {
    if !is_valid_step_name(tag) {
        return None;
    }
    if label.tag() != Some(tag) {
        return Some(tag.to_owned());
    }
    let class = sibling
        .attribute("class")
        .filter(|class| is_short_class(class))?;
    let is_other = label.attribute("class") != Some(class);
    is_other.then(|| Some(format!("{tag}[@class={}]", xpath_literal(class)?)))?
}

/// Routes from a label through the siblings that follow its element.
fn add_sibling_routes(
    node: NodeRef<'_>,
    up: NodeRef<'_>,
    end: NodeRef<'_>,
    from: &str,
    burden: f64,
    found: &mut dyn FnMut(&str, f64, bool),
) {
    let after = up.children().skip_while(|child| *child != node).skip(1);
    let mut number = 0;
    let siblings = after.filter(|child| child.is_element()).take(30);
    let mut tags: Vec<&str> = Vec::new();
    for sibling in siblings {
        number += 1;
        let Some(tag) = sibling.tag().filter(|tag| is_valid_step_name(tag)) else {
            continue;
        };
        tags.push(tag);
        if !sibling.contains(end) {
            continue;
        }
        let of_tag = tags.iter().filter(|one| **one == tag).count();
        for (steps, more) in relative_paths(sibling, end) {
            let more = burden + more + 0.05 * (of_tag - 1) as f64;
            found(
                &format!("{from}/following-sibling::{tag}[{of_tag}]{steps}"),
                more,
                false,
            );
            found(
                &format!("{from}/following-sibling::{tag}{steps}"),
                more + 0.02,
                false,
            );
            if number == 1 {
                let is_alone = up.children().filter(|child| child.is_element()).count() == 2;
                if let Some(like) = step_unlike_label(node, sibling, tag).filter(|_| !is_alone) {
                    found(
                        &format!("{from}/following-sibling::*[1][self::{like}]{steps}"),
                        more - STRICT,
                        false,
                    );
                }
                found(
                    &format!("{from}/following-sibling::*[1]{steps}"),
                    more + 0.02,
                    false,
                );
            }
        }
        return;
    }
}
