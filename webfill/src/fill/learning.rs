//! Learns mappings from the sampled pages and the known values of their rows, for sites that have none. Sites with
//! pages of further layouts are learned again.

use std::collections::{BTreeMap, BTreeSet};

use webfill_learn::{Learned, Limits, Page, Task};
use webfill_service::Fault;
use webfill_urls::{Url, site};
use webfill_wire::Outcome;

use super::linked::{self, Linked};
use super::mappings::{self, KnownCounts, Mappings};
use super::pages::{Pages, rows_of_targets};
use super::project::Project;
use super::reading::Readings;
use super::sample;
use super::table::Table;
use crate::mapping_command::learn::gathered::GatheredPage;

/// The most sites whose pages are in memory at the same time.
const SITES: usize = 8;

/// The most links of a site that the learned URL patterns must match.
const MOST_LINKS: usize = 1_000;

/// A site has another layout if at least this many of its pages with known values are not read.
const ANOTHER_LAYOUT: usize = 3;

/// A site is learned again if it now has this many times as many pages as its mappings were learned from.
const MANY_MORE: usize = 2;

/// URLs by site.
pub type BySite = BTreeMap<String, BTreeSet<String>>;

/// Learns from the sampled pages that no mapping reads. If a site has learned mappings already, they are learned again,
/// with their former pages included. Sites whose rows now have more known values of unread fields are learned again,
/// too.
pub fn learn_unmapped_pages(
    table: &Table,
    project: &Project,
    pages: &mut Pages<'_>,
    mappings: &Mappings,
    sample: &[u32],
) -> Result<bool, Fault> {
    let mut wanted = pages_without_mapping(table, pages, mappings, sample);
    wanted.extend(pages_of_sites_learned_from_few(
        table, pages, mappings, sample,
    ));
    let is_learned = |site: &str| mappings.pages_of_site(site).next().is_some();
    let tried = mappings::read_tried_pages(project);
    wanted
        .retain(|site, urls| !is_learned(site) || tried.get(&new_kind_name(site)) != Some(&*urls));
    let mut all = sites_that_know_more(table, project, pages, mappings, sample);
    all.extend(wanted.clone());
    let has_new = learn(table, project, pages, mappings, &all)?;
    let is_tried = |site: &str| all.contains_key(site);
    mappings::save_known_counts(project, known_counts(table, pages, &is_tried))?;
    wanted.retain(|site, _| is_learned(site));
    let wanted = wanted.into_iter();
    let again: BySite = wanted
        .map(|(site, urls)| (new_kind_name(&site), urls))
        .collect();
    if !again.is_empty() {
        mappings::save_tried_pages(project, &again)?;
    }
    Ok(has_new)
}

/// The key for storing the tried pages of a site if they have a new kind of URL. Tried pages of other layouts are
/// stored under the name of the site.
fn new_kind_name(site: &str) -> String {
    format!("{site} new")
}

/// The sampled pages of sites to learn again. The rows of such a site now have more known values of a field that its
/// learned mappings do not read than when these were learned.
fn sites_that_know_more(
    table: &Table,
    project: &Project,
    pages: &Pages<'_>,
    mappings: &Mappings,
    sample: &[u32],
) -> BySite {
    let lacks_a_field = |site: &str| {
        let mut fields = table.fields.iter();
        mappings.has_only_learned_mappings(site)
            && fields.any(|field| !mappings.reads_field(site, &field.name))
    };
    let former = mappings::known_counts(project);
    let mut now = known_counts(table, pages, &lacks_a_field);
    now.retain(|site, counts| {
        let former = former.get(site);
        let before = |field: &String| former.and_then(|of_site| of_site.get(field));
        counts.iter().any(|(field, count)| {
            !mappings.reads_field(site, field) && *count > before(field).copied().unwrap_or(0)
        })
    });
    let mut pages_of_sites = sampled_pages(table, pages, sample);
    pages_of_sites.retain(|site, _| now.contains_key(site));
    pages_of_sites
}

/// For each site that `is_wanted` selects, and for each field, the number of rows with a known value.
fn known_counts(table: &Table, pages: &Pages<'_>, is_wanted: &dyn Fn(&str) -> bool) -> KnownCounts {
    let mut counts: BTreeMap<String, Option<Vec<usize>>> = BTreeMap::new();
    for (place, link) in table.links.iter().enumerate() {
        let of_site = counts.entry(pages.site_of(link));
        let of_site =
            of_site.or_insert_with_key(|site| is_wanted(site).then(|| vec![0; table.fields.len()]));
        let Some(of_site) = of_site else {
            continue;
        };
        for &row in table.links.rows_of(place as u32) {
            of_site.iter_mut().for_each(|count| *count += 1);
            let gaps = table.rows[row as usize].gaps();
            gaps.for_each(|gap| of_site[gap] -= 1);
        }
    }
    let by_name = |counts: Vec<usize>| {
        let names = table.fields.iter().map(|field| field.name.clone());
        names.zip(counts).collect()
    };
    let counts = counts.into_iter();
    counts
        .filter_map(|(site, counts)| Some((site, by_name(counts?))))
        .collect()
}

