//! Values that stand behind a link of their row's page. Where known values are on none of the sampled pages, some of the
//! pages that these link to are fetched and learned from as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use webfill_learn::{Learned, Page};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, Wants};
use webfill_urls::{Url, site};

use super::table::Table;
use crate::mapping_command::learn::gathered::Gathered;

/// Pages whose links are followed, and links of each.
const PAGES: usize = 5;
const LINKS: usize = 10;

/// So many rows must know a value that is on none of the pages.
const KNOWN: usize = 3;

/// A link of the page of a row.
pub struct Linked {
    pub url: String,
    pub row: u32,
}

/// The links to fetch; none if all known values are found.
pub fn to_explore(
    table: &Table,
    pages: &[Page],
    gathered: &[Gathered],
    learned: &Learned,
) -> Vec<Linked> {
    let found = fields_of(learned);
    let is_missing = |name: &str| {
        let known = pages.iter().filter(|page| page.known.contains_key(name));
        !found.contains(name) && known.count() >= KNOWN
    };
    let missing: BTreeSet<&str> = table
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .filter(|name| is_missing(name))
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let all: Vec<Vec<String>> = links_of(gathered);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for link in all.iter().flatten() {
        *counts.entry(link).or_default() += 1;
    }
    let own: BTreeSet<&str> = table.links.iter().map(|link| link.url.as_str()).collect();
    let knows = |page: &Page| {
        page.known
            .keys()
            .filter(|name| missing.contains(name.as_str()))
            .count()
    };
    let mut chosen: Vec<usize> = (0..pages.len())
        .filter(|&at| knows(&pages[at]) > 0)
        .collect();
    chosen.sort_by_key(|&at| (usize::MAX - knows(&pages[at]), at));
    let mut links = Vec::new();
    for at in chosen.into_iter().take(PAGES) {
        let row = pages[at]
            .record
            .as_deref()
            .and_then(|record| record.parse::<u64>().ok());
        let row = row.and_then(|number| table.rows.iter().position(|row| row.number == number));
        let Some(row) = row else { continue };
        // What many pages link to is the navigation of the site.
        let telling = all[at].iter().filter(|link| {
            counts[link.as_str()] * 2 <= pages.len().max(2) && !own.contains(link.as_str())
        });
        links.extend(telling.take(LINKS).map(|link| Linked {
            url: link.clone(),
            row: row as u32,
        }));
    }
    links
}

/// The links of each page to its own site.
fn links_of(pages: &[Gathered]) -> Vec<Vec<String>> {
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
        let wants = Wants {
            all_links: true,
            deadline: Some(Instant::now() + Duration::from_secs(10)),
            ..Wants::default()
        };
        let extraction = engine.extract_as(None, input, wants);
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

fn fields_of(learned: &Learned) -> BTreeSet<&str> {
    let fields = learned.mappings.iter().flat_map(|mapping| &mapping.fields);
    let found = fields.filter(|field| field.processors.is_some());
    found.map(|field| field.field.as_str()).collect()
}

/// Whether the one has fields that the other lacks, and all of the other's.
pub fn reads_more(one: &Learned, other: &Learned) -> bool {
    let (one, other) = (fields_of(one), fields_of(other));
    one.is_superset(&other) && one.len() > other.len()
}
