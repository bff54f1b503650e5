//! CSV, TSV and similar formats: texts with a delimiter between cells, and perhaps quotes around them.

mod dialect;
mod edit;
mod header;
mod rows;
mod split;

pub(crate) use header::begins_with_header;
pub(crate) use rows::DelimitedRows;

use crate::format::{Dialect, Encoding};
use crate::text::{Span, decode};

/// The decoded texts of the cells of a row.
fn decode_cells<'a>(
    raw: &'a [u8],
    spans: &'a [Span],
    dialect: &'a Dialect,
    encoding: Encoding,
) -> impl Iterator<Item = String> + 'a {
    spans.iter().map(move |span| {
        let cell = decode(&raw[span.start..span.end], encoding);
        split::unquote_and_unescape(&cell, span, dialect)
    })
}
