//! Reads the rows of a delimited text, one after another.
//!
//! A quote that is never closed would make the rest of the text one row. So if a row of several lines does not end, or
//! looks like several rows, only its first line is reported as a fault. The other lines are read again as rows of their
//! own.

use std::io;

use super::decode_cells;
use super::dialect::detect_dialect;
use super::edit::{encode_cell, find_quoted_columns};
use super::header;
use super::split::{Split, SplitRow, line_bytes, split};
use crate::cell::{Cell, Column};
use crate::error::Refusal;
use crate::format::{Dialect, Encoding, Format, TextForm};
use crate::shape::Shape;
use crate::text::{
    Buffer, Content, Edit, EditedRow, MAX_CELL_BYTES, MAX_ROW_BYTES, Piece, Span, TextRows,
    TextSource, guess_legacy, is_valid,
};
use crate::value::cell_text;

const UNCLOSED: &str = "a quote is opened and not closed";

/// Bounds the time for a text with many unclosed quotes: only this many bytes may be examined without finding the end
/// of a row. Each byte of a row that is found allows `VAIN_PER_BYTE` more, up to `VAIN_BYTES`.
const VAIN_BYTES: usize = 64 << 20;
const VAIN_PER_BYTE: usize = 4;

/// How many bytes are always searched for the end of a row, even after `VAIN_BYTES` are used up.
const LEAST_ROW_BYTES: usize = 64 << 10;

pub(crate) struct DelimitedRows {
    form: TextForm,
    dialect: Dialect,
    columns: Vec<Column>,
    buffer: Buffer,
    /// The number of the line where the next piece of the text begins.
    line: u64,
    spans: Vec<Span>,
    at: Section,
    /// How many rows of notes above the table are still to be read.
    notes: u32,
    /// How many bytes may still be examined without finding the end of a row.
    patience: usize,
    /// For each column, whether its first values are all in quotes, so that new ones get quotes, too.
    quotes: Vec<bool>,
    /// Whether all bytes so far are ASCII. A text without a byte order mark counts as UTF-8 until a character is not
    /// valid UTF-8.
    is_ascii_so_far: bool,
}

#[derive(PartialEq, Eq)]
enum Section {
    SeparatorLine,
    Header,
    Rows,
    /// The next bytes belong to a line that is too long to hold in memory.
    OverlongLine,
}

impl DelimitedRows {
    /// Opens the text and reads its columns. The dialect (delimiter, quote, escape) is `known`, or it is detected.
    pub(crate) fn open(
        source: TextSource,
        known: Option<Dialect>,
        hint: Option<u8>,
    ) -> io::Result<DelimitedRows> {
        let TextSource { form, buffer } = source;
        let encoding = form.encoding;
        let dialect = known.unwrap_or_else(|| {
            let mut dialect = detect_dialect(buffer.bytes(), buffer.is_at_end(), hint);
            dialect.notes = header::count_notes(buffer.bytes(), &dialect, encoding);
            dialect.has_header = header::has_header(buffer.bytes(), &dialect, encoding);
            dialect
        });
        let at = match dialect.has_separator_line {
            true => Section::SeparatorLine,
            false => Section::Header,
        };
        let mut rows = DelimitedRows {
            form,
            dialect,
            columns: Vec::new(),
            buffer,
            line: 1,
            spans: Vec::new(),
            at,
            notes: dialect.notes,
            patience: VAIN_BYTES,
            quotes: Vec::new(),
            is_ascii_so_far: true,
        };
        rows.columns = rows.read_columns()?;
        rows.quotes = find_quoted_columns(
            rows.buffer.bytes(),
            rows.buffer.is_at_end(),
            &rows.dialect,
            rows.columns.len(),
        );
        Ok(rows)
    }

    /// Reads the header for its names but leaves it in the buffer, because it is returned as a piece of the text later.
    fn read_columns(&mut self) -> io::Result<Vec<Column>> {
        let mut skipped = match self.dialect.has_separator_line {
            true => line_bytes(self.buffer.bytes(), true, &self.dialect).unwrap_or(0),
            false => 0,
        };
        let mut notes = self.dialect.notes;
        loop {
            let bytes = &self.buffer.bytes()[skipped..];
            let is_whole = self.buffer.is_at_end() || self.buffer.bytes().len() >= MAX_ROW_BYTES;
            match split(bytes, is_whole, &self.dialect, &mut self.spans) {
                Split::Row(row) if is_blank(&self.spans) && row.bytes > 0 => skipped += row.bytes,
                Split::Row(row) if notes > 0 => {
                    skipped += row.bytes;
                    notes -= 1;
                }
                Split::Row(_) => {
                    let cells = decode_cells(bytes, &self.spans, &self.dialect, self.form.encoding);
                    return Ok(header::columns(cells, self.dialect.has_header));
                }
                Split::Unfinished { .. } if is_whole => {
                    return Err(io::Error::other("a quote in its header is not closed"));
                }
                Split::Unfinished { .. } => self.buffer.fill()?,
            }
        }
    }

