//! `webfill mapping test`: tries mappings on one or several pages.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use webfill_mapping::{Engine, Extraction, Limits, Listing, MappingIndex, RequestedParts, Trace};
use webfill_service::{ExitStatus, Fault};
use webfill_urls::Url;

use super::all;
use super::chosen::ChosenMappings;
use super::fetching::PageProvider;
use super::fill_rates::FillRates;
use super::page::{PAGE_TIME, Page};
use super::sources::{self, Source};
use super::trace_text;
use crate::cli::{MappingTestOptions, TrialFormat};
use crate::stdout::print;

pub fn run(options: &MappingTestOptions) -> Result<ExitStatus, Fault> {
    if options.all {
        return all::run(options);
    }
    let chosen = ChosenMappings::load(options)?;
    let (sources, are_several) = sources::from_options(options)?;
    let is_long = options.trace || are_several || chosen.has_rows();
    let for_people = is_long && std::io::stdout().is_terminal();
    let trial = Trial {
        engine: Engine::new(Arc::clone(&chosen.set), Limits::default()),
        chosen,
        trace: options.trace,
        rows: options.rows.clone(),
        format: options.format.unwrap_or(match for_people {
            true => TrialFormat::Text,
            false => TrialFormat::Json,
        }),
    };
    let mut fetching = PageProvider::open(&options.web, &options.file, &sources)?;
    match (sources.as_slice(), are_several) {
        ([only], false) => trial.print_one(only, &mut fetching),
        _ => trial.print_rates(&sources, &mut fetching),
    }
}

struct Trial {
    chosen: ChosenMappings,
    engine: Engine,
    trace: bool,
    /// The positions of the rows to trace.
    rows: Vec<usize>,
    format: TrialFormat,
}

impl Trial {
    /// Prints the result of the mapping on a page.
    fn print_one(
        &self,
        source: &Source,
        fetching: &mut PageProvider<'_>,
    ) -> Result<ExitStatus, Fault> {
        let page = Page::read(source, fetching)?;
        let index = self.chosen.mapping_for_only_page(page.url.as_ref())?;
        match (self.trace, self.format) {
            (true, TrialFormat::Text) => {
                print(trace_text::format_trace(
                    &self.trace_page(index, &page)?,
                    &page.name,
                ))?;
            }
            (false, TrialFormat::Text) => {
                print(trace_text::format_result(
                    &self.extract(index, &page)?,
                    &page.name,
                ))?;
            }
            (_, TrialFormat::Json) => {
                let json = self.json(index, &page)?;
                print(format_args!("{json:#}"))?;
            }
        }
        Ok(ExitStatus::Done)
    }

    /// Prints how often the mappings fill their fields. As JSON, it also prints a line for each page.
    fn print_rates(
        &self,
        sources: &[Source],
        fetching: &mut PageProvider<'_>,
    ) -> Result<ExitStatus, Fault> {
        let mut rates = FillRates::default();
        for source in sources {
            let name = &source.name;
            match Page::read(source, fetching) {
                Ok(page) if source.is_found && page.is_binary() => {
                    webfill_service::say!(
                        "webfill: {name} is skipped: neither a page nor a document"
                    );
                }
                Ok(page) => self.add_page(&page, &mut rates)?,
                Err(fault) => {
                    webfill_service::say!("webfill: {fault}");
                    rates.add_failed(name);
                }
            }
        }
        match self.format {
            TrialFormat::Text => print(rates.text())?,
            TrialFormat::Json => print(rates.json())?,
        }
        Ok(match rates.are_good() {
            true => ExitStatus::Done,
            false => ExitStatus::Error,
        })
    }

    fn add_page(&self, page: &Page, rates: &mut FillRates) -> Result<(), Fault> {
        let Some(index) = self.chosen.mapping_for_page(page.url.as_ref())? else {
            rates.add_without_mapping(&page.name);
            return Ok(());
        };
        match self.extract(index, page) {
            Ok(extraction) => {
                let set = &self.chosen.set;
                rates.add(
                    &page.name,
                    &set.fields_of(index),
                    &set.rows_of(index),
                    &extraction,
                );
            }
            Err(fault) => {
                webfill_service::say!("webfill: {}: {fault}", page.name);
                rates.add_failed(&page.name);
                return Ok(());
            }
        }
        match (self.trace, self.format) {
            (true, TrialFormat::Text) => {
                let traced = trace_text::format_trace(&self.trace_page(index, page)?, &page.name);
                print(format_args!("{traced}\n"))
            }
            (false, TrialFormat::Text) => Ok(()),
            (_, TrialFormat::Json) => {
                let mut line = self.json(index, page)?;
                line["page"] = json!(page.name);
                line["url"] = json!(page.url.as_ref().map(Url::as_str));
                print(line)
            }
        }
    }

    fn json(&self, index: MappingIndex, page: &Page) -> Result<Value, Fault> {
        match self.trace {
            true => serde_json::to_value(self.trace_page(index, page)?).map_err(Fault::error),
            false => Ok(result_json(&self.extract(index, page)?)),
        }
    }

    fn trace_page(&self, index: MappingIndex, page: &Page) -> Result<Trace, Fault> {
        let trace = page.trace(&self.engine, index, &self.rows);
        trace.ok_or_else(|| Fault::error("the mapping no longer exists"))
    }

    fn extract(&self, index: MappingIndex, page: &Page) -> Result<Extraction, Fault> {
        let wants = RequestedParts {
            mapped_links: true,
            row_links: true,
            all_links: false,
            feeds: false,
            shell: false,
            deadline: Some(Instant::now() + PAGE_TIME),
            ..RequestedParts::default()
        };
        let extraction = page.extract(&self.engine, index, wants);
        extraction.map_err(Fault::error)
    }
}

/// The result as JSON, for standard output.
fn result_json(extraction: &Extraction) -> Value {
    let mut report = json!({
        "mapping": extraction.mapping,
        "fields": extraction.fields,
        "links": extraction.links,
    });
    if !extraction.listings.is_empty() {
        report["rows"] = extraction.listings.iter().map(Listing::to_json).collect();
    }
    if let Some(truncated) = &extraction.truncated {
        report["truncated"] = json!(truncated);
    }
    if !extraction.warnings.is_empty() {
        report["warnings"] = json!(extraction.warnings);
    }
    report
}
