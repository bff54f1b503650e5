//! Opens a table, whatever its format, and reads its rows one after another.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::cell::{Column, Row};
use crate::delimited::DelimitedRows;
use crate::error::{RowFault, TableError};
use crate::format::Format;
use crate::json::{JsonRows, Layout};
use crate::text::{Content, TextRows, TextSource};

/// A table that is open.
pub struct TableReader {
    path: PathBuf,
    rows: Box<dyn TextRows>,
    /// As far as is known: an encoding may show itself late.
    format: Format,
    has_ended: bool,
}

/// Opens a table. Its format is found from its content, and from its name only where the content leaves it open.
pub fn open(path: &Path) -> Result<TableReader, TableError> {
    let rows = open_text(path, None)?;
    Ok(TableReader {
        path: path.to_owned(),
        format: rows.format(),
        rows,
        has_ended: false,
    })
}

/// Opens a table in the form that was found before, or finds it.
pub(crate) fn open_text(
    path: &Path,
    known: Option<&Format>,
) -> Result<Box<dyn TextRows>, TableError> {
    let unread = |error: io::Error| match error.kind() {
        io::ErrorKind::Other => TableError::unreadable(path, error.to_string()),
        _ => TableError::read(path, error),
    };
    if path.is_dir() {
        return Err(TableError::unreadable(path, "it is a folder"));
    }
    let mut source = TextSource::open(path)?;
    let (dialect, layout) = match known {
        Some(Format::Delimited(form, dialect)) => {
            source.form = *form;
            (Some(*dialect), None)
        }
        Some(Format::JsonLines(_)) => (None, Some(Layout::Lines)),
        Some(Format::JsonArray(_)) => (None, Some(Layout::Array)),
        None => (None, Layout::of(source.buffer.bytes())),
    };
    if source.buffer.bytes().is_empty() {
        return Err(TableError::unreadable(path, "it is empty"));
    }
    if let Some(layout) = layout {
        return Ok(Box::new(JsonRows::open(source, layout).map_err(unread)?));
    }
    let rows = DelimitedRows::open(source, dialect, delimiter_of_name(path)).map_err(unread)?;
    Ok(Box::new(rows))
}

/// The delimiter that the name of a file promises: `.tsv`, also before `.gz`.
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
    /// The form of the table.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        self.rows.columns()
    }

    /// The next row, or what is wrong with it; `None` at the end.
    pub fn next_row(&mut self) -> Option<Result<Row, RowFault>> {
        while !self.has_ended {
            let piece = match self.rows.next_piece() {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    self.has_ended = true;
                    break;
                }
                Err(error) => {
                    self.has_ended = true;
                    return Some(Err(RowFault {
                        number: 0,
                        reason: format!("reading failed, nothing behind it was read: {error}"),
                        beginning: String::new(),
                        is_end: true,
                    }));
                }
            };
            if let Content::Row(_) = piece.content {
                return Some(Ok(Row {
                    number: piece.number,
                    cells: self.rows.cells(&piece),
                }));
            }
            if let Some(fault) = piece.as_fault() {
                return Some(Err(fault));
            }
        }
        self.format = self.rows.format();
        None
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }
}
