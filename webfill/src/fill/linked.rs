//! Values that are not on a row's page, but on a page that it links to. If the sampled pages lack known values, some of
//! the pages that they link to are fetched, and also used for learning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use webfill_learn::{Learned, LearnedMapping, Page};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, RequestedParts};
use webfill_urls::{Url, site};

use super::table::Table;
use crate::mapping_command::learn::gathered::GatheredPage;

/// The most pages whose links are followed, and the most links followed from each of these pages.
const PAGES: usize = 5;
const LINKS: usize = 10;

/// Links are explored only if at least this many pages lack a known value of their row.
const KNOWN: usize = 3;

/// A link on a row's page.
pub struct Linked {
    pub url: String,
    pub row: u32,
}

/// The links to fetch. There are none if fewer than [`KNOWN`] pages lack known values of their rows.
pub fn links_to_explore(
    table: &Table,
    pages: &[Page],
    gathered: &[GatheredPage],
    learned: &Learned,
) -> Vec<Linked> {
    let missing: Vec<usize> = pages
        .iter()
        .map(|page| count_missing_fields(table, page, learned))
        .collect();
    if missing.iter().filter(|count| **count > 0).count() < KNOWN {
        return Vec::new();
    }
    let all: Vec<Vec<String>> = links_of(gathered);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for link in all.iter().flatten() {
        *counts.entry(link).or_default() += 1;
    }
    let mut chosen: Vec<usize> = (0..pages.len()).filter(|&at| missing[at] > 0).collect();
    chosen.sort_by_key(|&at| (usize::MAX - missing[at], at));
    let mut links = Vec::new();
    for at in chosen.into_iter().take(PAGES) {
        let row = pages[at]
            .record
            .as_deref()
            .and_then(|record| record.parse::<u64>().ok());
        let row = row.and_then(|number| table.rows.iter().position(|row| row.number == number));
        let Some(row) = row else { continue };
        // A link on many of the pages belongs to the site's navigation, so it is left out.
        let distinctive = all[at].iter().filter(|link| {
            counts[link.as_str()] * 2 <= pages.len().max(2) && !table.links.is_link_of_row(link)
        });
        links.extend(distinctive.take(LINKS).map(|link| Linked {
            url: link.clone(),
            row: row as u32,
        }));
    }
    links
}

/// For each page, its links to its own site.
fn links_of(pages: &[GatheredPage]) -> Vec<Vec<String>> {
    let Ok(none) = MappingSet::from_sources(Vec::new()) else {
        return vec![Vec::new(); pages.len()];
    };
    let engine = Engine::new(Arc::new(none), Limits::default());
    let links = pages.iter().map(|page| {
        let input = PageInput {
            url: &page.url,
            kind: page.kind,
            text: &page.text,
        };
        let wants = RequestedParts {
            all_links: true,
            deadline: Some(Instant::now() + Duration::from_secs(10)),
            ..RequestedParts::default()
        };
        let extraction = engine.extract_with_mapping(None, input, wants);
        let links = extraction
            .map(|extraction| extraction.all_links)
            .unwrap_or_default();
        let own = site(&page.url);
        let is_own =
            |link: &String| Url::parse(link).is_ok_and(|url| site(&url) == own && url != page.url);
        links.into_iter().filter(is_own).collect()
    });
    links.collect()
}

/// The number of fields to fill where the row of a page has known values, but the page's mapping reads none.
fn count_missing_fields(table: &Table, page: &Page, learned: &Learned) -> usize {
    let found = fields_of(page, learned);
    let to_fill = table.fields.iter().filter(|field| field.has_gaps);
    let known = to_fill.filter(|field| page.known.contains_key(&field.name));
    known
        .filter(|field| !found.contains(field.name.as_str()))
        .count()
}

/// The fields that the mapping of a page reads.
fn fields_of<'l>(page: &Page, learned: &'l Learned) -> BTreeSet<&'l str> {
    let is_its =
        |mapping: &&LearnedMapping| mapping.pages.iter().any(|url| *url == page.url.as_str());
    let fields = learned
        .mappings
        .iter()
        .filter(is_its)
        .flat_map(|mapping| &mapping.fields);
    let found = fields.filter(|field| field.processors.is_some());
    found.map(|field| field.field.as_str()).collect()
}

/// Whether the mappings in `one` lead to pages behind links and still read all fields that those in `other` read on
/// these pages.
pub fn is_better(one: &Learned, other: &Learned, pages: &[Page]) -> bool {
    let leads_on = one
        .mappings
        .iter()
        .any(|mapping| mapping.mapping.get("url_parsers").is_some());
    leads_on
        && pages
            .iter()
            .all(|page| fields_of(page, one).is_superset(&fields_of(page, other)))
}