/// The sampled pages that were fetched, by site.
fn sampled_pages(table: &Table, pages: &Pages<'_>, sample: &[u32]) -> BySite {
    let mut sampled = BySite::new();
    for link in sample.iter().map(|&link| &table.links[link as usize]) {
        if let Some((target, page)) = pages.target(&link.url)
            && page.content_hash.is_some()
        {
            let of_site = sampled.entry(pages.site_of(link)).or_default();
            of_site.insert(target.to_owned());
        }
    }
    sampled
}

/// The sampled pages of sites that now have many more such pages than when their mappings were learned, for example
/// after an interrupted run.
fn pages_of_sites_learned_from_few(
    table: &Table,
    pages: &Pages<'_>,
    mappings: &Mappings,
    sample: &[u32],
) -> BySite {
    let mut there = sampled_pages(table, pages, sample);
    there.retain(|site, urls| {
        let learned: BTreeSet<String> = mappings.pages_of_site(site).collect();
        !learned.is_empty()
            && urls.len() >= learned.len() * MANY_MORE
            && mappings.has_only_learned_mappings(site)
    });
    there
}

/// The pages of these links that have no mapping, by site.
fn pages_without_mapping(
    table: &Table,
    pages: &Pages<'_>,
    mappings: &Mappings,
    sample: &[u32],
) -> BySite {
    let mut wanted = BySite::new();
    for &link in sample {
        let url = &table.links[link as usize].url;
        if let Some((target, _)) = pages.target(url)
            && !mappings.covers(target)
            && let Ok(parsed) = Url::parse(target)
        {
            let of_site = wanted.entry(site(&parsed)).or_default();
            of_site.insert(target.to_owned());
        }
    }
    wanted
}

/// The pages of further layouts: pages where nothing is read although their rows have known values. Sites with a
/// person's mappings and pages that were tried before are left out.
pub fn pages_of_other_layouts(
    table: &Table,
    project: &Project,
    pages: &Pages<'_>,
    mappings: &Mappings,
    readings: &Readings,
    most: usize,
) -> BySite {
    let tried = mappings::read_tried_pages(project);
    let mut unread: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (place, link) in table.links.iter().enumerate() {
        let Some((target, page)) = pages.target(&link.url) else {
            continue;
        };
        let is_read = readings
            .get(target)
            .is_some_and(|reading| !reading.fields.is_empty());
        let mut rows = table.links.rows_of(place as u32).iter();
        let knows = rows.any(|&row| table.rows[row as usize].count_known_fields() > 0);
        if matches!(page.outcome, Outcome::Ok | Outcome::NotModified) && !is_read && knows {
            unread
                .entry(pages.site_of(link))
                .or_default()
                .push(place as u32);
        }
    }
    let mut wanted = BySite::new();
    for (site, links) in unread {
        if links.len() < ANOTHER_LAYOUT || !mappings.has_only_learned_mappings(&site) {
            continue;
        }
        let chosen = sample::choose_best_known(table, links, most);
        let targets = chosen
            .iter()
            .filter_map(|&link| pages.target(&table.links[link as usize].url));
        let urls: BTreeSet<String> = targets.map(|(target, _)| target.to_owned()).collect();
        if tried.get(&site) != Some(&urls) {
            wanted.insert(site, urls);
        }
    }
    wanted
}

/// Learns the mappings of sites again, with these pages added, and notes the pages as tried.
pub fn relearn(
    table: &Table,
    project: &Project,
    pages: &mut Pages<'_>,
    mappings: &Mappings,
    others: &BySite,
) -> Result<bool, Fault> {
    let has_new = learn(table, project, pages, mappings, others)?;
    mappings::save_tried_pages(project, others)?;
    Ok(has_new)
}

/// Learns from these pages and from the pages that the former mappings of their sites were learned from, because new
/// mappings replace the former ones. If some known values are on none of the pages, pages that these link to are
/// fetched. Returns whether there are new mappings.
pub fn learn(
    table: &Table,
    project: &Project,
    pages: &mut Pages<'_>,
    mappings: &Mappings,
    wanted: &BySite,
) -> Result<bool, Fault> {
    let with_former = wanted.iter().map(|(site, urls)| {
        let former = mappings.pages_of_site(site);
        (site.clone(), urls.iter().cloned().chain(former).collect())
    });
    let with_former: BySite = with_former.collect();
    let sites: Vec<(&String, &BTreeSet<String>)> = with_former.iter().collect();
    let mut has_new = false;
    for some in sites.chunks(SITES) {
        let urls: BTreeSet<&str> = some
            .iter()
            .flat_map(|(_, urls)| urls.iter())
            .map(String::as_str)
            .collect();
        let gathered = gather_pages(pages, &urls)?;
        for (site, of_site) in gathered {
            has_new |= learn_site(table, project, pages, mappings, &site, &of_site)?;
        }
    }
    Ok(has_new)
}

