//! Rows and their cells, whatever the format.

use serde_json::Value;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name of the column in the table; `column1` and so on if the table has no header.
    pub name: String,
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The number of the line (text), row (Parquet, XLSX) or entry (JSON array), counted from 1.
    pub number: u64,
    /// One cell for each column.
    pub cells: Vec<Cell>,
    /// How many of the last cells the row lacks in its file. They are empty.
    pub lacking: usize,
}

/// The content of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value: an empty cell of a CSV file or a sheet, null, or a member that an object lacks.
    Missing,
    /// A text. Formats without types have only texts.
    Text(String),
    /// A number, as it is written in the table.
    Number(String),
    /// A boolean of a typed format.
    Bool(bool),
    /// A date, a time or both, in ISO 8601 and as precise as the column.
    Date(String),
    /// Several values, from a format with lists (JSON, Parquet).
    List(Vec<Cell>),
    /// An object, a map or another value. Such values are never filled in or changed.
    Other(Value),
}

impl Cell {
    /// The text of a cell that holds one value; `None` for a missing value, a list or an object.
    pub fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) | Cell::Number(text) | Cell::Date(text) => Some(text),
            Cell::Bool(true) => Some("true"),
            Cell::Bool(false) => Some("false"),
            Cell::Missing | Cell::List(_) | Cell::Other(_) => None,
        }
    }

    /// Whether the cell is missing, blank, or a list of only missing and blank cells.
    pub fn is_empty(&self) -> bool {
        match self {
            Cell::Missing => true,
            Cell::Text(text) => webfill_values::is_blank(text),
            Cell::List(cells) => cells.iter().all(Cell::is_empty),
            _ => false,
        }
    }
}

/// Whether a cell's text begins with `http://` or `https://`, and more follows.
pub(crate) fn begins_as_link(text: &str) -> bool {
    let begins = |scheme: &str| {
        let head = text.get(..scheme.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(scheme)) && text.len() > scheme.len()
    };
    begins("http://") || begins("https://")
}
