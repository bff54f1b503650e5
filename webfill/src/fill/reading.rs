//! Reads the kept pages with the mappings.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_mapping::{Engine, Limits, MappingIndex, PageInput, RequestedParts};
use webfill_service::Fault;

use super::excerpt::{PlainText, Stands};
use super::form::is_cut_off;
use super::mappings::Mappings;
use super::pages::{Pages, rows_of_targets};
use super::table::Table;

/// The time limit for reading one page.
const PAGE_TIME: Duration = Duration::from_secs(10);

/// A known value shorter than this many characters may be on a page by chance.
const LEAST_CHARS: usize = 3;

/// If a page does not yield the known value of its row, other known values of the column are searched for on it. If the
/// column has at most `DIFFERENT` different values, all are searched for, otherwise the values of at most `OTHERS`
/// rows.
const DIFFERENT: usize = 48;
const OTHERS: usize = 24;
/// The most bytes of a value that is searched for, because searching for longer ones is slow; and the most rows whose
/// values are considered.
const LONGEST_OF_OTHERS: usize = 1_000;
const ROWS_OF_OTHERS: usize = 2_000;

/// The values that a mapping reads on a page.
#[derive(Debug)]
pub struct Reading {
    /// The index of the mapping in the current set.
    pub mapping: MappingIndex,
    name: String,
    pub version: String,
    content_hash: Option<String>,
    pub fields: Vec<FieldReading>,
    /// Links to pages with further values of the row, in canonical form.
    pub links: Vec<String>,
}

#[derive(Debug)]
pub struct FieldReading {
    /// The index of the field in the table.
    pub field: usize,
    /// The number of the chain; 0 is the first chain of the field.
    pub chain: usize,
    pub values: Vec<String>,
    /// How many different values the chain yields on the page, and how many values in all. A field with a single value
    /// takes the first.
    pub different: usize,
    pub count: usize,
    /// The text around the value.
    pub excerpt: Option<String>,
    /// Known values of the row that were not read. It is empty on pages behind links, which are not searched.
    pub unread: Vec<UnreadValue>,
}

/// A known value that was not read.
#[derive(Debug)]
pub struct UnreadValue {
    pub value: String,
    /// Whether the page contains the value. `None` if it may be there by chance, because it is short or a word within a
    /// sentence.
    pub stands: Option<bool>,
    /// The probability that the page contains a wrong value of the column: the share of other rows' values that it
    /// contains.
    pub chance: f32,
}

/// Some known values of a column.
struct Column {
    values: Vec<OtherValue>,
    /// The share of the column's rows that these values were taken from.
    taken: f32,
}

/// A known value of a column.
struct OtherValue {
    value: String,
    form: String,
    /// The number of rows with this value.
    rows: f32,
}

/// The readings of pages, by URL.
pub type Readings = BTreeMap<String, Reading>;

