//! `webfill export`: writes the pages or records of a store as JSON lines or CSV, row by row.
//!
//! - JSON lines are the stored documents, unchanged.
//! - CSV has a column for each key of a page; for records, a column for each field that some record
//!   has or misses, which a first pass collects. Texts are written as they are, null as an empty
//!   cell, lists and objects as JSON. With `--spreadsheet`, a cell that a spreadsheet would run as a
//!   formula gets a leading apostrophe, because the text comes from foreign pages; without it, other
//!   programs read back what the pages said.
//! - With `--since` or `--follow`, pages are read from a cursor on ([`changes`]).

mod cells;
mod changes;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::{Map, Value};
use webfill_startup::{ExitStatus, Fault, signals};
use webfill_store::{
    Cursor, ExportError, ExportFilter, ExportKind, Store, StoreUri, open_existing,
};

use crate::cli::{ExportFormat, ExportOptions, ExportWhat};
pub use cells::Cells;

/// The columns of pages. Other programs rely on them.
const PAGE_COLUMNS: [&str; 29] = [
    "_id",
    "app_id",
    "crawl_id",
    "url",
    "final_url",
    "site",
    "depth",
    "parent",
    "outcome",
    "status_code",
    "mapping",
    "mapping_version",
    "fields",
    "links",
    "content_type",
    "bytes",
    "content_hash",
    "started_at",
    "elapsed_ms",
    "attempts",
    "worker",
    "attrs",
    "tries",
    "headers",
    "document",
    "body",
    "template",
    "records",
    "alternatives",
];

/// The columns of records beside those of their fields.
const RECORD_COLUMNS: [&str; 4] = ["id", "missing", "resolved_at", "dataset"];

/// Runs the command.
pub fn run(options: ExportOptions) -> Result<ExitStatus, Fault> {
    check_dataset(&options)?;
    let since = begin(&options)?;
    let cells = cells(&options)?;
    let uri: StoreUri = options.store.parse().map_err(Fault::usage)?;
    let kind = match options.what {
        ExportWhat::Pages => ExportKind::Pages,
        ExportWhat::Records => ExportKind::Records,
    };
    let filter = ExportFilter {
        app_id: options.app,
        crawl_id: options.crawl,
        dataset: options.dataset.map(|name| name.as_str().to_owned()),
        extractions: false,
        looks: false,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Fault::error(format!("cannot start the export: {error}")))?;
    let exported = runtime.block_on(async {
        let store = open_existing(&uri).await?;
        // Created after the store was opened, so that a wrong store does not truncate the file.
        let out: Box<dyn Write + Send> = match &options.output {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(File::create(path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?),
        };
        match since {
            Some(since) => changes::export(&*store, since, &filter, options.follow, out).await,
            None => export(&*store, kind, options.format, cells, &filter, out)
                .await
                .map(drop),
        }
    });
    match exported {
        Ok(()) => Ok(ExitStatus::Done),
        // The reader has closed the pipe, as `head` does.
        Err(ExportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitStatus::Done)
        }
        Err(error) => Err(Fault::error(error)),
    }
}

fn cells(options: &ExportOptions) -> Result<Cells, Fault> {
    match (options.spreadsheet, options.format) {
        (false, _) => Ok(Cells::Plain),
        (true, ExportFormat::Csv) => Ok(Cells::Spreadsheet),
        (true, ExportFormat::Jsonl) => Err(Fault::usage(
            "--spreadsheet is for CSV files, add --format csv",
        )),
    }
}

/// The cursor to begin at; `None` for an export that is not from a cursor on.
fn begin(options: &ExportOptions) -> Result<Option<Cursor>, Fault> {
    let since = match &options.since {
        Some(since) => since.parse().map_err(Fault::usage)?,
        None if options.follow => Cursor::start(),
        None => return Ok(None),
    };
    if options.what != ExportWhat::Pages {
        return Err(Fault::usage(
            "--since and --follow are for pages: records have no order in which they changed",
        ));
    }
    if options.format != ExportFormat::Jsonl {
        return Err(Fault::usage(
            "--since and --follow write JSON lines: a CSV file has no room for a cursor",
        ));
    }
    if options.follow {
        signals::install();
    }
    Ok(Some(since))
}

/// Refuses a dataset of pages, which have none.
fn check_dataset(options: &ExportOptions) -> Result<(), Fault> {
    if options.dataset.is_some() && options.what == ExportWhat::Pages {
        return Err(Fault::usage(
            "--dataset is for records: pages are of a crawl, which --app and --crawl name",
        ));
    }
    Ok(())
}

