//! Tables that are texts: their bytes, decompressed and decoded, as pieces that put together are the whole text.
//!
//! Inside, every text is bytes in which ASCII is ASCII. UTF-8 and windows-1252 are left as they are; UTF-16 becomes
//! UTF-8, in which a half of a pair that stands alone is written as three bytes, so that nothing is lost. A row is
//! decoded when its cells are asked for, and what is not changed is written back as it was read.

mod buffer;
mod encoding;
mod sink;
mod source;
mod utf16;

pub(crate) use buffer::Buffer;
pub(crate) use encoding::{decode, encode};
pub(crate) use sink::TextSink;
pub(crate) use source::TextSource;

use crate::cell::{Cell, Column};
use crate::error::{Refusal, RowFault, beginning};
use crate::format::Format;
use crate::shape::Shape;

/// The longest row that is held.
pub(crate) const MAX_ROW_BYTES: usize = 16 << 20;

/// The longest cell that is a value.
pub(crate) const MAX_CELL_BYTES: usize = 1 << 20;

/// A part of the text: a row, or what stands between rows.
pub(crate) struct Piece {
    /// The bytes, line end included.
    pub(crate) raw: Vec<u8>,
    /// The line or entry.
    pub(crate) number: u64,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    /// A row that can be used; where its cells are.
    Row(Vec<Span>),
    /// The beginning of a row that cannot be used, and why.
    Fault(String),
    /// A header, an empty line, the rest of a row that cannot be used.
    Between,
}

/// Where a cell is within its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Quotes are around it, and within the span.
    pub(crate) is_quoted: bool,
    /// Something in it is written with an escape.
    pub(crate) is_escaped: bool,
}

impl Piece {
    pub(crate) fn between(raw: Vec<u8>, number: u64) -> Piece {
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

/// A value for a cell of a row.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) column: usize,
    pub(crate) value: String,
}

/// A text that is read piece by piece.
pub(crate) trait TextRows: Send {
    fn format(&self) -> Format;

    fn columns(&self) -> &[Column];

    /// The next piece; `None` at the end.
    fn next_piece(&mut self) -> std::io::Result<Option<Piece>>;

    /// The cells of a piece that is a row.
    fn cells(&self, piece: &Piece) -> Vec<Cell>;

    /// The row with other values in some cells, which are in the order of the columns. What does not fit is refused.
    fn edited(
        &self,
        piece: &Piece,
        edits: Vec<Edit>,
        shapes: &[Shape],
        refused: &mut Vec<Refusal>,
    ) -> Edited;
}

/// A row with other values in it.
#[derive(Default)]
pub(crate) struct Edited {
    pub(crate) raw: Vec<u8>,
    /// How many cells have another value.
    pub(crate) cells: u64,
}
