//! Writes a Parquet file again, one row group after another, column by column. Columns without new values are copied
//! as they are stored.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::FileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::batch::Batch;
use super::leaf::Leaf;
use super::rows::{BATCH_ROWS, ParquetRows, catch_panics};
use crate::error::{Refusal, TableError};
use crate::reader::TypedRows;
use crate::understand::Understanding;
use crate::value::list_entries;
use crate::write::{AtomicFile, ChangeCell, WrittenTable, collect_edits};

/// The new values of a column, by the number of the row in its row group.
type NewValues = HashMap<usize, String>;

/// Writes the table again, with other values in some cells. Only the new values of one row group are held in memory.
pub(crate) fn write(
    input: &Path,
    output: &Path,
    understanding: &Understanding,
    change: &mut ChangeCell<'_>,
) -> std::result::Result<WrittenTable, TableError> {
    let rows = ParquetRows::open(input)?;
    if rows.columns() != understanding.columns.as_slice() {
        return Err(TableError::unreadable_file(
            input,
            "its columns are others than when it was read",
        ));
    }
    let unwritten = |error| TableError::write_error(output, error);
    let out = AtomicFile::create(output).map_err(unwritten)?;
    let mut copy = TableCopy {
        rows,
        understanding,
        written: WrittenTable::default(),
    };
    let out = catch_panics(|| copy.copy_file(input, out, change)).map_err(|error| match error {
        ParquetError::External(error) => unwritten(std::io::Error::other(error)),
        other => TableError::unreadable_file(input, format!("broken Parquet: {other}")),
    })?;
    out.persist().map_err(unwritten)?;
    Ok(copy.written)
}

struct TableCopy<'a> {
    rows: ParquetRows,
    understanding: &'a Understanding,
    written: WrittenTable,
}

impl TableCopy<'_> {
    fn copy_file(
        &mut self,
        input: &Path,
        out: AtomicFile,
        change: &mut ChangeCell<'_>,
    ) -> Result<AtomicFile> {
        let source = File::open(input)?;
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Optional)
            .parse_and_finish(&source)?;
        let schema = metadata.file_metadata().schema_descr().root_schema_ptr();
        let mut file = SerializedFileWriter::new(out, schema, writer_properties(&metadata))?;
        for group in 0..metadata.num_row_groups() {
            let values = self.collect_new_values(metadata.row_group(group).num_rows(), change)?;
            let mut to = file.next_row_group()?;
            for number in 0..metadata.row_group(group).num_columns() {
                match values.get(&number) {
                    Some((leaf, values)) => {
                        self.write_column(group, number, leaf, values, &mut to)?
                    }
                    None => copy_column(&source, &metadata, group, number, &mut to)?,
                }
            }
            to.close()?;
        }
        file.into_inner()
    }

    /// Collects the new values of the next row group, by index of the stored column.
    fn collect_new_values(
        &mut self,
        rows: i64,
        change: &mut ChangeCell<'_>,
    ) -> Result<HashMap<usize, (Leaf, NewValues)>> {
        let mut values: HashMap<usize, (Leaf, NewValues)> = HashMap::new();
        let mut refusals = Vec::new();
        for at in 0..usize::try_from(rows).unwrap_or(0) {
            let row = self.rows.next_row().map_err(ParquetError::General)?;
            let Some(Ok(row)) = row else {
                return Err(ParquetError::General(String::from("rows are missing")));
            };
            self.written.row_count += 1;
            let edits = collect_edits(
                row.number,
                &row.cells,
                self.understanding,
                change,
                &mut refusals,
            );
            for edit in edits {
                let stored = self.rows.stored[edit.column].as_ref();
                let parsed = match stored {
                    Some(stored) => parse_value(&edit.value, &stored.leaf).map(drop),
                    None => Err(String::from("the column holds objects")),
                };
                match (parsed, stored) {
                    (Ok(()), Some(stored)) => {
                        let of_column = values.entry(stored.number);
                        let (_, values) =
                            of_column.or_insert_with(|| (stored.leaf.clone(), NewValues::new()));
                        values.insert(at, edit.value);
                        self.written.filled_count += 1;
                    }
                    (parsed, _) => refusals.push(Refusal {
                        row: row.number,
                        column: edit.column,
                        value: edit.value,
                        reason: parsed.err().unwrap_or_default(),
                    }),
                }
            }
            self.written.note_refusals(&mut refusals);
        }
        Ok(values)
    }

    fn write_column(
        &self,
        group: usize,
        number: usize,
        leaf: &Leaf,
        values: &NewValues,
        to: &mut SerializedRowGroupWriter<'_, AtomicFile>,
    ) -> Result<()> {
        let group = self.rows.file().get_row_group(group)?;
        let mut reader = group.get_column_reader(number)?;
        let missing = || ParquetError::General(String::from("a column is missing"));
        let mut writer = to.next_column()?.ok_or_else(missing)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut at = 0;
        while at < rows {
            let batch = Batch::read(&mut reader, BATCH_ROWS.min(rows - at))?;
            let extents = batch.extents(leaf);
            if extents.is_empty() {
                return Err(missing());
            }
            let mut changed = batch.empty_like();
            for extent in extents {
                let value = values.get(&at).map(|value| parse_value(value, leaf));
                match value {
                    Some(Ok(values)) => changed.push_values(values, leaf),
                    _ => changed.push_row(&batch, extent, leaf),
                }
                at += 1;
            }
            changed.write(writer.untyped())?;
        }
        writer.close()
    }
}

/// Converts a value to its stored form, or its entries if the column holds lists.
fn parse_value(value: &str, leaf: &Leaf) -> std::result::Result<Vec<super::leaf::Owned>, String> {
    if leaf.entry.is_none() {
        return leaf.parse(value).map(|value| vec![value]);
    }
    let entries = list_entries(value);
    if entries.is_empty() {
        return Err(String::from("it is empty"));
    }
    entries.iter().map(|entry| leaf.parse(entry)).collect()
}

/// The properties of the written file. The compression of each column and the file's metadata stay the same.
fn writer_properties(metadata: &ParquetMetaData) -> Arc<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("webfill ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(metadata.file_metadata().key_value_metadata().cloned());
    // If the input has no page index, none is written: the `parquet` crate panics if only some columns have one.
    if metadata.offset_index().is_none() {
        properties = properties
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
    }
    if metadata.num_row_groups() > 0 {
        for column in metadata.row_group(0).columns() {
            let path = column.column_path().clone();
            properties = properties.set_column_compression(path, column.compression());
        }
    }
    Arc::new(properties.build())
}

fn copy_column(
    source: &File,
    metadata: &ParquetMetaData,
    group: usize,
    number: usize,
    to: &mut SerializedRowGroupWriter<'_, AtomicFile>,
) -> Result<()> {
    let rows = metadata.row_group(group).num_rows();
    let column = metadata.row_group(group).column(number);
    let of_column = metadata
        .column_index()
        .and_then(|index| index.get(group)?.get(number));
    let offsets = metadata
        .offset_index()
        .and_then(|index| index.get(group)?.get(number));
    let close = ColumnCloseResult {
        bytes_written: u64::try_from(column.compressed_size()).unwrap_or(0),
        rows_written: u64::try_from(rows).unwrap_or(0),
        metadata: column.clone(),
        bloom_filter: Sbbf::read_from_column_chunk(column, source).ok().flatten(),
        column_index: of_column.cloned(),
        offset_index: offsets.cloned(),
    };
    to.append_column(source, close)
}
