//! Seeds as CSV (RFC 4180): a header, then one record per row.
//!
//! A row may span several lines, in quoted cells. A quote that is never closed would turn the rest of the file into one
//! cell. So if a row of several lines looks like several rows, or cannot be used, only its first line is reported as
//! broken. The other lines are then read again as separate rows.

use serde_json::Value;
use webfill_values::{is_blank, trim};

use super::lines::{Line, LineText, Lines, MAX_LINE_BYTES};
use super::{LineContent, ListCells, SeedFault, exported, exported_cell, parse_utf8};

/// The most lines of one row.
const MAX_ROW_LINES: usize = 1_000;

const UNCLOSED: &str = "unclosed quote";

/// The header of a table: the meaning of each column.
pub(super) struct Header {
    columns: Vec<Column>,
    /// Which cells are lists. `None` if all cells are texts.
    lists: Option<ListCells>,
}

pub(super) enum Column {
    Id,
    /// Several URLs, separated by spaces.
    Urls,
    /// One URL, which may contain spaces. If a cell has several URLs, each begins at its scheme.
    Url,
    /// A field. If the cell is empty or blank, the record lacks the field.
    Field(String),
    /// A field in an export. The record has it if the cell is not empty.
    Value(String),
    /// In an export, the list of the record's missing fields, as JSON.
    Missing,
    Ignored,
}

/// Whether a first line is a header: it has a column named `url` or `urls`, and holds no URL.
pub(super) fn is_header(line: &[u8]) -> bool {
    let cells = parse_cells(line).unwrap_or_default();
    let names_urls = |cell: &String| Column::from_name(cell).holds_urls();
    cells.iter().any(names_urls) && !cells.iter().any(|cell| cell.contains("://"))
}

impl Column {
    fn from_name(name: &str) -> Column {
        let name = trim(name);
        match name.to_ascii_lowercase().as_str() {
            "id" => Column::Id,
            "url" => Column::Url,
            "urls" => Column::Urls,
            _ => Column::Field(name.to_owned()),
        }
    }

    fn holds_urls(&self) -> bool {
        matches!(self, Column::Url | Column::Urls)
    }
}

impl Header {
    /// Reads the header that begins with the line `first`.
    pub(super) fn read(first: Line, lines: &mut Lines) -> Result<Header, String> {
        let LineText::Whole(text) = first.text else {
            return Err(String::from("cannot read the header"));
        };
        let row = Row::collect_lines(text, lines)
            .map_err(|fault| format!("its header: {}", fault.reason))?;
        let names = row
            .split_cells()
            .map_err(|reason| format!("header: {reason}"))?;
        let named = || names.iter().map(|name| Column::from_name(name)).collect();
        let columns: Vec<Column> = exported::columns_of_export(&names).unwrap_or_else(named);
        if !columns.iter().any(Column::holds_urls) {
            let names: Vec<String> = names
                .iter()
                .take(20)
                .map(|name| format!("`{name:.40}`"))
                .collect();
            return Err(format!(
                "no column is named url or urls: rename the one with links (there are {}), or export with `--sources`",
                names.join(", ")
            ));
        }
        for (number, name) in names.iter().enumerate() {
            if is_blank(name) {
                return Err(format!("column {} has no name", number + 1));
            }
            if names[..number]
                .iter()
                .any(|other| trim(other) == trim(name))
            {
                return Err(format!("two columns are named `{name:.40}`"));
            }
        }
        Ok(Header {
            columns,
            lists: None,
        })
    }

    pub(super) fn set_lists(&mut self, lists: ListCells) {
        self.lists = Some(lists);
    }

    pub(super) fn has_fields(&self) -> bool {
        let is_field = |column: &Column| matches!(column, Column::Field(_) | Column::Value(_));
        self.columns.iter().any(is_field)
    }

