//! Temporary tables for tests.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use webfill_table::{Cell, ColumnChoices, Row, RowFault, Sample, TableError, Understanding};

pub struct Table {
    pub folder: TempDir,
    pub path: PathBuf,
}

pub fn table(name: &str, content: impl AsRef<[u8]>) -> Table {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    Table { folder, path }
}

impl Table {
    pub fn read(&self) -> Result<(Vec<Row>, Vec<RowFault>), TableError> {
        read(&self.path)
    }

    pub fn understand(&self) -> Understanding {
        let sample = Sample::read(&self.path).unwrap();
        webfill_table::infer_structure(&sample, &ColumnChoices::default()).unwrap()
    }

    pub fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }
}

pub fn read(path: &Path) -> Result<(Vec<Row>, Vec<RowFault>), TableError> {
    let mut reader = webfill_table::open(path)?;
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    while let Some(row) = reader.next_row() {
        match row {
            Ok(row) => rows.push(row),
            Err(fault) => faults.push(fault),
        }
    }
    Ok((rows, faults))
}

/// Formats a cell in the notation of these tests, such as `∅` for a missing value.
pub fn format_cell(cell: &Cell) -> String {
    match cell {
        Cell::Missing => String::from("∅"),
        Cell::Text(text) => text.clone(),
        Cell::Number(text) => format!("#{text}"),
        Cell::Bool(value) => format!("#{value}"),
        Cell::Date(text) => format!("@{text}"),
        Cell::List(cells) => {
            let cells: Vec<String> = cells.iter().map(format_cell).collect();
            format!("[{}]", cells.join(" "))
        }
        Cell::Other(value) => value.to_string(),
    }
}

/// The rows of a table as lines: row number, then the cells.
pub fn lines(rows: &[Row]) -> Vec<String> {
    let line = |row: &Row| {
        let cells: Vec<String> = row.cells.iter().map(format_cell).collect();
        format!("{}: {}", row.number, cells.join(" · "))
    };
    rows.iter().map(line).collect()
}
