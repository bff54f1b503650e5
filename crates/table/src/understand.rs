//! Infers what the columns of a table mean: which one identifies rows, which hold links, which have gaps to fill.

mod columns;
mod display;
mod id;
pub(crate) mod links;
mod separators;

pub use links::UrlColumn;

use crate::cell::{Cell, Column};
use crate::error::TableError;
use crate::format::Format;
use crate::gaps::GapMarkers;
use crate::kind::Kind;
use crate::sample::Sample;
use crate::shape::Shape;
use columns::Names;

/// The columns that the user chose by name. Choices that are left open are inferred from the table.
#[derive(Debug, Clone, Default)]
pub struct ColumnChoices {
    /// The column that identifies rows (`--id`).
    pub id: Option<String>,
    /// The columns of links (`--url`). In this list and the following ones, an entry may be several names separated by
    /// commas.
    pub urls: Vec<String>,
    /// The columns to fill in (`--fields`).
    pub fields: Vec<String>,
    /// Columns that are not filled in although they have gaps (`--keep`).
    pub keep: Vec<String>,
}

/// The inferred structure of a table: the roles and shapes of its columns.
#[derive(Debug, Clone)]
pub struct Understanding {
    /// The name of the file.
    pub name: String,
    /// The format of the table.
    pub format: Format,
    /// The columns of the table.
    pub columns: Vec<Column>,
    /// The shape of each column.
    pub shapes: Vec<Shape>,
    /// How many rows can be used.
    pub row_count: u64,
    /// How many rows cannot be used.
    pub fault_count: u64,
    /// The column that identifies rows. `None` if row numbers identify them.
    pub id: Option<usize>,
    /// The columns of links.
    pub urls: Vec<UrlColumn>,
    /// The columns to fill in.
    pub fields: Vec<Field>,
    /// All other columns. They are never filled in.
    pub kept: Vec<usize>,
    /// Why the id and the kept columns were chosen.
    pub reasons: Reasons,
}

/// A column to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The index of the column.
    pub column: usize,
    /// The kind of the column's values.
    pub kind: Kind,
    /// The text between several values in a cell; `None` if cells hold one value.
    pub separator: Option<String>,
    /// Whether the cells have a list type (JSON, Parquet).
    pub is_list: bool,
    /// How many cells lack a value.
    pub gap_count: u64,
    /// How many cells have a value.
    pub known_count: u64,
}

/// Why columns have their roles, in words for users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reasons {
    /// Why the chosen column is the id, or why there is none.
    pub id: String,
    /// The columns that are not filled in, each with the reason.
    pub kept: Vec<(usize, String)>,
}

/// Infers the structure of a table. Choosing an unknown or ambiguous column is an error.
pub fn infer_structure(
    sample: &Sample,
    wishes: &ColumnChoices,
) -> Result<Understanding, TableError> {
    let names = Names::new(&sample.columns);
    let wished = |wishes: &[String]| -> Result<Vec<usize>, TableError> {
        let found: Result<Vec<Vec<usize>>, TableError> =
            wishes.iter().map(|wish| names.find_all(wish)).collect();
        Ok(found?.concat())
    };
    let wished_urls = wished(&wishes.urls)?;
    let wished_fields = wished(&wishes.fields)?;
    let wished_kept = wished(&wishes.keep)?;
    let wished_id = wishes
        .id
        .as_ref()
        .map(|name| names.find(name))
        .transpose()?;

    if let Some(both) = wished_kept.iter().find(|kept| wished_fields.contains(kept)) {
        return Err(TableError::Wish(format!(
            "the column `{:.40}` is in --fields and in --keep: name it once",
            sample.columns[*both].name
        )));
    }
    let columns = 0..sample.columns.len();
    let shapes: Vec<Shape> = columns.map(|column| infer_shape(sample, column)).collect();
    let urls = match wished_urls.as_slice() {
        [] => links::find_url_columns(sample, &shapes, wished_id),
        wished => {
            let column = |column: &usize| links::infer_url_column(sample, *column);
            wished.iter().map(column).collect()
        }
    };
    let (id, reason) = match wished_id {
        Some(id) => (Some(id), String::from("as wished")),
        None => id::find_id_column(sample, &shapes, &urls, &wished_fields),
    };
    let mut understanding = Understanding {
        name: sample.name.clone(),
        format: sample.format.clone(),
        columns: sample.columns.clone(),
        row_count: sample.row_count,
        fault_count: sample.fault_count,
        id,
        urls,
        fields: Vec::new(),
        kept: Vec::new(),
        reasons: Reasons {
            id: reason,
            kept: Vec::new(),
        },
        shapes,
    };
    let is_wished = |column: usize| match wished_fields.as_slice() {
        [] => None,
        wished => Some(wished.contains(&column)),
    };
    for column in 0..sample.columns.len() {
        let gaps = gap_count(sample, column, &understanding.shapes[column]);
        let reason = match wished_kept.contains(&column) {
            true => Some(String::from("as wished")),
            false => understanding.why_kept(column, gaps, is_wished(column), &names),
        };
        understanding.assign_role(column, gaps, reason);
    }
    Ok(understanding)
}

