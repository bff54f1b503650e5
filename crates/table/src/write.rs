//! Writes a table again, with new values in some of its cells.

mod whole;

use std::collections::HashSet;
use std::path::Path;

use crate::cell::Cell;
use crate::error::{Refusal, RowFault, TableError};
use crate::format::{Format, TextForm};
use crate::reader::open_text;
use crate::text::{Content, Edit, TextRows, TextSink};
use crate::understand::Understanding;
pub(crate) use whole::AtomicFile;

/// How many faults and refusals are kept. The others are only counted.
const KEPT: usize = 1_000;

/// The result of writing.
#[derive(Debug, Default)]
pub struct WrittenTable {
    /// How many rows can be used.
    pub row_count: u64,
    /// How many rows were written unchanged because they cannot be used.
    pub fault_count: u64,
    /// The first 1,000 faults.
    pub faults: Vec<RowFault>,
    /// How many cells got a new value.
    pub filled_count: u64,
    /// How many values were refused.
    pub refused_count: u64,
    /// The first 1,000 refusals.
    pub refusals: Vec<Refusal>,
    /// The row number and the column of each refused value.
    pub refused_cells: Vec<(u64, usize)>,
}

/// Returns the value for a gap, given its row number and its column.
pub type FillGap<'a> = dyn FnMut(u64, usize) -> Option<String> + 'a;

/// Returns a new value for a cell, given its row number, its column and its content. The last argument is `true` if
/// the cell is a gap.
pub type ChangeCell<'a> = dyn FnMut(u64, usize, &Cell, bool) -> Option<String> + 'a;

/// Writes the table again, and fills the gaps that `fill` has a value for.
///
/// `fill` is called for each gap of each field, row by row and from left to right. For a field of lists
/// ([`Field::is_list`], [`Field::separator`]), several values are given as a JSON array of texts, and are written in
/// the form of the column. A value that does not fit its column is refused and reported, and the cell stays as it is.
///
/// The output is written to a temporary file in the same folder, and renamed when it is on disk. So it may be the same
/// file as the input.
///
/// [`Field::is_list`]: crate::Field::is_list
/// [`Field::separator`]: crate::Field::separator
pub fn write_filled_table(
    input: &Path,
    output: &Path,
    understanding: &Understanding,
    fill: &mut FillGap<'_>,
) -> Result<WrittenTable, TableError> {
    let fields: HashSet<usize> = understanding
        .fields
        .iter()
        .map(|field| field.column)
        .collect();
    let mut change = |row: u64, column: usize, _: &Cell, is_gap: bool| match is_gap
        && fields.contains(&column)
    {
        true => fill(row, column),
        false => None,
    };
    write_changed_table(input, output, understanding, &mut change)
}

/// Writes the table again, with new values in any cells: gaps, and values found to be wrong.
///
/// `change` is called for each cell, row by row and from left to right. Otherwise this works like
/// [`write_filled_table`].
pub fn write_changed_table(
    input: &Path,
    output: &Path,
    understanding: &Understanding,
    change: &mut ChangeCell<'_>,
) -> Result<WrittenTable, TableError> {
    let form = match &understanding.format {
        Format::Delimited(form, _) | Format::JsonLines(form) | Format::JsonArray(form) => *form,
        Format::Parquet => return crate::parquet::write(input, output, understanding, change),
        Format::Xlsx { sheet, has_header } => {
            let has_header = *has_header;
            return crate::sheet::write(input, output, sheet, has_header, understanding, change);
        }
    };
    let rows = open_text(input, Some(&understanding.format))?;
    if rows.columns() != understanding.columns.as_slice() {
        return Err(TableError::unreadable_file(
            input,
            "its columns are others than when it was read",
        ));
    }
    write_text(rows, form, input, output, understanding, change)
}

fn write_text(
    mut rows: Box<dyn TextRows>,
    form: TextForm,
    input: &Path,
    output: &Path,
    understanding: &Understanding,
    change: &mut ChangeCell<'_>,
) -> Result<WrittenTable, TableError> {
    let unwritten = |error| TableError::write_error(output, error);
    let file = AtomicFile::create(output).map_err(unwritten)?;
    let mut sink = TextSink::new(form, file).map_err(unwritten)?;
    let mut written = WrittenTable::default();
    let mut refusals = Vec::new();
    while let Some(piece) = rows
        .next_piece()
        .map_err(|error| TableError::read_error(input, error))?
    {
        if let Some(fault) = piece.as_fault() {
            written.note_fault(fault);
        }
        let Content::Row(_) = piece.content else {
            sink.write(&piece.raw).map_err(unwritten)?;
            continue;
        };
        written.row_count += 1;
        let cells = rows.cells(&piece);
        let edits = collect_edits(piece.number, &cells, understanding, change, &mut refusals);
        written.note_refusals(&mut refusals);
        if edits.is_empty() {
            sink.write(&piece.raw).map_err(unwritten)?;
            continue;
        }
        let edited = rows.edit_row(&piece, edits, &understanding.shapes, &mut refusals);
        written.filled_count += edited.cells;
        written.note_refusals(&mut refusals);
        sink.write(&edited.raw).map_err(unwritten)?;
    }
    let file = sink.finish().map_err(unwritten)?;
    file.persist().map_err(unwritten)?;
    Ok(written)
}

/// Collects the new values for a row.
pub(crate) fn collect_edits(
    row: u64,
    cells: &[Cell],
    understanding: &Understanding,
    change: &mut ChangeCell<'_>,
    refusals: &mut Vec<Refusal>,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (column, cell) in cells.iter().enumerate() {
        let is_gap = understanding.shapes[column].is_gap(cell);
        let Some(value) = change(row, column, cell, is_gap) else {
            continue;
        };
        match webfill_values::is_blank(&value) {
            true => refusals.push(Refusal {
                row,
                column,
                value,
                reason: String::from("it is empty"),
            }),
            false => edits.push(Edit { column, value }),
        }
    }
    edits
}

impl WrittenTable {
    pub(crate) fn note_fault(&mut self, fault: RowFault) {
        self.fault_count += 1;
        if self.faults.len() < KEPT {
            self.faults.push(fault);
        }
    }

    pub(crate) fn note_refusals(&mut self, refusals: &mut Vec<Refusal>) {
        self.refused_count += refusals.len() as u64;
        let cells = refusals.iter().map(|refusal| (refusal.row, refusal.column));
        self.refused_cells.extend(cells);
        let room = KEPT - self.refusals.len();
        self.refusals.extend(refusals.drain(..).take(room));
    }
}
