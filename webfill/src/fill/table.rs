//! The table: its columns, the known values and gaps of its rows, and the writing of the filled table.

mod field;
mod filled;
mod links;
mod row;
mod style;

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use webfill_service::Fault;
use webfill_table::{ColumnChoices, Sample, Understanding, UrlColumn};
use webfill_urls::canonical_url;

pub use self::filled::{Change, Refused};
pub use self::links::Link;
pub use self::row::Row;

use self::field::{Field, name_of_field};
use self::links::{Links, has_scheme};
use self::style::Style;
use super::known::KnownValues;
use super::nouns::count_with_noun;
use super::options::{FillOptions, RowsToCheck};

/// The most faults that are reported.
const MOST_FAULTS_SHOWN: usize = 20;

/// The table, with the parts that `fill` needs.
#[derive(Debug)]
pub struct Table {
    pub path: PathBuf,
    pub fields: Vec<Field>,
    pub rows: Vec<Row>,
    /// The links of all rows.
    pub links: Links,
    /// The format and the columns of the file, as inferred from its content.
    pub understanding: Understanding,
    /// Lines that cannot be used, with the reason, and lines that lack cells.
    pub faults: Vec<String>,
    /// The hash of the file as it was read.
    sum: u64,
}

impl Table {
    /// Reads and understands a table.
    pub fn read(path: &Path, options: &FillOptions) -> Result<Table, Fault> {
        let sum = file_checksum(path)?;
        let sample = Sample::read(path).map_err(Fault::usage)?;
        let wishes = ColumnChoices {
            id: options.id.clone(),
            urls: options.url.clone(),
            fields: options.fields.clone(),
            keep: options.keep.clone(),
        };
        let understanding =
            webfill_table::infer_structure(&sample, &wishes).map_err(Fault::usage)?;
        let mut names = BTreeSet::new();
        // A column without gaps is compared, too. It shows which page belongs to which row, and its own values may be
        // wrong.
        let is_complete = |(_, reason): &&(usize, String)| reason == "no gaps";
        let complete = understanding.reasons.kept.iter().filter(is_complete);
        let complete = complete.filter(|_| options.check != RowsToCheck::None);
        let columns = understanding
            .fields
            .iter()
            .map(|field| (field.column, true))
            .chain(complete.map(|(column, _)| (*column, false)));
        let fields = columns.map(|(column, has_gaps)| {
            let title = understanding.columns[column].name.clone();
            let shape = &understanding.shapes[column];
            Field {
                column,
                name: name_of_field(&title, &mut names),
                title,
                separator: shape.separator.clone(),
                is_list: shape.is_list,
                has_gaps,
                has_repetitions: false,
                style: Style::of_nothing(),
            }
        });
        let mut table = Table {
            path: path.to_owned(),
            fields: fields.collect(),
            rows: Vec::new(),
            links: Links::default(),
            faults: Vec::new(),
            understanding,
            sum,
        };
        let mut reader = webfill_table::open(path).map_err(Fault::usage)?;
        while let Some(row) = reader.next_row() {
            match row {
                Ok(row) => table.add_row(&row),
                Err(fault) => table
                    .faults
                    .push(format!("line {}: {}", fault.number, fault.reason)),
            }
        }
        table.require_unchanged()?;
        table.rows.shrink_to_fit();
        let links = table.rows.iter().map(|row| &*row.links);
        table.links.index_rows(links);
        table.require_links_where_wished(&sample, options)?;
        table.find_styles();
        Ok(table)
    }

