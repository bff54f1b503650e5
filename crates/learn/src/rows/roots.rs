//! The elements, called roots, that the fields of a row are read from. They are the row itself and the cells below the
//! headers of its table. If a row consists of several elements, the later ones are roots too.

use std::collections::HashSet;

use serde_json::json;
use webfill_document::NodeRef;
use webfill_mapping::columns_of_row;

use super::likeness::kind_tokens;
use super::standing::tag_and_classes;
use super::target::{header_texts, siblings_after};
use crate::anchors::{is_valid_step_name, xpath_literal};
use crate::fold::fold_text;
use crate::places::Root;
use crate::survival::Anchor;

/// The structure of the rows that a rule selects.
pub(super) struct Shape {
    /// How many adjacent elements make a row.
    pub(super) width: usize,
    /// An XPath condition that only the first element of each row meets. If `None`, elements are counted instead.
    pub(super) first: Option<String>,
}

/// The roots of a row: the elements that its fields are read from. `heads` has the positions of the first elements of
/// all rows of the page.
pub(super) fn roots_of_row<'d>(
    row: NodeRef<'d>,
    shape: &Shape,
    heads: &HashSet<usize>,
) -> Vec<Root<'d>> {
    let mut roots = vec![Root {
        node: row,
        lead: None,
        path: ".".to_owned(),
        anchor: Anchor::Path,
        burden: 0.0,
    }];
    if shape.width > 1 {
        add_later_elements(row, shape, heads, &mut roots);
    }
    add_cell_roots(row, &mut roots);
    roots
}

fn add_cell_roots<'d>(row: NodeRef<'d>, roots: &mut Vec<Root<'d>>) {
    let columns = columns_of_row(row);
    let table = row.parent().and_then(|parent| match parent.tag() {
        Some("table") => Some(parent),
        _ => parent.parent(),
    });
    let written = table.map(header_texts).unwrap_or_default();
    let names = |headers: &[String]| -> Vec<String> {
        let whole = headers.join(" ");
        headers
            .iter()
            .rev()
            .cloned()
            .chain(Some(whole).filter(|_| headers.len() > 1))
            .collect()
    };
    let all: Vec<Vec<String>> = columns
        .iter()
        .map(|column| names(&column.headers))
        .collect();
    let mut before: Option<NodeRef<'d>> = None;
    for (at, column) in columns.iter().enumerate() {
        let Some(cell) = column.cell.filter(|cell| before != Some(*cell)) else {
            continue;
        };
        before = Some(cell);
        let is_own = |name: &&String| {
            let named = all
                .iter()
                .zip(&columns)
                .filter(|(names, _)| names.contains(name));
            let mut cells = named.map(|(_, column)| column.cell);
            !name.is_empty() && cells.all(|other| other == Some(cell))
        };
        let (lead, anchor, burden) = match all[at].iter().find(is_own) {
            Some(name) => {
                let header = written
                    .iter()
                    .find(|text| fold_text(text) == *name)
                    .unwrap_or(name);
                (json!({"header": header}), Anchor::Label, 0.0)
            }
            None => (json!({"column": at + 1}), Anchor::Path, 0.15),
        };
        roots.push(Root {
            node: cell,
            lead: Some(json!({"type": "cell", "parameters": lead})),
            path: ".".to_owned(),
            anchor,
            burden,
        });
    }
}

/// Adds the later elements of a row that consists of several. Each is found from the element before it. So if an
/// element of the row is missing, the search does not continue into the next row.
fn add_later_elements<'d>(
    row: NodeRef<'d>,
    shape: &Shape,
    heads: &HashSet<usize>,
    roots: &mut Vec<Root<'d>>,
) {
    let after = siblings_after(row).into_iter();
    let after = after.take_while(|one| !heads.contains(&one.position()));
    let after: Vec<NodeRef<'d>> = after.take(shape.width - 1).collect();
    let steps: Vec<String> = (1..shape.width)
        .map(|number| match &shape.first {
            Some(first) => vec![format!("following-sibling::*[1][not({first})]"); number].join("/"),
            None => format!("following-sibling::*[{number}]"),
        })
        .collect();
    for (at, node) in after.iter().enumerate() {
        roots.push(Root {
            node: *node,
            lead: None,
            path: steps[at].clone(),
            anchor: Anchor::Path,
            burden: 0.1 + 0.1 * at as f64,
        });
        if let Some((anchor, condition)) = unique_name(*node, &after) {
            roots.push(Root {
                node: *node,
                lead: None,
                path: format!("({})[{condition}]", steps.join(" | ")),
                anchor,
                burden: 0.05,
            });
        }
    }
}

/// An XPath condition that, of the elements in `all`, only `node` meets, with the kind of anchor that it uses; `None`
/// if there is none.
fn unique_name(node: NodeRef<'_>, all: &[NodeRef<'_>]) -> Option<(Anchor, String)> {
    let tag = node.tag().filter(|tag| is_valid_step_name(tag))?;
    let others = || all.iter().filter(|other| **other != node);
    if others().any(|other| tag_and_classes(*other) == tag_and_classes(node)) {
        return None;
    }
    if others().all(|other| other.tag() != Some(tag)) {
        return Some((Anchor::Path, format!("self::{tag}")));
    }
    let token = kind_tokens(node)
        .find(|token| others().all(|other| !kind_tokens(*other).any(|one| one == *token)))?;
    let literal = xpath_literal(&format!(" {token} "))?;
    let class = format!("contains(concat(' ', normalize-space(@class), ' '), {literal})");
    Some((Anchor::ClassToken, class))
}