/// Reads all pages that their current mapping has not read yet. Earlier readings are dropped if the mapping or the page
/// has changed, or if the page is no longer stored.
pub fn read_pages(
    table: &Table,
    pages: &Pages<'_>,
    mappings: &Mappings,
    readings: &mut Readings,
) -> Result<(), Fault> {
    // Read all values of each field. Otherwise, readings would not show that a page has several values.
    let engine = Engine::new(Arc::new(mappings.with_all_values()?), Limits::default());
    let rows = rows_of_targets(table, pages);
    let columns: Vec<Column> = (0..table.fields.len())
        .map(|field| Column::from_field(table, field))
        .collect();
    // After other mappings were learned, a mapping may have another index in the set.
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
    pages.for_each_page(&is_wanted, &mut |stored, page| {
        let Some(index) = mappings.set.find(page.url.as_str()) else {
            return Ok(());
        };
        let input = PageInput {
            url: &page.url,
            kind: page.kind,
            text: &page.text,
        };
        let wants = RequestedParts {
            mapped_links: true,
            deadline: Some(Instant::now() + PAGE_TIME),
            ..RequestedParts::default()
        };
        let name = mappings.set.name(index);
        // A page that exceeds the time limit counts as a page without values.
        let Ok(extraction) =
            engine.extract_with_mapping(engine.set().find_by_name(name), input, wants)
        else {
            return Ok(());
        };
        let row = rows.get(page.url.as_str()).filter(|rows| rows.len() == 1);
        let row = row
            .and_then(|rows| rows.first())
            .map(|&row| &table.rows[row as usize]);
        let mut text = PlainText::from_html(&page.text);
        let fields = table.fields.iter().enumerate().filter_map(|(at, field)| {
            let mut values = texts(extraction.fields.get(&field.name)?);
            let takes_first = mappings.takes_first(name, &field.name);
            let (different, count) = (count_different(&values), values.len());
            if takes_first {
                values.truncate(1);
            }
            // A text such as `n/a` on the page means a gap if it means one in the table.
            values.retain(|value| !field.means_gap(value));
            // A list that ends in `more ...` is incomplete.
            if !takes_first && field.lacks_cut_off() && values.iter().any(|value| is_cut_off(value))
            {
                return None;
            }
            let first = values.first()?;
            let number = extraction
                .alternatives
                .get(&field.name)
                .and_then(Value::as_u64);
            let known = row
                .map(|row| row.known_values(at))
                .filter(|known| !known.is_empty());
            let known = known.unwrap_or_default();
            let unread: Vec<String> = known
                .into_iter()
                .filter(|value| !contains_value(value, &values))
                .collect();
            let unread = columns[at].compare_unread(unread, &values, &mut text);
            Some(FieldReading {
                field: at,
                chain: number.map_or(0, |number| number.saturating_sub(1) as usize),
                excerpt: text.words_around(first),
                unread,
                values,
                different,
                count,
            })
        });
        read.push((
            page.url.to_string(),
            Reading {
                mapping: index,
                name: name.to_owned(),
                version: mappings.set.version_of(index).to_owned(),
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

impl Column {
    fn from_field(table: &Table, field: usize) -> Column {
        let step = table.rows.len().div_ceil(ROWS_OF_OTHERS).max(1);
        let known = table.rows.iter().step_by(step);
        let known: Vec<String> = known
            .filter_map(|row| row.known_values(field).into_iter().next())
            .filter(|value| value.len() <= LONGEST_OF_OTHERS)
            .collect();
        let all = Column::from_sample(known.iter(), step);
        match all.values.len() > DIFFERENT {
            false => all,
            true => {
                let apart = known.len().div_ceil(OTHERS).max(1);
                Column::from_sample(known.iter().step_by(apart), step * apart)
            }
        }
    }

    /// `known` has the values of every `step`-th row.
    fn from_sample<'v>(known: impl Iterator<Item = &'v String>, step: usize) -> Column {
        let mut values: Vec<OtherValue> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for value in known {
            let form = webfill_learn::common_form(value);
            let place = *places.entry(form.clone()).or_insert(values.len());
            if place == values.len() {
                let (value, rows) = (value.clone(), 0.0);
                values.push(OtherValue { value, form, rows });
            }
            values[place].rows += 1.0;
        }
        let taken = 1.0 / step as f32;
        Column { values, taken }
    }

    /// Searches the page for known values that were not read, and for the values of other rows.
    fn compare_unread(
        &self,
        unread: Vec<String>,
        values: &[String],
        text: &mut PlainText<'_>,
    ) -> Vec<UnreadValue> {
        if unread.is_empty() {
            return Vec::new();
        }
        let form = |value: &String| webfill_learn::common_form(value);
        let read: Vec<String> = values.iter().map(form).collect();
        let others = self.values.iter();
        let others: Vec<(&OtherValue, bool)> = others
            .filter(|other| !read.contains(&other.form))
            .map(|other| (other, text.contains_value(&other.value)))
            .collect();
        let compared = unread.into_iter().map(|value| {
            let stands = match text.find_occurrence(&value) {
                Stands::Not => Some(false),
                Stands::Apart if value.chars().count() >= LEAST_CHARS => Some(true),
                Stands::Apart | Stands::InSentences => None,
            };
            let own = form(&value);
            let (mut all, mut standing) = (0.0, 0.0);
            for (other, stands) in &others {
                // Rows that have the same value count, too. Otherwise, in a column with few different values, the
                // chance would come out too low for a page that contains this value.
                let rows = match other.form == own {
                    true => (other.rows - self.taken).max(0.0),
                    false => other.rows,
                };
                all += rows;
                standing += if *stands { rows } else { 0.0 };
            }
            UnreadValue {
                stands,
                chance: standing / (all + 1.0),
                value,
            }
        });
        compared.collect()
    }
}

/// Whether the values that were read are the known ones, perhaps in another spelling.
pub fn agrees(known: &[String], read: &[String]) -> bool {
    known.len() == read.len() && known.iter().all(|value| contains_value(value, read))
}

pub fn contains_value(value: &str, read: &[String]) -> bool {
    read.iter()
        .any(|read| webfill_learn::is_same_value(value, read))
}

/// Whether the values that were read are the known ones, except for typing errors.
pub fn is_misspelt(known: &[String], read: &[String]) -> bool {
    let is_read = |value: &String| {
        read.iter().any(|read| {
            webfill_learn::is_same_value(value, read)
                || webfill_learn::is_misspelt_value(value, read)
        })
    };
    known.len() == read.len() && known.iter().all(is_read)
}

fn count_different(values: &[String]) -> usize {
    let forms = values.iter().map(|value| webfill_learn::common_form(value));
    match values.len() {
        0 | 1 => values.len(),
        _ => forms.collect::<BTreeSet<_>>().len(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(webfill_values::trim(text).to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chances(known: &[&str], unread: &[&str], page: &str) -> Vec<(Option<bool>, f32)> {
        let known: Vec<String> = known.iter().map(|value| (*value).to_owned()).collect();
        let column = Column::from_sample(known.iter(), 1);
        let unread = unread.iter().map(|value| (*value).to_owned()).collect();
        let compared = column.compare_unread(
            unread,
            &["Meitner".to_owned()],
            &mut PlainText::from_html(page),
        );
        let compared = compared.into_iter();
        compared.map(|one| (one.stands, one.chance)).collect()
    }

    #[test]
    fn in_a_column_of_few_values_the_chance_is_the_same_whichever_of_them_is_known() {
        let known = ["Byron", "Curie", "Hopper", "Meitner", "Noether"].repeat(40);
        let page = "<h1>Meitner</h1> beside <b>Byron</b>, <b>Curie</b>";
        let found = chances(&known, &["Byron", "Hopper"], page);
        let [(stands, of_standing), (lacks, of_other)] = found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((stands, lacks), (Some(true), Some(false)));
        for chance in [of_standing, of_other] {
            assert!((chance - 0.5).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn a_word_of_a_sentence_may_stand_there_by_chance() {
        let page =
            "<h1>Meitner</h1><p>She wrote to Curie about what she had seen in her laboratory</p>";
        let of = |page: &str| chances(&["Byron", "Hopper"], &["Curie"], page)[0].0;
        assert_eq!(of(page), None);
        assert_eq!(of(&format!("{page}<b>Curie</b>")), Some(true));
        assert_eq!(of("<h1>Meitner</h1>"), Some(false));
    }

    #[test]
    fn in_a_column_of_many_values_the_known_one_is_no_other() {
        let known: Vec<String> = (0..30).map(|number| format!("Lamp {number}")).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let found = chances(&known, &["Lamp 7"], "Meitner and Lamp 7");
        assert_eq!(found, [(Some(true), 0.0)]);
    }
}
