//! Turns tables into blocks or description lists, and description lists into tables.

use super::choices::Choices;
use super::tree::{NodeId, Tree};

pub(super) fn tables_to_blocks(tree: &mut Tree, choices: &Choices) {
    for table in tree.elements_of("table") {
        let Some(signature) = tree.element(table).map(|element| element.signature()) else {
            continue;
        };
        let rows = rows_of(tree, table);
        let pairs = rows.len() > 1 && rows.iter().all(|row| cells_of(tree, *row).len() == 2);
        let what = format!("table {signature} {pairs}");
        if !choices.decide(&what, 0.6) {
            continue;
        }
        if pairs && choices.decide(&format!("list of {what}"), 0.5) {
            convert_to_list(tree, table, &rows);
        } else {
            convert_to_blocks(tree, table, &rows);
        }
    }
}

/// The rows of a table, without those of tables inside it.
fn rows_of(tree: &Tree, table: NodeId) -> Vec<NodeId> {
    let mut rows = Vec::new();
    for child in tree.element_children(table) {
        match tree.tag(child) {
            "tr" => rows.push(child),
            "tbody" | "thead" | "tfoot" => {
                let within = tree.element_children(child);
                rows.extend(within.into_iter().filter(|row| tree.tag(*row) == "tr"));
            }
            _ => {}
        }
    }
    rows
}

fn cells_of(tree: &Tree, row: NodeId) -> Vec<NodeId> {
    let mut cells = tree.element_children(row);
    cells.retain(|cell| matches!(tree.tag(*cell), "td" | "th"));
    cells
}

/// Turns a table into a description list. Each row of two cells becomes a term and its description.
fn convert_to_list(tree: &mut Tree, table: NodeId, rows: &[NodeId]) {
    let mut children = Vec::new();
    for row in rows {
        for (cell, tag) in cells_of(tree, *row).into_iter().zip(["dt", "dd"]) {
            rename_tag(tree, cell, tag);
            children.push(cell);
        }
    }
    rename_tag(tree, table, "dl");
    replace_table_children(tree, table, children);
}

/// Turns a table, its rows and its cells into `div` elements.
fn convert_to_blocks(tree: &mut Tree, table: NodeId, rows: &[NodeId]) {
    for row in rows {
        for cell in cells_of(tree, *row) {
            rename_tag(tree, cell, "div");
        }
        rename_tag(tree, *row, "div");
    }
    rename_tag(tree, table, "div");
    replace_table_children(tree, table, rows.to_vec());
}

/// Replaces the children of an element that was a table. Its captions stay first, and all other old children are
/// dropped.
fn replace_table_children(tree: &mut Tree, table: NodeId, children: Vec<NodeId>) {
    let mut all = tree.element_children(table);
    all.retain(|child| tree.tag(*child) == "caption");
    for caption in &all {
        rename_tag(tree, *caption, "div");
    }
    all.extend(children);
    tree.set_children(table, all);
}

fn rename_tag(tree: &mut Tree, node: NodeId, tag: &str) {
    if let Some(element) = tree.element_mut(node) {
        tag.clone_into(&mut element.tag);
        for name in ["colspan", "rowspan"] {
            element.remove(name);
        }
    }
}

/// Turns each term of a description list, with all its descriptions, into a row.
pub(super) fn lists_to_tables(tree: &mut Tree, choices: &Choices) {
    for list in tree.elements_of("dl") {
        let Some(signature) = tree.element(list).map(|element| element.signature()) else {
            continue;
        };
        if !choices.decide(&format!("list {signature}"), 0.6) {
            continue;
        }
        let body = tree.create_element("tbody", &[]);
        let mut row = None;
        for child in tree.element_children(list) {
            let (cell, begins) = match tree.tag(child) {
                "dt" => ("th", true),
                "dd" => ("td", false),
                _ => ("td", true),
            };
            if begins || row.is_none() {
                let new = tree.create_element("tr", &[]);
                tree.append(body, new);
                row = Some(new);
            }
            if matches!(tree.tag(child), "dt" | "dd") {
                rename_tag(tree, child, cell);
                tree.append(row.unwrap_or(body), child);
            } else {
                let around = tree.create_element(cell, &[]);
                tree.append(row.unwrap_or(body), around);
                tree.append(around, child);
                row = None;
            }
        }
        rename_tag(tree, list, "table");
        tree.set_children(list, vec![body]);
    }
}
