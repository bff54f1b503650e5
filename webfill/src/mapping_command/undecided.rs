//! What `webfill mapping check` says of numbers and dates whose notation is not set, and that the pages of golden cases
//! have in two readings. A crawl reads each page by itself, so that a page has the same values whatever was read
//! before it; which notation all pages show together is found here, and set in the mapping.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use webfill_mapping::{Engine, Limits, MappingSet};
use webfill_startup::Fault;
use webfill_values::{
    DateOrder, DateReading, NumberNotation, NumberReading, read_dates, read_numbers,
};

use super::fetching::Fetching;
use super::golden::{Case, cases_of};
use super::page::Page;
use super::save::golden_folder;
use crate::cli::PageFetchOptions;

/// Cases that are read, so that a check stays quick.
const MOST_CASES: usize = 200;

/// Mapping, field and processor.
type Step = (String, String, &'static str);

/// The warnings about a file or folder of mappings.
pub fn warnings(path: &Path, set: MappingSet) -> Result<Vec<String>, Fault> {
    let cases = cases_of(&golden_folder(path), set.names())?;
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let set = Arc::new(set);
    let engine = Engine::new(Arc::clone(&set), Limits::default());
    let options = PageFetchOptions::default();
    let mut fetching = Fetching::open(&options, path, &[])?;
    let mut inputs: BTreeMap<Step, Vec<Vec<String>>> = BTreeMap::new();
    for case in cases.into_iter().take(MOST_CASES) {
        let case = Case::read(case)?;
        let Some(index) = set.find(case.url.as_str()) else {
            continue;
        };
        let page = Page::read(&case.page()?, &mut fetching)?;
        let Some(trace) = page.trace(&engine, index) else {
            continue;
        };
        for field in trace.fields {
            for step in field.alternatives.into_iter().flatten() {
                if is_open(step.processor, &step.parameters) {
                    let step_of = (trace.mapping.clone(), field.name.clone(), step.processor);
                    inputs.entry(step_of).or_default().push(step.input.shown);
                }
            }
        }
    }
    Ok(inputs
        .iter()
        .filter_map(|(step, pages)| warning(step, pages))
        .collect())
}

/// Whether a processor has no setting that decides how it reads.
fn is_open(processor: &str, parameters: &Map<String, Value>) -> bool {
    match processor {
        "number" => !parameters.contains_key("decimal") && !parameters.contains_key("group"),
        "date" => !parameters.contains_key("order") && !parameters.contains_key("formats"),
        _ => false,
    }
}

fn warning((mapping, field, processor): &Step, pages: &[Vec<String>]) -> Option<String> {
    let of_page = |page: &Vec<String>| undecided(processor, page, 0);
    let left_out: Vec<&String> = pages
        .iter()
        .flat_map(|page| page.iter().zip(of_page(page)))
        .filter_map(|(text, is_undecided)| is_undecided.then_some(text))
        .collect();
    let example = left_out.first()?;
    let all: Vec<String> = pages.iter().flatten().cloned().collect();
    let count = |setting| {
        undecided(processor, &all, setting)
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
        "mapping {mapping}: field {field}: {processor}: {} values of the golden cases can be read in two ways, such as {example:?}, \
         and are left out: {advice}",
        left_out.len()
    ))
}

/// Which texts cannot be decided: without a setting, or with the first or the second one.
fn undecided(processor: &str, texts: &[String], setting: usize) -> Vec<bool> {
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
