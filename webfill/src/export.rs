//! `webfill export`: writes the pages, records or changes of a store as JSON lines, CSV or Parquet, row by row.
//!
//! - JSON lines are the stored documents, unchanged.
//! - CSV and Parquet have [`columns`]: one for each key of a page or change; for records, one for each field that
//!   occurs in any record, as a value or as missing, which a first pass collects. `--sources` adds the sources of
//!   records and values.
//! - In CSV, texts are written unchanged, null as an empty cell, lists and objects as JSON. With `--spreadsheet`, a
//!   cell that a spreadsheet would run as a formula gets a leading apostrophe, because the text comes from foreign
//!   pages; without it, other programs read the original text. Numbers get the format that the field's numbers have in
//!   the user's table ([`numbers`]). With `--list-separator`, lists from pages are texts with that separator.
//! - Parquet keeps the types of values. Values of other types are written as JSON.
//! - With `--since` or `--follow`, pages are read starting from a cursor ([`changes`]).

mod cells;
mod changes;
pub mod columns;
mod csv;
mod numbers;
pub mod parquet;
mod rows;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};

use serde_json::Value;
use webfill_service::{ExitStatus, Fault, signals, terminal};
use webfill_store::{Cursor, ExportError, ExportFilter, Store, StoreUri, open_existing};

use crate::cli::{ExportFormat, ExportOptions, ExportWhat};
use crate::seeds::ListSeparator;
pub use cells::CellStyle;
use columns::Column;
use csv::CsvFile;
use parquet::ParquetFile;

/// Which data to write, and in what form.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportSelection {
    pub what: ExportWhat,
    pub format: ExportFormat,
    pub cells: CellStyle,
    /// Whether to add columns for the sources of records and values.
    pub sources: bool,
    /// If set, adds the id of the record that a row's page was fetched for, and these fields of that record.
    pub parent: Option<Vec<String>>,
    /// Whether to include rows that are gone from their lists, with the time since which they are gone.
    pub gone: bool,
    /// The separator between list entries in a cell; without it, lists are JSON.
    pub list_separator: Option<ListSeparator>,
    pub filter: ExportFilter,
}

/// Runs `webfill export`.
pub fn run(options: ExportOptions) -> Result<ExitStatus, Fault> {
    check_options(&options)?;
    let since = start_cursor(&options)?;
    let uri: StoreUri = options.store.parse().map_err(Fault::usage)?;
    let wanted = ExportSelection {
        what: options.what,
        format: options.format,
        cells: match options.spreadsheet {
            true => CellStyle::Spreadsheet,
            false => CellStyle::Plain,
        },
        sources: options.sources,
        parent: options.with_parent.clone(),
        gone: options.with_gone,
        list_separator: options.list_separator,
        filter: ExportFilter {
            app_id: options.app,
            crawl_id: options.crawl,
            dataset: options.dataset.map(|name| name.as_str().to_owned()),
            extractions: false,
            checks: false,
            parents: options.with_parent.is_some(),
        },
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Fault::error(format!("cannot start the export: {error}")))?;
    let exported = runtime.block_on(async {
        let store = open_existing(&uri).await?;
        // Create the file after opening the store, so that a mistyped store does not truncate the file.
        let out: Box<dyn Write + Send> = match &options.output {
            None => terminal::data_stdout(),
            Some(path) => Box::new(File::create(path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?),
        };
        match since {
            Some(since) => {
                changes::export(&*store, since, &wanted.filter, options.follow, out).await
            }
            None => {
                let ExportCounts { rows, left_out } = export(&*store, &wanted, out).await?;
                if rows == 0 && left_out == 0 {
                    report_empty_export(&wanted, &uri);
                }
                report_gone(left_out);
                Ok(())
            }
        }
    });
    match exported {
        Ok(()) => Ok(ExitStatus::Done),
        // If the reader has closed the pipe, as `head` does, this is no error.
        Err(ExportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitStatus::Done)
        }
        Err(error) => Err(Fault::error(error)),
    }
}

/// Reports how many rows were left out because they are gone from their lists.
fn report_gone(left_out: u64) {
    let records = match left_out {
        0 => return,
        1 => "1 row that is gone from its list is",
        _ => &format!("{left_out} rows that are gone from their lists are"),
    };
    webfill_service::say!("webfill: {records} left out; --with-gone exports gone rows, too");
}

/// Reports that nothing was exported, because the user may have mistyped the name of a dataset or crawl.
fn report_empty_export(wanted: &ExportSelection, uri: &StoreUri) {
    let filter = &wanted.filter;
    let named = [
        ("dataset", &filter.dataset),
        ("application", &filter.app_id),
        ("crawl", &filter.crawl_id),
    ];
    let named = named.map(|(what, name)| Some(format!("the {what} `{}`", name.as_ref()?)));
    let named: Vec<String> = named.into_iter().flatten().collect();
    if named.is_empty() {
        return;
    }
    let what = match wanted.what {
        ExportWhat::Records => "records",
        ExportWhat::Pages => "pages",
        ExportWhat::Changes => "changes",
    };
    webfill_service::say!("webfill: {uri} has no {what} of {}", named.join(" and "));
}

