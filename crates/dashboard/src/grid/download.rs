//! The filtered rows as a file: CSV, JSON or Parquet, whole values, in the order of the table. It is written while it is
//! read, so its length does not matter.

use std::io::{self, Write};
use std::sync::Arc;

use hyper::body::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::{Map, Value};
use tokio::sync::mpsc::Sender;
use webfill_table::{Cell, TableReader};

use super::building::text_of;
use super::files::Files;
use super::listing::{Filter, Sieve};
use super::{Column, Grid, Kind, unread};

/// A piece of the answer.
const PIECE_BYTES: usize = 64 << 10;

/// The most rows and bytes in a row group of a Parquet file. A row group is held in memory until it is written.
const GROUP_ROWS: usize = 20_000;
const GROUP_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Csv,
    Json,
    Parquet,
}

impl Format {
    pub(crate) fn of_name(name: &str) -> Option<Format> {
        match name {
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "parquet" => Some(Format::Parquet),
            _ => None,
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Format::Csv => "text/csv; charset=utf-8",
            Format::Json => "application/json",
            Format::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// The table of a download: opened before anything is sent, so that a fault is an answer of its own.
pub(crate) struct Download {
    grid: Grid,
    table: TableReader,
    sieve: Sieve,
    format: Format,
}

impl Download {
    pub(crate) fn open(
        files: &Files,
        grid: Grid,
        filter: &Filter,
        format: Format,
    ) -> Result<Download, String> {
        let table = webfill_table::open(files.shown()).map_err(|error| error.to_string())?;
        // The file that is open is the one of the index, or the whole is refused.
        if files.signature() != grid.meta.signature {
            return Err(String::from(
                "the table has changed: reload the page and try again",
            ));
        }
        let sieve = Sieve::of(&grid, filter).map_err(|error| unread(&error))?;
        Ok(Download {
            grid,
            table,
            sieve,
            format,
        })
    }

    /// Writes all rows. The receiver may go away at any time.
    pub(crate) fn send(mut self, pieces: Sender<Bytes>) {
        let out = Pieces {
            to: pieces.clone(),
            kept: Vec::with_capacity(PIECE_BYTES),
        };
        let columns = self.grid.meta.columns.clone();
        let written = match self.format {
            Format::Csv => CsvRows::new(out, &columns).and_then(|rows| self.write(rows)),
            Format::Json => self.write(JsonRows::new(out, &columns)),
            Format::Parquet => ParquetRows::new(out, &columns).and_then(|rows| self.write(rows)),
        };
        let Err(error) = written else {
            return;
        };
        if error.kind() != io::ErrorKind::BrokenPipe {
            tracing::warn!(event = "download_failed", %error, "a table could not be sent to its end");
        }
        // A file that ends early must not look whole. Of the other formats nothing can be read then.
        if self.format == Format::Csv {
            let line = format!("\r\nwebfill: this file is incomplete: {error}\r\n");
            let _ = pieces.blocking_send(line.into());
        }
    }

    fn write(&mut self, mut to: impl Rows) -> io::Result<()> {
        let failed = |error: rusqlite::Error| io::Error::other(unread(&error));
        let sql = "SELECT states, sites FROM rows ORDER BY n";
        let mut select = self.grid.conn.prepare(sql).map_err(failed)?;
        let mut states = select.query(()).map_err(failed)?;
        while let Some(row) = self.table.next_row() {
            let row = match row {
                Ok(row) => row,
                Err(fault) if fault.is_end => return Err(io::Error::other(fault.reason)),
                Err(_) => continue,
            };
            let Some(of_row) = states.next().map_err(failed)? else {
                return Err(io::Error::other("the table has changed"));
            };
            let sites = of_row.get_ref(1).map_err(failed)?;
            let bytes = of_row.get_ref(0).map_err(failed)?;
            let sites = sites.as_str().map_err(io::Error::other)?;
            if self
                .sieve
                .takes(bytes.as_blob().map_err(io::Error::other)?, sites)
            {
                to.take(&row.cells)?;
            }
        }
        to.finish()
    }
}

trait Rows {
    fn take(&mut self, cells: &[Cell]) -> io::Result<()>;
    fn finish(self) -> io::Result<()>;
}

/// Sends what is written in pieces.
struct Pieces {
    to: Sender<Bytes>,
    kept: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.kept.extend_from_slice(bytes);
        if self.kept.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.kept));
        let sent = self.to.blocking_send(piece);
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

struct CsvRows(csv::Writer<Pieces>);

impl CsvRows {
    fn new(out: Pieces, columns: &[Column]) -> io::Result<CsvRows> {
        let mut rows = CsvRows(csv::Writer::from_writer(out));
        let heads = columns.iter().map(|column| safe(column.name.clone()));
        rows.0.write_record(heads)?;
        Ok(rows)
    }
}

impl Rows for CsvRows {
    fn take(&mut self, cells: &[Cell]) -> io::Result<()> {
        let texts = cells
            .iter()
            .map(|cell| safe(text_of(cell).unwrap_or_default()));
        Ok(self.0.write_record(texts)?)
    }

    fn finish(self) -> io::Result<()> {
        let mut out = self.0.into_inner().map_err(|error| error.into_error())?;
        out.flush()
    }
}

/// People open it in a spreadsheet: no text may be a formula.
fn safe(text: String) -> String {
    match webfill_table::unlike_a_formula(&text) {
        std::borrow::Cow::Owned(other) => other,
        std::borrow::Cow::Borrowed(_) => text,
    }
}

struct JsonRows {
    out: Pieces,
    names: Vec<String>,
    has_rows: bool,
}

impl JsonRows {
    fn new(out: Pieces, columns: &[Column]) -> JsonRows {
        JsonRows {
            out,
            names: columns.iter().map(|column| column.name.clone()).collect(),
            has_rows: false,
        }
    }
}

impl Rows for JsonRows {
    fn take(&mut self, cells: &[Cell]) -> io::Result<()> {
        let members = self.names.iter().zip(cells);
        let object: Map<String, Value> = members
            .map(|(name, cell)| (name.clone(), json_of(cell)))
            .collect();
        let begin = if self.has_rows { ",\n" } else { "[\n" };
        self.has_rows = true;
        write!(self.out, "{begin}{}", Value::Object(object))
    }

    fn finish(mut self) -> io::Result<()> {
        let end = if self.has_rows { "\n]\n" } else { "[]\n" };
        self.out.write_all(end.as_bytes())?;
        self.out.flush()
    }
}

fn json_of(cell: &Cell) -> Value {
    match cell {
        Cell::Missing => Value::Null,
        Cell::Text(text) | Cell::Date(text) => text.as_str().into(),
        Cell::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
        Cell::Bool(is_true) => (*is_true).into(),
        Cell::List(cells) => cells.iter().map(json_of).collect(),
        Cell::Other(value) => value.clone(),
    }
}

struct ParquetRows {
    file: SerializedFileWriter<Pieces>,
    columns: Vec<(Kind, Vec<Option<String>>)>,
    rows: usize,
    bytes: usize,
}

impl ParquetRows {
    fn new(out: Pieces, columns: &[Column]) -> io::Result<ParquetRows> {
        let schema = Arc::new(schema(columns).map_err(io::Error::other)?);
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

impl Rows for ParquetRows {
    fn take(&mut self, cells: &[Cell]) -> io::Result<()> {
        const BESIDE: usize = 24;
        for (at, (_, texts)) in self.columns.iter_mut().enumerate() {
            let text = cells.get(at).and_then(text_of);
            self.bytes += BESIDE + text.as_ref().map_or(0, String::len);
            texts.push(text);
        }
        self.rows += 1;
        match self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.write_group()?;
        let mut out = self.file.into_inner().map_err(io::Error::other)?;
        out.flush()
    }
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let mut names: Vec<&str> = Vec::new();
    let mut fields = Vec::new();
    for column in columns {
        // Readers find columns by name, so of two with one name the first has it.
        let is_taken = names.contains(&column.name.as_str());
        let name = match is_taken {
            true => format!("{} ({})", column.name, names.len() + 1),
            false => column.name.clone(),
        };
        names.push(&column.name);
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
    group: &mut SerializedRowGroupWriter<'_, Pieces>,
    kind: Kind,
    texts: &[Option<String>],
) -> Result<(), ParquetError> {
    // What is no number in a column of numbers is blank: the kind is that of all others.
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
