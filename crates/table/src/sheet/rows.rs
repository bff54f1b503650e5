//! Reads the rows of a sheet in a separate thread. It holds the workbook's shared texts in memory, but only few rows.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use calamine::{Reader, Xlsx, XlsxError};

use super::cell::cell_from_sheet;
use super::hyperlinks::{Hyperlinks, read_hyperlinks};
use super::package::Package;
use crate::cell::{Cell, Column, Row};
use crate::delimited::begins_with_header;
use crate::error::{RowFault, TableError};
use crate::reader::TypedRows;

/// How many rows are examined to find the header.
const SHOWING_ROWS: usize = 200;

/// How many rows the reading thread may read ahead.
const WAITING_ROWS: usize = 256;

/// An open sheet.
pub(crate) struct SheetRows {
    pub(crate) sheet: String,
    pub(crate) has_header: bool,
    /// The first column of the table, counted from 0.
    pub(super) first_column: u32,
    columns: Vec<Column>,
    /// The links of one column's cells, by row. They are the cells of a further column, the last one.
    links: Option<HashMap<u32, String>>,
    ready: VecDeque<SheetRow>,
    rows: Receiver<SheetMessage>,
    has_ended: bool,
}

/// The non-empty cells of a row, with their columns.
struct SheetRow {
    /// The row number, counted from 0.
    row: u32,
    cells: Vec<(u32, Cell)>,
}

enum SheetMessage {
    Row(SheetRow),
    End,
    Failed(String),
}

impl SheetRows {
    /// Opens the sheet of this name, or the first one.
    pub(crate) fn open(
        path: &Path,
        sheet: Option<&str>,
        has_header: Option<bool>,
    ) -> Result<SheetRows, TableError> {
        let unreadable = |reason: String| TableError::unreadable_file(path, reason);
        let is_wished = sheet.is_some() || has_header.is_some();
        let mut package = Package::open(path)?;
        let (sheet, part) = package.find_sheet(sheet).map_err(unreadable)?;
        let others = package.advise_other_sheets(&sheet);
        let (to, rows) = sync_channel(WAITING_ROWS);
        let (file, name) = (path.to_owned(), sheet.clone());
        std::thread::spawn(move || {
            let end = match send_rows(&file, &name, &to) {
                Ok(()) => SheetMessage::End,
                Err(reason) => SheetMessage::Failed(reason),
            };
            // An error only means that the receiver was dropped, so nobody needs the rows any more.
            let _ = to.send(end);
        });
        let mut rows = SheetRows {
            sheet,
            has_header: has_header.unwrap_or(true),
            first_column: 0,
            columns: Vec::new(),
            links: None,
            ready: VecDeque::new(),
            rows,
            has_ended: false,
        };
        while rows.ready.len() < SHOWING_ROWS {
            match rows.next_sheet_row().map_err(unreadable)? {
                Some(row) => rows.ready.push_back(row),
                None => break,
            }
        }
        rows.find_columns(has_header);
        if !rows.columns.is_empty() && !rows.has_link_in_text() {
            rows.add_column_of_links(read_hyperlinks(&mut package, &part));
        }
        let is_bare = rows.has_ended && rows.ready.is_empty() && !is_wished && !others.is_empty();
        match (rows.columns.is_empty(), is_bare) {
            (true, _) => Err(unreadable(format!(
                "the sheet `{:.40}` is empty{others}",
                rows.sheet
            ))),
            (false, true) => Err(unreadable(format!(
                "the sheet `{:.40}` has no rows below its header{others}",
                rows.sheet
            ))),
            (false, false) => Ok(rows),
        }
    }

    fn next_sheet_row(&mut self) -> Result<Option<SheetRow>, String> {
        if self.has_ended {
            return Ok(None);
        }
        match self.rows.recv() {
            Ok(SheetMessage::Row(row)) => Ok(Some(row)),
            Ok(SheetMessage::End) => {
                self.has_ended = true;
                Ok(None)
            }
            Ok(SheetMessage::Failed(reason)) => Err(reason),
            Err(_) => Err(String::from("its content does not match its format")),
        }
    }

    /// Finds the columns. The table begins with the first row that has at least half as many cells as the widest row.
    /// Titles above it are skipped.
    fn find_columns(&mut self, has_header: Option<bool>) {
        let widest = self.ready.iter().map(|row| row.cells.len()).max();
        let is_wide = |row: &SheetRow| row.cells.len() * 2 >= widest.unwrap_or(0);
        while self.ready.front().is_some_and(|row| !is_wide(row)) {
            self.ready.pop_front();
        }
        let texts = |row: &SheetRow| -> Vec<String> {
            let first = self.ready.iter().filter_map(|row| row.cells.first());
            let first = first.map(|(column, _)| *column).min().unwrap_or(0);
            let last = row.cells.last().map_or(first, |(column, _)| *column);
            let mut texts = vec![String::new(); (last.saturating_sub(first) + 1) as usize];
            for (column, cell) in &row.cells {
                texts[(column - first) as usize] = cell.text().unwrap_or_default().to_owned();
            }
            texts
        };
        let shown: Vec<Vec<String>> = self.ready.iter().map(texts).collect();
        self.has_header = has_header.unwrap_or_else(|| begins_with_header(&shown));
        let named: Vec<&SheetRow> = match self.has_header {
            true => self.ready.iter().take(1).collect(),
            false => self.ready.iter().collect(),
        };
        let columns = || {
            named
                .iter()
                .flat_map(|row| &row.cells)
                .map(|(column, _)| *column)
        };
        let (Some(first), Some(last)) = (columns().min(), columns().max()) else {
            return;
        };
        let name = |column: u32| match self.has_header {
            true => {
                let cells = self.ready.front().map(|row| row.cells.as_slice());
                let mut cells = cells.unwrap_or_default().iter();
                let found = cells.find(|(of, _)| *of == column);
                let text = found.and_then(|(_, cell)| cell.text());
                text.unwrap_or_default().to_owned()
            }
            false => format!("column{}", column - first + 1),
        };
        self.columns = (first..=last)
            .map(|column| Column { name: name(column) })
            .collect();
        self.first_column = first;
        if self.has_header {
            self.ready.pop_front();
        }
    }

