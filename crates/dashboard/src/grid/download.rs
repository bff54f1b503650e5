//! The filtered rows as a file: CSV, JSON, JSON lines or Parquet, whole values, in the order of the table or of ids. It
//! is written while it is read, so its length does not matter.

use std::collections::{HashMap, HashSet};
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
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use webfill_store::{Browse, Place, has_value};
use webfill_table::{Cell, TableReader};

use super::building::{merge_kind, text_of};
use super::files::Files;
use super::listing::{Filter, IndexFilter};
use super::{Column, Grid, Kind, index_error, records};

/// A piece of the answer.
const PIECE_BYTES: usize = 64 << 10;

/// The most rows and bytes in a row group of a Parquet file. A row group is held in memory until it is written.
const GROUP_ROWS: usize = 20_000;
const GROUP_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Csv,
    Json,
    JsonLines,
    Parquet,
}

impl Format {
    pub(crate) fn from_name(name: &str) -> Option<Format> {
        match name {
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "jsonl" => Some(Format::JsonLines),
            "parquet" => Some(Format::Parquet),
            _ => None,
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Format::Csv => "text/csv; charset=utf-8",
            Format::Json => "application/json",
            Format::JsonLines => "application/x-ndjson; charset=utf-8",
            Format::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// The table of a download: opened before anything is sent, so that a fault is an answer of its own.
pub(crate) struct Download {
    grid: Grid,
    table: TableReader,
    sieve: IndexFilter,
    format: Format,
}

impl Download {
    pub(crate) fn open(
        files: &Files,
        grid: Grid,
        filter: &Filter,
        format: Format,
    ) -> Result<Download, String> {
        let table = webfill_table::open(files.shown_table()).map_err(|error| error.to_string())?;
        // If the table has changed since its index was made, the download is refused as a whole.
        if files.signature() != grid.meta.signature {
            return Err(String::from(
                "the table has changed: reload the page and try again",
            ));
        }
        let sieve = IndexFilter::new(&grid, filter).map_err(|error| index_error(&error))?;
        Ok(Download {
            grid,
            table,
            sieve,
            format,
        })
    }

    /// Writes all rows. The receiver may go away at any time.
    pub(crate) fn send(mut self, pieces: Sender<Bytes>) {
        let columns = self.grid.meta.columns.clone();
        send(self.format, &columns, pieces, |rows| {
            self.write_all_rows(rows)
        });
    }

    fn write_all_rows(&mut self, to: &mut dyn RowWriter) -> io::Result<()> {
        let failed = |error: rusqlite::Error| io::Error::other(index_error(&error));
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
                .matches(bytes.as_blob().map_err(io::Error::other)?, sites)
            {
                to.write_row(&row.cells)?;
            }
        }
        Ok(())
    }
}

/// The records of a download.
pub(crate) struct RecordDownload {
    pub(crate) browse: Arc<dyn Browse>,
    pub(crate) filter: records::Filter,
    pub(crate) format: Format,
    /// The runtime on which the store is read.
    pub(crate) handle: Handle,
}

/// The number of records that are read at a time.
const STEP: usize = 500;

/// The most columns of records. More than these come from hostile data, or do not form a table.
const MOST_COLUMNS: usize = 5_000;

impl RecordDownload {
    /// Reads the records twice: first for the names and kinds of their columns, then for their values. Fields that come
    /// meanwhile are left out.
    pub(crate) fn send(self, pieces: Sender<Bytes>) {
        let mut found = Found::default();
        let read = self.each(|document| found.take(document));
        let columns = found.columns();
        send(self.format, &columns, pieces, |rows| {
            read?;
            self.each(|document| rows.write_row(&found.cells(document)))
        });
    }

    fn each(&self, mut take: impl FnMut(&Value) -> io::Result<()>) -> io::Result<()> {
        let mut after: Option<Place> = None;
        loop {
            let page = records::page(self.browse.as_ref(), &self.filter, after, STEP, false);
            let page = self.handle.block_on(page).map_err(io::Error::other)?;
            for row in &page.rows {
                take(&row.record.record.document)?;
            }
            after = match page.next {
                None => return Ok(()),
                Some(next) => Some(next.parse().map_err(io::Error::other)?),
            };
        }
    }
}

/// The fields of the records read so far, in order of their first appearance.
#[derive(Default)]
struct Found {
    names: Vec<String>,
    places: HashMap<String, usize>,
    kinds: Vec<Kind>,
}

impl Found {
    fn take(&mut self, document: &Value) -> io::Result<()> {
        for name in records::names_of(document) {
            let place = match self.places.get(name) {
                Some(place) => *place,
                None if self.names.len() >= MOST_COLUMNS => {
                    return Err(io::Error::other(
                        "the records have too many different fields",
                    ));
                }
                None => {
                    self.names.push(name.to_owned());
                    self.kinds.push(Kind::Integer);
                    self.places.insert(name.to_owned(), self.names.len() - 1);
                    self.names.len() - 1
                }
            };
            let value = &document["fields"][name];
            self.kinds[place] = match records::cell_of(value) {
                Cell::Missing => continue,
                Cell::Number(text) => merge_kind(self.kinds[place], &text),
                _ if !has_value(value) => continue,
                _ => Kind::Text,
            };
        }
        Ok(())
    }

    /// The id comes first. A field of that name is named as in an export.
    fn columns(&self) -> Vec<Column> {
        const ID: &str = "id";
        let column = |name: String, kind| Column {
            name,
            kind,
            is_field: true,
        };
        let mut columns = vec![column(ID.to_owned(), Kind::Text)];
        for (name, kind) in self.names.iter().zip(&self.kinds) {
            let name = match name == ID || name.starts_with("fields.") {
                true => format!("fields.{name}"),
                false => name.clone(),
            };
            columns.push(column(name, *kind));
        }
        columns
    }

    fn cells(&self, document: &Value) -> Vec<Cell> {
        let id = records::cell_of(&document["record_id"]);
        let fields = self.names.iter();
        let fields = fields.map(|name| records::cell_of(&document["fields"][name]));
        std::iter::once(id).chain(fields).collect()
    }
}

/// Sends all rows that `write` writes.
fn send(
    format: Format,
    columns: &[Column],
    pieces: Sender<Bytes>,
    write: impl FnOnce(&mut dyn RowWriter) -> io::Result<()>,
) {
    let out = ChunkWriter {
        to: pieces.clone(),
        kept: Vec::with_capacity(PIECE_BYTES),
    };
    let rows: io::Result<Box<dyn RowWriter>> = match format {
        Format::Csv => CsvRows::new(out, columns).map(|rows| Box::new(rows) as Box<dyn RowWriter>),
        Format::Json => Ok(Box::new(JsonRows::new(out, columns, false))),
        Format::JsonLines => Ok(Box::new(JsonRows::new(out, columns, true))),
        Format::Parquet => {
            ParquetRows::new(out, columns).map(|rows| Box::new(rows) as Box<dyn RowWriter>)
        }
    };
    let written = rows.and_then(|mut rows| {
        write(rows.as_mut())?;
        rows.finish()
    });
    let Err(error) = written else {
        return;
    };
    if error.kind() != io::ErrorKind::BrokenPipe {
        tracing::warn!(event = "download_failed", %error, "a table could not be sent to its end");
    }
    // A file that ends early must not look whole. In the other formats, such a file cannot be read at all.
    if matches!(format, Format::Csv | Format::JsonLines) {
        let line = format!("\r\nwebfill: this file is incomplete: {error}\r\n");
        let _ = pieces.blocking_send(line.into());
    }
}

trait RowWriter {
    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()>;
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Collects what is written, and sends it in pieces.
struct ChunkWriter {
    to: Sender<Bytes>,
    kept: Vec<u8>,
}

impl Write for ChunkWriter {
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

struct CsvRows(csv::Writer<ChunkWriter>);

impl CsvRows {
    fn new(out: ChunkWriter, columns: &[Column]) -> io::Result<CsvRows> {
        let mut rows = CsvRows(csv::Writer::from_writer(out));
        let heads = columns
            .iter()
            .map(|column| escape_cell(column.name.clone()));
        rows.0.write_record(heads)?;
        Ok(rows)
    }
}

impl RowWriter for CsvRows {
    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()> {
        let texts = cells
            .iter()
            .map(|cell| escape_cell(text_of(cell).unwrap_or_default()));
        Ok(self.0.write_record(texts)?)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut out = self.0.into_inner().map_err(|error| error.into_error())?;
        out.flush()
    }
}

/// People open it in a spreadsheet: no text may be a formula.
fn escape_cell(text: String) -> String {
    match webfill_table::escape_formula(&text) {
        std::borrow::Cow::Owned(other) => other,
        std::borrow::Cow::Borrowed(_) => text,
    }
}

/// Rows as JSON: an array, or one line for each row.
struct JsonRows {
    out: ChunkWriter,
    names: Vec<String>,
    is_lines: bool,
    has_rows: bool,
}

impl JsonRows {
    fn new(out: ChunkWriter, columns: &[Column], is_lines: bool) -> JsonRows {
        JsonRows {
            out,
            names: unique_names(columns),
            is_lines,
            has_rows: false,
        }
    }
}

impl RowWriter for JsonRows {
    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()> {
        let members = self.names.iter().zip(cells);
        let object: Map<String, Value> = members
            .map(|(name, cell)| (name.clone(), json_of(cell)))
            .collect();
        let object = Value::Object(object);
        if self.is_lines {
            return writeln!(self.out, "{object}");
        }
        let begin = if self.has_rows { ",\n" } else { "[\n" };
        self.has_rows = true;
        write!(self.out, "{begin}{object}")
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let end = match (self.is_lines, self.has_rows) {
            (true, _) => "",
            (false, true) => "\n]\n",
            (false, false) => "[]\n",
        };
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
    file: SerializedFileWriter<ChunkWriter>,
    columns: Vec<(Kind, Vec<Option<String>>)>,
    rows: usize,
    bytes: usize,
}

impl ParquetRows {
    fn new(out: ChunkWriter, columns: &[Column]) -> io::Result<ParquetRows> {
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

impl RowWriter for ParquetRows {
    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()> {
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

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_group()?;
        let mut out = self.file.into_inner().map_err(io::Error::other)?;
        out.flush()
    }
}

/// Distinct names by which readers find columns. The first of several columns with the same name keeps it, and the
/// others get a number.
fn unique_names(columns: &[Column]) -> Vec<String> {
    let own: HashSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut names = Vec::with_capacity(columns.len());
    for column in columns {
        let number = numbers.entry(&column.name).or_insert(1);
        let mut name = column.name.clone();
        while taken.contains(&name) || (*number > 1 && own.contains(name.as_str())) {
            *number += 1;
            name = format!("{} ({number})", column.name);
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
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
    // All values of the column were numbers when its kind was determined. A value that is none, such as white space,
    // stays blank.
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