/// Writes the rows that match the filter to `out`; returns their number.
pub async fn export(
    store: &dyn Store,
    kind: ExportKind,
    format: ExportFormat,
    cells: Cells,
    filter: &ExportFilter,
    out: impl Write + Send,
) -> Result<u64, ExportError> {
    match format {
        ExportFormat::Jsonl => export_json_lines(store, kind, filter, out).await,
        ExportFormat::Csv => export_csv(store, kind, cells, filter, out).await,
    }
}

async fn export_json_lines(
    store: &dyn Store,
    kind: ExportKind,
    filter: &ExportFilter,
    out: impl Write + Send,
) -> Result<u64, ExportError> {
    let mut out = BufWriter::new(out);
    let mut write = |row: Value| {
        serde_json::to_writer(&mut out, &row)?;
        out.write_all(b"\n")
    };
    let rows = store.export(kind, filter, &mut write).await?;
    out.flush()?;
    Ok(rows)
}

async fn export_csv(
    store: &dyn Store,
    kind: ExportKind,
    cells: Cells,
    filter: &ExportFilter,
    out: impl Write + Send,
) -> Result<u64, ExportError> {
    let fields = match kind {
        ExportKind::Pages => Vec::new(),
        ExportKind::Records => field_names(store, filter).await?,
    };
    let mut out = csv::Writer::from_writer(out);
    match kind {
        ExportKind::Pages => out.write_record(PAGE_COLUMNS),
        ExportKind::Records => {
            let header = record_header(cells, &fields);
            out.write_record(header.iter().map(|name| name.as_bytes()))
        }
    }
    .map_err(io::Error::other)?;
    let mut write = |row: Value| {
        match kind {
            ExportKind::Pages => write_page(&mut out, cells, &row),
            ExportKind::Records => write_record(&mut out, cells, &row, &fields),
        }
        .map_err(into_io_error)
    };
    let rows = store.export(kind, filter, &mut write).await?;
    out.flush()?;
    Ok(rows)
}

/// The fields that records have or miss, in order of appearance.
async fn field_names(store: &dyn Store, filter: &ExportFilter) -> Result<Vec<String>, ExportError> {
    let mut names = Vec::new();
    let mut known = HashSet::new();
    let mut note = |record: Value| {
        let fields = record["fields"].as_object().map(Map::keys);
        let missing = record["missing"].as_array().map(Vec::as_slice);
        let missing = missing.unwrap_or_default().iter().filter_map(Value::as_str);
        for name in fields
            .into_iter()
            .flatten()
            .map(String::as_str)
            .chain(missing)
        {
            if !known.contains(name) {
                known.insert(name.to_owned());
                names.push(name.to_owned());
            }
        }
        Ok(())
    };
    store.export(ExportKind::Records, filter, &mut note).await?;
    Ok(names)
}

/// The header. A field with the name of another column gets the prefix `fields.`.
fn record_header(cells: Cells, fields: &[String]) -> Vec<Cow<'_, str>> {
    let [id, missing, resolved_at, dataset] = RECORD_COLUMNS.map(Cow::Borrowed);
    let mut header = vec![id];
    header.extend(
        fields
            .iter()
            .map(|name| match RECORD_COLUMNS.contains(&name.as_str()) {
                true => Cow::Owned(format!("fields.{name}")),
                false => cells.text(name),
            }),
    );
    header.extend([missing, resolved_at, dataset]);
    header
}

fn write_page<W: Write>(out: &mut csv::Writer<W>, cells: Cells, page: &Value) -> csv::Result<()> {
    for column in PAGE_COLUMNS {
        out.write_field(cells.of(&page[column]).as_bytes())?;
    }
    out.write_record(None::<&[u8]>)
}

fn write_record<W: Write>(
    out: &mut csv::Writer<W>,
    cells: Cells,
    record: &Value,
    fields: &[String],
) -> csv::Result<()> {
    // Of a database that is not brought up to date yet, the key is the id.
    let id = record.get("record_id").unwrap_or(&record["_id"]);
    out.write_field(cells.of(id).as_bytes())?;
    for name in fields {
        out.write_field(cells.of(&record["fields"][name]).as_bytes())?;
    }
    out.write_field(cells.of(&record["missing"]).as_bytes())?;
    out.write_field(cells.of(&record["resolved_at"]).as_bytes())?;
    out.write_field(cells.of(&record["dataset"]).as_bytes())?;
    out.write_record(None::<&[u8]>)
}

