//! The file formats of tables.

use std::fmt::{self, Display, Formatter};

/// The format of a table, detected from its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// CSV, TSV and similar formats.
    Delimited(TextForm, Dialect),
    /// JSON lines: an object per line.
    JsonLines(TextForm),
    /// A JSON array of objects.
    JsonArray(TextForm),
    /// Parquet: typed columns.
    Parquet,
    /// A sheet of an XLSX workbook.
    Xlsx {
        /// The name of the sheet.
        sheet: String,
        /// Whether the first row of the table names the columns.
        has_header: bool,
    },
}

/// How a text is stored in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    /// The compression of the file.
    pub compression: Compression,
    /// The encoding of the characters.
    pub encoding: Encoding,
    /// Whether the text begins with a byte order mark.
    pub has_mark: bool,
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

/// A character encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// One that a spreadsheet of before UTF-8 saves, such as windows-1252. All are supersets of ASCII.
    Legacy(&'static encoding_rs::Encoding),
}

/// How the rows of a delimited text are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The character between two cells.
    pub delimiter: u8,
    /// The character around a cell that holds delimiters, quotes or line ends; `None` if quotes are ordinary
    /// characters.
    pub quote: Option<u8>,
    /// How a quote within quotes is written.
    pub escape: Escape,
    /// Whether lines end with a carriage return alone.
    pub ends_with_cr: bool,
    /// Whether blanks after a delimiter are ignored: `a, "b"`.
    pub skips_blanks: bool,
    /// Whether the first row names the columns.
    pub has_header: bool,
    /// Whether the first line names the delimiter for spreadsheets: `sep=;`.
    pub has_separator_line: bool,
    /// The number of rows above the header that are not part of the table, such as its title and the date of an export.
    pub notes: u32,
}

/// How a quote within quotes is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Two quotes: `""`.
    Doubled,
    /// A backslash before the quote.
    Backslash,
}

impl Format {
    /// Whether cells have types, so that a number differs from a text of the same digits.
    pub fn has_types(&self) -> bool {
        !matches!(self, Format::Delimited(..))
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Format::Delimited(form, dialect) => write!(f, "{dialect}, {form}"),
            Format::JsonLines(form) => write!(f, "JSON lines, {form}"),
            Format::JsonArray(form) => write!(f, "JSON array, {form}"),
            Format::Parquet => f.write_str("Parquet"),
            Format::Xlsx { sheet, has_header } => {
                let header = if *has_header { "" } else { ", no header" };
                write!(f, "XLSX, sheet `{sheet:.40}`{header}")
            }
        }
    }
}

impl Display for Dialect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.delimiter {
            b',' => f.write_str("CSV")?,
            b'\t' => f.write_str("TSV")?,
            b';' => f.write_str("CSV with semicolons")?,
            b'|' => f.write_str("CSV with pipes")?,
            other => write!(f, "CSV with `{}`", char::from(other))?,
        }
        if self.quote == Some(b'\'') {
            f.write_str(", single quotes")?;
        }
        if self.escape == Escape::Backslash {
            f.write_str(", backslash escapes")?;
        }
        match self.notes {
            0 => {}
            1 => f.write_str(", 1 line above the table")?,
            notes => write!(f, ", {notes} lines above the table")?,
        }
        match self.has_header {
            true => Ok(()),
            false => f.write_str(", no header"),
        }
    }
}

impl Display for TextForm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let encoding = match self.encoding {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16Le | Encoding::Utf16Be => "UTF-16",
            Encoding::Legacy(encoding) => encoding.name(),
        };
        let compression = match self.compression {
            Compression::None => "",
            Compression::Gzip => ", gzip",
            Compression::Zstd => ", zstd",
        };
        write!(f, "{encoding}{compression}")
    }
}
