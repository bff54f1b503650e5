//! Parquet: columns of values in groups of rows.
//!
//! Only this folder knows the crate `parquet`.

mod batch;
mod leaf;
mod rows;
mod times;
mod write;

pub(crate) use rows::ParquetRows;
pub(crate) use write::write;
