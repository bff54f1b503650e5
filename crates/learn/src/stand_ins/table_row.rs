//! The table row of a value, compared with the first row of its table.

use webfill_document::NodeRef;

use crate::fold::{collapse_white_space, fold_text};
use crate::labels::Labels;

/// The table row that contains a value.
pub(super) struct RowOfValue<'d> {
    row: NodeRef<'d>,
    pub(super) cells: usize,
    /// The folded texts of the row's other cells, without the first cell and empty ones.
    pub(super) others: Vec<String>,
}

impl<'d> RowOfValue<'d> {
    /// Finds the row of a value. `None` if the value is in no table cell, or if another cell is a label, because then
    /// the row has several fields.
    pub(super) fn from_value_node(node: NodeRef<'d>, labels: &Labels) -> Option<RowOfValue<'d>> {
        let mut around = std::iter::successors(Some(node), |node| node.parent());
        let cell = around.find(|node| matches!(node.tag(), Some("td" | "th")))?;
        let row = cell
            .parent()
            .filter(|row| row.tag() == Some("tr") && cell.tag() == Some("td"))?;
        let cells: Vec<NodeRef<'_>> = row.children().filter(|cell| cell.is_element()).collect();
        let others = || cells.iter().skip(1).filter(|other| **other != cell);
        let is_label = |other: &&NodeRef<'_>| {
            other.tag() == Some("th") || labels.has(&shortened_cell_text(**other))
        };
        if others().any(|other| is_label(&other)) {
            return None;
        }
        let texts = others().map(|other| fold_text(&shortened_cell_text(*other)));
        Some(RowOfValue {
            row,
            cells: cells.len(),
            others: texts.filter(|text| !text.is_empty()).collect(),
        })
    }

    /// Whether the row has as many cells as the first row of its table, and is not that first row.
    pub(super) fn has_all_cells(&self) -> bool {
        let cells = |row: NodeRef<'_>| row.children().filter(|cell| cell.is_element()).count();
        first_row(self.row).is_some_and(|first| first != self.row && cells(first) == self.cells)
    }
}

/// The beginning of a cell's text with single spaces, for comparison. Labels and values are shorter than it.
fn shortened_cell_text(cell: NodeRef<'_>) -> String {
    const COMPARED: usize = 400;
    let beginning: String = cell.text().chars().take(COMPARED).collect();
    collapse_white_space(&beginning)
}

/// The first row of the table that contains `row`.
fn first_row<'d>(row: NodeRef<'d>) -> Option<NodeRef<'d>> {
    let mut around = std::iter::successors(row.parent(), |node| node.parent());
    let table = around.find(|node| node.tag() == Some("table"))?;
    table.descendants().find(|node| node.tag() == Some("tr"))
}
