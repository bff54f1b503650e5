//! The table: which columns it has, what its rows know and lack, and the same table with its gaps filled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use webfill_service::Fault;
use webfill_table::{Cell, Sample, Understanding, Wishes};
use webfill_urls::{canonical, site};

use super::options::FillOptions;

/// Faults that are told.
const FAULTS_TOLD: usize = 20;

/// A table, as far as filling needs it.
#[derive(Debug)]
pub struct Table {
    pub path: PathBuf,
    pub fields: Vec<Field>,
    pub rows: Vec<Row>,
    /// The links of all rows, canonical, and the site of each.
    pub links: Vec<Link>,
    /// Printed, it is five lines.
    pub understanding: Understanding,
    /// Lines that cannot be used, with the reason.
    pub faults: Vec<String>,
    /// The rows that link to each link.
    pub rows_of_link: Vec<Vec<u32>>,
    by_url: HashMap<String, u32>,
}

/// A column that is to be filled.
#[derive(Debug, Clone)]
pub struct Field {
    pub column: usize,
    /// As the table has it.
    pub title: String,
    /// As mappings have it.
    pub name: String,
    /// What stands between the values of a cell, if it is a list.
    pub separator: Option<String>,
    /// Cells hold lists by themselves.
    is_list: bool,
}

#[derive(Debug)]
pub struct Row {
    /// As a person counts.
    pub number: u64,
    pub id: String,
    /// Places in [`Table::links`].
    pub links: Vec<u32>,
    /// By field; empty: a gap.
    pub known: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub url: String,
    pub site: String,
}

impl Field {
    /// Values as a cell has them.
    pub fn joined(&self, values: &[String]) -> String {
        values.join(self.separator.as_deref().unwrap_or("; "))
    }

    /// Whether cells hold several values.
    pub fn has_several(&self) -> bool {
        self.is_list || self.separator.is_some()
    }

    /// Values for a cell, as `webfill_table` takes them.
    fn written(&self, values: &[String]) -> String {
        match self.has_several() {
            true => serde_json::json!(values).to_string(),
            false => self.joined(values),
        }
    }

