//! Rows as Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use webfill_table::Cell;

use super::row_writer::{ChunkWriter, RowWriter, unique_names};
use crate::grid::building::cell_text;
use crate::grid::{Column, Kind};

/// How many rows and bytes a row group of a Parquet file has. A row group is kept in memory until it is written.
const GROUP_ROWS: usize = 20_000;
const GROUP_BYTES: usize = 8 << 20;

pub(super) struct ParquetRows {
    file: SerializedFileWriter<ChunkWriter>,
    columns: Vec<(Kind, Vec<Option<String>>)>,
    rows: usize,
    bytes: usize,
}

impl ParquetRows {
    pub(super) fn new(out: ChunkWriter, columns: &[Column]) -> io::Result<ParquetRows> {
        let schema = Arc::new(parquet_schema(columns).map_err(io::Error::other)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("webfill ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties));
        Ok(ParquetRows {
            file: file.map_err(io::Error::other)?,
            columns: columns
                .iter()
                .map(|column| (column.kind, Vec::new()))
                .collect(),
            rows: 0,
            bytes: 0,
        })
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        (self.rows, self.bytes) = (0, 0);
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.file.next_row_group()?;
            for (kind, texts) in &mut self.columns {
                write_column(&mut group, *kind, texts)?;
                texts.clear();
            }
            group.close().map(drop)
        };
        write().map_err(io::Error::other)
    }
}

impl RowWriter for ParquetRows {
    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()> {
        const BESIDE: usize = 24;
        for (at, (_, texts)) in self.columns.iter_mut().enumerate() {
            let text = cells.get(at).and_then(cell_text);
            self.bytes += BESIDE + text.as_ref().map_or(0, String::len);
            texts.push(text);
        }
        self.rows += 1;
        match self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_group()?;
        let mut out = self.file.into_inner().map_err(io::Error::other)?;
        out.flush()
    }
}

fn parquet_schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let mut fields = Vec::new();
    for (column, name) in columns.iter().zip(unique_names(columns)) {
        let (physical, logical) = match column.kind {
            Kind::Integer => (Physical::INT64, None),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
    }
    Type::group_type_builder("schema")
        .with_fields(fields)
        .build()
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, ChunkWriter>,
    kind: Kind,
    texts: &[Option<String>],
) -> Result<(), ParquetError> {
    // All values of such a column are numbers. A value that cannot be parsed, such as white space, is written as null.
    let of_number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
    let of_integer = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General(String::from("a column is missing")))?;
    match kind {
        Kind::Integer => {
            let values: Vec<Option<i64>> = texts.iter().map(of_integer).collect();
            write_values::<Int64Type>(&mut column, values)?;
        }
        Kind::Number => {
            let values: Vec<Option<f64>> = texts.iter().map(of_number).collect();
            write_values::<DoubleType>(&mut column, values)?;
        }
        Kind::Text => {
            let bytes = |text: &Option<String>| Some(ByteArray::from(text.as_deref()?));
            write_values::<ByteArrayType>(&mut column, texts.iter().map(bytes).collect())?;
        }
    }
    column.close()
}

fn write_values<T: parquet::data_type::DataType>(
    column: &mut parquet::file::writer::SerializedColumnWriter<'_>,
    values: Vec<Option<T::T>>,
) -> Result<(), ParquetError> {
    let defined: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column
        .typed::<T>()
        .write_batch(&values, Some(&defined), None)
        .map(drop)
}
