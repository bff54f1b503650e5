//! Pages that are fetched to learn from: politely and once, as `webfill mapping test` fetches and keeps them.

use std::path::Path;

use tokio::runtime::Runtime;
use webfill_startup::Fault;
use webfill_urls::{Url, canonical};

use super::gathered::{Gathered, Gathering, Pages};
use super::records::{KnownRecord, KnownRecords};
use super::said::SaidOfPages;
use crate::cli::MappingLearnOptions;
use crate::mapping_command::fetching::{Fetching, Missing};
use crate::mapping_command::page::kind_and_text;
use crate::mapping_command::sources::{Place, Source, of_web};

/// Fetches the pages of the examples, and with `--fetch` those that records link to.
pub fn fetch(
    options: &MappingLearnOptions,
    said: &SaidOfPages,
    runtime: &Runtime,
) -> Result<(Pages, KnownRecords), Fault> {
    let most = usize::from(options.fetch.unwrap_or_default());
    let knows = |record: &KnownRecord| match options.fields.is_empty() {
        true => !record.known.is_empty(),
        false => options
            .fields
            .iter()
            .any(|field| record.known.contains_key(field)),
    };
    let is_wanted = |record: &KnownRecord| {
        let is_said = record.links.iter().any(|link| said.contains_key(link));
        is_said || (most > 0 && knows(record))
    };
    let is_enough = |records: &KnownRecords| most > 0 && records.records.len() >= most;
    let records = KnownRecords::read(&options.records, runtime, &is_wanted, &is_enough)?;
    let mut urls: Vec<String> = said.keys().cloned().collect();
    for record in records.records.iter().take(most) {
        if let Some(link) = record.links.first().filter(|link| !urls.contains(link)) {
            urls.push(link.clone());
        }
    }
    let pages = fetch_all(options, &urls)?;
    Ok((pages, records))
}

/// A page that cannot be had is told, and the others are taken all the same.
fn fetch_all(options: &MappingLearnOptions, urls: &[String]) -> Result<Pages, Fault> {
    let sources: Result<Vec<Source>, Fault> = urls.iter().map(|url| of_web(url)).collect();
    let sources = sources?;
    let beside = options.to.output.as_deref().unwrap_or(Path::new(""));
    let mut fetching = Fetching::open(&options.web, beside, &sources)?;
    let mut gathering = Gathering::new(&|_| true);
    for url in urls {
        let asked = canonical(url, None).map_err(Fault::usage)?;
        match fetching.source(&asked) {
            Ok(source) => read(&asked, &source, &mut gathering)?,
            Err(Missing::OnTheWeb(reason)) => webfill_startup::say!("webfill: {reason}"),
            Err(Missing::Here(fault)) => return Err(fault),
        }
    }
    match gathering.pages.is_empty() {
        true => Err(Fault::error("no page could be fetched to learn from")),
        false => Ok(gathering.into()),
    }
}

fn read(asked: &Url, source: &Source, gathering: &mut Gathering<'_>) -> Result<(), Fault> {
    let Place::File(file) = &source.place else {
        return Ok(());
    };
    let body = std::fs::read(file)
        .map_err(|error| Fault::error(format!("cannot read {}: {error}", file.display())))?;
    let url = source.url.clone().unwrap_or_else(|| asked.clone());
    let Some((kind, text)) = kind_and_text(file, source.content_type.as_deref(), &body) else {
        webfill_startup::say!("webfill: {asked} is no page to learn from, and is left out");
        gathering.note_of_other_kind(&url);
        return Ok(());
    };
    if gathering.has_room(std::iter::once(url.as_str())) {
        gathering.take(Gathered {
            asked: Some(asked.to_string())
                .filter(|_| *asked != url)
                .into_iter()
                .collect(),
            url,
            kind,
            text,
        });
    }
    Ok(())
}
