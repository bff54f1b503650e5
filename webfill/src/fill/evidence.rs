//! `TABLE.evidence.jsonl` and `.parquet`: the source of each value of each cell.

use std::io::{BufWriter, Write};

use serde_json::{Value, json};
use webfill_service::Fault;

use super::deciding::Cell;
use super::judgement::Verdict;
use super::mappings::Mappings;
use super::pages::Pages;
use super::project::{Project, write_file_atomically};
use super::reading::Readings;
use super::stored_page::StoredPage;
use super::table::Table;
use crate::export::columns::{Column, ColumnSource, Kind};
use crate::export::parquet::ParquetFile;

const COLUMNS: [(&str, Kind); 16] = [
    ("row", Kind::Integer),
    ("id", Kind::Text),
    ("column", Kind::Text),
    ("state", Kind::Text),
    ("refusal", Kind::Text),
    ("value", Kind::Text),
    ("known", Kind::Text),
    ("confidence", Kind::Number),
    ("url", Kind::Text),
    ("outcome", Kind::Text),
    ("mapping", Kind::Text),
    ("mapping_version", Kind::Text),
    ("chain", Kind::Json),
    ("excerpt", Kind::Text),
    ("fetched_at", Kind::Time),
    ("candidates", Kind::Json),
];

/// Everything that evidence is derived from.
pub struct Sources<'s> {
    pub table: &'s Table,
    pub pages: &'s Pages<'s>,
    pub mappings: &'s Mappings,
    pub readings: &'s Readings,
}

impl Sources<'_> {
    /// Makes one line of evidence for each value of a cell, or a line without a value if the cell has none.
    pub fn lines(&self, cell: &Cell) -> Vec<Value> {
        let (row, field) = (
            &self.table.rows[cell.row as usize],
            &self.table.fields[cell.field],
        );
        let url = cell.url.as_deref();
        let known = &row.known_values(cell.field);
        let mut line = json!({
            "row": row.number,
            "id": row.name(),
            "column": field.title,
            "state": cell.state.name(),
            "refusal": cell.refusal,
            "value": null,
            "known": if known.is_empty() { Value::Null } else { field.join_values(known).into() },
            "confidence": (cell.confidence * 10_000.0).round() / 10_000.0,
            "url": url,
        });
        let page = url.and_then(|url| self.pages.get(url));
        line["outcome"] = json!(page.map(StoredPage::fetch_end));
        line["fetched_at"] = json!(page.map(|page| &page.at));
        if !cell.candidates.is_empty() {
            let candidates = cell.candidates.iter();
            let candidates = candidates.map(|one| json!({"values": one.values, "url": one.url}));
            line["candidates"] = candidates.collect();
        }
        if cell.values.is_empty() {
            return vec![line];
        }
        let reading = url.and_then(|url| self.readings.get(url));
        if let Some(reading) = reading
            && let Some(one) = reading.fields.iter().find(|one| one.field == cell.field)
        {
            let name = self.mappings.set.name(reading.mapping);
            line["mapping"] = name.into();
            line["mapping_version"] = reading.version.as_str().into();
            line["chain"] = self.mappings.chain(name, &field.name, one.chain);
            line["excerpt"] = json!(one.excerpt);
        }
        let of_value = cell.values.iter().map(|value| {
            let mut line = line.clone();
            line["value"] = value.as_str().into();
            line
        });
        of_value.collect()
    }
}

/// Writes both evidence files. Each file is either complete or left as it was.
pub fn write_evidence(
    project: &Project,
    sources: &Sources<'_>,
    verdict: &Verdict,
) -> Result<(), Fault> {
    let lines = || verdict.cells.iter().flat_map(|cell| sources.lines(cell));
    write_file_atomically(&project.evidence_file("jsonl"), |file| {
        let mut out = BufWriter::new(file);
        for line in lines() {
            writeln!(out, "{line}")?;
        }
        out.flush()
    })?;
    write_file_atomically(&project.evidence_file("parquet"), |file| {
        let columns = COLUMNS.iter().map(|(name, kind)| Column {
            name: (*name).to_owned(),
            of: ColumnSource::Member(name),
            kind: *kind,
            is_list: false,
            decimals: None,
        });
        let mut parquet = ParquetFile::new(columns.collect(), file)?;
        for line in lines() {
            parquet.write_row(&line)?;
        }
        parquet.finish()
    })
}
