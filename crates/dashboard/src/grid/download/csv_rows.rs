//! Rows as CSV.

use std::io::{self, Write};

use webfill_table::Cell;

use super::row_writer::{ChunkWriter, RowWriter};
use crate::grid::Column;
use crate::grid::building::cell_text;

pub(super) struct CsvRows(csv::Writer<ChunkWriter>);

impl CsvRows {
    pub(super) fn new(out: ChunkWriter, columns: &[Column]) -> io::Result<CsvRows> {
        let mut rows = CsvRows(csv::Writer::from_writer(out));
        let heads = columns
            .iter()
            .map(|column| escape_cell(column.name.clone()));
        rows.0.write_record(heads)?;
        Ok(rows)
    }
}

impl RowWriter for CsvRows {
    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()> {
        let texts = cells
            .iter()
            .map(|cell| escape_cell(cell_text(cell).unwrap_or_default()));
        Ok(self.0.write_record(texts)?)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut out = self.0.into_inner().map_err(|error| error.into_error())?;
        out.flush()
    }
}

/// A spreadsheet may open the file, so a text that looks like a formula is escaped.
fn escape_cell(text: String) -> String {
    match webfill_table::escape_formula(&text) {
        std::borrow::Cow::Owned(other) => other,
        std::borrow::Cow::Borrowed(_) => text,
    }
}
