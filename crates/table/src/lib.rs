//! Tables of users, with gaps (missing values) and links. This crate reads a table, infers its structure, and writes it
//! again with its gaps filled. It uses no network and no store. Memory does not grow with the table.
//!
//! | step | function |
//! |---|---|
//! | open a table and read its rows | [`open`], [`TableReader::next_row`] |
//! | scan all rows | [`Sample::read`] |
//! | find the id, the links, the fields to fill | [`infer_structure`] |
//! | write the table again, with other values in some cells | [`write_filled_table`], [`write_changed_table`] |
//!
//! **Formats.** CSV, TSV and similar formats with any of four delimiters, two quotes and two escapes, with or without
//! a header, in UTF-8, UTF-16 or windows-1252; JSON lines; a JSON array of objects. Each of them plain, or compressed
//! with gzip or zstd. Parquet with columns of single values and of lists. XLSX, where one sheet is the table. The
//! format is detected from the content ([`Format`]).
//!
//! **What is kept.** A row that gets no value stays byte for byte the same (inside the compression). So do the header,
//! empty lines, unusable rows, and in other rows all cells that get no value. A member that a JSON object lacks is
//! added after its last one.
//!
//! In Parquet files, schema, metadata and row groups are kept. A column of a row group that gets no value is stored as
//! it was. A column that gets values is written anew, in its type and compression. Two things are lost: the declared
//! sort order of the rows, and the bloom filters of columns that get values.
//!
//! In XLSX files, only the cells that get a value are changed in the sheet. All other parts of the file (other sheets,
//! styles, formulas, charts, pictures) are copied as they are stored. A text is written into its cell, not into the
//! shared texts. A new cell gets the style that most cells of its column have. A cell with a formula is never changed.
//! Formulas keep their stored results until a program recalculates them.
//!
//! **Unusable rows** have too many cells or only one, broken quotes, invalid characters or JSON, NUL bytes, or a cell
//! of more than 1 MiB. They are reported with their line ([`RowFault`]) and written unchanged. A row may lack its last
//! cells ([`Row::lacking`]); values are then appended to it.
//!
//! **After a crash** the output is either complete or absent ([`write_filled_table`]).

#![warn(missing_docs)]

mod cell;
mod delimited;
mod error;
mod format;
mod formula;
mod gaps;
mod json;
mod kind;
mod parquet;
mod reader;
mod sample;
mod shape;
mod sheet;
mod text;
mod understand;
mod value;
mod write;

pub use cell::{Cell, Column, Row};
pub use error::{Refusal, RowFault, TableError};
pub use format::{Compression, Dialect, Encoding, Escape, Format, TextForm};
pub use formula::escape_formula;
pub use gaps::{GapMarkers, GapWords};
pub use kind::{Kind, to_utc};
pub use reader::{TableReader, open, open_sheet};
pub use sample::Sample;
pub use shape::Shape;
pub use text::{Utf16Reader, decode_file_text};
pub use understand::{ColumnChoices, Field, Reasons, Understanding, UrlColumn, infer_structure};
pub use write::{ChangeCell, FillGap, WrittenTable, write_changed_table, write_filled_table};
