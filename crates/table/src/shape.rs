//! The form that the values of a column have.

use crate::cell::Cell;
use crate::gaps::GapMarkers;
use crate::kind::Kind;

/// The form that the values of a column have, as far as its cells show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The kind of the values; of a list, of its entries.
    pub kind: Kind,
    /// The separator of several values in a cell of text.
    pub separator: Option<String>,
    /// Cells are lists of their own kind (JSON, Parquet).
    pub is_list: bool,
    /// Numbers, dates and so on are values of these types and no texts (JSON, Parquet, XLSX).
    pub is_typed: bool,
    /// Texts that mean that nothing is known.
    pub gap_markers: GapMarkers,
}

impl Shape {
    /// Whether a cell waits for a value.
    pub fn is_gap(&self, cell: &Cell) -> bool {
        cell.is_empty() || self.gap_markers.mark(cell)
    }
}
