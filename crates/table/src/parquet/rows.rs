//! Reads the rows of a Parquet file in batches, from one row group after another.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use parquet::column::reader::ColumnReader;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use super::batch::Batch;
use super::leaf::Leaf;
use crate::cell::{Cell, Column, Row};
use crate::error::{RowFault, TableError};
use crate::reader::TypedRows;

/// How many rows are read at once.
pub(super) const BATCH_ROWS: usize = 1_024;

/// An open Parquet file.
pub(crate) struct ParquetRows {
    file: SerializedFileReader<File>,
    columns: Vec<Column>,
    /// How each column is stored; `None` for a column of objects.
    pub(super) stored: Vec<Option<StoredColumn>>,
    group: usize,
    /// The reader of each column in the current row group.
    readers: Vec<Option<ColumnReader>>,
    rows_left: usize,
    ready: VecDeque<Vec<Cell>>,
    number: u64,
}

/// Runs code that calls the `parquet` crate, and turns a panic into an error, because the crate panics on some damaged
/// files. Readers that the code used must not be used again.
pub(super) fn catch_panics<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    let broken = || ParquetError::General(String::from("its content does not match its format"));
    result.unwrap_or_else(|_| Err(broken()))
}

/// Where and how the values of a column are stored.
#[derive(Debug, Clone)]
pub(super) struct StoredColumn {
    /// The index of the column among the stored columns.
    pub(super) number: usize,
    pub(super) leaf: Leaf,
}

impl ParquetRows {
    pub(crate) fn open(path: &Path) -> std::result::Result<ParquetRows, TableError> {
        let file = File::open(path).map_err(|error| TableError::read_error(path, error))?;
        let unreadable =
            |error| TableError::unreadable_file(path, format!("broken Parquet: {error}"));
        let file = catch_panics(|| SerializedFileReader::new(file)).map_err(unreadable)?;
        let schema = file.metadata().file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        let name = |field: &parquet::schema::types::TypePtr| Column {
            name: field.name().to_owned(),
        };
        let columns: Vec<Column> = fields.iter().map(name).collect();
        let mut stored: Vec<Option<StoredColumn>> = vec![None; columns.len()];
        for number in 0..schema.num_columns() {
            let column = schema.get_column_root_idx(number);
            let leaf = Leaf::from_column(&fields[column], &schema.column(number));
            stored[column] = leaf.map(|leaf| StoredColumn { number, leaf });
        }
        Ok(ParquetRows {
            file,
            columns,
            stored,
            group: 0,
            readers: Vec::new(),
            rows_left: 0,
            ready: VecDeque::new(),
            number: 0,
        })
    }

    pub(super) fn file(&self) -> &SerializedFileReader<File> {
        &self.file
    }

    /// The cells of the next row; `None` at the end.
    fn next_cells(&mut self) -> Result<Option<Vec<Cell>>> {
        loop {
            if let Some(cells) = self.ready.pop_front() {
                return Ok(Some(cells));
            }
            if self.rows_left == 0 {
                if self.group == self.file.num_row_groups() {
                    return Ok(None);
                }
                self.begin_group()?;
                continue;
            }
            self.read_batch()?;
        }
    }

    fn begin_group(&mut self) -> Result<()> {
        let group = self.file.get_row_group(self.group)?;
        self.group += 1;
        self.rows_left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let reader = |stored: &Option<StoredColumn>| match stored {
            Some(stored) => group.get_column_reader(stored.number).map(Some),
            None => Ok(None),
        };
        self.readers = self.stored.iter().map(reader).collect::<Result<_>>()?;
        Ok(())
    }

    fn read_batch(&mut self) -> Result<()> {
        let rows = self.rows_left.min(BATCH_ROWS);
        let columns = self.columns.len();
        let mut ready: Vec<Vec<Cell>> = vec![Vec::with_capacity(columns); rows];
        for (reader, stored) in self.readers.iter_mut().zip(&self.stored) {
            let (Some(reader), Some(stored)) = (reader, stored) else {
                let object = || Cell::Other(Value::Null);
                ready.iter_mut().for_each(|row| row.push(object()));
                continue;
            };
            let batch = Batch::read(reader, rows)?;
            let extents = batch.extents(&stored.leaf);
            if extents.len() != rows {
                let reason = "a column has fewer values than the file has rows";
                return Err(ParquetError::General(reason.to_owned()));
            }
            for (row, extent) in ready.iter_mut().zip(extents) {
                row.push(batch.cell(extent, &stored.leaf));
            }
        }
        self.rows_left -= rows;
        self.ready.extend(ready);
        Ok(())
    }
}

impl TypedRows for ParquetRows {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next_row(
        &mut self,
    ) -> std::result::Result<Option<std::result::Result<Row, RowFault>>, String> {
        let cells = catch_panics(|| self.next_cells()).map_err(|error| error.to_string())?;
        let Some(cells) = cells else {
            return Ok(None);
        };
        self.number += 1;
        Ok(Some(Ok(Row {
            number: self.number,
            cells,
            lacking: 0,
        })))
    }
}
