//! Fetches pages for learning. As by `webfill mapping test`, each is fetched politely and only once, and then kept.

use std::collections::BTreeMap;
use std::path::Path;

use tokio::runtime::Runtime;
use webfill_service::Fault;
use webfill_urls::{Url, canonical_url, site};

use super::gathered::{GatheredPage, PageGatherer, Pages};
use super::records::{KnownRecord, KnownRecords};
use super::statements::PageStatements;
use crate::cli::MappingLearnOptions;
use crate::mapping_command::fetching::{PageProvider, PageUnavailable};
use crate::mapping_command::page::kind_and_text;
use crate::mapping_command::sources::{Source, SourcePlace, from_url_text};

/// Fetches the pages of the examples and, with `--fetch`, pages that records link to.
pub fn fetch_pages_and_records(
    options: &MappingLearnOptions,
    said: &PageStatements,
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
    // Read more records than can be fetched, so that each site's records with the most known values are among them.
    let is_enough = |records: &KnownRecords| most > 0 && records.passed_over > 0;
    let records = KnownRecords::read(&options.records, runtime, &is_wanted, &is_enough)?;
    let mut urls: Vec<String> = said.keys().cloned().collect();
    for link in choose_links(&records.records, &options.fields, most) {
        if !urls.contains(&link) {
            urls.push(link);
        }
    }
    let pages = fetch_all(options, &urls)?;
    Ok((pages, records))
}

/// Chooses the links to fetch. Sites take turns, so that all sites are included. Within a site, records with values for
/// the most of these fields come first; without named fields, all fields count.
fn choose_links(records: &[KnownRecord], fields: &[String], most: usize) -> Vec<String> {
    let knows = |record: &KnownRecord| match fields {
        [] => record.known.len(),
        fields => fields
            .iter()
            .filter(|field| record.known.contains_key(*field))
            .count(),
    };
    let mut by_site: BTreeMap<String, Vec<(usize, &str)>> = BTreeMap::new();
    for record in records {
        let known = knows(record);
        for link in &record.links {
            if let Ok(url) = canonical_url(link, None) {
                by_site.entry(site(&url)).or_default().push((known, link));
            }
        }
    }
    // The sort is stable, so records with equally many values stay in their order.
    let mut sites: Vec<_> = by_site.into_values().collect();
    for links in &mut sites {
        links.sort_by_key(|(known, _)| usize::MAX - known);
    }
    let longest = sites.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| sites.iter().filter_map(move |links| links.get(turn)));
    turns
        .take(most)
        .map(|(_, link)| (*link).to_owned())
        .collect()
}

/// Fetches all pages. Unavailable pages are reported and skipped.
fn fetch_all(options: &MappingLearnOptions, urls: &[String]) -> Result<Pages, Fault> {
    let sources: Result<Vec<Source>, Fault> = urls.iter().map(|url| from_url_text(url)).collect();
    let sources = sources?;
    let beside = options.to.output.as_deref().unwrap_or(Path::new(""));
    let mut fetching = PageProvider::open(&options.web, beside, &sources)?;
    let mut gathering = PageGatherer::new(&|_| true);
    for url in urls {
        let asked = canonical_url(url, None).map_err(Fault::usage)?;
        match fetching.find_or_fetch(&asked) {
            Ok(source) => gather_page(&asked, &source, &mut gathering)?,
            Err(PageUnavailable::OnTheWeb(reason)) => webfill_service::say!("webfill: {reason}"),
            Err(PageUnavailable::Here(fault)) => return Err(fault),
        }
    }
    match gathering.pages.is_empty() {
        true => Err(Fault::error("no page could be fetched to learn from")),
        false => Ok(gathering.into()),
    }
}

fn gather_page(
    asked: &Url,
    source: &Source,
    gathering: &mut PageGatherer<'_>,
) -> Result<(), Fault> {
    let SourcePlace::File(file) = &source.place else {
        return Ok(());
    };
    let body = std::fs::read(file)
        .map_err(|error| Fault::error(format!("cannot read {}: {error}", file.display())))?;
    let url = source.url.clone().unwrap_or_else(|| asked.clone());
    let Some((kind, text)) = kind_and_text(file, source.content_type.as_deref(), &body) else {
        webfill_service::say!("webfill: {asked} is skipped: not a page to learn from");
        gathering.note_of_other_kind(&url);
        return Ok(());
    };
    if gathering.has_room_or_count(std::iter::once(url.as_str())) {
        gathering.add(GatheredPage {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, links: &[&str], fields: &[&str]) -> KnownRecord {
        let known = fields
            .iter()
            .map(|field| ((*field).to_owned(), vec![String::from("x")]));
        KnownRecord {
            id: id.to_owned(),
            links: links.iter().map(|link| (*link).to_owned()).collect(),
            known: known.collect(),
        }
    }

    #[test]
    fn records_with_the_most_known_values_are_fetched_first_for_each_site() {
        let records = [
            record("1", &["https://a.example/1"], &["name"]),
            record(
                "2",
                &["https://a.example/2", "https://b.example/2"],
                &["name", "born"],
            ),
            record("3", &["https://a.example/3"], &["name", "born", "city"]),
            record("4", &["https://c.example/4"], &["city"]),
        ];
        let of = |fields: &[&str], most| {
            let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
            choose_links(&records, &fields, most)
        };
        assert_eq!(
            of(&[], 4),
            [
                "https://a.example/3",
                "https://b.example/2",
                "https://c.example/4",
                "https://a.example/2"
            ]
        );
        assert_eq!(of(&["name"], 1), ["https://a.example/1"]);
        assert_eq!(of(&[], 100).len(), 5);
    }
}
