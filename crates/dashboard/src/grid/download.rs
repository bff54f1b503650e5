//! The filtered rows as a file: CSV, JSON, JSON lines or Parquet. It has whole values, in the order of the table or of
//! record ids. It is sent while it is written, so its length does not matter.

mod csv_rows;
mod json_rows;
mod parquet_rows;
mod row_writer;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use webfill_store::{Browse, Place, has_value};
use webfill_table::{Cell, TableReader};

use self::csv_rows::CsvRows;
use self::json_rows::JsonRows;
use self::parquet_rows::ParquetRows;
use self::row_writer::{ChunkWriter, RowWriter};
use super::building::merge_kind;
use super::files::Files;
use super::listing::{Filter, IndexFilter};
use super::{Column, Grid, Kind, index_error, record_cells, records};

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

/// An open table and its filter, ready to be downloaded. It is opened before the answer begins, so that an error can
/// still be shown as a page.
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
        // If the table has changed since its index was made, the download is refused.
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

    /// Writes all rows that match the filter. Ends early if the browser closes the connection.
    pub(crate) fn send(mut self, pieces: Sender<Bytes>) {
        let columns = self.grid.meta.columns.clone();
        write_file(self.format, &columns, pieces, |rows| {
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

/// A download of a dataset's records that match a filter.
pub(crate) struct RecordDownload {
    pub(crate) browse: Arc<dyn Browse>,
    pub(crate) filter: records::Filter,
    pub(crate) format: Format,
    /// The runtime to read the store in.
    pub(crate) handle: Handle,
}

/// How many records are read at a time.
const STEP: usize = 500;

/// How many columns a download may have. Records with more fields come from hostile data, or do not form a table.
const MOST_COLUMNS: usize = 5_000;

impl RecordDownload {
    /// Reads the records twice: first to find their columns, then to write their values. Fields that only the second
    /// pass finds are left out.
    pub(crate) fn send(self, pieces: Sender<Bytes>) {
        let mut found = Found::default();
        let read = self.for_each_document(|document| found.add_document(document));
        let columns = found.file_columns();
        write_file(self.format, &columns, pieces, |rows| {
            read?;
            self.for_each_document(|document| rows.write_row(&found.file_cells(document)))
        });
    }

    fn for_each_document(&self, mut take: impl FnMut(&Value) -> io::Result<()>) -> io::Result<()> {
        let mut after: Option<Place> = None;
        loop {
            let page = records::load_page(self.browse.as_ref(), &self.filter, after, STEP, false);
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

/// The fields that were found in records, in the order found.
#[derive(Default)]
struct Found {
    names: Vec<String>,
    places: HashMap<String, usize>,
    kinds: Vec<Kind>,
}

impl Found {
    fn add_document(&mut self, document: &Value) -> io::Result<()> {
        for name in record_cells::field_names(document) {
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
            self.kinds[place] = match record_cells::value_to_cell(value) {
                Cell::Missing => continue,
                Cell::Number(text) => merge_kind(self.kinds[place], &text),
                _ if !has_value(value) => continue,
                _ => Kind::Text,
            };
        }
        Ok(())
    }

    /// The columns of the file. The record's id comes first. A field that is also named `id` gets the name `fields.id`,
    /// as in an export.
    fn file_columns(&self) -> Vec<Column> {
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

    fn file_cells(&self, document: &Value) -> Vec<Cell> {
        let id = record_cells::value_to_cell(&document["record_id"]);
        let fields = self.names.iter();
        let fields = fields.map(|name| record_cells::value_to_cell(&document["fields"][name]));
        std::iter::once(id).chain(fields).collect()
    }
}

/// Writes a file in this format. `write` passes the rows to the writer.
fn write_file(
    format: Format,
    columns: &[Column],
    pieces: Sender<Bytes>,
    write: impl FnOnce(&mut dyn RowWriter) -> io::Result<()>,
) {
    let out = ChunkWriter::new(pieces.clone());
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
    // The reader must notice that the file is incomplete. A file in CSV or JSON lines looks complete wherever it ends,
    // so it gets a last line that says so. Incomplete files in other formats cannot be read anyway.
    if matches!(format, Format::Csv | Format::JsonLines) {
        let line = format!("\r\nwebfill: this file is incomplete: {error}\r\n");
        let _ = pieces.blocking_send(line.into());
    }
}
