//! Counts how often mappings fill their fields on several pages, and lists the pages with empty fields. Results of
//! `writeln!` are ignored, because writing to a string cannot fail.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};
use webfill_mapping::{Extraction, Listing, Row};

use crate::demand::table::{table, without_control_characters};

/// The most pages named for a field, in text and in JSON.
const PAGES_IN_TEXT: usize = 3;
const PAGES_IN_JSON: usize = 10;

/// Counts over several pages how often mappings fill their fields.
#[derive(Default)]
pub struct FillRates {
    pages: usize,
    mappings: BTreeMap<String, MappingRates>,
    no_mapping: Vec<String>,
    failed: Vec<String>,
}

#[derive(Default)]
struct MappingRates {
    pages: usize,
    fields: Vec<FieldRates>,
    rows: Vec<RowRates>,
}

/// Counts how often the fields of one row rule are filled. Such a rule reads rows from pages into a dataset.
struct RowRates {
    dataset: String,
    rows: usize,
    none_on: Vec<String>,
    /// For each field, the number of rows with a value.
    fields: Vec<(String, usize)>,
}

struct FieldRates {
    name: String,
    filled: usize,
    empty_on: Vec<String>,
}

impl FillRates {
    /// Adds the result for a page. `fields` and `rows` are those of the mapping that was tried.
    pub fn add(
        &mut self,
        page: &str,
        fields: &[&str],
        rows: &[(&str, Vec<&str>)],
        extraction: &Extraction,
    ) {
        self.pages += 1;
        let name = extraction.mapping.clone().unwrap_or_default();
        let mapping = self.mappings.entry(name).or_insert_with(|| MappingRates {
            pages: 0,
            fields: fields.iter().map(|name| FieldRates::new(name)).collect(),
            rows: rows.iter().map(RowRates::new).collect(),
        });
        mapping.pages += 1;
        for field in &mut mapping.fields {
            match extraction.fields.contains_key(&field.name) {
                true => field.filled += 1,
                false => field.empty_on.push(page.to_owned()),
            }
        }
        for (of_rows, listing) in mapping.rows.iter_mut().zip(&extraction.listings) {
            of_rows.add(page, listing);
        }
    }

    pub fn add_without_mapping(&mut self, page: &str) {
        self.pages += 1;
        self.no_mapping.push(page.to_owned());
    }

    pub fn add_failed(&mut self, page: &str) {
        self.pages += 1;
        self.failed.push(page.to_owned());
    }

    /// Whether every page could be read, and at least one had a mapping.
    pub fn are_good(&self) -> bool {
        self.failed.is_empty() && !self.mappings.is_empty()
    }

    pub fn json(&self) -> Value {
        let mapping = |(name, mapping): (&String, &MappingRates)| {
            let fields = mapping.fields.iter();
            let fields: Map<String, Value> = fields
                .map(|field| (field.name.clone(), field.json()))
                .collect();
            let mut report = json!({"pages": mapping.pages, "fields": fields});
            if !mapping.rows.is_empty() {
                report["rows"] = mapping.rows.iter().map(RowRates::json).collect();
            }
            (name.clone(), report)
        };
        let mappings: Map<String, Value> = self.mappings.iter().map(mapping).collect();
        json!({
            "pages": self.pages,
            "mappings": mappings,
            "no_mapping": self.no_mapping,
            "failed": self.failed,
        })
    }

    pub fn text(&self) -> String {
        let mut output = String::new();
        for (name, mapping) in &self.mappings {
            let _ = writeln!(
                output,
                "mapping {name} on {}",
                format_page_count(mapping.pages)
            );
            let rows: Vec<Vec<String>> = mapping.fields.iter().map(FieldRates::row).collect();
            let heads = ["field", "filled", "empty", "share", "empty on"];
            if !rows.is_empty() {
                let _ = writeln!(output, "{}\n", table(&heads, &rows));
            }
            for rows in &mapping.rows {
                let _ = writeln!(output, "{}\n", rows.text());
            }
        }
        for (what, names) in [
            ("no mapping matches", &self.no_mapping),
            ("failed:", &self.failed),
        ] {
            if !names.is_empty() {
                let _ = writeln!(
                    output,
                    "{what} {}: {}",
                    format_page_count(names.len()),
                    first_names(names)
                );
            }
        }
        output.trim_end().to_owned()
    }
}

impl FieldRates {
    fn new(name: &str) -> FieldRates {
        FieldRates {
            name: name.to_owned(),
            filled: 0,
            empty_on: Vec::new(),
        }
    }

    fn share(&self) -> f64 {
        self.filled as f64 / (self.filled + self.empty_on.len()).max(1) as f64
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.filled.to_string(),
            self.empty_on.len().to_string(),
            format!("{:5.1} %", 100.0 * self.share()),
            first_names(&self.empty_on),
        ]
    }

    fn json(&self) -> Value {
        let empty_on = &self.empty_on[..self.empty_on.len().min(PAGES_IN_JSON)];
        json!({
            "filled": self.filled,
            "empty": self.empty_on.len(),
            "share": self.share(),
            "empty_on": empty_on,
        })
    }
}

impl RowRates {
    fn new((dataset, fields): &(&str, Vec<&str>)) -> RowRates {
        RowRates {
            dataset: (*dataset).to_owned(),
            rows: 0,
            none_on: Vec::new(),
            fields: fields.iter().map(|name| ((*name).to_owned(), 0)).collect(),
        }
    }

    fn add(&mut self, page: &str, listing: &Listing) {
        self.rows += listing.rows.len();
        if listing.rows.is_empty() {
            self.none_on.push(page.to_owned());
        }
        for (name, filled) in &mut self.fields {
            let has = |row: &&Row| row.fields.get(name).is_some_and(|value| !value.is_null());
            *filled += listing.rows.iter().filter(has).count();
        }
    }

    fn share(&self, filled: usize) -> f64 {
        filled as f64 / self.rows.max(1) as f64
    }

    fn json(&self) -> Value {
        let fields = self.fields.iter().map(|(name, filled)| {
            let counts = json!({
                "filled": filled,
                "empty": self.rows - filled,
                "share": self.share(*filled),
            });
            (name.clone(), counts)
        });
        let none_on = &self.none_on[..self.none_on.len().min(PAGES_IN_JSON)];
        json!({
            "dataset": self.dataset,
            "rows": self.rows,
            "pages_without": self.none_on.len(),
            "none_on": none_on,
            "fields": fields.collect::<Map<String, Value>>(),
        })
    }

    fn text(&self) -> String {
        let rows = self.fields.iter().map(|(name, filled)| {
            vec![
                name.clone(),
                filled.to_string(),
                (self.rows - filled).to_string(),
                format!("{:5.1} %", 100.0 * self.share(*filled)),
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let none_on = match self.none_on.is_empty() {
            true => String::new(),
            false => format!("; none on {}", first_names(&self.none_on)),
        };
        format!(
            "rows of {}: {}{none_on}\n{}",
            without_control_characters(&self.dataset),
            self.rows,
            table(&["field of rows", "filled", "empty", "share"], &rows)
        )
    }
}

fn format_page_count(count: usize) -> String {
    match count {
        1 => "1 page".to_owned(),
        count => format!("{count} pages"),
    }
}

/// The first few names, and the number of further ones.
fn first_names(names: &[String]) -> String {
    let shown = names.iter().take(PAGES_IN_TEXT);
    let shown: Vec<String> = shown.map(|name| without_control_characters(name)).collect();
    match names.len().saturating_sub(PAGES_IN_TEXT) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