    /// The values of a cell.
    pub fn parted(&self, cell: &str) -> Vec<String> {
        let parts: Vec<&str> = match &self.separator {
            Some(separator) => cell.split(separator.as_str()).collect(),
            None => vec![cell],
        };
        let parts = parts.into_iter().map(webfill_values::trimmed);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

impl Row {
    pub fn gaps(&self) -> impl Iterator<Item = usize> {
        let known = self.known.iter().enumerate();
        known.filter_map(|(field, values)| values.is_empty().then_some(field))
    }

    pub fn is_complete(&self) -> bool {
        self.known.iter().all(|values| !values.is_empty())
    }

    pub fn knows(&self) -> usize {
        self.known
            .iter()
            .filter(|values| !values.is_empty())
            .count()
    }
}

impl Table {
    /// Reads and understands a table.
    pub fn read(options: &FillOptions) -> Result<Table, Fault> {
        let path = &options.table;
        let sample = Sample::read(path).map_err(Fault::usage)?;
        let wishes = Wishes {
            id: options.id.clone(),
            urls: options.url.clone(),
            fields: options.fields.clone(),
            keep: options.keep.clone(),
        };
        let understanding = webfill_table::understand(&sample, &wishes).map_err(Fault::usage)?;
        let mut names = BTreeSet::new();
        let fields = understanding.fields.iter().map(|field| Field {
            column: field.column,
            name: name_of_field(&understanding.columns[field.column].name, &mut names),
            title: understanding.columns[field.column].name.clone(),
            separator: field.separator.clone(),
            is_list: field.is_list,
        });
        let mut table = Table {
            path: path.to_owned(),
            fields: fields.collect(),
            rows: Vec::new(),
            links: Vec::new(),
            faults: Vec::new(),
            rows_of_link: Vec::new(),
            by_url: HashMap::new(),
            understanding,
        };
        let mut reader = webfill_table::open(path).map_err(Fault::usage)?;
        while let Some(row) = reader.next_row() {
            match row {
                Ok(row) => table.add(&row),
                Err(fault) => table
                    .faults
                    .push(format!("line {}: {}", fault.number, fault.reason)),
            }
        }
        Ok(table)
    }

    fn add(&mut self, cells: &webfill_table::Row) {
        let row = self.rows.len() as u32;
        let number = cells.number;
        let mut places = Vec::new();
        let columns = &self.understanding.urls;
        let links: Vec<String> = columns
            .iter()
            .flat_map(|column| column.links(&cells.cells[column.column]))
            .collect();
        for text in links {
            match canonical(&text, None) {
                Ok(url) => {
                    let place = self.place_of(url.as_str(), || site(&url));
                    if !places.contains(&place) {
                        places.push(place);
                        self.rows_of_link[place as usize].push(row);
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
                false => values(cell, field),
            }
        });
        let id = self.understanding.id.and_then(|id| cells.cells[id].text());
        let known = known.collect();
        self.rows.push(Row {
            number,
            id: id.map_or_else(|| number.to_string(), str::to_owned),
            links: places,
            known,
        });
    }

    fn place_of(&mut self, url: &str, site: impl FnOnce() -> String) -> u32 {
        if let Some(&place) = self.by_url.get(url) {
            return place;
        }
        let place = self.links.len() as u32;
        self.by_url.insert(url.to_owned(), place);
        self.links.push(Link {
            url: url.to_owned(),
            site: site(),
        });
        self.rows_of_link.push(Vec::new());
        place
    }

    /// The links of each site, in the order of the table.
    pub fn links_by_site(&self) -> BTreeMap<&str, Vec<u32>> {
        let mut by_site: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (place, link) in self.links.iter().enumerate() {
            by_site.entry(&link.site).or_default().push(place as u32);
        }
        by_site
    }

    /// Lists lines that cannot be used, so that nothing is lost silently.
    pub fn tell_faults(&self) {
        for fault in self.faults.iter().take(FAULTS_TOLD) {
            webfill_service::say!("webfill: {}: {fault}", self.path.display());
        }
        if let Some(more) = self
            .faults
            .len()
            .checked_sub(FAULTS_TOLD)
            .filter(|more| *more > 0)
        {
            webfill_service::say!("webfill: {}: {more} more", self.path.display());
        }
    }

    pub fn gaps(&self) -> usize {
        self.rows.iter().map(|row| row.gaps().count()).sum()
    }

    /// Writes the same table with other values in some cells. Those that do not fit their column are told, and left
    /// out; `values` are as cells have them.
    pub fn write_filled(
        &self,
        output: &Path,
        values: &HashMap<(u64, usize), Vec<String>>,
    ) -> Result<(), Fault> {
        let fields: HashMap<usize, &Field> = self
            .fields
            .iter()
            .map(|field| (field.column, field))
            .collect();
        let mut change = |row: u64, column: usize, _: &Cell, _: bool| {
            let values = values.get(&(row, column))?;
            Some(fields.get(&column)?.written(values))
        };
        let written =
            webfill_table::write_changed(&self.path, output, &self.understanding, &mut change);
        let written = written.map_err(Fault::error)?;
        for refusal in written.refusals.iter().take(FAULTS_TOLD) {
            webfill_service::say!(
                "webfill: line {}, {}: `{}` is not written: {}",
                refusal.row,
                self.understanding.columns[refusal.column].name,
                refusal.value,
                refusal.reason
            );
        }
        if let Some(more) = written
            .refused_count
            .checked_sub(FAULTS_TOLD as u64)
            .filter(|more| *more > 0)
        {
            webfill_service::say!("webfill: {more} more values are not written");
        }
        Ok(())
    }
}

/// The values of a cell that is no gap.
fn values(cell: &Cell, field: &Field) -> Vec<String> {
    match cell {
        Cell::List(cells) => cells
            .iter()
            .filter_map(Cell::text)
            .map(str::to_owned)
            .collect(),
        cell => cell.text().map_or_else(Vec::new, |text| field.parted(text)),
    }
}

/// A name that a mapping can have: `ISBN-13` becomes `isbn_13`.
fn name_of_field(title: &str, taken: &mut BTreeSet<String>) -> String {
    let lower = title.to_lowercase();
    let plain: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let plain = plain.trim_matches('_');
    let mut name = match plain.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => plain.to_owned(),
        false => format!("f_{plain}"),
    };
    let first = name.clone();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        name = format!("{first}_{number}");
    }
    name
}
