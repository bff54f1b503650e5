//! The results of one pass over all rows: how many there are, how many cells of each column are empty, and a sample of
//! rows spread over the table. Memory is bounded, however long the table and its cells are.

mod distinct;

use std::path::Path;

use crate::cell::{Cell, Column, Row};
use crate::error::{RowFault, TableError};
use crate::format::Format;
use crate::gaps::gap_word_index;
use crate::reader::TableReader;
use distinct::Repeats;

/// How many cells are kept, and how many rows.
const KEPT_CELLS: usize = 400_000;
const KEPT_ROWS: usize = 4_000;

/// The longest text that a sample keeps, in bytes. Longer texts are truncated.
const KEPT_BYTES: usize = 2_000;

/// How many unusable rows are kept with their reason. The others are only counted.
const KEPT_FAULTS: usize = 1_000;

/// The results of one pass over a table.
#[derive(Debug)]
pub struct Sample {
    /// The name of the file.
    pub name: String,
    /// The format of the table.
    pub format: Format,
    /// The columns of the table.
    pub columns: Vec<Column>,
    /// How many rows can be used.
    pub row_count: u64,
    /// How many rows cannot be used.
    pub fault_count: u64,
    /// The first 1,000 rows that cannot be used.
    pub faults: Vec<RowFault>,
    /// A sample of rows spread evenly over the table, including the first one. Long texts are truncated.
    pub rows: Vec<Row>,
    pub(crate) profiles: Vec<Profile>,
}

/// Counts over all cells of a column.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// The number of empty cells.
    pub(crate) empty: u64,
    /// Words that may mean a gap (as indexes in a list of known words), each with its number of cells.
    pub(crate) words: Vec<(usize, u64)>,
    pub(crate) repeats: Repeats,
}

impl Sample {
    /// Reads all rows of the table in a file.
    pub fn read(path: &Path) -> Result<Sample, TableError> {
        Sample::from_reader(crate::open(path)?)
    }

    /// Reads all rows of an open table.
    pub fn from_reader(mut reader: TableReader) -> Result<Sample, TableError> {
        let mut sample = Sample {
            name: reader.name(),
            format: reader.format().clone(),
            columns: reader.columns().to_vec(),
            row_count: 0,
            fault_count: 0,
            faults: Vec::new(),
            rows: Vec::new(),
            profiles: Vec::new(),
        };
        let columns = sample.columns.len();
        sample.profiles.resize_with(columns, || Profile {
            repeats: Repeats::new(columns),
            ..Profile::default()
        });
        let mut kept = Spread::new(columns);
        while let Some(row) = reader.next_row() {
            match row {
                Ok(row) => {
                    sample.row_count += 1;
                    // A row that lacks cells may be none of the table, so nothing is inferred from those that it has.
                    if row.lacking > 0 {
                        sample.note_lacking(row.lacking);
                        continue;
                    }
                    sample.note_row(&row);
                    kept.add_if_sampled(row);
                }
                Err(fault) if fault.is_end => {
                    return Err(TableError::unreadable_file(reader.path(), fault.reason));
                }
                Err(fault) => {
                    sample.fault_count += 1;
                    if sample.faults.len() < KEPT_FAULTS {
                        sample.faults.push(fault);
                    }
                }
            }
        }
        // The format is taken only now, because any row may have shown that the text is not UTF-8.
        sample.format = reader.format().clone();
        sample.rows = kept.rows;
        Ok(sample)
    }

    fn note_lacking(&mut self, lacking: usize) {
        for profile in self.profiles.iter_mut().rev().take(lacking) {
            profile.empty += 1;
        }
    }

    fn note_row(&mut self, row: &Row) {
        for (profile, cell) in self.profiles.iter_mut().zip(&row.cells) {
            if cell.is_empty() {
                profile.empty += 1;
                continue;
            }
            if let Cell::Text(text) | Cell::Number(text) = cell
                && let Some(word) = gap_word_index(text)
            {
                match profile.words.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, count)) => *count += 1,
                    None => profile.words.push((word, 1)),
                }
            }
            if let Some(text) = cell.text() {
                profile.repeats.note(text);
            }
        }
    }

    /// The values of a column in the sampled rows, without empty ones.
    pub fn values(&self, column: usize) -> impl Iterator<Item = &Cell> {
        let cells = self
            .rows
            .iter()
            .filter_map(move |row| row.cells.get(column));
        cells.filter(|cell| !cell.is_empty())
    }
}

/// Keeps a bounded number of rows, spread over the table: first every row, then every second one, then every fourth
/// one, and so on.
struct Spread {
    rows: Vec<Row>,
    most: usize,
    step: u64,
    offered: u64,
}

impl Spread {
    fn new(columns: usize) -> Spread {
        Spread {
            rows: Vec::new(),
            most: (KEPT_CELLS / columns.max(1)).clamp(2, KEPT_ROWS),
            step: 1,
            offered: 0,
        }
    }

    fn add_if_sampled(&mut self, row: Row) {
        let number = self.offered;
        self.offered += 1;
        if !number.is_multiple_of(self.step) {
            return;
        }
        if self.rows.len() == self.most {
            let mut at = 0;
            self.rows.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.step *= 2;
            if !number.is_multiple_of(self.step) {
                return;
            }
        }
        self.rows.push(Row {
            number: row.number,
            lacking: row.lacking,
            cells: row.cells.into_iter().map(truncate_cell).collect(),
        });
    }
}

fn truncate_cell(cell: Cell) -> Cell {
    match cell {
        Cell::Text(mut text) if text.len() > KEPT_BYTES => {
            text.truncate(text.floor_char_boundary(KEPT_BYTES));
            Cell::Text(text)
        }
        Cell::List(cells) => {
            const KEPT_ENTRIES: usize = 50;
            Cell::List(
                cells
                    .into_iter()
                    .take(KEPT_ENTRIES)
                    .map(truncate_cell)
                    .collect(),
            )
        }
        Cell::Other(_) => Cell::Other(serde_json::Value::Null),
        other => other,
    }
}
