//! Writes an export as CSV (RFC 4180).

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::Value;

use super::CellStyle;
use super::columns::{Column, ColumnSource, FIELDS, PARENT, SOURCE};
use super::numbers::format_with_decimals;
use crate::seeds::{ListSeparator, exported_cell};

/// A CSV file that is being written.
pub struct CsvFile<W: Write> {
    out: csv::Writer<W>,
    columns: Vec<Column>,
    cells: CellStyle,
    lists: Option<ListSeparator>,
}

impl<W: Write> CsvFile<W> {
    pub fn new(
        columns: Vec<Column>,
        cells: CellStyle,
        lists: Option<ListSeparator>,
        out: W,
    ) -> io::Result<CsvFile<W>> {
        let mut out = csv::Writer::from_writer(out);
        let header = columns.iter().map(|column| format_heading(column, cells));
        out.write_record(header.map(|name| name.as_bytes().to_vec()))
            .map_err(into_io_error)?;
        Ok(CsvFile {
            out,
            columns,
            cells,
            lists,
        })
    }

    pub fn write_row(&mut self, row: &Value) -> io::Result<()> {
        for column in &self.columns {
            let value = match &column.of {
                // The URLs are separated by spaces, so that the file can be used as seeds.
                ColumnSource::Urls => Value::from(join_with_spaces(&column.value(row))),
                ColumnSource::Field(_) => self.format_field(column, column.value(row)),
                _ => column.value(row),
            };
            self.out
                .write_field(self.cells.format_value(&value).as_bytes())
                .map_err(into_io_error)?;
        }
        self.out.write_record(None::<&[u8]>).map_err(into_io_error)
    }

    fn format_field(&self, column: &Column, value: Value) -> Value {
        if let (Value::Number(number), Some(decimals)) = (&value, column.decimals) {
            return Value::String(format_with_decimals(number, decimals));
        }
        let lists = self.lists.as_ref().filter(|_| column.is_list);
        let joined = lists.and_then(|separator| separator.join(&value));
        joined.map_or_else(|| quote_if_ambiguous(value), Value::String)
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a text as a JSON string if it would otherwise be read back as a list or an object.
fn quote_if_ambiguous(value: Value) -> Value {
    match &value {
        Value::String(text) if exported_cell::parse_exported_cell(text.clone()) != value => {
            Value::from(value.to_string())
        }
        _ => value,
    }
}

/// Formats the heading of a column. A field's name comes from the user's data, so it could act as a formula in a
/// spreadsheet; a prefix prevents that.
fn format_heading(column: &Column, cells: CellStyle) -> Cow<'_, str> {
    let is_prefixed = [FIELDS, SOURCE, PARENT]
        .iter()
        .any(|prefix| column.name.starts_with(prefix));
    match is_prefixed {
        true => Cow::Borrowed(&column.name),
        false => cells.format_text(&column.name),
    }
}

/// The URLs as one text, separated by spaces. Spaces within a URL are escaped.
fn join_with_spaces(urls: &Value) -> String {
    let urls = urls.as_array().into_iter().flatten();
    let without_spaces = |url: &str| {
        let parts: Vec<&str> = url.split_whitespace().collect();
        parts.join("%20")
    };
    let urls: Vec<String> = urls.filter_map(Value::as_str).map(without_spaces).collect();
    urls.join(" ")
}

/// Converts an error and keeps its kind, so that a closed pipe is still recognised.
fn into_io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