impl Understanding {
    /// Why a column is not filled in (is not a field); `None` if it is a field.
    fn why_kept(
        &self,
        column: usize,
        gaps: u64,
        is_wished: Option<bool>,
        names: &Names,
    ) -> Option<String> {
        let is_link = self.urls.iter().any(|url| url.column == column);
        match is_wished {
            Some(true) if self.shapes[column].kind != Kind::Other => return None,
            Some(true) => return Some(String::from("holds objects")),
            Some(false) => return Some(String::from("not wished")),
            None => {}
        }
        if self.id == Some(column) || is_link {
            return Some(String::new());
        }
        if names.has_blank_name(column) {
            return Some(String::from("has no name"));
        }
        if names.is_ambiguous(column) {
            return Some(String::from("shares its name with another column"));
        }
        if self.shapes[column].kind == Kind::Other {
            return Some(String::from("holds objects"));
        }
        (gaps == 0).then(|| String::from("no gaps"))
    }

    fn assign_role(&mut self, column: usize, gap_count: u64, why_kept: Option<String>) {
        match why_kept {
            // An empty reason marks the id and the link columns, which are not listed as kept.
            Some(reason) if reason.is_empty() => {}
            Some(reason) => {
                self.kept.push(column);
                self.reasons.kept.push((column, reason));
            }
            None => {
                let shape = &self.shapes[column];
                self.fields.push(Field {
                    column,
                    kind: shape.kind,
                    separator: shape.separator.clone(),
                    is_list: shape.is_list,
                    gap_count,
                    known_count: self.row_count - gap_count,
                });
            }
        }
    }
}

/// Infers the shape of a column from its sampled cells.
fn infer_shape(sample: &Sample, column: usize) -> Shape {
    let words = &sample.profiles[column].words;
    let is_word = |cell: &&Cell| {
        let text = cell.text();
        text.and_then(crate::gaps::gap_word_index).is_some()
    };
    let others: Vec<&str> = sample
        .values(column)
        .filter(|cell| !is_word(cell))
        .filter_map(Cell::text)
        .collect();
    let gap_markers = GapMarkers::from_counts(words, &others, sample.row_count);
    let values: Vec<&Cell> = sample
        .values(column)
        .filter(|cell| !gap_markers.contains(cell))
        .collect();
    let kinds = values.iter().filter_map(|cell| Kind::from_cell(cell));
    let kind = kinds.reduce(Kind::merged_with).unwrap_or(Kind::Text);
    let is_text = |cell: &Cell| matches!(cell, Cell::Text(_));
    let is_typed = |cell: &&Cell| match cell {
        Cell::List(cells) => !cells.iter().any(is_text),
        cell => !is_text(cell),
    };
    let lists = values.iter().filter(|cell| matches!(cell, Cell::List(_)));
    let list_count = lists.count();
    let is_list = list_count > 0 && list_count == values.len();
    let is_mixed = list_count > 0 && !is_list;
    Shape {
        kind: if is_mixed { Kind::Other } else { kind },
        separator: match kind {
            Kind::Text if !is_list => separators::find_separator(&values),
            _ => None,
        },
        is_list,
        is_typed: !values.is_empty() && values.iter().all(is_typed),
        gap_markers,
    }
}

fn gap_count(sample: &Sample, column: usize, shape: &Shape) -> u64 {
    let profile = &sample.profiles[column];
    let is_gap = |(word, _): &&(usize, u64)| shape.gap_markers.word_indexes().contains(word);
    let words = profile.words.iter().filter(is_gap);
    profile.empty + words.map(|(_, count)| count).sum::<u64>()
}
