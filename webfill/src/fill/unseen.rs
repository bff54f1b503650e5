//! Fields that have no known value on one site, but some on other sites of the table. The other sites are the teachers:
//! they propose values with a confidence, and chains are learned from these as from known values.
//!
//! Proposed values are used for nothing else. They measure no site, and do not count as votes for other values.

use std::collections::{BTreeMap, BTreeSet};

use webfill_learn::{Page, Proposal, ProposedField, Teachers};
use webfill_service::Fault;

use super::deciding::{Cell, LEAST_UNASKED, State};
use super::doubts::Answers;
use super::judgement::Verdict;
use super::learning::{self, BySite};
use super::mappings::Mappings;
use super::pages::Pages;
use super::project::Project;
use super::table::Table;

/// How many other sites a site without known values is learned from (its *teachers*). Sites that know a value of a
/// requested field come first, then those with the most pages with known values.
const MOST_TEACHERS: usize = 6;

/// How many pages of each teacher are used, and how many pages of a site get proposals.
const MOST_PAGES: usize = 30;

/// The lowest confidence of a proposal that a person is asked about.
const LEAST_ASKED: f64 = 0.5;

/// The most questions about one field of a site. One answer decides about the field.
const QUESTIONS: usize = 3;

/// The fields of each site, as positions in the fields of the table.
pub type Fields = BTreeMap<String, BTreeSet<usize>>;

/// For each site, the fields with a known value in a row that links to it, and the fields with gaps.
pub struct KnownFields {
    known: Fields,
    gaps: Fields,
    /// The fields with a known value on any site.
    anywhere: BTreeSet<usize>,
    /// The pages of rows with known values, by site.
    pages: BTreeMap<String, BTreeSet<String>>,
    /// All pages that belong to exactly one row, by site.
    all: BTreeMap<String, BTreeSet<String>>,
}

impl KnownFields {
    pub fn from_table(table: &Table, pages: &Pages<'_>) -> KnownFields {
        let mut known = KnownFields {
            known: Fields::new(),
            gaps: Fields::new(),
            anywhere: BTreeSet::new(),
            pages: BTreeMap::new(),
            all: BTreeMap::new(),
        };
        for (place, link) in table.links.iter().enumerate() {
            let site = pages.site_of(link);
            let rows = table.links.rows_of(place as u32);
            let of_site = known.known.entry(site.clone()).or_default();
            let gaps = known.gaps.entry(site.clone()).or_default();
            let mut knows = 0;
            for row in rows.iter().map(|&row| &table.rows[row as usize]) {
                gaps.extend(row.gaps());
                let lacks: BTreeSet<usize> = row.gaps().collect();
                of_site.extend((0..table.fields.len()).filter(|field| !lacks.contains(field)));
                knows += row.count_known_fields();
            }
            let Some((target, page)) = pages.target(&link.url) else {
                continue;
            };
            // If several rows link to a page, it is unknown which of them it shows.
            if page.content_hash.is_some() && rows.len() == 1 {
                let of_site = known.all.entry(site.clone()).or_default();
                of_site.insert(target.to_owned());
                if knows > 0 {
                    known
                        .pages
                        .entry(site)
                        .or_default()
                        .insert(target.to_owned());
                }
            }
        }
        known.anywhere = known.known.values().flatten().copied().collect();
        known
    }

    /// The fields with gaps that have a known value on another site, but none on this one.
    fn wanted_fields(&self, site: &str) -> BTreeSet<usize> {
        let none = BTreeSet::new();
        let own = self.known.get(site).unwrap_or(&none);
        let gaps = self.gaps.get(site).unwrap_or(&none);
        let is_wanted = |field: &&usize| !own.contains(field) && self.anywhere.contains(field);
        gaps.iter().filter(is_wanted).copied().collect()
    }
}

/// The sites and fields that were tried in this run, each with the versions of the site's mappings at that time.
pub type TriedFields = BTreeSet<(String, usize, String)>;