    /// Reads the row that begins with the line `first`. If the row is broken, the lines after the first are put back.
    pub(super) fn read_row(
        &self,
        first: Vec<u8>,
        lines: &mut Lines,
    ) -> Result<LineContent, SeedFault> {
        let row = Row::collect_lines(first, lines)?;
        let found = row.split_cells().and_then(|cells| self.parse_row(cells));
        found.map_err(|reason| {
            let first_bytes = row.text.len() - row.rest_bytes();
            let fault = SeedFault::new(0, reason, &row.text[..first_bytes]);
            lines.put_back(row.rest);
            fault
        })
    }

    fn parse_row(&self, cells: Vec<String>) -> Result<LineContent, String> {
        if cells.len() != self.columns.len() {
            return Err(format!(
                "the row has {} cells, but the header {} columns",
                cells.len(),
                self.columns.len()
            ));
        }
        let mut found = LineContent::default();
        for (column, cell) in self.columns.iter().zip(cells) {
            match column {
                Column::Id | Column::Url | Column::Urls if cell.contains('\n') => {
                    return Err(String::from(UNCLOSED));
                }
                Column::Id => {
                    let id = trim(&cell);
                    found.id = (!id.is_empty()).then(|| id.to_owned());
                }
                Column::Url => found.urls.extend(urls_of_cell(&cell)),
                Column::Urls => found
                    .urls
                    .extend(cell.split_whitespace().map(str::to_owned)),
                Column::Field(name) => {
                    let value = self.parse_cell(name, cell, Value::String);
                    if value.is_null() {
                        found.want.push(name.clone());
                    }
                    found.fields.insert(name.clone(), value);
                }
                Column::Value(name) if !is_blank(&cell) => {
                    let value = self.parse_cell(name, cell, exported_cell::parse_exported_cell);
                    found.fields.insert(name.clone(), value);
                }
                Column::Missing => found.want = parse_missing(&cell)?,
                Column::Value(_) | Column::Ignored => {}
            }
        }
        match found.urls.is_empty() {
            true => Err(String::from("no URL: the cell is empty")),
            false => Ok(found),
        }
    }
}

impl Header {
    /// Converts a cell to a value. `otherwise` converts a cell that is not a list.
    fn parse_cell(&self, field: &str, cell: String, otherwise: impl Fn(String) -> Value) -> Value {
        match &self.lists {
            _ if is_blank(&cell) => Value::Null,
            Some(lists) if lists.has_field(field) => lists.parse_cell(field, cell),
            _ => otherwise(cell),
        }
    }
}

fn parse_missing(cell: &str) -> Result<Vec<String>, String> {
    serde_json::from_str(cell)
        .map_err(|_| String::from("`missing`: expected a JSON list of fields"))
}

/// The URLs in a cell of the column `url`. If a part of the cell has no scheme, it belongs to the URL before it.
fn urls_of_cell(cell: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    let mut blanks = "";
    let mut rest = cell.trim();
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        match urls.last_mut() {
            Some(last) if !begins_with_scheme(part) => {
                last.push_str(blanks);
                last.push_str(part);
            }
            _ => urls.push(part.to_owned()),
        }
        rest = behind.trim_start();
        blanks = &behind[..behind.len() - rest.len()];
    }
    urls
}

fn begins_with_scheme(text: &str) -> bool {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.split_once("://")
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_of_scheme))
}

/// The text of one row, which may span several lines.
struct Row {
    text: Vec<u8>,
    /// The lines after the first one, which are put back if the row is broken.
    rest: Vec<Line>,
    /// Whether text follows a closing quote within the same cell.
    is_askew: bool,
}

