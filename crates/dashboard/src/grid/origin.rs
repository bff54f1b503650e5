//! A cell as the user's own table has it. `webfill fill` uses these contents to recognise which cell an answer is
//! about.

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};
use webfill_table::{Cell, ColumnChoices, Sample, Understanding, infer_structure};
use webfill_urls::canonical_url;

use super::files::Files;

/// A cell of the user's own table, before it was filled.
pub(crate) struct Origin {
    id: Option<String>,
    links: Vec<String>,
    known: Vec<String>,
    separator: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Wished {
    id: Option<String>,
    urls: Vec<String>,
    fields: Vec<String>,
    keep: Vec<String>,
}

impl Origin {
    /// Finds a cell by its line and column. The table is read up to that line.
    pub(crate) fn find(files: &Files, number: u64, column: &str) -> Result<Origin, String> {
        let (table, at) = understand_table(files, column)?;
        let mut reader = webfill_table::open(&files.input).map_err(|error| error.to_string())?;
        while let Some(row) = reader.next_row() {
            match row {
                Ok(row) if row.number == number => return Ok(Origin::new(&table, &row.cells, at)),
                Err(fault) if fault.is_end => return Err(fault.reason),
                _ => {}
            }
        }
        Err(format!("the table has no row in line {number}"))
    }

    /// The text that separates several values in a cell of this column, also when a user types them.
    pub(crate) fn find_separator(files: &Files, column: &str) -> Result<String, String> {
        let (table, at) = understand_table(files, column)?;
        let separator = table.shapes[at].separator.clone();
        Ok(separator.unwrap_or_else(|| String::from("; ")))
    }

    fn new(table: &Understanding, cells: &[Cell], column: usize) -> Origin {
        let mut links: Vec<String> = Vec::new();
        let written = table.urls.iter();
        let written = written.flat_map(|urls| urls.links(&cells[urls.column]));
        for link in written {
            match canonical_url(&link, None) {
                Ok(url) if !links.iter().any(|known| known == url.as_str()) => {
                    links.push(url.into());
                }
                _ => {}
            }
        }
        let shape = &table.shapes[column];
        let cell = &cells[column];
        let separator = shape.separator.clone();
        let known = match cell {
            cell if shape.is_gap(cell) => Vec::new(),
            Cell::List(cells) => cells
                .iter()
                .filter_map(Cell::text)
                .map(str::to_owned)
                .collect(),
            cell => split_text(cell.text().unwrap_or_default(), separator.as_deref()),
        };
        Origin {
            id: table.id.and_then(|id| cells[id].text()).map(str::to_owned),
            links,
            known,
            separator: separator.or(shape.is_list.then(|| String::from(";"))),
        }
    }

    /// Splits a text that a user has typed into single values.
    pub(crate) fn split_values(&self, text: &str) -> Vec<String> {
        split_text(text, self.separator.as_deref())
    }

    /// The doubt that an answer decides, as `webfill fill` stores doubts.
    pub(crate) fn doubt_json(&self, about: &CellEvidence<'_>, page: &[String]) -> Value {
        json!({
            "id": self.id,
            "links": self.links,
            "column": about.column,
            "known": self.known,
            "page": page,
            "shown": {
                "id": about.name,
                "column": about.column,
                "known": self.known.join("; "),
                "page": page.join("; "),
                "url": about.url,
            },
        })
    }
}

/// Finds the structure of the table in the same way as `webfill fill`, and the position of a column in it.
fn understand_table(files: &Files, column: &str) -> Result<(Understanding, usize), String> {
    let wished = fs::read(&files.wishes).ok();
    let wished = wished.and_then(|json| serde_json::from_slice::<Wished>(&json).ok());
    let wished = wished.unwrap_or_default();
    let wishes = ColumnChoices {
        id: wished.id,
        urls: wished.urls,
        fields: wished.fields,
        keep: wished.keep,
    };
    let sample = Sample::read(&files.input).map_err(|error| error.to_string())?;
    let table = infer_structure(&sample, &wishes).map_err(|error| error.to_string())?;
    let at = table.columns.iter().position(|of| of.name == column);
    let at = at.ok_or_else(|| format!("the table has no column `{column}`"))?;
    Ok((table, at))
}

/// The row, the column and the page that a cell's evidence names.
pub(crate) struct CellEvidence<'a> {
    pub(crate) name: &'a str,
    pub(crate) column: &'a str,
    pub(crate) url: &'a str,
}

fn split_text(text: &str, separator: Option<&str>) -> Vec<String> {
    let parts: Vec<&str> = match separator {
        Some(separator) => text.split(separator).collect(),
        None => vec![text],
    };
    let parts = parts.into_iter().map(webfill_values::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}
