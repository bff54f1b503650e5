//! Suggestions for a CSS selector that finds nothing, by the usual faults.

use webfill_document::NodeRef;

use super::near_miss::Break;
use super::similar_names::{
    attribute_names, attribute_values, children, descendants, similar_names,
};
use super::written::Piece;

pub(super) fn propose_css_cures(broken: &Break<'_, '_>) -> Vec<Vec<Piece>> {
    let mut cures: Vec<Vec<Piece>> = propose_tbody_change(broken).into_iter().collect();
    cures.extend(propose_looser_combinator(broken));
    cures.extend(propose_page_names(broken));
    cures.extend(propose_partial_value(broken));
    cures
}

fn propose_tbody_change(broken: &Break<'_, '_>) -> Option<Vec<Piece>> {
    let piece = broken.failing_piece();
    match piece.text.as_str() {
        "tbody" if broken.at > 0 => Some(broken.with_replacement(&[])),
        "tr" if piece.joint.trim() == ">" => {
            let tbody = Piece::new(&piece.joint, "tbody");
            Some(broken.with_replacement(&[tbody, piece.clone()]))
        }
        _ => None,
    }
}

/// Suggests any descendant instead of a direct child, or any later sibling instead of the next one.
fn propose_looser_combinator(broken: &Break<'_, '_>) -> Option<Vec<Piece>> {
    let piece = broken.failing_piece();
    let joint = match piece.joint.trim() {
        ">" => " ",
        "+" => " ~ ",
        _ => return None,
    };
    Some(broken.with_replacement(&[Piece::new(joint, &piece.text)]))
}

fn propose_page_names(broken: &Break<'_, '_>) -> Vec<Vec<Piece>> {
    let piece = broken.failing_piece();
    let candidates = searched_elements(broken);
    let nodes = || candidates.iter().copied();
    let (sign, name, names, end) = match piece.text.split_at_checked(1) {
        Some((".", name)) => (
            ".",
            name,
            similar_names(name, attribute_values(nodes(), "class")),
            "",
        ),
        Some(("#", name)) => (
            "#",
            name,
            similar_names(name, attribute_values(nodes(), "id")),
            "",
        ),
        _ => match piece.text.strip_prefix("::attr(") {
            Some(rest) => {
                let name = rest.trim_end_matches(')');
                (
                    "::attr(",
                    name,
                    similar_names(name, attribute_names(nodes())),
                    ")",
                )
            }
            None => {
                let name = piece.text.as_str();
                (
                    "",
                    name,
                    similar_names(name, nodes().filter_map(NodeRef::tag)),
                    "",
                )
            }
        },
    };
    if !is_name(name) {
        return Vec::new();
    }
    let names = names.into_iter().filter(|name| is_name(name));
    let other = |name: &str| Piece::new(&piece.joint, format!("{sign}{name}{end}"));
    names
        .map(|name| broken.with_replacement(&[other(name)]))
        .collect()
}

/// The elements among which the selector's failing piece was searched.
fn searched_elements<'p>(broken: &Break<'_, 'p>) -> Vec<NodeRef<'p>> {
    match broken.failing_piece().joint.trim() {
        ">" => children(broken.found).collect(),
        "" if broken.at > 0 && broken.failing_piece().joint.is_empty() => broken.found.to_vec(),
        "" => descendants(broken.found).collect(),
        _ => Vec::new(),
    }
}

/// Suggests `[attribute*=value]` instead of `[attribute=value]`.
fn propose_partial_value(broken: &Break<'_, '_>) -> Option<Vec<Piece>> {
    let piece = broken.failing_piece();
    let (attribute, value) = piece.text.strip_prefix('[')?.split_once('=')?;
    let other = format!("[{attribute}*={value}");
    is_name(attribute).then(|| broken.with_replacement(&[Piece::new(&piece.joint, other)]))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '-'))
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}