/// Keeps the kind of the error, which tells a closed pipe from other errors.
fn into_io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use webfill_store::{Crawl, CrawlId, CrawlState, Page, Record, Save, open};
    use webfill_wire::Outcome;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn page(url: &str, fields: Value) -> Page {
        let crawl = CrawlId::new("app", "c1");
        Page {
            status_code: Some(200),
            mapping: Some(String::from("people")),
            fields: object(fields),
            links: vec![String::from("https://example.com/next")],
            bytes: 7,
            elapsed_ms: 1,
            worker: String::from("w"),
            ..Page::new(&crawl, url, "example.com", Outcome::Ok)
        }
    }

    /// Exports from a store with one page and two records, of which the page fills one.
    async fn exported(kind: ExportKind, format: ExportFormat) -> String {
        exported_for(Cells::Plain, kind, format).await
    }

    async fn exported_for(cells: Cells, kind: ExportKind, format: ExportFormat) -> String {
        let folder = tempfile::tempdir().unwrap();
        let uri = StoreUri::Sqlite(folder.path().join("webfill.db"));
        let store = open(&uri, None).await.unwrap().store;
        let id = CrawlId::new("app", "c1");
        let crawl = Crawl {
            id: id.clone(),
            request: json!({}),
            state: CrawlState::Running,
            counts: Map::new(),
            started_at_ms: 0,
            updated_at_ms: 0,
            finished_at_ms: None,
        };
        store.put_crawl(crawl).await.unwrap();
        let record = |id: &str, fields: Value, want: &[&str]| Record {
            dataset: "people".parse().unwrap(),
            id: id.to_owned(),
            fields: object(fields),
            want: want.iter().map(|name| (*name).to_owned()).collect(),
        };
        let records = vec![
            record("1", json!({"name": "Ada", "city": null}), &["city"]),
            record(
                "2",
                json!({"id": "=1+1", "tel": "+49 30", "low": "-5"}),
                &["born"],
            ),
        ];
        for put in store.put_records(&id, records, 0).await {
            put.unwrap();
        }
        let page = page(
            "https://example.com/ada",
            json!({"city": ["London", "\"Ockham\""]}),
        );
        let records = vec![String::from("people/1")];
        store
            .save(vec![Save { page, records }])
            .await
            .remove(0)
            .unwrap();
        let mut out = Vec::new();
        let filter = ExportFilter::default();
        export(&*store, kind, format, cells, &filter, &mut out)
            .await
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn records_become_a_row_with_a_column_for_every_field() {
        let expected = "id,name,city,fields.id,tel,low,born,missing,resolved_at,dataset\n\
            1,Ada,\"[\"\"London\"\",\"\"\\\"\"Ockham\\\"\"\"\"]\",,,,,[],1970-01-01T00:00:00.001Z,people\n\
            2,,,=1+1,+49 30,-5,,\"[\"\"born\"\"]\",,people\n";
        assert_eq!(
            exported(ExportKind::Records, ExportFormat::Csv).await,
            expected
        );
        let guarded = expected.replace(",=1+1,+49 30", ",'=1+1,'+49 30");
        assert_eq!(
            exported_for(Cells::Spreadsheet, ExportKind::Records, ExportFormat::Csv).await,
            guarded
        );
    }

    #[tokio::test]
    async fn pages_become_a_row_with_json_in_nested_cells() {
        let csv = exported(ExportKind::Pages, ExportFormat::Csv).await;
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        assert_eq!(reader.headers().unwrap(), &PAGE_COLUMNS[..]);
        let row = reader.records().next().unwrap().unwrap();
        let cell = |name| {
            &row[PAGE_COLUMNS
                .iter()
                .position(|column| *column == name)
                .unwrap()]
        };
        assert_eq!(cell("url"), "https://example.com/ada");
        assert_eq!(cell("links"), "[\"https://example.com/next\"]");
        assert_eq!((cell("status_code"), cell("final_url")), ("200", ""));
    }

    #[tokio::test]
    async fn json_lines_are_the_stored_documents() {
        let lines = exported(ExportKind::Records, ExportFormat::Jsonl).await;
        let records: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0]["_id"], "people/1");
        assert_eq!(records[0]["record_id"], "1");
        assert_eq!(records[1]["fields"]["id"], "=1+1");
        let pages = exported(ExportKind::Pages, ExportFormat::Jsonl).await;
        let page: Value = serde_json::from_str(&pages).unwrap();
        assert!(
            PAGE_COLUMNS.iter().all(|column| page.get(column).is_some()),
            "{page}"
        );
    }
}
