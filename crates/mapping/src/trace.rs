//! Traces: the input and output of every processor on a page, for the person who writes the mapping.

mod rows;

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::chain::ChainObserver;
use crate::engine::{Engine, Links, field_value};
use crate::extraction::{Metadatum, PageInput, RequestedParts};
use crate::item::Item;
use crate::mapping::{Chain, Field, Step};
use crate::page::Page;
use crate::reading::{Reading, shorten};
use crate::run::Run;
use crate::set::MappingIndex;

pub use rows::{RowTrace, RowsTrace};

const SHOWN_VALUES: usize = 20;
/// The time limit of a trace.
const TRACE_TIME: Duration = Duration::from_secs(60);

/// The trace of a mapping on a page: the input and output of each processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    pub url: String,
    pub mapping: String,
    /// Every mapping whose patterns match the URL; the first of them is used in a crawl.
    pub matching: Vec<String>,
    pub fields: Vec<FieldTrace>,
    /// For each row rule, the traces of some rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowsTrace>,
    pub url_parsers: Vec<UrlParserTrace>,
    /// Why the end of the page was not read; `None` if the whole page was read.
    pub truncated: Option<String>,
    pub warnings: Vec<String>,
}

/// The trace of one field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldTrace {
    pub name: String,
    /// The value of the field; null if it stays empty.
    pub value: Value,
    /// If the field stays empty: for each alternative, which step lost the value.
    pub empty_because: Vec<String>,
    /// The steps of each alternative that was tried.
    pub alternatives: Vec<Vec<StepTrace>>,
}

/// The trace of one url_parser, which is a chain that yields links.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UrlParserTrace {
    pub description: Option<String>,
    pub links: Vec<String>,
    pub empty_because: Option<String>,
    pub steps: Vec<StepTrace>,
}

/// The input and output of one processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTrace {
    pub processor: &'static str,
    pub parameters: Map<String, Value>,
    /// The input. Elements are shown as markup if the processor sees markup, and as text otherwise.
    pub input: Values,
    pub output: Values,
    #[serde(flatten)]
    pub reading: Reading,
}

/// Some of a step's values, shortened for display.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Values {
    pub count: usize,
    pub shown: Vec<String>,
}

impl Engine {
    /// Traces the given mapping on a page. Without a mapping, traces the one that matches the page's URL; `None` if
    /// there is none.
    pub fn trace(&self, mapping: Option<MappingIndex>, page: PageInput<'_>) -> Option<Trace> {
        self.trace_with_rows(mapping, page, None, &[])
    }

    /// Like [`Engine::trace`], but on the text of a document (PDF, ...).
    pub fn trace_document(
        &self,
        mapping: Option<MappingIndex>,
        page: PageInput<'_>,
        metadata: &[Metadatum],
    ) -> Option<Trace> {
        self.trace_with_rows(mapping, page, Some(metadata), &[])
    }

    /// Traces a mapping, with the rows at these positions, up to [`RowsTrace::MOST_ROWS`]. Without positions, shows the
    /// first row and the first row that lacks a field.
    pub fn trace_with_rows(
        &self,
        mapping: Option<MappingIndex>,
        page: PageInput<'_>,
        metadata: Option<&[Metadatum]>,
        chosen: &[usize],
    ) -> Option<Trace> {
        let set = self.set();
        let url = page.url.as_str();
        let index = mapping.or_else(|| set.find(url))?;
        let deadline = Some(Instant::now() + TRACE_TIME);
        // A trace gets more time than a crawl, because it evaluates expressions several times to show what they find.
        let mut limits = self.limits().clone();
        limits.document.evaluation_time = TRACE_TIME;
        let page = Page::new(page, &limits, deadline);
        let page = match metadata {
            Some(metadata) => page.with_metadata(metadata),
            None => page,
        };
        let run = self.new_run(
            &page,
            RequestedParts {
                deadline,
                ..RequestedParts::default()
            },
        );
        let mapping = set.mapping(index);
        let fields = mapping
            .fields
            .iter()
            .map(|field| {
                run.set_subject(format!("field {}", field.name));
                trace_field(field, &Item::Page, "the page", &run)
            })
            .collect();
        let rules = mapping.rows.iter();
        let rows = rules
            .map(|rule| rows::trace_rule(rule, chosen, &run))
            .collect();
        let parsers = mapping.url_parsers.iter().enumerate();
        let url_parsers = parsers
            .map(|(number, chain)| trace_parser(number, chain, &run))
            .collect();
        let matching = set.find_all(url).into_iter();
        Some(Trace {
            url: url.to_owned(),
            mapping: mapping.name.clone(),
            matching: matching.map(|index| set.name(index).to_owned()).collect(),
            fields,
            rows,
            url_parsers,
            truncated: page.truncation_message(),
            warnings: run.into_warnings(),
        })
    }
}

