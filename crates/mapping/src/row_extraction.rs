//! Extracts the rows of a page. Each field is read relative to its row.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::chain::NoObserver;
use crate::engine::{Links, estimate_memory, field_value};
use crate::item::Item;
use crate::listing::{Listing, Row};
use crate::mapping::Mapping;
use crate::rows::{Origin, RowField, RowRule};
use crate::run::{OutOfTime, Run};

/// Extracts all listings of a page, in the order of the mapping's rules. Includes the links of rows if they are wanted.
pub(crate) fn extract_listings(
    mapping: &Mapping,
    with_links: bool,
    run: &Run<'_>,
) -> Result<Vec<Listing>, OutOfTime> {
    let mut room = RowBudget {
        bytes: run.limits.fields_bytes,
        links: if with_links { run.limits.links } else { 0 },
        links_left_out: 0,
    };
    let rules = mapping.rows.iter();
    let listings = rules
        .map(|rule| extract_listing(rule, run, &mut room))
        .collect();
    if with_links && room.links_left_out > 0 {
        run.warn(format_args!(
            "{} links of rows beyond the limit were dropped",
            room.links_left_out
        ));
    }
    listings
}

/// The bytes and links that are left for the rows of a page, all listings together.
struct RowBudget {
    bytes: usize,
    links: usize,
    links_left_out: usize,
}

fn extract_listing(
    rule: &RowRule,
    run: &Run<'_>,
    room: &mut RowBudget,
) -> Result<Listing, OutOfTime> {
    run.set_subject(format!("rows of {}", rule.dataset));
    let mut listing = Listing {
        dataset: rule.dataset.clone(),
        key: rule.key.clone(),
        from_record: record_fields(rule),
        want: rule.want.clone(),
        complete: rule.complete,
        ..Listing::default()
    };
    let elements = run.with_most_values(run.limits.rows, || {
        rule.select.run_for_rows(run, &mut NoObserver)
    })?;
    listing.cut = elements.len() >= run.limits.rows;
    let mut of_page = HashMap::new();
    let mut again = Vec::new();
    for (position, element) in elements.into_iter().enumerate() {
        run.check_time()?;
        let before = again.len();
        let row = listing.rows.len();
        let mut read = read_row(rule, &element, &mut of_page, run, |one| {
            again.push((row, one, element.clone()));
        })?;
        if !has_own_value(rule, &read.fields) && again.len() == before {
            continue;
        }
        if read.bytes > run.limits.row_bytes {
            run.warn(format_args!(
                "row {position} has more than {} bytes and was dropped",
                run.limits.row_bytes
            ));
            listing.cut = true;
            again.truncate(before);
            continue;
        }
        let links = read_row_links(rule, &element, run, room)?;
        read.bytes += links.iter().map(String::len).sum::<usize>();
        if read.bytes > room.bytes {
            run.warn("the page's rows exceed the size limit; the rest was dropped");
            listing.cut = true;
            again.truncate(before);
            break;
        }
        room.bytes -= read.bytes;
        listing.rows.push(Row {
            position,
            links,
            fields: read.fields,
            undecided: read.undecided,
        });
    }
    for (row, one, element) in again {
        let found = run
            .columns
            .with_evidence(|| read_row_value(one, &element, &mut of_page, run))?;
        let row = &mut listing.rows[row];
        row.fields.insert(one.field.name.clone(), found.value);
        if found.is_undecided {
            row.undecided.push(one.field.name.clone());
        }
    }
    listing.rows.retain(|row| has_own_value(rule, &row.fields));
    Ok(listing)
}

/// A row whose fields were read without the other rows.
struct ReadRow {
    fields: Map<String, Value>,
    /// Fields that have no value because their text can be read in two ways.
    undecided: Vec<String>,
    bytes: usize,
}

