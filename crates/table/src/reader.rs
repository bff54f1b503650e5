//! Opens a table, whatever its format, and reads its rows one after another.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::cell::{Column, Row};
use crate::delimited::DelimitedRows;
use crate::error::{RowFault, TableError};
use crate::format::Format;
use crate::json::{JsonRows, Layout};
use crate::parquet::ParquetRows;
use crate::sheet::SheetRows;
use crate::text::{Content, TextRows, TextSource};

/// An open table.
pub struct TableReader {
    path: PathBuf,
    rows: Rows,
    /// The format as known so far. The encoding may change until a character that is not ASCII is read.
    format: Format,
    has_ended: bool,
}

enum Rows {
    Text(Box<dyn TextRows>),
    Typed(Box<dyn TypedRows>),
}

/// The rows of a table in a binary format (Parquet, XLSX).
pub(crate) trait TypedRows: Send {
    fn columns(&self) -> &[Column];

    /// The next row, or why it cannot be used; `None` at the end. After an error, nothing more is read.
    fn next_row(&mut self) -> Result<Option<Result<Row, RowFault>>, String>;
}

/// Opens a table. Its format is detected from its content. The file name matters only if the content is ambiguous.
pub fn open(path: &Path) -> Result<TableReader, TableError> {
    open_sheet(path, None)
}

/// Opens a table. If it is a workbook, `sheet` names the sheet to read (`--sheet`); the default is the first one.
pub fn open_sheet(path: &Path, sheet: Option<&str>) -> Result<TableReader, TableError> {
    if path.is_dir() {
        return Err(TableError::unreadable_file(path, "it is a folder"));
    }
    let (format, rows) = match read_beginning(path)?.as_slice() {
        b"PAR1" => (
            Format::Parquet,
            Rows::Typed(Box::new(ParquetRows::open(path)?)),
        ),
        b"PK\x03\x04" => {
            let rows = SheetRows::open(path, sheet, None)?;
            let format = Format::Xlsx {
                sheet: rows.sheet.clone(),
                has_header: rows.has_header,
            };
            (format, Rows::Typed(Box::new(rows)))
        }
        _ if sheet.is_some() => {
            return Err(TableError::unreadable_file(
                path,
                "it is no XLSX: only those have sheets",
            ));
        }
        [0xd0, 0xcf, 0x11, 0xe0] => {
            return Err(TableError::unreadable_file(
                path,
                "it is XLS, or encrypted: save it as XLSX",
            ));
        }
        _ => {
            let rows = open_text(path, None)?;
            (rows.format(), Rows::Text(rows))
        }
    };
    Ok(TableReader {
        path: path.to_owned(),
        format,
        rows,
        has_ended: false,
    })
}

fn read_beginning(path: &Path) -> Result<Vec<u8>, TableError> {
    const SIGNATURE_BYTES: u64 = 4;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SIGNATURE_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| TableError::read_error(path, error))?;
    Ok(bytes)
}

/// Opens a text table in the format `known`, or detects its format if that is `None`.
pub(crate) fn open_text(
    path: &Path,
    known: Option<&Format>,
) -> Result<Box<dyn TextRows>, TableError> {
    let unread = |error: io::Error| match error.kind() {
        io::ErrorKind::Other => TableError::unreadable_file(path, error.to_string()),
        _ => TableError::read_error(path, error),
    };
    let mut source = TextSource::open(path)?;
    let (dialect, layout) = match known {
        Some(Format::Delimited(form, dialect)) => {
            source.form = *form;
            (Some(*dialect), None)
        }
        Some(Format::JsonLines(_)) => (None, Some(Layout::Lines)),
        Some(Format::JsonArray(_)) => (None, Some(Layout::Array)),
        Some(Format::Parquet | Format::Xlsx { .. }) | None => {
            (None, Layout::detect(source.buffer.bytes()))
        }
    };
    if source.buffer.bytes().is_empty() {
        return Err(TableError::unreadable_file(path, "it is empty"));
    }
    if let Some(other) = name_of_other_format(source.buffer.bytes()) {
        let reason = format!("it is {other}, not a table: save the table as CSV or XLSX");
        return Err(TableError::unreadable_file(path, reason));
    }
    if let Some(layout) = layout {
        return Ok(Box::new(JsonRows::open(source, layout).map_err(unread)?));
    }
    let rows = DelimitedRows::open(source, dialect, delimiter_of_name(path)).map_err(unread)?;
    Ok(Box::new(rows))
}

/// The name of a format that is no table, by its first bytes. `None` for tables and unknown formats.
fn name_of_other_format(beginning: &[u8]) -> Option<&'static str> {
    const NAMES: [(&[u8], &str); 9] = [
        (b"%PDF-", "a PDF"),
        (b"{\\rtf", "an RTF document"),
        (b"<?xml", "an XML file"),
        (b"<!doctype html", "an HTML page"),
        (b"<html", "an HTML page"),
        (b"<table", "an HTML page"),
        (b"SQLite format 3", "an SQLite database"),
        (b"\x89PNG", "a picture"),
        (b"\xff\xd8\xff", "a picture"),
    ];
    let beginning = beginning.trim_ascii_start();
    let begins = |start: &[u8]| {
        let found = beginning.get(..start.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(start))
    };
    let found = NAMES.iter().find(|(start, _)| begins(start));
    found.map(|(_, name)| *name)
}

/// The delimiter that a file name suggests: a tab for `.tsv`. An ending `.gz` or `.zst` is ignored.
fn delimiter_of_name(path: &Path) -> Option<u8> {
    let extension = |path: &Path| path.extension().map(OsStr::to_ascii_lowercase);
    let last = extension(path)?;
    let last = match last.to_str() {
        Some("gz" | "zst") => extension(Path::new(path.file_stem()?))?,
        _ => last,
    };
    match last.to_str()? {
        "tsv" | "tab" => Some(b'\t'),
        "psv" => Some(b'|'),
        _ => None,
    }
}

impl TableReader {
    /// The format of the table.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// The columns of the table, in order.
    pub fn columns(&self) -> &[Column] {
        match &self.rows {
            Rows::Text(rows) => rows.columns(),
            Rows::Typed(rows) => rows.columns(),
        }
    }

    /// The next row, or why it cannot be used; `None` at the end.
    pub fn next_row(&mut self) -> Option<Result<Row, RowFault>> {
        if self.has_ended {
            return None;
        }
        let next = match &mut self.rows {
            Rows::Text(rows) => next_text_row(rows.as_mut()).map_err(|error| error.to_string()),
            Rows::Typed(rows) => rows.next_row(),
        };
        let next = next.unwrap_or_else(|reason| {
            Some(Err(RowFault {
                number: 0,
                reason: format!("reading failed, nothing behind it was read: {reason}"),
                beginning: String::new(),
                is_end: true,
            }))
        });
        self.has_ended = matches!(&next, None | Some(Err(RowFault { is_end: true, .. })));
        if let Rows::Text(rows) = &self.rows {
            self.format = rows.format();
        }
        next
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

fn next_text_row(rows: &mut dyn TextRows) -> io::Result<Option<Result<Row, RowFault>>> {
    while let Some(piece) = rows.next_piece()? {
        if let Content::Row(spans) = &piece.content {
            return Ok(Some(Ok(Row {
                number: piece.number,
                cells: rows.cells(&piece),
                lacking: rows.count_lacking(spans),
            })));
        }
        if let Some(fault) = piece.as_fault() {
            return Ok(Some(Err(fault)));
        }
    }
    Ok(None)
}
