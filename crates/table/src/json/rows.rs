//! Reads the objects of a JSON text, one after another.

use std::collections::HashMap;
use std::io;

use super::Layout;
use super::edit::edit_row;
use super::extent::{Extent, next_extent};
use super::members::{Member, cell_from_json, parse_members};
use crate::cell::{Cell, Column};
use crate::error::Refusal;
use crate::format::{Format, TextForm};
use crate::shape::Shape;
use crate::text::{
    Buffer, Content, Edit, EditedRow, MAX_CELL_BYTES, MAX_ROW_BYTES, Piece, Span, TextRows,
    TextSource,
};

/// The columns of a JSON table are the members that occur in the objects within the first bytes, this many. Later
/// members are not columns.
const COLUMNS_WITHIN_BYTES: usize = 8 << 20;

pub(crate) struct JsonRows {
    form: TextForm,
    layout: Layout,
    buffer: Buffer,
    columns: Vec<Column>,
    numbers: HashMap<String, usize>,
    /// The number of the line or entry where the next piece begins.
    number: u64,
    at: Section,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Beginning,
    Entries,
    /// The next bytes belong to an entry (object) that is too long to hold in memory.
    OverlongEntry,
    /// The array has ended, or it is broken at this point and cannot be read further.
    End,
}

impl JsonRows {
    pub(crate) fn open(source: TextSource, layout: Layout) -> io::Result<JsonRows> {
        let TextSource { form, mut buffer } = source;
        buffer.fill_to(COLUMNS_WITHIN_BYTES)?;
        let mut rows = JsonRows {
            form,
            layout,
            buffer,
            columns: Vec::new(),
            numbers: HashMap::new(),
            number: 1,
            at: Section::Beginning,
        };
        if let Some(name) = rows.find_wrapped_rows() {
            return Err(io::Error::other(format!(
                "it is one object, whose `{name}` holds the rows: \
                 save them with jq -c '.\"{name}\"[]' FILE > rows.jsonl"
            )));
        }
        rows.find_columns();
        match rows.columns.is_empty() {
            false => Ok(rows),
            true => Err(io::Error::other(
                "it begins as JSON does, but holds no object per line and no array of objects",
            )),
        }
    }

    /// Finds the columns: the members of the first objects, in the order they first appear.
    /// The member that holds the rows, if the whole text is one object without a link of its own.
    fn find_wrapped_rows(&self) -> Option<String> {
        if self.layout != Layout::Lines || !self.buffer.is_at_end() {
            return None;
        }
        let text = std::str::from_utf8(self.buffer.bytes()).ok()?.trim();
        let members = parse_members(text).ok()?;
        let value = |member: &Member| text.get(member.value.clone()).unwrap_or_default();
        if members
            .iter()
            .any(|member| value(member).starts_with("\"http"))
        {
            return None;
        }
        let holds_objects = |member: &&Member| {
            let inner = value(member).strip_prefix('[');
            inner.is_some_and(|inner| inner.trim_start().starts_with('{'))
        };
        members
            .iter()
            .find(holds_objects)
            .map(|member| member.name.clone())
    }

    fn find_columns(&mut self) {
        let mut rest = self.buffer.bytes();
        let mut names: Vec<String> = Vec::new();
        let mut has_begun = false;
        while !rest.is_empty() {
            let is_whole = self.buffer.is_at_end();
            let bytes = match next_extent(rest, is_whole, self.layout, has_begun) {
                Extent::Between(bytes) => bytes,
                Extent::Entry(bytes) => {
                    let text = std::str::from_utf8(&rest[..bytes]).unwrap_or_default();
                    for member in parse_members(text).unwrap_or_default() {
                        if !self.numbers.contains_key(&member.name) {
                            self.numbers.insert(member.name.clone(), names.len());
                            names.push(member.name);
                        }
                    }
                    bytes
                }
                Extent::End(_) | Extent::Unfinished => break,
            };
            has_begun |= rest[0] == b'[';
            rest = &rest[bytes..];
        }
        self.columns = names.into_iter().map(|name| Column { name }).collect();
    }

    /// Takes bytes that belong to no entry. In JSON lines, they are a line, so the line number is increased.
    fn take_between_entries(&mut self, bytes: usize) -> Piece {
        let piece = Piece::between_rows(self.buffer.take(bytes), self.number);
        if self.layout == Layout::Lines {
            self.number += 1;
        }
        piece
    }

    fn take_entry(&mut self, bytes: usize) -> Piece {
        let raw = self.buffer.take(bytes);
        let content = match self.find_cells(&raw) {
            Ok(spans) => Content::Row(spans),
            Err(reason) => Content::Fault(reason),
        };
        let number = self.number;
        self.number += 1;
        Piece {
            raw,
            number,
            content,
        }
    }

