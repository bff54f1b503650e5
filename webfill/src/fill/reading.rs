//! What the mappings read on the kept pages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_mapping::{Engine, Limits, MappingIndex, PageInput, Wants};
use webfill_service::Fault;

use super::excerpt::PlainText;
use super::mappings::Mappings;
use super::pages::{Pages, rows_of_targets};
use super::table::Table;

/// The longest that one page may take.
const PAGE_TIME: Duration = Duration::from_secs(10);

/// The shortest known value that is searched for on pages, in characters.
const LEAST_TELLING: usize = 3;

/// What was read of a page.
#[derive(Debug)]
pub struct Reading {
    /// Its place in the set that is used now.
    pub mapping: MappingIndex,
    name: String,
    pub version: String,
    content_hash: Option<String>,
    pub fields: Vec<FieldReading>,
    /// Links behind which more values stand, in canonical form.
    pub links: Vec<String>,
}

#[derive(Debug)]
pub struct FieldReading {
    /// A place in the fields of the table.
    pub field: usize,
    /// 0: the first chain of the field.
    pub chain: usize,
    pub values: Vec<String>,
    /// The words around the value.
    pub excerpt: Option<String>,
    /// Whether the other value that the row has stands on the page; `None` if there is none, or it is too short to be
    /// searched for.
    pub known_stands_there: Option<bool>,
}

/// By the URL of the page.
pub type Readings = BTreeMap<String, Reading>;

/// Reads all pages that were not read by the same mapping before. What former mappings read, or was read of pages that
/// are not there any more, is forgotten.
pub fn read(
    table: &Table,
    pages: &Pages<'_>,
    mappings: &Mappings,
    readings: &mut Readings,
) -> Result<(), Fault> {
    let engine = Engine::new(mappings.set.clone(), Limits::default());
    let rows = rows_of_targets(table, pages);
    // Mappings have other places after others were learned.
    readings.retain(|url, reading| {
        let Some(index) = mappings.set.find(url) else {
            return false;
        };
        reading.mapping = index;
        reading.name == mappings.set.name(index)
            && reading.version == mappings.set.version_of(index)
            && pages
                .get(url)
                .is_some_and(|page| page.content_hash == reading.content_hash)
    });
    let done: BTreeSet<String> = readings.keys().cloned().collect();
    let is_wanted = |url: &str| !done.contains(url) && mappings.covers(url);
    let mut read = Vec::new();
    pages.read(&is_wanted, &mut |stored, page| {
        let Some(index) = mappings.set.find(page.url.as_str()) else {
            return Ok(());
        };
        let input = PageInput {
            url: &page.url,
            kind: page.kind,
            text: &page.text,
        };
        let wants = Wants {
            mapped_links: true,
            deadline: Some(Instant::now() + PAGE_TIME),
            ..Wants::default()
        };
        // A page that takes too long is as one that has nothing.
        let Ok(extraction) = engine.extract(input, wants) else {
            return Ok(());
        };
        let row = rows.get(page.url.as_str()).filter(|rows| rows.len() == 1);
        let row = row
            .and_then(|rows| rows.first())
            .map(|&row| &table.rows[row as usize]);
        let mut text = PlainText::of(&page.text);
        let fields = table.fields.iter().enumerate().filter_map(|(at, field)| {
            let values = texts(extraction.fields.get(&field.name)?);
            let first = values.first()?;
            let number = extraction
                .alternatives
                .get(&field.name)
                .and_then(Value::as_u64);
            let known = row
                .map(|row| row.known(at))
                .filter(|known| !known.is_empty());
            let other = known.filter(|known| !agrees(known, &values));
            // Short ones stand on any page.
            let is_telling = |value: &String| value.chars().count() >= LEAST_TELLING;
            let other: Vec<String> = other.into_iter().flatten().filter(is_telling).collect();
            Some(FieldReading {
                field: at,
                chain: number.map_or(0, |number| number.saturating_sub(1) as usize),
                excerpt: text.around(first),
                known_stands_there: (!other.is_empty())
                    .then(|| other.iter().all(|value| text.has(value))),
                values,
            })
        });
        read.push((
            page.url.to_string(),
            Reading {
                mapping: index,
                name: mappings.set.name(index).to_owned(),
                version: extraction.mapping_version.clone().unwrap_or_default(),
                content_hash: stored.content_hash.clone(),
                fields: fields.collect(),
                links: extraction.links.clone(),
            },
        ));
        Ok(())
    })?;
    readings.extend(read);
    Ok(())
}

/// Whether what was read is what is known, perhaps in another spelling.
pub fn agrees(known: &[String], read: &[String]) -> bool {
    let is_read = |value: &String| {
        read.iter()
            .any(|read| webfill_learn::is_same_value(value, read))
    };
    known.len() == read.len() && known.iter().all(is_read)
}

/// Whether what was read is what is known but for slips of the keyboard.
pub fn is_misspelt(known: &[String], read: &[String]) -> bool {
    let is_read = |value: &String| {
        read.iter().any(|read| {
            webfill_learn::is_same_value(value, read)
                || webfill_learn::is_misspelt_value(value, read)
        })
    };
    known.len() == read.len() && known.iter().all(is_read)
}

fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(webfill_values::trimmed(text).to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let texts: Vec<String> = match value {
        Value::Array(values) => values.iter().filter_map(text).collect(),
        value => text(value).into_iter().collect(),
    };
    texts
        .into_iter()
        .filter(|text| !webfill_values::is_blank(text))
        .collect()
}