/// Whether a site without known values can get proposals: another site must have known values.
pub fn is_worth_a_sample(knowing: &BTreeSet<&str>, site: &str) -> bool {
    knowing.iter().any(|other| *other != site)
}

/// The proposed fields that a person has rejected. An answer about one row decides for the whole site.
pub fn rejected_fields(answers: &Answers) -> Fields {
    let mut withdrawn = Fields::new();
    for (url, field) in &answers.withdrawn {
        if let Ok(url) = webfill_urls::Url::parse(url) {
            let of_site = withdrawn.entry(webfill_urls::site(&url)).or_default();
            of_site.insert(*field);
        }
    }
    withdrawn
}

/// The sites with proposed fields that now have known values, or that a person has rejected. These sites are learned
/// again.
pub fn outdated_sites(
    table: &Table,
    pages: &Pages<'_>,
    mappings: &Mappings,
    withdrawn: &Fields,
) -> BySite {
    let known = KnownFields::from_table(table, pages);
    let mut sites = BySite::new();
    for (site, field, _) in proposed_fields(table, mappings) {
        let is_in = |fields: &Fields| fields.get(&site).is_some_and(|of| of.contains(&field));
        if is_in(&known.known) || is_in(withdrawn) {
            let urls = mappings.pages_of_site(&site).collect();
            sites.insert(site, urls);
        }
    }
    sites
}

/// Each proposed field of a site, with its confidence.
fn proposed_fields<'m>(
    table: &'m Table,
    mappings: &'m Mappings,
) -> impl Iterator<Item = (String, usize, f64)> + 'm {
    let fields = |(site, name, confidence): (&str, &str, f64)| {
        let field = table.fields.iter().position(|field| field.name == name)?;
        Some((site.to_owned(), field, confidence))
    };
    mappings.proposed_fields().filter_map(fields)
}

/// The proposed fields that are certain enough to be filled, so that fetching their pages is worthwhile.
pub fn fields_worth_fetching(
    table: &Table,
    mappings: &Mappings,
    precision: f64,
) -> BTreeSet<(String, usize)> {
    let least = precision.max(LEAST_UNASKED);
    let sure = proposed_fields(table, mappings).filter(|(_, _, confidence)| *confidence >= least);
    sure.map(|(site, field, _)| (site, field)).collect()
}