impl Row {
    /// Collects the lines of a row. Lines are added as long as a quote is open.
    fn collect_lines(first: Vec<u8>, lines: &mut Lines) -> Result<Row, SeedFault> {
        let mut quotes = Quotes::default();
        quotes.read_line(&first);
        let first_bytes = first.len();
        let mut row = Row {
            text: first,
            rest: Vec::new(),
            is_askew: false,
        };
        while quotes.is_quote_open() {
            let line = lines.next();
            let text = match &line {
                Some(Line {
                    text: LineText::Whole(text),
                    ..
                }) => text,
                _ => return Err(row.put_back_lines(first_bytes, line, lines)),
            };
            row.text.push(b'\n');
            row.text.extend_from_slice(text);
            quotes.read_line(text);
            let is_too_long = row.text.len() > MAX_LINE_BYTES || row.rest.len() >= MAX_ROW_LINES;
            if is_too_long && quotes.is_quote_open() {
                return Err(row.put_back_lines(first_bytes, line, lines));
            }
            row.rest.extend(line);
        }
        row.is_askew = quotes.are_askew;
        Ok(row)
    }

    /// Splits the row into cells. Text after a closing quote is allowed if the row has one line. In a row of several
    /// lines it is an error, because the quote was probably meant to open a cell of another row.
    fn split_cells(&self) -> Result<Vec<String>, String> {
        if self.is_askew && !self.rest.is_empty() {
            return Err(String::from(UNCLOSED));
        }
        parse_cells(&self.text)
    }

    fn put_back_lines(
        mut self,
        first_bytes: usize,
        last: Option<Line>,
        lines: &mut Lines,
    ) -> SeedFault {
        self.rest.extend(last);
        lines.put_back(self.rest);
        SeedFault::new(0, UNCLOSED, &self.text[..first_bytes])
    }

    /// The total number of bytes in the lines after the first one, including the line ends before them.
    fn rest_bytes(&self) -> usize {
        let bytes = |line: &Line| match &line.text {
            LineText::Whole(text) => text.len() + 1,
            LineText::Broken { .. } => 0,
        };
        self.rest.iter().map(bytes).sum()
    }
}

/// Follows the quotes through the lines of a row. A quote opens a quoted cell only at the beginning of the cell.
#[derive(Default)]
struct Quotes {
    state: QuoteState,
    /// Whether text was found after a closing quote.
    are_askew: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    #[default]
    CellBegins,
    Bare,
    Quoted,
    /// The last byte was a quote in a quoted cell. It ends the cell, or is the first half of an escaped quote.
    QuoteInQuoted,
}

impl Quotes {
    fn is_quote_open(&self) -> bool {
        self.state == QuoteState::Quoted
    }

    fn read_line(&mut self, line: &[u8]) {
        if !self.is_quote_open() && !line.contains(&b'"') {
            return;
        }
        for byte in line {
            self.are_askew |=
                self.state == QuoteState::QuoteInQuoted && !matches!(byte, b'"' | b',');
            self.state = self.state.next_state(char::from(*byte));
        }
    }
}

impl QuoteState {
    fn next_state(self, next: char) -> QuoteState {
        match (self, next) {
            (QuoteState::CellBegins | QuoteState::QuoteInQuoted, '"') => QuoteState::Quoted,
            (QuoteState::Quoted, '"') => QuoteState::QuoteInQuoted,
            (QuoteState::Quoted, _) => QuoteState::Quoted,
            (_, ',') => QuoteState::CellBegins,
            _ => QuoteState::Bare,
        }
    }
}

/// Splits the text of a row into cells.
pub(super) fn parse_cells(row: &[u8]) -> Result<Vec<String>, String> {
    let row = parse_utf8(row).map_err(|fault| fault.reason)?;
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut state = QuoteState::default();
    for c in row.chars() {
        let before = state;
        state = before.next_state(c);
        match state {
            QuoteState::CellBegins => cells.push(std::mem::take(&mut cell)),
            QuoteState::Quoted if before == QuoteState::CellBegins => {}
            QuoteState::QuoteInQuoted => {}
            QuoteState::Quoted | QuoteState::Bare => cell.push(c),
        }
    }
    cells.push(cell);
    Ok(cells)
}
