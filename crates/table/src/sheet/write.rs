//! Writes a workbook again, with other values in some cells of one sheet.

use std::io::BufReader;
use std::path::Path;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::cell::new_cell;
use super::package::Package;
use super::rewrite::{FORMULAS, NewCells, collect_styles, rewrite_sheet};
use super::rows::SheetRows;
use crate::error::{Refusal, TableError};
use crate::reader::TypedRows;
use crate::understand::Understanding;
use crate::write::{AtomicFile, ChangeCell, WrittenTable, collect_edits};

/// Writes the workbook again with new values in one sheet. Of the table, only the new values are held in memory.
pub(crate) fn write(
    input: &Path,
    output: &Path,
    sheet: &str,
    has_header: bool,
    understanding: &Understanding,
    change: &mut ChangeCell<'_>,
) -> Result<WrittenTable, TableError> {
    let mut rows = SheetRows::open(input, Some(sheet), Some(has_header))?;
    if rows.columns() != understanding.columns.as_slice() {
        return Err(TableError::unreadable_file(
            input,
            "its columns are others than when it was read",
        ));
    }
    let mut package = Package::open(input)?;
    let unreadable = |reason: String| TableError::unreadable_file(input, reason);
    let (_, part) = package.find_sheet(Some(sheet)).map_err(unreadable)?;
    let mut written = WrittenTable::default();
    let mut cells = NewCells::new();
    let mut refusals = Vec::new();
    while let Some(row) = rows.next_row().map_err(unreadable)? {
        let row = match row {
            Ok(row) => row,
            Err(fault) => {
                written.note_fault(fault);
                continue;
            }
        };
        written.row_count += 1;
        for edit in collect_edits(row.number, &row.cells, understanding, change, &mut refusals) {
            let shape = &understanding.shapes[edit.column];
            let cell = match rows.is_column_of_links(edit.column) {
                true => Err(String::from("it is the link of another cell")),
                false => new_cell(&edit.value, shape, package.is_from_1904),
            };
            match cell {
                Ok(cell) => {
                    let at = row.number as u32 - 1;
                    let column = rows.first_column + edit.column as u32;
                    cells.entry(at).or_default().insert(column, cell);
                    written.filled_count += 1;
                }
                Err(reason) => refusals.push(Refusal {
                    row: row.number,
                    column: edit.column,
                    value: edit.value,
                    reason,
                }),
            }
        }
        written.note_refusals(&mut refusals);
    }
    let unwritten = |error| TableError::write_error(output, error);
    let file = AtomicFile::create(output).map_err(unwritten)?;
    let file = copy_parts(&mut package, &part, &mut cells, file)
        .map_err(|error| unreadable(format!("broken XLSX: {error}")))?;
    file.persist().map_err(unwritten)?;
    let mut refusals = refuse_unwritten_cells(cells, rows.first_column);
    written.filled_count -= refusals.len() as u64;
    written.note_refusals(&mut refusals);
    Ok(written)
}

/// Makes a refusal for each new cell that was not written, in the order of the sheet.
fn refuse_unwritten_cells(left: NewCells, first_column: u32) -> Vec<Refusal> {
    let left = left.into_iter().flat_map(|(row, cells)| {
        let of_row = cells.into_iter();
        of_row.map(move |(column, cell)| (row, column, cell))
    });
    let refusals = left.map(|(row, column, cell)| {
        let reason = match row & FORMULAS {
            0 => "its place was not found in the sheet",
            _ => "the cell holds a formula",
        };
        Refusal {
            row: u64::from(row & !FORMULAS) + 1,
            column: (column - first_column) as usize,
            value: cell.text(),
            reason: reason.to_owned(),
        }
    });
    let mut refusals: Vec<Refusal> = refusals.collect();
    refusals.sort_by_key(|refusal| (refusal.row, refusal.column));
    refusals
}

/// Copies all parts (files in the archive) as they are stored. Only the sheet is rewritten, if it has new cells.
fn copy_parts(
    package: &mut Package,
    part: &str,
    cells: &mut NewCells,
    file: AtomicFile,
) -> Result<AtomicFile, Box<dyn std::error::Error>> {
    let mut columns: Vec<u32> = cells
        .values()
        .flat_map(|cells| cells.keys().copied())
        .collect();
    columns.sort_unstable();
    columns.dedup();
    let archive = &mut package.archive;
    let styles = match columns.is_empty() {
        true => Default::default(),
        false => collect_styles(BufReader::new(archive.by_name(part)?), &columns)?,
    };
    let mut zip = ZipWriter::new(file);
    for number in 0..archive.len() {
        let stored = archive.by_index_raw(number)?;
        let is_sheet = stored.name().is_ok_and(|name| name == part);
        if !is_sheet || columns.is_empty() {
            zip.raw_copy_file(stored)?;
            continue;
        }
        drop(stored);
        let sheet = archive.by_index(number)?;
        zip.start_file(part, SimpleFileOptions::default())?;
        rewrite_sheet(BufReader::new(sheet), &mut zip, cells, &styles)?;
    }
    Ok(zip.finish()?)
}
