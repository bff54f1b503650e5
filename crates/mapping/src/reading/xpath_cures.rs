//! Suggestions for an XPath that finds nothing, by the usual faults.

use webfill_document::NodeRef;

use super::near_miss::Break;
use super::similar_names::{
    attribute_names, attribute_values, children, descendants, similar_names,
};
use super::written::Piece;

pub(super) fn propose_xpath_cures(broken: &Break<'_, '_>) -> Vec<Vec<Piece>> {
    let text = &broken.failing_piece().text;
    if text.starts_with('[') {
        let predicates = propose_predicates(text, broken.found);
        let cured = predicates
            .into_iter()
            .map(|predicate| Piece::new("", predicate));
        return cured
            .map(|piece| broken.with_replacement(&[piece]))
            .collect();
    }
    let mut cures: Vec<Vec<Piece>> = propose_lower_case(broken).into_iter().collect();
    cures.extend(propose_tbody_change(broken));
    cures.extend(propose_any_descendant(broken));
    cures.extend(propose_page_names(broken));
    cures.extend(propose_neighbouring_index(broken));
    cures
}

fn propose_lower_case(broken: &Break<'_, '_>) -> Option<Vec<Piece>> {
    let piece = broken.failing_piece();
    let lower = piece.text.to_ascii_lowercase();
    (lower != piece.text).then(|| broken.with_replacement(&[Piece::new(&piece.joint, lower)]))
}

/// Suggests the path with or without `tbody`: browsers show one in every table, but sources often have none.
fn propose_tbody_change(broken: &Break<'_, '_>) -> Option<Vec<Piece>> {
    let piece = broken.failing_piece();
    match piece.text.as_str() {
        "tbody" => Some(broken.with_replacement(&[])),
        "tr" if piece.joint == "/" => {
            Some(broken.with_replacement(&[Piece::new("/", "tbody"), piece.clone()]))
        }
        _ => None,
    }
}

/// Suggests any descendant (`//`) instead of a direct child.
fn propose_any_descendant(broken: &Break<'_, '_>) -> Vec<Vec<Piece>> {
    let piece = broken.failing_piece();
    let below = Piece::new("//", &piece.text);
    match piece.joint.as_str() {
        "/" => vec![broken.with_replacement(&[below])],
        "" if is_name(&piece.text) => vec![broken.with_replacement(&[Piece::new("", "."), below])],
        _ => Vec::new(),
    }
}

fn propose_page_names(broken: &Break<'_, '_>) -> Vec<Vec<Piece>> {
    let piece = broken.failing_piece();
    let from: Vec<NodeRef<'_>> = match (broken.at, piece.joint.is_empty()) {
        (0, false) => broken
            .found
            .iter()
            .map(|node| node.document().root())
            .collect(),
        _ => broken.found.to_vec(),
    };
    let is_below = piece.joint == "//";
    let (sign, name) = match piece.text.strip_prefix('@') {
        Some(name) => ("@", name),
        None => ("", piece.text.as_str()),
    };
    if !is_name(name) {
        return Vec::new();
    }
    let names = match (sign, is_below) {
        ("@", false) => similar_names(name, attribute_names(from)),
        ("@", true) => similar_names(name, attribute_names(descendants(&from))),
        (_, true) => similar_names(name, descendants(&from).filter_map(NodeRef::tag)),
        (_, false) => similar_names(name, children(&from).filter_map(NodeRef::tag)),
    };
    // Most namespace prefixes cannot be written in an expression, so a condition on the local name is tried as well.
    let of_any_namespace = (sign.is_empty()).then(|| format!("*[local-name() = '{name}']"));
    let others = names.into_iter().map(|name| format!("{sign}{name}"));
    let others = others.chain(of_any_namespace);
    let cured = others.map(|other| broken.with_replacement(&[Piece::new(&piece.joint, other)]));
    cured.collect()
}

/// Suggests the next lower and higher number for the last index before the failing piece, such as `[2]`.
fn propose_neighbouring_index(broken: &Break<'_, '_>) -> Vec<Vec<Piece>> {
    let mut before = broken.pieces[..broken.at].iter().enumerate().rev();
    let Some((at, piece)) = before.find(|(_, piece)| number_in(&piece.text).is_some()) else {
        return Vec::new();
    };
    let others = neighbouring_indexes(&piece.text).into_iter();
    let others = others.map(|other| broken.with_replacement_at(at, &[Piece::new("", other)]));
    others.collect()
}

fn propose_predicates(predicate: &str, found: &[NodeRef<'_>]) -> Vec<String> {
    if number_in(predicate).is_some() {
        return neighbouring_indexes(predicate);
    }
    let Some((what, value)) = equality_in(predicate) else {
        return Vec::new();
    };
    // A value with both kinds of quotes cannot be written as a text in XPath.
    let quote = if value.contains('\'') { '"' } else { '\'' };
    let contains = |value: &str| format!("[contains({what}, {quote}{value}{quote})]");
    let mut cures = Vec::new();
    match what.strip_prefix('@') {
        Some(attribute) => {
            cures.push(contains(value));
            for other in similar_names(attribute, attribute_names(found.iter().copied())) {
                cures.push(format!("[@{other}={quote}{value}{quote}]"));
            }
            for other in similar_names(value, attribute_values(found.iter().copied(), attribute)) {
                let unquotable = other.contains(['\'', '"']);
                match attribute {
                    _ if unquotable => {}
                    "class" => cures.push(contains(other)),
                    _ => cures.push(format!("[{what}={quote}{other}{quote}]")),
                }
            }
        }
        None if matches!(what, "." | "text()") => {
            cures.push(format!("[normalize-space()={quote}{value}{quote}]"));
            cures.push(format!("[contains(., {quote}{value}{quote})]"));
        }
        None => {}
    }
    cures
}

/// Splits a predicate that compares with a text: `[@class = 'price']` gives `@class` and `price`.
fn equality_in(predicate: &str) -> Option<(&str, &str)> {
    let inner = predicate.strip_prefix('[')?.strip_suffix(']')?;
    let (what, value) = inner.split_once('=')?;
    let (what, value) = (what.trim(), value.trim());
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let value = value.strip_prefix(quote)?.strip_suffix(quote)?;
    let is_simple = !value.contains(quote)
        && (matches!(what, "." | "text()") || what.strip_prefix('@').is_some_and(is_name));
    is_simple.then_some((what, value))
}

fn number_in(predicate: &str) -> Option<u32> {
    let inner = predicate.strip_prefix('[')?.strip_suffix(']')?;
    inner.trim().parse().ok()
}

fn neighbouring_indexes(predicate: &str) -> Vec<String> {
    let number = number_in(predicate).unwrap_or_default();
    let others = [number.checked_sub(1), number.checked_add(1)];
    let positions = others.into_iter().flatten().filter(|other| *other > 0);
    positions.map(|other| format!("[{other}]")).collect()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "-_.:".contains(c))
        && !text.contains("::")
}
