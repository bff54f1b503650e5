//! How often mappings fill their fields on several pages, and on which they do not. Writing to a
//! string cannot fail.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};
use webfill_mapping::Extraction;

use crate::demand::table::{table, visible};

/// Text names so many pages of a kind, JSON so many.
const PAGES_IN_TEXT: usize = 3;
const PAGES_IN_JSON: usize = 10;

/// The results of several pages.
#[derive(Default)]
pub struct FillRates {
    pages: usize,
    mappings: BTreeMap<String, OfMapping>,
    no_mapping: Vec<String>,
    failed: Vec<String>,
}

#[derive(Default)]
struct OfMapping {
    pages: usize,
    fields: Vec<OfField>,
}

struct OfField {
    name: String,
    filled: usize,
    empty_on: Vec<String>,
}

impl FillRates {
    /// A page on which a mapping with these fields was tried.
    pub fn add(&mut self, page: &str, fields: &[&str], extraction: &Extraction) {
        self.pages += 1;
        let name = extraction.mapping.clone().unwrap_or_default();
        let mapping = self.mappings.entry(name).or_insert_with(|| OfMapping {
            pages: 0,
            fields: fields.iter().map(|name| OfField::new(name)).collect(),
        });
        mapping.pages += 1;
        for field in &mut mapping.fields {
            match extraction.fields.contains_key(&field.name) {
                true => field.filled += 1,
                false => field.empty_on.push(page.to_owned()),
            }
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
        let mapping = |(name, mapping): (&String, &OfMapping)| {
            let fields = mapping.fields.iter();
            let fields: Map<String, Value> = fields
                .map(|field| (field.name.clone(), field.json()))
                .collect();
            (
                name.clone(),
                json!({"pages": mapping.pages, "fields": fields}),
            )
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
        let mut told = String::new();
        for (name, mapping) in &self.mappings {
            let _ = writeln!(told, "mapping {name} on {}", pages(mapping.pages));
            let rows: Vec<Vec<String>> = mapping.fields.iter().map(OfField::row).collect();
            let heads = ["field", "filled", "empty", "share", "empty on"];
            let _ = writeln!(told, "{}\n", table(&heads, &rows));
        }
        for (what, names) in [
            ("no mapping matches", &self.no_mapping),
            ("failed:", &self.failed),
        ] {
            if !names.is_empty() {
                let _ = writeln!(told, "{what} {}: {}", pages(names.len()), some(names));
            }
        }
        told.trim_end().to_owned()
    }
}

impl OfField {
    fn new(name: &str) -> OfField {
        OfField {
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
            some(&self.empty_on),
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

fn pages(count: usize) -> String {
    match count {
        1 => "1 page".to_owned(),
        count => format!("{count} pages"),
    }
}

/// The first of the names, and how many there are more.
fn some(names: &[String]) -> String {
    let shown = names.iter().take(PAGES_IN_TEXT);
    let shown: Vec<String> = shown.map(|name| visible(name)).collect();
    match names.len().saturating_sub(PAGES_IN_TEXT) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
