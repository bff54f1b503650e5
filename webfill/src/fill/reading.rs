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

/// The shortest known value that says something by standing on a page, in characters.
const LEAST_TELLING: usize = 3;

/// Known values of a column that are searched for on a page that lacks the row's own, and rows that they are taken of.
const OTHERS: usize = 24;
/// In bytes: longer ones are searched for at a price.
const LONGEST_OF_OTHERS: usize = 1_000;
const ROWS_OF_OTHERS: usize = 2_000;

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
    /// Values that the row has and that were not read, and whether each stands on the page. `None`: it does, and is so
    /// short that it would on any page. Empty on pages behind links, which are not searched.
    pub unread: Vec<(String, Option<bool>)>,
    /// If there are any: the share of other rows' values that stand on the page as well.
    pub chance: f32,
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
    let others: Vec<Vec<String>> = (0..table.fields.len())
        .map(|field| of_other_rows(table, field))
        .collect();
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
            let known = known.unwrap_or_default();
            let is_telling = |value: &String| value.chars().count() >= LEAST_TELLING;
            let unread: Vec<(String, Option<bool>)> = known
                .iter()
                .filter(|value| !is_among(value, &values))
                .map(|value| {
                    let stands = text.has(value);
                    (
                        value.clone(),
                        (!stands || is_telling(value)).then_some(stands),
                    )
                })
                .collect();
            let chance = match unread.is_empty() {
                true => 0.0,
                false => {
                    let others = others[at].iter();
                    let others = others
                        .filter(|value| !is_among(value, &values) && !is_among(value, &known));
                    let stand: Vec<bool> = others.map(|value| text.has(value)).collect();
                    let standing = stand.iter().filter(|stands| **stands).count();
                    standing as f32 / (stand.len() + 1) as f32
                }
            };
            Some(FieldReading {
                field: at,
                chain: number.map_or(0, |number| number.saturating_sub(1) as usize),
                excerpt: text.around(first),
                unread,
                chance,
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

/// Known values of a column, spread over the table.
fn of_other_rows(table: &Table, field: usize) -> Vec<String> {
    let step = table.rows.len().div_ceil(ROWS_OF_OTHERS).max(1);
    let known = table.rows.iter().step_by(step);
    let known: Vec<String> = known
        .filter_map(|row| row.known(field).into_iter().next())
        .filter(|value| value.len() <= LONGEST_OF_OTHERS)
        .collect();
    let step = known.len().div_ceil(OTHERS).max(1);
    known.into_iter().step_by(step).collect()
}

/// Whether what was read is what is known, perhaps in another spelling.
pub fn agrees(known: &[String], read: &[String]) -> bool {
    known.len() == read.len() && known.iter().all(|value| is_among(value, read))
}

pub fn is_among(value: &str, read: &[String]) -> bool {
    read.iter()
        .any(|read| webfill_learn::is_same_value(value, read))
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
