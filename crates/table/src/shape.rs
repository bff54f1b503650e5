//! The shape of a column: the form of its values.

use crate::cell::Cell;
use crate::gaps::GapMarkers;
use crate::kind::Kind;

/// The form of a column's values, as far as its cells show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The kind of the values, or of their entries if they are lists.
    pub kind: Kind,
    /// The separator of several values in a text cell.
    pub separator: Option<String>,
    /// The cells have a list type (JSON, Parquet).
    pub is_list: bool,
    /// Numbers, dates and so on have a type of their own; they are not texts (JSON, Parquet, XLSX).
    pub is_typed: bool,
    /// The texts that mean that a value is missing.
    pub gap_markers: GapMarkers,
}

impl Shape {
    /// Whether a cell lacks a value.
    pub fn is_gap(&self, cell: &Cell) -> bool {
        cell.is_empty() || self.gap_markers.contains(cell)
    }
}