/// Traces a field. `place` describes where its chains start, for messages.
fn trace_field<'p>(field: &Field, start: &Item<'p>, place: &str, run: &Run<'p>) -> FieldTrace {
    let mut alternatives: Vec<Vec<StepTrace>> = Vec::new();
    let mut value = Value::Null;
    for chain in &field.alternatives {
        let mut steps = Steps::default();
        let one = std::slice::from_ref(chain);
        let found = field_value(field, one, start.clone(), run, &mut steps);
        alternatives.push(steps.0);
        if let Ok(Some((found, _))) = found {
            value = found;
            break;
        }
    }
    let empty_because = match value {
        Value::Null => alternatives
            .iter()
            .map(|steps| explain_loss(steps, place))
            .collect(),
        _ => Vec::new(),
    };
    FieldTrace {
        name: field.name.clone(),
        value,
        empty_because,
        alternatives,
    }
}

fn trace_parser(number: usize, chain: &Chain, run: &Run<'_>) -> UrlParserTrace {
    run.set_subject(format!("url_parsers[{number}]"));
    let mut steps = Steps::default();
    let mut links = Links::new(run.page, run.page.base(), run.limits.links);
    if let Ok(items) = chain.run(Item::Page, run, &mut steps) {
        items.iter().for_each(|item| links.add(&run.text(item)));
    }
    let links = links.finish(run);
    UrlParserTrace {
        description: chain.description.clone(),
        empty_because: links.is_empty().then(|| explain_loss(&steps.0, "the page")),
        links,
        steps: steps.0,
    }
}

/// Records the steps of a chain while it runs.
#[derive(Default)]
struct Steps(Vec<StepTrace>);

impl ChainObserver for Steps {
    const NEEDS_INPUTS: bool = true;

    fn observe_step<'p>(
        &mut self,
        step: &Step,
        input: &[Item<'p>],
        output: &[Item<'p>],
        run: &Run<'p>,
    ) {
        let output = Values::from_items(output, true, run);
        let mut reading = step.processor.reading(input, run);
        // A reading covers only the first values of the input. If the step yields something, its hint is wrong and is
        // removed.
        if output.count > 0 && !output.are_empty_texts() {
            reading.hint = None;
        }
        self.0.push(StepTrace {
            processor: step.name,
            parameters: step.parameters.clone(),
            input: Values::from_items(input, step.processor.sees_markup(), run),
            output,
            reading,
        });
    }
}

impl Values {
    fn from_items(items: &[Item<'_>], as_markup: bool, run: &Run<'_>) -> Values {
        let shown = items.iter().take(SHOWN_VALUES);
        Values {
            count: items.len(),
            shown: shown
                .map(|item| format_item(item, as_markup, run))
                .collect(),
        }
    }

    fn are_empty_texts(&self) -> bool {
        self.count == self.shown.len() && self.shown.iter().all(String::is_empty)
    }
}

fn format_item(item: &Item<'_>, as_markup: bool, run: &Run<'_>) -> String {
    match item {
        Item::Page => format!("(the page, {} bytes)", run.page.text().len()),
        Item::Node(node) if as_markup => shorten(&node.outer_html()).into_owned(),
        other => shorten(&run.text(other)).into_owned(),
    }
}

/// Explains why a chain has no value: which step yielded nothing or only empty text, or that the time was over.
fn explain_loss(steps: &[StepTrace], place: &str) -> String {
    for (index, step) in steps.iter().enumerate() {
        let (number, name) = (index + 1, step.processor);
        if step.output.count == 0 && index == 0 {
            return format!("step 1, {name}, found nothing in {place}");
        }
        if step.output.count == 0 {
            let values = match step.input.count {
                1 => "the one value".to_owned(),
                count => format!("all {count} values"),
            };
            return format!("step {number}, {name}, dropped {values} of step {index}");
        }
        if step.output.are_empty_texts() {
            return format!("step {number}, {name}, left only empty text");
        }
    }
    "the time limit of the page was reached".to_owned()
}
