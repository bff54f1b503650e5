//! `webfill mapping test`: a mapping is tried on a page.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_mapping::{Engine, Extraction, Limits, MappingIndex, Wants};
use webfill_startup::{ExitStatus, Fault};
use webfill_urls::Url;

use super::chosen::Chosen;
use super::page::Page;
use super::trace_text;
use crate::cli::{MappingTestOptions, TrialFormat};
use crate::stdout::tell;

/// The time limit of one page.
const PAGE_TIME: Duration = Duration::from_secs(30);

pub fn run(options: &MappingTestOptions) -> Result<ExitStatus, Fault> {
    let chosen = Chosen::load(options)?;
    let url = options.url.as_deref().map(parse_url).transpose()?;
    let page = Page::read(&options.page, url, options.content_type.as_deref())?;
    let index = chosen.for_page(page.url.as_ref())?;
    let engine = Engine::new(Arc::clone(&chosen.set), Limits::default());
    let told = match options.trace {
        true => trace(&engine, index, &page, format(options))?,
        false => result(&engine, index, &page, format(options))?,
    };
    tell(told)?;
    Ok(ExitStatus::Done)
}

fn format(options: &MappingTestOptions) -> TrialFormat {
    let for_people = options.trace && std::io::stdout().is_terminal();
    options.format.unwrap_or(match for_people {
        true => TrialFormat::Text,
        false => TrialFormat::Json,
    })
}

fn trace(
    engine: &Engine,
    index: MappingIndex,
    page: &Page,
    format: TrialFormat,
) -> Result<String, Fault> {
    let trace = engine.trace(Some(index), page.input());
    let trace = trace.ok_or_else(|| Fault::error("the mapping is gone"))?;
    Ok(match format {
        TrialFormat::Text => trace_text::text(&trace, &page.name),
        TrialFormat::Json => {
            let json = serde_json::to_value(&trace).map_err(Fault::error)?;
            format!("{json:#}")
        }
    })
}

fn result(
    engine: &Engine,
    index: MappingIndex,
    page: &Page,
    format: TrialFormat,
) -> Result<String, Fault> {
    let wants = Wants {
        mapped_links: true,
        all_links: false,
        deadline: Some(Instant::now() + PAGE_TIME),
    };
    let extraction = engine.extract_as(Some(index), page.input(), wants);
    let extraction = extraction.map_err(Fault::error)?;
    Ok(match format {
        TrialFormat::Text => trace_text::result(&extraction, &page.name),
        TrialFormat::Json => format!("{:#}", result_json(&extraction)),
    })
}

/// The result for standard output.
fn result_json(extraction: &Extraction) -> Value {
    let mut told = json!({
        "mapping": extraction.mapping,
        "fields": extraction.fields,
        "links": extraction.links,
    });
    if let Some(truncated) = &extraction.truncated {
        told["truncated"] = json!(truncated);
    }
    if !extraction.warnings.is_empty() {
        told["warnings"] = json!(extraction.warnings);
    }
    told
}

fn parse_url(text: &str) -> Result<Url, Fault> {
    webfill_urls::canonical(text, None).map_err(|refusal| Fault::usage(format!("--url: {refusal}")))
}
