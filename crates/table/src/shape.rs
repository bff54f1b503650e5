//! The shape of a column: the form of its values.

use crate::cell::Cell;
use crate::gaps::GapMarkers;
use crate::kind::Kind;

/// The form of a column's values, as far as its cells show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The kind of the values, or of their entries if they are lists.
    pub kind: Kind,
    /// The text between several values in a cell; `None` if cells hold one value.
    pub separator: Option<String>,
    /// Whether the cells have a list type (JSON, Parquet).
    pub is_list: bool,
    /// Whether numbers, dates and so on have a type of their own, and are not texts (JSON, Parquet, XLSX).
    pub is_typed: bool,
    /// The words that mean that a value is missing, such as `NA`.
    pub gap_markers: GapMarkers,
}

impl Shape {
    /// Whether a cell lacks a value.
    pub fn is_gap(&self, cell: &Cell) -> bool {
        cell.is_empty() || self.gap_markers.contains(cell)
    }
}