/// Proposes values of fields that no mapping of a site reads, and learns chains from them. Fields that were tried with
/// the same mappings before are left out. Returns whether there are new mappings.
pub fn propose_fields(
    table: &Table,
    project: &Project,
    pages: &mut Pages<'_>,
    mappings: &Mappings,
    withdrawn: &Fields,
    done: &mut TriedFields,
) -> Result<bool, Fault> {
    let known = KnownFields::from_table(table, pages);
    let mut wanted = Fields::new();
    for site in known.all.keys() {
        if known.all[site].iter().any(|url| mappings.is_by_person(url)) {
            continue;
        }
        let state = mappings.learned_versions(site);
        let is_new = |field: &usize| {
            let is_withdrawn = withdrawn.get(site).is_some_and(|of| of.contains(field));
            !is_withdrawn
                && !mappings.reads_field(site, &table.fields[*field].name)
                && done.insert((site.clone(), *field, state.clone()))
        };
        let of_site = known.wanted_fields(site);
        let mut fields: BTreeSet<usize> = of_site.iter().copied().filter(is_new).collect();
        if !fields.is_empty() {
            // New mappings replace the former ones, so fields that were proposed before are proposed again.
            let former = mappings.proposed_fields_of(site);
            let is_former = |field: &usize| former.contains(table.fields[*field].name.as_str());
            fields.extend(of_site.into_iter().filter(is_former));
            wanted.insert(site.clone(), fields);
        }
    }
    if wanted.is_empty() {
        return Ok(false);
    }
    let fields: Vec<ProposedField> = table
        .fields
        .iter()
        .map(|field| ProposedField {
            name: field.name.clone(),
            title: field.title.clone(),
            is_list: field.has_several(),
        })
        .collect();
    let mut teaching: Vec<(&String, &BTreeSet<String>)> = known.pages.iter().collect();
    let asked: BTreeSet<usize> = wanted.values().flatten().copied().collect();
    let knows_asked = |site: &str| {
        let known = known.known.get(site);
        known.is_some_and(|known| !known.is_disjoint(&asked))
    };
    teaching.sort_by_key(|(site, urls)| std::cmp::Reverse((knows_asked(site), urls.len())));
    teaching.truncate(MOST_TEACHERS);
    let mut taught: Vec<(String, Vec<Page>)> = Vec::new();
    for (site, urls) in teaching {
        let urls = urls.iter().take(MOST_PAGES).cloned().collect();
        taught.push((
            site.clone(),
            learning::load_joined_pages(table, pages, &urls)?,
        ));
    }
    let of_taught = |site: &str| -> Vec<Vec<&Page>> {
        let others = taught.iter().filter(|(other, _)| other != site);
        others.map(|(_, pages)| pages.iter().collect()).collect()
    };
    // For most sites, the teachers are the same, so these are prepared once.
    let by_all = Teachers::new(&of_taught(""), &fields);
    let mut has_new = false;
    for (site, fields_wanted) in wanted {
        let of_site = known.all[&site].iter().take(MOST_PAGES).cloned();
        let mut urls: BTreeSet<String> = of_site.collect();
        urls.extend(mappings.pages_of_site(&site));
        let mut joined = learning::load_joined_pages(table, pages, &urls)?;
        let some: Vec<&Page> = joined.iter().collect();
        let wanted: Vec<usize> = fields_wanted.into_iter().collect();
        let proposals = match taught.iter().any(|(other, _)| *other == site) {
            true => Teachers::new(&of_taught(&site), &fields).propose(&some, &wanted),
            false => by_all.propose(&some, &wanted),
        };
        let former = mappings.proposed_fields_of(&site);
        if proposals
            .iter()
            .all(|one| former.contains(one.field.as_str()))
        {
            continue;
        }
        let mut confidences: BTreeMap<String, f64> = BTreeMap::new();
        for Proposal {
            field,
            confidence,
            values,
        } in proposals
        {
            for (page, values) in joined.iter_mut().zip(values) {
                if !values.is_empty() {
                    page.known.insert(field.clone(), values);
                }
            }
            confidences.insert(field, confidence);
        }
        if joined.iter().all(|page| page.known.is_empty()) {
            continue;
        }
        let learned = learning::learn_pages(table, pages, &site, &joined)?;
        let fields = learned.mappings.iter().flat_map(|one| &one.fields);
        let read: BTreeSet<&str> = fields.map(|field| field.field.as_str()).collect();
        // New mappings for proposed fields must still read all other fields, for example those on pages behind links.
        let keeps_all = mappings
            .learned_fields_of(&site)
            .all(|name| read.contains(name));
        if !learned.mappings.is_empty() && keeps_all {
            mappings.replace_proposed(project, &site, learned.mappings, &confidences)?;
            has_new = true;
        }
    }
    Ok(has_new)
}

/// The proposed cells that a person is asked about: a few for each proposed field of a site.
pub fn questions<'v>(table: &Table, verdict: &'v Verdict, answers: &Answers) -> Vec<&'v Cell> {
    let mut asked: BTreeMap<(String, usize), usize> = BTreeMap::new();
    let is_open = |cell: &&Cell| {
        let place = (
            table.rows[cell.row as usize].number,
            table.fields[cell.field].column,
        );
        cell.is_proposed
            && cell.state == State::BelowPrecision
            && cell.confidence >= LEAST_ASKED
            && !cell.values.is_empty()
            && !answers.has_answered(place)
    };
    let open = verdict.cells.iter().filter(is_open);
    let few = open.filter(|cell| {
        let url = cell
            .url
            .as_deref()
            .and_then(|url| webfill_urls::Url::parse(url).ok());
        let site = url.map(|url| webfill_urls::site(&url)).unwrap_or_default();
        let count = asked.entry((site, cell.field)).or_default();
        *count += 1;
        *count <= QUESTIONS
    });
    few.collect()
}
