//! Warnings of `webfill mapping check` about texts of golden cases that the processors `number` and `date` skip. Such
//! texts can be read in two ways while no notation is set, or contain several numbers.
//!
//! A crawl reads each page by itself, so that its values do not depend on earlier pages. Here all pages are considered
//! together, and the notation that they show is suggested for the mapping.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use webfill_mapping::{Engine, MappingIndex, RowsTrace};
use webfill_values::{
    DateOrder, DateReading, NumberNotation, NumberReading, read_dates, read_numbers,
};

use super::page::Page;

/// A step of a chain: its mapping, its field, its processor, and whether it has no setting for the notation.
type Step = (String, String, &'static str, bool);

/// Warns about mappings, using the pages of their golden cases.
pub fn undecided_warnings(engine: &Engine, pages: &[(MappingIndex, Page)]) -> Vec<String> {
    let mut inputs: BTreeMap<Step, Vec<Vec<String>>> = BTreeMap::new();
    let first_rows: Vec<usize> = (0..RowsTrace::MOST_ROWS).collect();
    for (index, page) in pages {
        let Some(trace) = page.trace(engine, *index, &first_rows) else {
            continue;
        };
        let of_page = trace.fields.into_iter().map(|field| (String::new(), field));
        let of_rows = trace.rows.into_iter().flat_map(|rows| {
            let place = format!("rows of {}: ", rows.dataset);
            let fields = rows.rows.into_iter().flat_map(|row| row.fields);
            fields.map(move |field| (place.clone(), field))
        });
        for (place, field) in of_page.chain(of_rows) {
            for step in field.alternatives.into_iter().flatten() {
                if !matches!(step.processor, "number" | "date") {
                    continue;
                }
                let subject = format!("{place}field {}", field.name);
                let is_open = has_no_setting(step.processor, &step.parameters);
                let step_of = (trace.mapping.clone(), subject, step.processor, is_open);
                inputs.entry(step_of).or_default().push(step.input.shown);
            }
        }
    }
    inputs
        .iter()
        .flat_map(|(step, pages)| {
            [
                warn_of_two_readings(step, pages),
                warn_of_several_numbers(step, pages),
            ]
        })
        .flatten()
        .collect()
}

/// Whether the processor has no setting that decides between notations.
fn has_no_setting(processor: &str, parameters: &Map<String, Value>) -> bool {
    match processor {
        "number" => !parameters.contains_key("decimal") && !parameters.contains_key("group"),
        "date" => !parameters.contains_key("order") && !parameters.contains_key("formats"),
        _ => false,
    }
}

fn warn_of_two_readings(
    (mapping, subject, processor, is_open): &Step,
    pages: &[Vec<String>],
) -> Option<String> {
    if !is_open {
        return None;
    }
    let of_page = |page: &Vec<String>| find_undecided(processor, page, 0);
    let left_out: Vec<&String> = pages
        .iter()
        .flat_map(|page| page.iter().zip(of_page(page)))
        .filter_map(|(text, is_undecided)| is_undecided.then_some(text))
        .collect();
    let example = left_out.first()?;
    let all: Vec<String> = pages.iter().flatten().cloned().collect();
    let count = |setting| {
        find_undecided(processor, &all, setting)
            .into_iter()
            .filter(|is| *is)
            .count()
    };
    let settings = match *processor {
        "number" => [r#""decimal": ".""#, r#""decimal": ",""#],
        _ => [r#""order": "day_first""#, r#""order": "month_first""#],
    };
    let advice = match (count(1), count(2)) {
        (one, other) if one < other => format!("set {}, as the others show", settings[0]),
        (one, other) if one > other => format!("set {}, as the others show", settings[1]),
        _ => format!("set {} or {}", settings[0], settings[1]),
    };
    Some(format!(
        "mapping {mapping}: {subject}: {processor}: {} values of the golden cases can be read in two ways, such as {example:?}, \
         and are left out: {advice}",
        left_out.len()
    ))
}

fn warn_of_several_numbers(
    (mapping, subject, processor, _): &Step,
    pages: &[Vec<String>],
) -> Option<String> {
    if *processor != "number" {
        return None;
    }
    let texts: Vec<&String> = pages.iter().flatten().collect();
    let readings = read_numbers(&texts, &NumberNotation::default());
    let mut left_out = texts
        .iter()
        .zip(readings)
        .filter_map(|(text, reading)| (reading == NumberReading::Several).then_some(text));
    let example = left_out.next()?;
    Some(format!(
        "mapping {mapping}: {subject}: number: {} values of the golden cases hold several numbers, such as {example:?}, \
         and are left out: cut out the one you mean with `regex` first",
        1 + left_out.count()
    ))
}

/// For each text, whether its reading is undecided. `setting` is 0 for no notation, 1 or 2 for the first or the second
/// possible notation.
fn find_undecided(processor: &str, texts: &[String], setting: usize) -> Vec<bool> {
    if processor == "number" {
        let notation = NumberNotation {
            decimal: [None, Some('.'), Some(',')][setting],
            group: None,
        };
        let readings = read_numbers(texts, &notation).into_iter();
        return readings
            .map(|reading| reading == NumberReading::Undecided)
            .collect();
    }
    let order = [None, Some(DateOrder::DayFirst), Some(DateOrder::MonthFirst)][setting];
    let readings = read_dates(texts, order).into_iter();
    readings
        .map(|reading| reading == DateReading::Undecided)
        .collect()
}
