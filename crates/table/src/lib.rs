//! Tables of people, with gaps and links: reads one, understands it, and writes it again with gaps filled. No network,
//! no store; the memory that is needed does not grow with the table.
//!
//! | step | function |
//! |---|---|
//! | open a table and read its rows | [`open`], [`TableReader::next_row`] |
//! | scan all rows | [`Sample::read`] |
//! | find the id, the links, the fields to fill | [`understand`] |
//! | write the table again, with other values in some cells | [`write_filled`], [`write_changed`] |
//!
//! **Formats.** CSV, TSV and their kin with any of four delimiters, two quotes and two escapes, with a header or without,
//! in UTF-8, UTF-16 or windows-1252; JSON lines; a JSON array of objects. All of them plain, as gzip or as zstd. Parquet
//! with single values and lists of them. XLSX, of which one sheet is the table. The form is found from the content ([`Format`]).
//!
//! **What is kept.** Each row into which no value is written is byte for byte that of the input (inside the
//! compression). So are the header, empty lines, rows that cannot be used, and in other rows all cells that get no
//! value. A member that a JSON object lacks is put behind its last one.
//!
//! Of Parquet, schema, metadata and groups of rows are kept, and each column of a group into which no value is written is
//! stored as it was. A column that gets values is written anew, in its type and compression. What is lost is the order by
//! which rows are said to be sorted, and the bloom filters of columns that get values.
//!
//! Of XLSX, only the cells that get a value are changed in the sheet; all other parts of the file (other sheets, styles,
//! formulas, charts, pictures) are copied as they are stored. A text is written into its cell and not among the shared
//! texts; a cell that was not there gets the style that most cells of its column have. A cell with a formula is never
//! changed. The values of formulas are those that were stored, until a program calculates them anew.
//!
//! **Rows that cannot be used** have too few or too many cells, broken quotes, invalid characters or JSON, NUL bytes, or a
//! cell of more than 1 MiB. They are reported with their line ([`RowFault`]) and written as they were.
//!
//! **After a crash** there is no output, or a whole one ([`write_filled`]).

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
pub use formula::unlike_a_formula;
pub use gaps::GapMarkers;
pub use kind::Kind;
pub use reader::{TableReader, open, open_sheet};
pub use sample::Sample;
pub use shape::Shape;
pub use understand::{Field, Reasons, Understanding, UrlColumn, Wishes, understand};
pub use write::{ChangeCell, FillGap, WrittenTable, write_changed, write_filled};
