//! Text tables: their bytes, decompressed and decoded, in pieces that together are the whole text.
//!
//! All texts are processed in an encoding that is a superset of ASCII. UTF-8 and legacy encodings are left as they are.
//! UTF-16 becomes UTF-8; an unpaired surrogate (half of a character) becomes three bytes, so that nothing is lost. A
//! row is decoded when its cells are read. Unchanged parts are written back as they were read.

mod buffer;
mod encoding;
mod sink;
mod source;
mod utf16;

pub(crate) use buffer::Buffer;
pub use encoding::decode_file_text;
pub(crate) use encoding::{decode, encode, guess_legacy, is_valid};
pub(crate) use sink::TextSink;
pub(crate) use source::TextSource;
pub use utf16::Utf16Reader;

use crate::cell::{Cell, Column};
use crate::error::{Refusal, RowFault, beginning};
use crate::format::Format;
use crate::shape::Shape;

/// The longest row in bytes that is held in memory. Longer rows are reported as unusable.
pub(crate) const MAX_ROW_BYTES: usize = 16 << 20;

/// The longest cell in bytes that counts as a value.
pub(crate) const MAX_CELL_BYTES: usize = 1 << 20;

/// A piece of the text: a row, or the text between rows.
pub(crate) struct Piece {
    /// The bytes of the piece, with its line end.
    pub(crate) raw: Vec<u8>,
    /// The number of the line or entry where the piece begins, counted from 1.
    pub(crate) number: u64,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    /// A usable row, with the positions of its cells.
    Row(Vec<Span>),
    /// The beginning of an unusable row, and what is wrong with it.
    Fault(String),
    /// A header, an empty line, or the rest of an unusable row.
    Between,
}

/// The position of a cell in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the cell is in quotes. The span includes the quotes.
    pub(crate) is_quoted: bool,
    /// Whether any character of the cell is escaped.
    pub(crate) is_escaped: bool,
}

impl Piece {
    pub(crate) fn between_rows(raw: Vec<u8>, number: u64) -> Piece {
        Piece {
            raw,
            number,
            content: Content::Between,
        }
    }

    pub(crate) fn fault(raw: Vec<u8>, number: u64, reason: impl Into<String>) -> Piece {
        Piece {
            raw,
            number,
            content: Content::Fault(reason.into()),
        }
    }

    pub(crate) fn as_fault(&self) -> Option<RowFault> {
        let Content::Fault(reason) = &self.content else {
            return None;
        };
        Some(RowFault {
            number: self.number,
            reason: reason.clone(),
            beginning: beginning(&self.raw),
            is_end: false,
        })
    }
}

/// A new value for a cell of a row.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) column: usize,
    pub(crate) value: String,
}

/// A text table that is read piece by piece.
pub(crate) trait TextRows: Send {
    fn format(&self) -> Format;

    fn columns(&self) -> &[Column];

    /// The next piece; `None` at the end.
    fn next_piece(&mut self) -> std::io::Result<Option<Piece>>;

    /// The cells of a piece that is a row.
    fn cells(&self, piece: &Piece) -> Vec<Cell>;

    /// How many of the last cells a row with these cells lacks.
    fn count_lacking(&self, _: &[Span]) -> usize {
        0
    }

    /// Writes new values into some cells of a row. `edits` must be in the order of the columns. A value that does not
    /// fit is added to `refused`.
    fn edit_row(
        &self,
        piece: &Piece,
        edits: Vec<Edit>,
        shapes: &[Shape],
        refused: &mut Vec<Refusal>,
    ) -> EditedRow;
}

/// The text of a row with new values.
#[derive(Default)]
pub(crate) struct EditedRow {
    pub(crate) raw: Vec<u8>,
    /// How many cells got a new value.
    pub(crate) cells: u64,
}
