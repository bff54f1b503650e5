//! Rows as JSON.

use std::io::{self, Write};

use serde_json::{Map, Value};
use webfill_table::Cell;

use super::row_writer::{ChunkWriter, RowWriter, unique_names};
use crate::grid::Column;

/// Writes rows as JSON: as an array, or as one line for each row.
pub(super) struct JsonRows {
    out: ChunkWriter,
    names: Vec<String>,
    is_lines: bool,
    has_rows: bool,
}

impl JsonRows {
    pub(super) fn new(out: ChunkWriter, columns: &[Column], is_lines: bool) -> JsonRows {
        JsonRows {
            out,
            names: unique_names(columns),
            is_lines,
            has_rows: false,
        }
    }
}

impl RowWriter for JsonRows {
    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()> {
        let members = self.names.iter().zip(cells);
        let object: Map<String, Value> = members
            .map(|(name, cell)| (name.clone(), cell_to_json(cell)))
            .collect();
        let object = Value::Object(object);
        if self.is_lines {
            return writeln!(self.out, "{object}");
        }
        let begin = if self.has_rows { ",\n" } else { "[\n" };
        self.has_rows = true;
        write!(self.out, "{begin}{object}")
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let end = match (self.is_lines, self.has_rows) {
            (true, _) => "",
            (false, true) => "\n]\n",
            (false, false) => "[]\n",
        };
        self.out.write_all(end.as_bytes())?;
        self.out.flush()
    }
}

fn cell_to_json(cell: &Cell) -> Value {
    match cell {
        Cell::Missing => Value::Null,
        Cell::Text(text) | Cell::Date(text) => text.as_str().into(),
        Cell::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
        Cell::Bool(is_true) => (*is_true).into(),
        Cell::List(cells) => cells.iter().map(cell_to_json).collect(),
        Cell::Other(value) => value.clone(),
    }
}
