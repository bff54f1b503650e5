//! The table: which columns it has, what its rows know and lack, and the same table with its gaps filled.

use std::collections::hash_map::{DefaultHasher, Entry, RandomState};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use webfill_service::Fault;
use webfill_table::{Cell, ColumnChoices, Format, GapWords, Kind, Sample, Understanding};
use webfill_urls::{Url, canonical, site};

use super::casing::{Casing, cased, casing};
use super::clock_style::ClockStyle;
use super::form;
use super::known::KnownValues;
use super::number_style::{NumberStyle, number_style};
use super::options::{FillOptions, RowsToCheck};
use crate::export::CellStyle;

/// The most faults that are reported.
const MOST_FAULTS_SHOWN: usize = 20;

/// The most known values that show which words mean a gap in their column.
const MOST_FOR_GAP_WORDS: usize = 10_000;

/// A table, as far as filling needs it.
#[derive(Debug)]
pub struct Table {
    pub path: PathBuf,
    pub fields: Vec<Field>,
    pub rows: Vec<Row>,
    /// The links of all rows, canonical, and the site of each.
    pub links: Vec<Link>,
    /// The format and the columns of the file, as they were understood.
    pub understanding: Understanding,
    /// Lines that cannot be used, with the reason.
    pub faults: Vec<String>,
    /// The rows that link to each link, one link after another, and where those of each link begin.
    linking: Vec<u32>,
    linking_at: Vec<u32>,
    by_url: LinkIndex,
    /// The hash of the file as it was read.
    sum: u64,
}

/// Other values for a cell.
#[derive(Debug, Clone)]
pub struct Change {
    pub values: Vec<String>,
    /// The values that the cell must have before the change; empty for a gap.
    pub old: Vec<String>,
    /// Whether a person has accepted the values. They are then refused only if the column cannot hold them.
    pub is_accepted: bool,
}

/// Why values were not written, by the number of the row and the column.
pub type Refused = HashMap<(u64, usize), String>;

/// A column that is to be filled or compared.
#[derive(Debug, Clone)]
pub struct Field {
    pub column: usize,
    /// The name of the column in the table.
    pub title: String,
    /// The name of the field in mappings.
    pub name: String,
    /// The separator between the values of a cell, if it is a list.
    pub separator: Option<String>,
    /// Whether cells are lists without a separator, as in JSON.
    is_list: bool,
    /// Whether the column has gaps and is filled. One without gaps is only compared.
    pub has_gaps: bool,
    /// The kind of nearly all known values.
    form: Kind,
    /// The digits after the point that nearly all known numbers have.
    decimals: Option<usize>,
    /// How nearly all known texts write numbers, if they are nothing else.
    numbers: Option<NumberStyle>,
    /// Nearly all known points in time are in UTC.
    is_in_utc: bool,
    /// The years of the first and the last known day.
    years: Option<(i32, i32)>,
    /// The words that mean a gap among the known values.
    gap_words: GapWords,
    /// How nearly all known texts write commas between words.
    comma: Option<&'static str>,
    /// How all known texts write letters.
    casing: Option<Casing>,
    /// How nearly all known texts write times of day.
    clock: Option<ClockStyle>,
    /// Nearly all known texts are one number with a sign.
    has_amounts: bool,
    /// What nearly all of these have between the number and its sign.
    amount_space: Option<String>,
    /// Whether any known value is cut off.
    has_cut_off: bool,
    /// All known texts have letters.
    has_letters: bool,
    /// Whether any known value begins like a formula.
    has_formulas: bool,
    /// Some known list has a value twice.
    has_repetitions: bool,
}

#[derive(Debug)]
pub struct Row {
    /// The number of the row in the file, as a person counts.
    pub number: u64,
    /// The id, if the table has a column of ids and the row has one.
    pub id: Option<String>,
    /// Indexes into [`Table::links`].
    pub links: Box<[u32]>,
    known: KnownValues,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub url: String,
    pub site: Arc<str>,
    /// Whether the URL had no scheme in its cell.
    pub is_without_scheme: bool,
}

/// The indexes of links, by the hash of their URL. The URLs themselves are in the links.
#[derive(Debug, Default)]
struct LinkIndex {
    places: HashMap<u64, u32>,
    /// The indexes of URLs whose hash belongs to another URL.
    others: HashMap<String, u32>,
    hashes: RandomState,
}

impl LinkIndex {
    fn place(&self, url: &str, links: &[Link]) -> Option<u32> {
        let place = *self.places.get(&self.hashes.hash_one(url))?;
        match links[place as usize].url == url {
            true => Some(place),
            false => self.others.get(url).copied(),
        }
    }