    /// Refuses a column that the user has named as a column of links, if it has no links.
    fn require_links_where_wished(
        &self,
        sample: &Sample,
        options: &FillOptions,
    ) -> Result<(), Fault> {
        let columns = &self.understanding.urls;
        let has_values = |column: &&UrlColumn| sample.values(column.column).next().is_some();
        match columns.iter().find(has_values) {
            Some(column) if !options.url.is_empty() && self.links.is_empty() => {
                Err(Fault::usage(format!(
                    "the column `{:.40}` has no links: name another with --url",
                    self.understanding.columns[column.column].name
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to continue if the file has changed since it was read, because its lines may belong to other rows.
    fn require_unchanged(&self) -> Result<(), Fault> {
        match file_checksum(&self.path)? == self.sum {
            true => Ok(()),
            false => Err(Fault::error(format!(
                "{} was changed during the run: run the same command again, stored pages are not requested again",
                self.path.display()
            ))),
        }
    }

    /// Finds what the known values of each column have in common.
    fn find_styles(&mut self) {
        for (at, field) in self.fields.iter_mut().enumerate() {
            let known = || self.rows.iter().flat_map(move |row| row.known_values(at));
            field.style = Style::of_column(known);
            let distinct = |list: &Vec<String>| list.iter().collect::<BTreeSet<_>>().len();
            let mut lists = self.rows.iter().map(|row| row.known_values(at));
            field.has_repetitions = lists.any(|list| distinct(&list) < list.len());
        }
    }

    /// Reports a row that lacks cells. Its last cells count as empty if it has its id and a link: then its first cells
    /// stand where they belong.
    fn check_count_of_cells(&mut self, row: &webfill_table::Row) -> bool {
        if row.lacking == 0 {
            return true;
        }
        let columns = row.cells.len();
        let has_id = self
            .understanding
            .id
            .is_none_or(|id| !row.cells[id].is_empty());
        let mut urls = self.understanding.urls.iter();
        let has_link = urls.any(|column| {
            let links = column.links(&row.cells[column.column]);
            links.iter().any(|link| canonical_url(link, None).is_ok())
        });
        let is_usable = has_id && has_link;
        let end = match is_usable {
            true => ": the others count as empty",
            false => ", and it lacks its id or a link",
        };
        self.faults.push(format!(
            "line {}: the row has {}, but the table {columns} columns{end}",
            row.number,
            count_with_noun(columns - row.lacking, "cell"),
        ));
        is_usable
    }

    fn add_row(&mut self, cells: &webfill_table::Row) {
        if !self.check_count_of_cells(cells) {
            return;
        }
        let number = cells.number;
        let mut places = Vec::new();
        let columns = &self.understanding.urls;
        let links = columns.iter().flat_map(|column| {
            let cell = &cells.cells[column.column];
            let is_without_scheme = !has_scheme(cell);
            let links = column.links(cell).into_iter();
            links.map(move |link| (link, is_without_scheme))
        });
        let links: Vec<(String, bool)> = links.collect();
        for (text, is_without_scheme) in links {
            match canonical_url(&text, None) {
                Ok(url) => {
                    let place = self.links.intern(&url, is_without_scheme);
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
                Err(refusal) => self
                    .faults
                    .push(format!("line {number}: {text}: {refusal}")),
            }
        }
        let known = self.fields.iter().map(|field| {
            let cell = &cells.cells[field.column];
            match self.understanding.shapes[field.column].is_gap(cell) {
                true => Vec::new(),
                false => field.values(cell),
            }
        });
        let id = self.understanding.id.and_then(|id| cells.cells[id].text());
        let known = KnownValues::from_values(known);
        self.rows.push(Row {
            number,
            id: id.map(str::to_owned),
            links: places.into(),
            known,
        });
    }

    /// Reports unusable lines, so that none is lost silently. `all` is the file that lists them all.
    pub fn report_faults(&self, all: &str) {
        for fault in self.faults.iter().take(MOST_FAULTS_SHOWN) {
            webfill_service::say!("webfill: {}: {fault}", self.path.display());
        }
        if let Some(more) = self
            .faults
            .len()
            .checked_sub(MOST_FAULTS_SHOWN)
            .filter(|more| *more > 0)
        {
            webfill_service::say!("webfill: {}: {more} more, {all}", self.path.display());
        }
    }

    pub fn gaps(&self) -> usize {
        self.rows.iter().map(|row| row.gaps().count()).sum()
    }
}

/// A checksum of all bytes of a file.
fn file_checksum(path: &Path) -> Result<u64, Fault> {
    let sum = || -> io::Result<u64> {
        let (mut file, mut sum) = (File::open(path)?, DefaultHasher::new());
        let mut some = vec![0; 64 << 10];
        loop {
            match file.read(&mut some)? {
                0 => return Ok(sum.finish()),
                count => sum.write(&some[..count]),
            }
        }
    };
    sum().map_err(|error| Fault::usage(format!("cannot read {}: {error}", path.display())))
}