fn gather_pages(
    pages: &Pages<'_>,
    urls: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Vec<GatheredPage>>, Fault> {
    let mut gathered: BTreeMap<String, Vec<GatheredPage>> = BTreeMap::new();
    pages.for_each_page(&|url| urls.contains(url), &mut |_, page| {
        gathered.entry(site(&page.url)).or_default().push(page);
        Ok(())
    })?;
    Ok(gathered)
}

fn learn_site(
    table: &Table,
    project: &Project,
    pages: &mut Pages<'_>,
    mappings: &Mappings,
    site: &str,
    gathered: &[GatheredPage],
) -> Result<bool, Fault> {
    let rows = rows_of_targets(table, pages);
    let row_of = |page: &GatheredPage| {
        let linking = rows.get(page.url.as_str()).filter(|rows| rows.len() == 1);
        linking.and_then(|rows| rows.first()).copied()
    };
    let mut joined: Vec<Page> = gathered
        .iter()
        .map(|page| join_with_row(table, page, row_of(page)))
        .collect();
    if joined.iter().all(|page| page.known.is_empty()) {
        return Ok(false);
    }
    let mut learned = learn_pages(table, pages, site, &joined)?;
    let links = linked::links_to_explore(table, &joined, gathered, &learned);
    drop(rows);
    if !links.is_empty() {
        pages.fetch(
            &links
                .iter()
                .map(|link| link.url.clone())
                .collect::<Vec<_>>(),
        )?;
        let behind = join_linked_pages(table, pages, &links)?;
        let own = joined.len();
        joined.extend(behind);
        let with_links = learn_pages(table, pages, site, &joined)?;
        if linked::is_better(&with_links, &learned, &joined[..own]) {
            learned = with_links;
        }
    }
    if learned.mappings.is_empty() {
        return Ok(false);
    }
    mappings.replace(project, site, learned.mappings)?;
    Ok(true)
}

pub fn learn_pages(
    table: &Table,
    stored: &Pages<'_>,
    site: &str,
    pages: &[Page],
) -> Result<Learned, Fault> {
    // Use the URLs after redirects, because mappings are chosen by them.
    let links = table.links.iter().filter_map(|link| {
        let target = stored.target(&link.url);
        let target = target.map_or(link.url.as_str(), |(target, _)| target);
        let may_be_its = *link.site == *site || target != link.url;
        may_be_its.then(|| Url::parse(target).ok()).flatten()
    });
    let links: Vec<Url> = links
        .filter(|url| webfill_urls::site(url) == site)
        .take(MOST_LINKS)
        .collect();
    let task = Task {
        name: String::from("learned"),
        fields: Vec::new(),
        limits: Limits::default(),
    };
    webfill_learn::learn_with_links(pages, &links, &[], &task).map_err(Fault::error)
}

/// Loads these pages, and adds the known values of their rows.
pub fn load_joined_pages(
    table: &Table,
    pages: &Pages<'_>,
    urls: &BTreeSet<String>,
) -> Result<Vec<Page>, Fault> {
    let rows = rows_of_targets(table, pages);
    let gathered = gather_pages(pages, &urls.iter().map(String::as_str).collect())?;
    let row_of = |page: &GatheredPage| {
        let linking = rows.get(page.url.as_str()).filter(|rows| rows.len() == 1);
        linking.and_then(|rows| rows.first()).copied()
    };
    let gathered = gathered.values().flatten();
    Ok(gathered
        .map(|page| join_with_row(table, page, row_of(page)))
        .collect())
}

/// Adds the known values of its row to a page. If several rows link to the page, it belongs to none of them.
fn join_with_row(table: &Table, page: &GatheredPage, row: Option<u32>) -> Page {
    let row = row.map(|row| &table.rows[row as usize]);
    let known = row
        .into_iter()
        .flat_map(|row| table.fields.iter().zip(row.all_known_values()));
    let known = known.filter(|(_, values)| !values.is_empty());
    Page {
        known: known
            .map(|(field, values)| (field.name.clone(), values))
            .collect(),
        record: row.map(|row| row.number.to_string()),
        url: page.url.clone(),
        kind: page.kind,
        text: page.text.clone(),
        said: BTreeMap::new(),
    }
}

/// The pages behind links of rows' pages. Each gets the known values of the row whose page links to it.
fn join_linked_pages(
    table: &Table,
    pages: &Pages<'_>,
    links: &[Linked],
) -> Result<Vec<Page>, Fault> {
    let mut rows: BTreeMap<&str, u32> = BTreeMap::new();
    for link in links {
        if let Some((target, _)) = pages.target(&link.url) {
            rows.insert(target, link.row);
        }
    }
    let gathered = gather_pages(pages, &rows.keys().copied().collect())?;
    let behind = gathered.values().flatten();
    Ok(behind
        .map(|page| join_with_row(table, page, rows.get(page.url.as_str()).copied()))
        .collect())
}