    /// The positions of the row's cells. Where the row lacks a member, the position is empty.
    fn find_cells(&self, raw: &[u8]) -> Result<Vec<Span>, String> {
        let text = std::str::from_utf8(raw).map_err(|_| "it has characters that are not valid")?;
        let nowhere = Span {
            start: 0,
            end: 0,
            is_quoted: false,
            is_escaped: false,
        };
        let mut spans = vec![nowhere; self.columns.len()];
        let mut others: Vec<String> = Vec::new();
        for member in parse_members(text)? {
            let name = member.name;
            let column = self.numbers.get(&name);
            let is_double = match column {
                Some(column) => spans[*column] != nowhere,
                None => others.contains(&name),
            };
            if is_double {
                return Err(format!("two members are named `{name:.40}`"));
            }
            if member.value.len() > MAX_CELL_BYTES {
                return Err(format!("the value of `{name:.40}` is longer than 1 MiB"));
            }
            let (start, end) = (member.value.start, member.value.end);
            match column {
                Some(column) => {
                    spans[*column] = Span {
                        start,
                        end,
                        ..nowhere
                    }
                }
                None => others.push(name),
            }
        }
        Ok(spans)
    }

    /// Takes the available bytes of an entry (object) that is too long for memory, or of the rest of such an entry.
    fn take_overlong_entry(&mut self) -> io::Result<Piece> {
        let is_beginning = self.at != Section::OverlongEntry;
        let bytes = self.buffer.bytes();
        let line_end = memchr::memchr(b'\n', bytes).map(|end| end + 1);
        let end = line_end.filter(|_| self.layout == Layout::Lines);
        let taken = end.unwrap_or(bytes.len());
        let number = self.number;
        if end.is_some() {
            self.number += 1;
        }
        self.at = match (end, self.layout) {
            (Some(_), _) => Section::Entries,
            (None, Layout::Lines) => Section::OverlongEntry,
            // The end of an entry in an array cannot be found if the entry is too long to hold in memory. So reading
            // ends here.
            (None, Layout::Array) => Section::End,
        };
        let raw = self.buffer.take(taken);
        Ok(match (is_beginning, self.layout) {
            (false, _) => Piece::between_rows(raw, number),
            (true, Layout::Lines) => Piece::fault(raw, number, "the line is longer than 16 MiB"),
            (true, Layout::Array) => Piece::fault(
                raw,
                number,
                "the entry is longer than 16 MiB: nothing behind it was read",
            ),
        })
    }

    /// Takes the bytes after the end of the array: blanks, or bytes that do not belong there.
    fn take_rest_after_array(&mut self) -> Piece {
        let bytes = self.buffer.bytes().len();
        Piece::between_rows(self.buffer.take(bytes), self.number)
    }
}

impl TextRows for JsonRows {
    fn format(&self) -> Format {
        match self.layout {
            Layout::Lines => Format::JsonLines(self.form),
            Layout::Array => Format::JsonArray(self.form),
        }
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next_piece(&mut self) -> io::Result<Option<Piece>> {
        loop {
            if self.buffer.bytes().is_empty() && !self.buffer.is_at_end() {
                self.buffer.fill()?;
            }
            let bytes = self.buffer.bytes();
            let is_whole = self.buffer.is_at_end();
            if bytes.is_empty() {
                return match self.at {
                    Section::Entries | Section::Beginning if self.layout == Layout::Array => {
                        self.at = Section::End;
                        let reason = "the array is not closed: the file is cut off";
                        Ok(Some(Piece::fault(Vec::new(), self.number, reason)))
                    }
                    _ => Ok(None),
                };
            }
            match self.at {
                Section::End => return Ok(Some(self.take_rest_after_array())),
                Section::OverlongEntry => return self.take_overlong_entry().map(Some),
                Section::Beginning | Section::Entries => {}
            }
            let has_begun = self.at == Section::Entries;
            match next_extent(bytes, is_whole, self.layout, has_begun) {
                Extent::Between(bytes) => {
                    let is_bracket = self.buffer.bytes()[0] == b'[';
                    if self.layout == Layout::Lines || is_bracket {
                        self.at = Section::Entries;
                    }
                    return Ok(Some(self.take_between_entries(bytes)));
                }
                Extent::Entry(bytes) => return Ok(Some(self.take_entry(bytes))),
                Extent::End(bytes) => {
                    self.at = Section::End;
                    return Ok(Some(self.take_between_entries(bytes)));
                }
                Extent::Unfinished if bytes.len() >= MAX_ROW_BYTES => {
                    return self.take_overlong_entry().map(Some);
                }
                Extent::Unfinished => self.buffer.fill()?,
            }
        }
    }

    fn cells(&self, piece: &Piece) -> Vec<Cell> {
        let Content::Row(spans) = &piece.content else {
            return Vec::new();
        };
        let text = String::from_utf8_lossy(&piece.raw);
        let cells = spans.iter().map(|span| match span.end {
            0 => Cell::Missing,
            end => cell_from_json(&text[span.start..end]),
        });
        cells.collect()
    }

    fn edit_row(
        &self,
        piece: &Piece,
        edits: Vec<Edit>,
        shapes: &[Shape],
        refused: &mut Vec<Refusal>,
    ) -> EditedRow {
        let name = |column: usize| self.columns[column].name.clone();
        edit_row(piece, name, edits, shapes, refused)
    }
}
