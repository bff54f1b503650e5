//! Writes an export as a Parquet file, one group of rows at a time. Only one group is in memory.
//!
//! Only this module and its submodules use the crate `parquet`.

mod cells;

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;

use super::columns::{Column, Kind};
use super::numbers::convert_to_kind;
use cells::Cells;

/// A group of rows ends after this many rows or bytes.
const GROUP_ROWS: usize = 50_000;
const GROUP_BYTES: usize = 16 << 20;

/// The size of a page of a column, which is the unit that readers read.
const PAGE_BYTES: usize = 256 << 10;

/// A Parquet file that is being written. It is unreadable until [`ParquetFile::finish`] has completed it.
pub struct ParquetFile<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<(Column, Cells)>,
    rows: usize,
    bytes: usize,
}

impl<W: Write + Send> ParquetFile<W> {
    pub fn new(columns: Vec<Column>, out: W) -> io::Result<ParquetFile<W>> {
        let schema = Arc::new(parquet_schema(&columns).map_err(into_io_error)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_data_page_size_limit(PAGE_BYTES)
            .set_created_by(concat!("webfill ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file =
            SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(into_io_error)?;
        let with_cells = |column: Column| {
            let cells = Cells::new(column.kind);
            (column, cells)
        };
        Ok(ParquetFile {
            file,
            columns: columns.into_iter().map(with_cells).collect(),
            rows: 0,
            bytes: 0,
        })
    }

    pub fn write_row(&mut self, row: &Value) -> io::Result<()> {
        for (column, cells) in &mut self.columns {
            let value = convert_to_kind(column.kind, column.value(row));
            self.bytes += cells
                .push(&value)
                .map_err(|kind| changed_kind_error(column, &kind))?;
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group().map_err(into_io_error)?;
        for (_, cells) in &mut self.columns {
            let writer = group.next_column().map_err(into_io_error)?;
            let writer = writer.expect("the schema has a column for each of ours");
            cells.write(writer).map_err(into_io_error)?;
        }
        group.close().map_err(into_io_error)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Writes the last group and the index of the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_group()?;
        self.file.close().map(drop).map_err(into_io_error)
    }
}

/// Makes the error for a value that does not have the kind of its column. The kinds were determined in a first pass,
/// but another process may have written to the store since.
fn changed_kind_error(column: &Column, found: &str) -> io::Error {
    io::Error::other(format!(
        "`{}` became {found} during the export: export again",
        column.name
    ))
}

/// Converts an error. An I/O error of the output is kept, because it may be a closed pipe.
fn into_io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}

fn parquet_schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let fields = columns
        .iter()
        .map(|column| field_type(column).map(Arc::new));
    Type::group_type_builder("webfill")
        .with_fields(fields.collect::<Result<_, _>>()?)
        .build()
}

/// The Parquet type of a column. Any value of the column may be missing.
fn field_type(column: &Column) -> Result<Type, ParquetError> {
    let name = column.name.as_str();
    let (physical, logical) = match column.kind {
        Kind::Integer | Kind::LargeInteger => (Physical::INT64, None),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Truth => (Physical::BOOLEAN, None),
        Kind::Text | Kind::Digits | Kind::LongDigits => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        Kind::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        Kind::Time => {
            let milliseconds_utc = LogicalType::timestamp(true, TimeUnit::MILLIS);
            (Physical::INT64, Some(milliseconds_utc))
        }
        Kind::Texts => return list_type(name),
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

/// The Parquet type of a list of texts, as the format defines it. The texts within a list are never missing.
fn list_type(name: &str) -> Result<Type, ParquetError> {
    let element = Type::primitive_type_builder("element", Physical::BYTE_ARRAY)
        .with_logical_type(Some(LogicalType::String))
        .with_repetition(Repetition::REQUIRED)
        .build()?;
    let items = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    Type::group_type_builder(name)
        .with_logical_type(Some(LogicalType::List))
        .with_repetition(Repetition::OPTIONAL)
        .with_fields(vec![Arc::new(items)])
        .build()
}