    fn take_whole_line(&mut self) -> io::Result<Piece> {
        loop {
            let bytes = self.buffer.bytes();
            let is_whole = self.buffer.is_at_end();
            match line_bytes(bytes, is_whole, &self.dialect) {
                Some(end) => return Ok(self.take_piece(end, 1, Content::Between)),
                None if bytes.len() >= MAX_ROW_BYTES => {
                    self.at = Section::OverlongLine;
                    return Ok(self.take_piece(bytes.len(), 0, Content::Between));
                }
                None => self.buffer.fill()?,
            }
        }
    }

    fn take_piece(&mut self, bytes: usize, lines: u64, content: Content) -> Piece {
        let piece = Piece {
            raw: self.buffer.take(bytes),
            number: self.line,
            content,
        };
        self.line += lines;
        piece
    }

    /// Returns the first line of a broken row as a fault. The lines after it are read again.
    fn take_first_line_as_fault(&mut self, read: usize, reason: &str) -> io::Result<Piece> {
        self.patience = self.patience.saturating_sub(read);
        let mut piece = self.take_whole_line()?;
        piece.content = Content::Fault(reason.to_owned());
        Ok(piece)
    }

    fn next_row(&mut self) -> io::Result<Option<Piece>> {
        let limit = MAX_ROW_BYTES.min(self.patience.max(LEAST_ROW_BYTES));
        loop {
            let bytes = self.buffer.bytes();
            let is_whole = self.buffer.is_at_end();
            if bytes.is_empty() && is_whole {
                return Ok(None);
            }
            match split(bytes, is_whole, &self.dialect, &mut self.spans) {
                Split::Row(row) => return self.check_row(row).map(Some),
                Split::Unfinished { is_in_quotes } if is_whole || bytes.len() >= limit => {
                    let reason = match is_in_quotes {
                        true => UNCLOSED,
                        false => "the row is too long",
                    };
                    return self.take_first_line_as_fault(bytes.len(), reason).map(Some);
                }
                Split::Unfinished { .. } => self.buffer.fill()?,
            }
        }
    }

    fn check_row(&mut self, row: SplitRow) -> io::Result<Piece> {
        let has_all = self.spans.len() == self.columns.len();
        if row.inner_lines > 0 && (row.is_askew || !has_all) {
            let reason = match row.is_askew {
                true => UNCLOSED.to_owned(),
                false => self.wrong_count_message(),
            };
            return self.take_first_line_as_fault(row.bytes, &reason);
        }
        self.patience = (self.patience + row.bytes * VAIN_PER_BYTE).min(VAIN_BYTES);
        if is_blank(&self.spans) {
            return Ok(self.take_piece(row.bytes, 1, Content::Between));
        }
        self.drop_empty_cells_beyond_columns();
        let fault = self.find_fault(&row);
        let content = match fault {
            Some(reason) => Content::Fault(reason),
            None => Content::Row(self.spans.clone()),
        };
        Ok(self.take_piece(row.bytes, 1 + row.inner_lines, content))
    }

    /// Delimiters at the end of a row mean nothing.
    fn drop_empty_cells_beyond_columns(&mut self) {
        let beyond = self.spans.get(self.columns.len()..).unwrap_or_default();
        if beyond.iter().all(|span| span.start == span.end) {
            self.spans.truncate(self.columns.len());
        }
    }

    fn find_fault(&mut self, row: &SplitRow) -> Option<String> {
        let raw = &self.buffer.bytes()[..row.bytes];
        if !raw.is_ascii() {
            let may_be_another = self.is_ascii_so_far && !self.form.has_mark;
            if !is_valid(raw, self.form.encoding) {
                if self.form.encoding != Encoding::Utf8 || !may_be_another {
                    return Some(String::from("it has characters that are not valid"));
                }
                self.form.encoding = Encoding::Legacy(guess_legacy(self.buffer.bytes()));
            }
            self.is_ascii_so_far = false;
        }
        if row.is_askew {
            return Some(String::from("text follows a closing quote"));
        }
        if !self.has_usable_count() {
            return Some(self.wrong_count_message());
        }
        if memchr::memchr(0, raw).is_some() {
            return Some(String::from("it holds NUL bytes"));
        }
        if row.bytes > MAX_CELL_BYTES {
            let is_long = |span: &Span| span.end - span.start > MAX_CELL_BYTES;
            let long = self.spans.iter().position(is_long)?;
            let name = &self.columns[long].name;
            return Some(format!("the cell of `{name:.40}` is longer than 1 MiB"));
        }
        None
    }

    /// Whether the row has a cell for each column, or lacks only its last ones. A row with a single cell is probably a
    /// note.
    fn has_usable_count(&self) -> bool {
        const LEAST: usize = 2;
        self.spans.len() == self.columns.len()
            || (LEAST..self.columns.len()).contains(&self.spans.len())
    }

