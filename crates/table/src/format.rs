//! The file formats of tables.

use std::fmt::{self, Display, Formatter};

/// The form of a table, found from its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// CSV, TSV and their kin.
    Delimited(TextForm, Dialect),
    /// An object per line.
    JsonLines(TextForm),
    /// One array of objects.
    JsonArray(TextForm),
    /// Columns of typed values.
    Parquet,
    /// A sheet of a workbook.
    Xlsx {
        /// Its name.
        sheet: String,
        /// The first row of the table names the columns.
        has_header: bool,
    },
}

/// How a text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    /// Around the text.
    pub compression: Compression,
    /// Of its characters.
    pub encoding: Encoding,
    /// It begins with a byte order mark.
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

/// How characters are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    Windows1252,
}

/// How the rows of a delimited text are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Between two cells.
    pub delimiter: u8,
    /// Around a cell that holds delimiters, quotes or line ends; `None` where quotes are ordinary characters.
    pub quote: Option<u8>,
    /// How a quote within quotes is written.
    pub escape: Escape,
    /// Lines end with a carriage return alone.
    pub ends_with_cr: bool,
    /// Blanks behind a delimiter do not count: `a, "b"`.
    pub skips_blanks: bool,
    /// The first row names the columns.
    pub has_header: bool,
    /// The first line names the delimiter to spreadsheets: `sep=;`.
    pub has_separator_line: bool,
}

/// How a quote within quotes is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Twice.
    Doubled,
    /// With a backslash before it.
    Backslash,
}

impl Format {
    /// Whether cells have types of their own, so that a number is no text.
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
            Encoding::Windows1252 => "windows-1252",
        };
        let compression = match self.compression {
            Compression::None => "",
            Compression::Gzip => ", gzip",
            Compression::Zstd => ", zstd",
        };
        write!(f, "{encoding}{compression}")
    }
}