    fn insert(&mut self, url: &str, place: u32) {
        match self.places.entry(self.hashes.hash_one(url)) {
            Entry::Vacant(free) => drop(free.insert(place)),
            Entry::Occupied(_) => drop(self.others.insert(url.to_owned(), place)),
        }
    }
}

/// Whether a link of a cell has a scheme.
fn has_scheme(cell: &Cell) -> bool {
    match cell {
        Cell::List(cells) => cells.iter().any(has_scheme),
        cell => cell.text().is_some_and(|text| text.contains("://")),
    }
}

impl Field {
    /// The values as the text of one cell.
    pub fn joined(&self, values: &[String]) -> String {
        values.join(self.separator.as_deref().unwrap_or("; "))
    }

    /// The values of a list once each, unless known lists repeat them: pages often show a value twice.
    pub fn distinct(&self, values: &[String]) -> Vec<String> {
        let mut distinct: Vec<String> = Vec::new();
        for value in values {
            let is_same = |other: &String| webfill_learn::is_same_value(other, value);
            if self.has_repetitions || !self.has_several() || !distinct.iter().any(is_same) {
                distinct.push(value.clone());
            }
        }
        distinct
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

    /// The values of a change in the form of the known ones, or why they cannot be converted.
    fn fitted(&self, change: &Change) -> Result<Vec<String>, String> {
        let fitted = change.values.iter().map(|value| {
            let value = form::fitted(value, self.form)?;
            let value = match self.is_in_utc {
                true => form::in_utc(value)?,
                false => value,
            };
            let value = match &self.clock {
                Some(style) => style.written(value),
                None => value,
            };
            if !change.is_accepted {
                self.require_likeness(&value)?;
            }
            let value = match self.numbers {
                Some(style) => style.written(value),
                None => value,
            };
            let value = match change.is_accepted {
                true => value,
                false => cased(value, self.casing)?,
            };
            let value = form::padded(value, self.decimals);
            let value = form::with_amount_space(value, self.amount_space.as_deref());
            Ok(form::with_commas(value, self.comma))
        });
        fitted.collect()
    }

    /// Refuses a value that is unlike the known ones, or incomplete.
    fn require_likeness(&self, value: &str) -> Result<(), String> {
        let years = self.years;
        let refusal = if value.contains(char::REPLACEMENT_CHARACTER) {
            "a character of it was lost: its page has another encoding than it declares"
        } else if years.is_some_and(|years| form::may_be_of_other_century(value, years)) {
            "its century is not certain"
        } else if self.has_amounts && !form::is_amount(value) {
            "nearly all known values of the column are one number with a sign, as amounts of money are"
        } else if !self.has_cut_off && form::is_cut_off(value) {
            "it is cut off, and no known value of the column is"
        } else if self.has_letters && !value.contains(char::is_alphabetic) {
            "all known values of the column have letters"
        } else {
            return Ok(());
        };
        Err(refusal.to_owned())
    }

    /// Refuses values that a spreadsheet would run as formulas, unless known values are such texts. Pages are foreign.
    fn without_formulas(&self, values: Vec<String>) -> Result<Vec<String>, String> {
        match !self.has_formulas && is_like_a_formula(&self.joined(&values)) {
            true => Err(String::from(
                "a spreadsheet would run it as a formula, and no known value of the column begins so",
            )),
            false => Ok(values),
        }
    }

    /// Whether no known value is cut off.
    pub fn lacks_cut_off(&self) -> bool {
        !self.has_cut_off
    }

    /// Whether a text would mean a gap if it were a value of this column.
    pub fn means_gap(&self, text: &str) -> bool {
        self.gap_words.contains(text)
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
    /// The id, or the number of the row where there is none.
    pub fn name(&self) -> String {
        self.id.clone().unwrap_or_else(|| self.number.to_string())
    }

    /// The values of a field; empty for a gap.
    pub fn known_values(&self, field: usize) -> Vec<String> {
        self.known.get(field)
    }

    /// The values of each field.
    pub fn all_known_values(&self) -> impl Iterator<Item = Vec<String>> {
        self.known.fields()
    }

    /// Sets the values of a field, and returns the former ones.
    pub fn replace(&mut self, field: usize, values: Vec<String>) -> Vec<String> {
        let old = self.known_values(field);
        self.known.set(field, values);
        old
    }

    pub fn gaps(&self) -> impl Iterator<Item = usize> {
        let counts = self.known.counts().enumerate();
        counts.filter_map(|(field, count)| (count == 0).then_some(field))
    }

    pub fn is_complete(&self) -> bool {
        self.known.counts().all(|count| count > 0)
    }

    pub fn knows(&self) -> usize {
        self.known.counts().filter(|count| *count > 0).count()
    }
}

impl Table {
    /// Reads and understands a table.
    pub fn read(path: &Path, options: &FillOptions) -> Result<Table, Fault> {
        let sum = sum_of(path)?;
        let sample = Sample::read(path).map_err(Fault::usage)?;
        let wishes = ColumnChoices {
            id: options.id.clone(),
            urls: options.url.clone(),
            fields: options.fields.clone(),
            keep: options.keep.clone(),
        };
        let understanding = webfill_table::understand(&sample, &wishes).map_err(Fault::usage)?;
        let mut names = BTreeSet::new();
        // A column without gaps shows which page belongs to which row, and may be wrong as well.
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
                form: Kind::Text,
                decimals: None,
                numbers: None,
                is_in_utc: false,
                years: None,
                gap_words: GapWords::default(),
                comma: None,
                casing: None,
                clock: None,
                has_amounts: false,
                amount_space: None,
                has_cut_off: false,
                has_letters: false,
                has_formulas: false,
                has_repetitions: false,
            }
        });
        let mut table = Table {
            path: path.to_owned(),
            fields: fields.collect(),
            rows: Vec::new(),
            links: Vec::new(),
            faults: Vec::new(),
            linking: Vec::new(),
            linking_at: Vec::new(),
            by_url: LinkIndex::default(),
            understanding,
            sum,
        };
        let mut reader = webfill_table::open(path).map_err(Fault::usage)?;
        let mut sites = HashMap::new();
        while let Some(row) = reader.next_row() {
            match row {
                Ok(row) => table.add(&row, &mut sites),
                Err(fault) => table
                    .faults
                    .push(format!("line {}: {}", fault.number, fault.reason)),
            }
        }
        table.require_unchanged()?;
        table.index_links();
        table.find_forms();
        Ok(table)
    }

    /// Finds the rows of each link.
    fn index_links(&mut self) {
        self.rows.shrink_to_fit();
        self.links.shrink_to_fit();
        let mut at = vec![0; self.links.len() + 1];
        for &link in self.rows.iter().flat_map(|row| &row.links) {
            at[link as usize + 1] += 1;
        }
        for link in 1..at.len() {
            at[link] += at[link - 1];
        }
        let mut free = at.clone();
        self.linking = vec![0; at.last().copied().unwrap_or(0) as usize];
        for (number, row) in self.rows.iter().enumerate() {
            for &link in &row.links {
                let place = &mut free[link as usize];
                self.linking[*place as usize] = number as u32;
                *place += 1;
            }
        }
        self.linking_at = at;
    }

    /// The rows that link to a link, in the order of the table.
    pub fn rows_of(&self, link: u32) -> &[u32] {
        let link = link as usize;
        &self.linking[self.linking_at[link] as usize..self.linking_at[link + 1] as usize]
    }

    fn find_forms(&mut self) {
        for (at, field) in self.fields.iter_mut().enumerate() {
            let known = || self.rows.iter().flat_map(move |row| row.known_values(at));
            field.form = form::common_kind(known);
            if field.form == Kind::Number {
                field.decimals = form::decimals(known);
            }
            if field.form == Kind::Time {
                field.is_in_utc = form::is_in_utc(known);
            }
            if field.form == Kind::Date {
                field.years = form::years(known);
            }
            let some: Vec<String> = known().take(MOST_FOR_GAP_WORDS).collect();
            field.gap_words = GapWords::of_column(some.iter().map(String::as_str));
            if field.form == Kind::Text {
                field.has_letters = form::has_letters(known);
                field.numbers = number_style(known);
                field.comma = form::comma(known);
                field.casing = casing(known);
                field.clock = ClockStyle::of_column(known);
                field.has_amounts = form::has_amounts(known);
                field.amount_space = form::amount_space(known).filter(|_| field.has_amounts);
            }
            field.has_cut_off = known().any(|value| form::is_cut_off(&value));
            field.has_formulas = known().any(|value| is_like_a_formula(&value));
            let distinct = |list: &Vec<String>| list.iter().collect::<BTreeSet<_>>().len();
            let mut lists = self.rows.iter().map(|row| row.known_values(at));
            field.has_repetitions = lists.any(|list| distinct(&list) < list.len());
        }
    }

    /// Refuses a file that was changed since it was read, because its lines may be other rows.
    fn require_unchanged(&self) -> Result<(), Fault> {
        match sum_of(&self.path)? == self.sum {
            true => Ok(()),
            false => Err(Fault::error(format!(
                "{} was changed during the run: run the same command again, stored pages are not requested again",
                self.path.display()
            ))),
        }
    }

    fn add(&mut self, cells: &webfill_table::Row, sites: &mut HashMap<String, Arc<str>>) {
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
            match canonical(&text, None) {
                Ok(url) => {
                    let place = self.intern_link(&url, is_without_scheme, sites);
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
                false => values(cell, field),
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

    fn intern_link(
        &mut self,
        url: &Url,
        is_without_scheme: bool,
        sites: &mut HashMap<String, Arc<str>>,
    ) -> u32 {
        if let Some(place) = self.by_url.place(url.as_str(), &self.links) {
            return place;
        }
        let place = self.links.len() as u32;
        let name = site(url);
        let site = sites
            .entry(name)
            .or_insert_with_key(|name| Arc::from(name.as_str()));
        self.by_url.insert(url.as_str(), place);
        self.links.push(Link {
            url: url.as_str().to_owned(),
            site: Arc::clone(site),
            is_without_scheme,
        });
        place
    }

    /// Whether a URL is a link of a row.
    pub fn has_link(&self, url: &str) -> bool {
        self.by_url.place(url, &self.links).is_some()
    }

    /// The links of a row.
    pub fn links_of(&self, row: &Row) -> Vec<String> {
        let links = row.links.iter();
        links
            .map(|&link| self.links[link as usize].url.clone())
            .collect()
    }

    /// The links of each site, in the order of the table.
    pub fn links_by_site(&self) -> BTreeMap<&str, Vec<u32>> {
        let mut by_site: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (place, link) in self.links.iter().enumerate() {
            by_site.entry(&link.site).or_default().push(place as u32);
        }
        by_site
    }

    /// Lists lines that cannot be used, so that nothing is lost silently. `all` is where all of them are listed.
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

    /// Writes the same table with other values in some cells. Those that do not fit their column are reported, left out
    /// and returned.
    pub fn write_filled(
        &self,
        output: &Path,
        changes: &HashMap<(u64, usize), Change>,
    ) -> Result<Refused, Fault> {
        self.require_unchanged()?;
        let fields: HashMap<usize, &Field> = self
            .fields
            .iter()
            .map(|field| (field.column, field))
            .collect();
        let is_delimited = matches!(self.understanding.format, Format::Delimited(..));
        let (mut refused, mut reported) = (Refused::new(), Vec::new());
        let mut change = |row: u64, column: usize, cell: &Cell, is_gap: bool| {
            let change = changes.get(&(row, column))?;
            let field = fields.get(&column)?;
            let stands = if is_gap {
                Vec::new()
            } else {
                values(cell, field)
            };
            if stands != change.old {
                return None;
            }
            let fitted = field.fitted(change);
            let fitted = fitted.and_then(|values| match is_delimited {
                true => field.without_formulas(values),
                false => Ok(values),
            });
            let refusal = match fitted {
                Ok(values) => return Some(field.written(&values)),
                Err(reason) => reason,
            };
            reported.push((row, column, field.joined(&change.values), refusal.clone()));
            refused.insert((row, column), refusal);
            None
        };
        let written =
            webfill_table::write_changed(&self.path, output, &self.understanding, &mut change);
        let written = written.map_err(Fault::error)?;
        if let Err(fault) = self.require_unchanged() {
            // The output may have values in the wrong rows.
            let _ = std::fs::remove_file(output);
            return Err(fault);
        }
        reported.extend(written.refusals.into_iter().map(|refusal| {
            let place = (refusal.row, refusal.column);
            refused.insert(place, refusal.reason.clone());
            (refusal.row, refusal.column, refusal.value, refusal.reason)
        }));
        for place in written.refused_cells {
            let reason = || String::from("it does not fit its column");
            refused.entry(place).or_insert_with(reason);
        }
        for (row, column, value, reason) in reported.iter().take(MOST_FAULTS_SHOWN) {
            let name = &self.understanding.columns[*column].name;
            webfill_service::say!(
                "webfill: line {row}, {name}: `{value}` is not written: {reason}"
            );
        }
        let more = refused.len().saturating_sub(MOST_FAULTS_SHOWN);
        if more > 0 {
            webfill_service::say!("webfill: {more} more values are not written");
        }
        Ok(refused)
    }
}

/// A sum of all bytes of a file.
fn sum_of(path: &Path) -> Result<u64, Fault> {
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

fn is_like_a_formula(text: &str) -> bool {
    CellStyle::Spreadsheet.text(text) != text
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