/// Reads the fields of a row. Adds to `depends` each field whose notation depends on other rows, so that it is read
/// again when all rows are known.
fn read_row<'r, 'p>(
    rule: &'r RowRule,
    element: &Item<'p>,
    of_page: &mut HashMap<&'r str, RowValue>,
    run: &Run<'p>,
    mut depends: impl FnMut(&'r RowField),
) -> Result<ReadRow, OutOfTime> {
    let mut row = ReadRow {
        fields: Map::new(),
        undecided: Vec::new(),
        bytes: 0,
    };
    for one in &rule.fields {
        let mut read = || read_row_value(one, element, of_page, run);
        let (value, is_dependent) = match one.origin {
            Origin::Row => run.columns.gather_evidence(read),
            Origin::Page | Origin::Url | Origin::Record(_) => (read(), false),
        };
        let found = value?;
        if found.is_undecided && !is_dependent {
            row.undecided.push(one.field.name.clone());
        }
        row.bytes += estimate_memory(&found.value);
        row.fields.insert(one.field.name.clone(), found.value);
        if is_dependent {
            depends(one);
        }
    }
    Ok(row)
}

/// Whether the row has a value of its own. Values from the whole page do not count, because every element would have
/// them, even an empty separator.
fn has_own_value(rule: &RowRule, fields: &Map<String, Value>) -> bool {
    let mut of_row = rule.fields.iter().filter(|one| one.origin == Origin::Row);
    of_row.any(|one| !fields[&one.field.name].is_null())
}

/// Reads the fields of all rows once, to find the notation that the rows share before they are read again.
pub(crate) fn gather_columns<'p>(rule: &RowRule, elements: &[Item<'p>], run: &Run<'p>) {
    let of_row = rule.fields.iter().filter(|one| one.origin == Origin::Row);
    for one in of_row {
        for element in elements {
            let (field, start) = (&one.field, element.clone());
            let read = || field_value(field, &field.alternatives, start, run, &mut NoObserver);
            if run.columns.gather_evidence(read).0.is_err() {
                return;
            }
        }
    }
}

/// The most links of one row.
const MOST_LINKS: usize = 16;

fn read_row_links<'p>(
    rule: &RowRule,
    row: &Item<'p>,
    run: &Run<'p>,
    room: &mut RowBudget,
) -> Result<Vec<String>, OutOfTime> {
    if rule.links.is_empty() {
        return Ok(Vec::new());
    }
    let mut links = Links::new(run.page, run.page.base(), MOST_LINKS);
    for chain in &rule.links {
        for item in chain.run(row.clone(), run, &mut NoObserver)? {
            links.add(&run.text(&item));
        }
    }
    let mut links = links.finish(run);
    room.links_left_out += links.len().saturating_sub(room.links);
    links.truncate(room.links);
    room.links -= links.len();
    Ok(links)
}

fn record_fields(rule: &RowRule) -> Map<String, Value> {
    let named = rule.fields.iter().filter_map(|one| match &one.origin {
        Origin::Record(field) => Some((one.field.name.clone(), field.clone().into())),
        Origin::Row | Origin::Page | Origin::Url => None,
    });
    named.collect()
}

/// The value of a row's field; null if there is none.
#[derive(Clone)]
struct RowValue {
    value: Value,
    /// Whether the value is missing only because the text can be read in two ways.
    is_undecided: bool,
}

/// The value of a field in a row. Fields from the page as a whole are read once for all rows.
fn read_row_value<'r, 'p>(
    one: &'r RowField,
    row: &Item<'p>,
    of_page: &mut HashMap<&'r str, RowValue>,
    run: &Run<'p>,
) -> Result<RowValue, OutOfTime> {
    let read = |start: Item<'p>| -> Result<RowValue, OutOfTime> {
        run.take_undecided();
        let found = field_value(
            &one.field,
            &one.field.alternatives,
            start,
            run,
            &mut NoObserver,
        )?;
        Ok(RowValue {
            is_undecided: found.is_none() && run.take_undecided(),
            value: found.map_or(Value::Null, |(value, _)| value),
        })
    };
    let start = match one.origin {
        Origin::Row => return read(row.clone()),
        Origin::Record(_) => {
            return Ok(RowValue {
                value: Value::Null,
                is_undecided: false,
            });
        }
        Origin::Page => Item::Page,
        Origin::Url => Item::Text(run.page.url().as_str().into()),
    };
    let name = one.field.name.as_str();
    if let Some(known) = of_page.get(name) {
        return Ok(known.clone());
    }
    let value = read(start)?;
    of_page.insert(name, value.clone());
    Ok(value)
}