    fn wrong_count_message(&self) -> String {
        let counted = |count: usize, unit: &str| match count {
            1 => format!("1 {unit}"),
            count => format!("{count} {unit}s"),
        };
        format!(
            "the row has {}, but the table {}",
            counted(self.spans.len(), "cell"),
            counted(self.columns.len(), "column")
        )
    }

    /// The bytes to write for a value. An error says why it cannot be written.
    fn encode_value(&self, value: &str, is_quoted: bool, shape: &Shape) -> Result<Vec<u8>, String> {
        if value.contains('\0') {
            return Err(String::from("it holds NUL bytes"));
        }
        if value.len() > MAX_CELL_BYTES {
            return Err(String::from("it is longer than 1 MiB"));
        }
        let value = cell_text(value.to_owned(), shape)?;
        encode_cell(&value, is_quoted, &self.dialect, self.form.encoding)
    }
}

impl TextRows for DelimitedRows {
    fn format(&self) -> Format {
        Format::Delimited(self.form, self.dialect)
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next_piece(&mut self) -> io::Result<Option<Piece>> {
        if self.buffer.bytes().is_empty() && !self.buffer.is_at_end() {
            self.buffer.fill()?;
        }
        match self.at {
            _ if self.buffer.bytes().is_empty() => Ok(None),
            Section::SeparatorLine => {
                self.at = Section::Header;
                self.take_whole_line().map(Some)
            }
            Section::Header if self.notes == 0 && !self.dialect.has_header => {
                self.at = Section::Rows;
                self.next_row()
            }
            Section::Header => self.take_header_piece().map(Some),
            Section::Rows => self.next_row(),
            Section::OverlongLine => {
                self.at = Section::Rows;
                self.take_whole_line().map(Some)
            }
        }
    }

    fn cells(&self, piece: &Piece) -> Vec<Cell> {
        let Content::Row(spans) = &piece.content else {
            return Vec::new();
        };
        let texts = decode_cells(&piece.raw, spans, &self.dialect, self.form.encoding);
        let cell = |text: String| match text.is_empty() {
            true => Cell::Missing,
            false => Cell::Text(text),
        };
        let cells = texts.map(cell).chain(std::iter::repeat(Cell::Missing));
        cells.take(self.columns.len()).collect()
    }

    fn count_lacking(&self, spans: &[Span]) -> usize {
        self.columns.len().saturating_sub(spans.len())
    }

    fn edit_row(
        &self,
        piece: &Piece,
        edits: Vec<Edit>,
        shapes: &[Shape],
        refused: &mut Vec<Refusal>,
    ) -> EditedRow {
        let Content::Row(spans) = &piece.content else {
            return EditedRow::default();
        };
        let mut edited = EditedRow::default();
        let row_end = spans.last().map_or(0, |last| last.end);
        let (mut at, mut count) = (0, spans.len());
        for Edit { column, value } in edits {
            // A cell that the row lacks is appended, with the empty cells before it.
            let lacking = Span {
                start: row_end,
                end: row_end,
                is_quoted: false,
                is_escaped: false,
            };
            let span = spans.get(column).unwrap_or(&lacking);
            let is_quoted = span.is_quoted || self.quotes.get(column) == Some(&true);
            match self.encode_value(&value, is_quoted, &shapes[column]) {
                Ok(cell) => {
                    edited.raw.extend_from_slice(&piece.raw[at..span.start]);
                    for _ in count..=column {
                        edited.raw.push(self.dialect.delimiter);
                    }
                    count = count.max(column + 1);
                    edited.raw.extend_from_slice(&cell);
                    edited.cells += 1;
                    at = span.end;
                }
                Err(reason) => refused.push(Refusal {
                    row: piece.number,
                    column,
                    value,
                    reason,
                }),
            }
        }
        edited.raw.extend_from_slice(&piece.raw[at..]);
        edited
    }
}

impl DelimitedRows {
    /// Takes the next piece of the text before the first row: a note above the header, the header, or an empty line.
    fn take_header_piece(&mut self) -> io::Result<Piece> {
        let is_whole = self.buffer.is_at_end() || self.buffer.bytes().len() >= MAX_ROW_BYTES;
        let split = split(
            self.buffer.bytes(),
            is_whole,
            &self.dialect,
            &mut self.spans,
        );
        let Split::Row(row) = split else {
            return Err(io::Error::other("a quote in its header is not closed"));
        };
        match (is_blank(&self.spans), self.notes) {
            (true, _) => {}
            (false, 0) => self.at = Section::Rows,
            (false, _) => self.notes -= 1,
        }
        Ok(self.take_piece(row.bytes, 1 + row.inner_lines, Content::Between))
    }
}

/// Whether a row is an empty line: it has one cell without any character.
fn is_blank(spans: &[Span]) -> bool {
    matches!(spans, [span] if span.start == span.end)
}
