//! Tables in Parquet files, which store columns of values in groups of rows.
//!
//! Only this folder uses the `parquet` crate.

mod batch;
mod leaf;
mod rows;
mod times;
mod write;

pub(crate) use rows::ParquetRows;
pub(crate) use write::write;