    /// Whether this column, by its index, has the links of another one. It is none of the sheet.
    pub(super) fn is_column_of_links(&self, column: usize) -> bool {
        self.links.is_some() && column + 1 == self.columns.len()
    }

    /// Whether a cell of the first rows shows a link.
    fn has_link_in_text(&self) -> bool {
        let cells = self.ready.iter().flat_map(|row| &row.cells);
        let mut texts = cells.filter_map(|(_, cell)| cell.text());
        texts.any(|text| text.contains("://") || text.starts_with("www."))
    }

    /// Adds a column with the links of the column that has most of them, if half of the first rows have one.
    fn add_column_of_links(&mut self, links: Hyperlinks) {
        let count = |links: &HashMap<u32, String>| {
            let rows = self.ready.iter();
            rows.filter(|row| links.contains_key(&row.row)).count()
        };
        let most = links
            .into_iter()
            .max_by_key(|(column, links)| (count(links), u32::MAX - column));
        let Some((column, links)) = most.filter(|(_, links)| count(links) * 2 >= self.ready.len())
        else {
            return;
        };
        let at = column.checked_sub(self.first_column).map(|at| at as usize);
        if let Some(of) = at
            .and_then(|at| self.columns.get(at))
            .filter(|_| !links.is_empty())
        {
            let name = format!("{} (link)", of.name);
            self.columns.push(Column { name });
            self.links = Some(links);
        }
    }

    fn check_row(&self, row: SheetRow) -> Result<Row, RowFault> {
        let number = u64::from(row.row) + 1;
        let mut cells = vec![Cell::Missing; self.columns.len()];
        let link = self.links.as_ref().and_then(|links| links.get(&row.row));
        if let (Some(link), Some(last)) = (link, cells.last_mut()) {
            *last = Cell::Text(link.clone());
        }
        let is_of_table = |at: &usize| *at < self.columns.len() - usize::from(self.links.is_some());
        for (column, cell) in row.cells {
            let at = column.checked_sub(self.first_column).map(|at| at as usize);
            match at.filter(is_of_table).and_then(|at| cells.get_mut(at)) {
                Some(place) => *place = cell,
                None => {
                    return Err(RowFault {
                        number,
                        reason: String::from("a value stands beside the table"),
                        beginning: cell.text().unwrap_or_default().chars().take(80).collect(),
                        is_end: false,
                    });
                }
            }
        }
        Ok(Row {
            number,
            cells,
            lacking: 0,
        })
    }
}

impl TypedRows for SheetRows {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<Result<Row, RowFault>>, String> {
        let row = match self.ready.pop_front() {
            Some(row) => Some(row),
            None => self.next_sheet_row()?,
        };
        Ok(row.map(|row| self.check_row(row)))
    }
}

/// Sends the rows of a sheet to a channel. If the receiver was dropped, it stops without an error.
fn send_rows(path: &Path, sheet: &str, to: &SyncSender<SheetMessage>) -> Result<(), String> {
    let broken = |error: XlsxError| match error {
        XlsxError::Password => String::from("it is encrypted: save it without a password"),
        other => format!("broken XLSX: {other}"),
    };
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut workbook = Xlsx::new(BufReader::new(file)).map_err(broken)?;
    let mut cells = workbook.worksheet_cells_reader(sheet).map_err(broken)?;
    let mut row: Option<SheetRow> = None;
    while let Some(next) = cells.next_cell().map_err(broken)? {
        let (of_row, column) = next.get_position();
        let value = cell_from_sheet(next.get_value());
        if value == Cell::Missing {
            continue;
        }
        if let Some(row) = row.as_mut().filter(|row| row.row == of_row) {
            row.cells.push((column, value));
            continue;
        }
        let begun = SheetRow {
            row: of_row,
            cells: vec![(column, value)],
        };
        if let Some(whole) = row.replace(begun)
            && to.send(SheetMessage::Row(sort_cells(whole))).is_err()
        {
            return Ok(());
        }
    }
    if let Some(whole) = row {
        let _ = to.send(SheetMessage::Row(sort_cells(whole)));
    }
    Ok(())
}

fn sort_cells(mut row: SheetRow) -> SheetRow {
    row.cells.sort_by_key(|(column, _)| *column);
    row
}