/// Refuses flags that cannot be combined.
fn check_options(options: &ExportOptions) -> Result<(), Fault> {
    let is_of_records = options.what == ExportWhat::Records;
    let refusal = if options.dataset.is_some() && !is_of_records {
        "--dataset is for records: pages and changes are of a crawl, which --app and --crawl name"
    } else if options.spreadsheet && options.format != ExportFormat::Csv {
        "--spreadsheet is for CSV files, add --format csv"
    } else if options.list_separator.is_some() && options.format != ExportFormat::Csv {
        "--list-separator is for CSV files, add --format csv: other files have lists of their own"
    } else if options.list_separator.is_some() && !is_of_records {
        "--list-separator is for records"
    } else if options.sources && !is_of_records {
        "--sources is for records: pages and changes have their URL already"
    } else if options.with_parent.is_some() && !is_of_records {
        "--with-parent is for records: only rows of pages have a parent"
    } else if options.with_gone && !is_of_records {
        "--with-gone is for records: only rows of pages are gone"
    } else if options.sources && options.format == ExportFormat::Jsonl {
        "--sources is for --format csv and parquet: JSON lines have the sources already"
    } else if options.format == ExportFormat::Parquet
        && options.output.is_none()
        && io::stdout().is_terminal()
    {
        "a Parquet file is not for a terminal: name a file, --output FILE"
    } else {
        return Ok(());
    };
    Err(Fault::usage(refusal))
}

/// The cursor to begin at; `None` for an export that uses no cursor.
fn start_cursor(options: &ExportOptions) -> Result<Option<Cursor>, Fault> {
    let since = match &options.since {
        Some(since) => since.parse().map_err(Fault::usage)?,
        None if options.follow => Cursor::start(),
        None => return Ok(None),
    };
    match options.what {
        ExportWhat::Pages => {}
        ExportWhat::Records => {
            return Err(Fault::usage(
                "--since and --follow are for pages: records have no order in which they changed",
            ));
        }
        ExportWhat::Changes => {
            return Err(Fault::usage(
                "--since and --follow are for pages: `webfill changes` has both for changes",
            ));
        }
    }
    if options.format != ExportFormat::Jsonl {
        return Err(Fault::usage(
            "--since and --follow write JSON lines: other files have no room for a cursor",
        ));
    }
    if options.follow {
        signals::install_handlers();
    }
    Ok(Some(since))
}

/// The numbers of written and omitted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportCounts {
    pub rows: u64,
    /// The number of omitted rows, which are gone from their lists.
    pub left_out: u64,
}

/// Writes the requested data to `out`.
pub async fn export(
    store: &dyn Store,
    wanted: &ExportSelection,
    out: impl Write + Send,
) -> Result<ExportCounts, ExportError> {
    match wanted.format {
        ExportFormat::Jsonl => export_json_lines(store, wanted, out).await,
        ExportFormat::Csv => {
            let columns = load_columns(store, wanted).await?;
            let lists = wanted.list_separator.clone();
            let mut file = CsvFile::new(columns, wanted.cells, lists, out)?;
            let rows = rows::for_each_row(store, wanted, &mut |row| file.write_row(&row)).await?;
            file.finish()?;
            Ok(rows)
        }
        ExportFormat::Parquet => {
            let columns = load_columns(store, wanted).await?;
            let mut file = ParquetFile::new(columns, out)?;
            let rows = rows::for_each_row(store, wanted, &mut |row| file.write_row(&row)).await?;
            file.finish()?;
            Ok(rows)
        }
    }
}

async fn export_json_lines(
    store: &dyn Store,
    wanted: &ExportSelection,
    out: impl Write + Send,
) -> Result<ExportCounts, ExportError> {
    let mut out = BufWriter::new(out);
    let mut write = |mut row: Value| {
        retain_parent_fields(&mut row, wanted);
        serde_json::to_writer(&mut out, &row)?;
        out.write_all(b"\n")
    };
    let rows = rows::for_each_row(store, wanted, &mut write).await?;
    out.flush()?;
    Ok(rows)
}

fn retain_parent_fields(row: &mut Value, wanted: &ExportSelection) {
    let names = wanted.parent.as_deref().unwrap_or_default();
    if let Some(Value::Object(fields)) = row.get_mut("parent_fields") {
        fields.retain(|name, _| names.contains(name));
    }
}

async fn load_columns(
    store: &dyn Store,
    wanted: &ExportSelection,
) -> Result<Vec<Column>, ExportError> {
    Ok(match wanted.what {
        ExportWhat::Records => {
            let fields = rows::load_fields(store, wanted).await?;
            let parent = rows::load_parent_fields(store, wanted).await?;
            columns::record_columns(&fields, wanted.sources, wanted.gone, parent.as_deref())
        }
        what => columns::fixed_columns(what),
    })
}
