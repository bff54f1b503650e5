//! XLSX: one sheet of a workbook is read as the table.

mod cell;
mod hyperlinks;
mod package;
mod rewrite;
mod rows;
mod write;

pub(crate) use rows::SheetRows;
pub(crate) use write::write;
