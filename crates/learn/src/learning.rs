//! The whole process of learning, from pages to mappings.

use serde_json::{Value, json};
use webfill_document::{Document, Limits as DocumentLimits};
use webfill_mapping::PageKind;
use webfill_urls::Url;

use crate::conflicts;
use crate::field::{LearnedField, learn_field};
use crate::groups::group_pages;
use crate::known;
use crate::labels::{Labels, Leaks};
use crate::links::{self, LearnedGroup};
use crate::page_group::Group;
use crate::places::Places;
use crate::report;
use crate::types::{FieldReport, LearnError, Learned, LeftOut, Page, Task};
use crate::url_patterns;

/// Learns a mapping for each group of pages of one site and layout that have known values. `other_urls` are pages of
/// the same sites that are of another kind; the URL patterns match as few of them as possible.
///
/// # Errors
///
/// There are no pages, nothing is known about them, or a name cannot be used.
pub fn learn(pages: &[Page], other_urls: &[Url], task: &Task) -> Result<Learned, LearnError> {
    learn_with_links(pages, &[], other_urls, task)
}

/// Like [`learn`], but with the `links` of all records, including links to pages that are not given. The URL patterns
/// are made wide enough for them.
///
/// # Errors
///
/// There are no pages, nothing is known about them, or a name cannot be used.
pub fn learn_with_links(
    pages: &[Page],
    links: &[Url],
    other_urls: &[Url],
    task: &Task,
) -> Result<Learned, LearnError> {
    let links_of_records = links;
    check_task(pages, task)?;
    let fields = known::fields_to_learn(pages, &task.fields);
    if fields.is_empty() {
        return Err(LearnError::NothingKnown);
    }
    // Only one tree at a time is in memory, because the trees of all pages together would be too large.
    let sketches = pages.iter().map(|page| parse_page(page, 8).sketch());
    let groups =
        url_patterns::merge_inseparable_groups(group_pages(pages, sketches.collect()), pages);
    let mut learnt = Vec::new();
    let mut pages_to_check = Vec::new();
    for group in &groups {
        let chosen = choose_pages(pages, group, task);
        let documents = parse_pages(pages, &chosen);
        let group_of_fields = prepare_group(pages, &documents, &chosen);
        let (reports, doubts) = learn_fields(&group_of_fields, &fields, task);
        pages_to_check.push(report::page_to_check(&doubts, &group_of_fields));
        learnt.push(LearnedGroup {
            group: group.clone(),
            reports,
        });
    }
    let links: Vec<Vec<Value>> = (0..learnt.len())
        .map(|at| learn_links(pages, &learnt, at, task))
        .collect();
    let mut learned = Learned {
        mappings: Vec::new(),
        left_out: Vec::new(),
    };
    for ((of_group, links), page_to_check) in learnt.into_iter().zip(links).zip(pages_to_check) {
        let LearnedGroup { group, reports } = of_group;
        if links.is_empty() && reports.iter().all(|report| report.processors.is_none()) {
            let why = "no value that is known of this page or of those like it was found on them";
            learned.left_out.extend(group.iter().map(|&page| LeftOut {
                url: pages[page].url.to_string(),
                why: why.to_owned(),
            }));
            continue;
        }
        let others = urls_of_others(pages, &groups, &group, other_urls);
        let urls: Vec<&Url> = group.iter().map(|&page| &pages[page].url).collect();
        let patterns = url_patterns::patterns_with_links(&urls, links_of_records, &others);
        let name = numbered_name(&task.name, learned.mappings.len());
        let mapping = mapping_json(&name, &patterns, &links, &reports);
        learned.mappings.push(report::mapping_report(
            mapping,
            &urls,
            reports,
            page_to_check,
        ));
    }
    Ok(learned)
}

/// Learns the `url_parsers` of a group: the links to pages that have further values of the records.
fn learn_links(pages: &[Page], learnt: &[LearnedGroup], at: usize, task: &Task) -> Vec<Value> {
    let pairs = links::link_pairs(pages, learnt, at);
    if pairs.is_empty() {
        return Vec::new();
    }
    let chosen = choose_pages(pages, &learnt[at].group, task);
    let documents = parse_pages(pages, &chosen);
    let group = prepare_group(pages, &documents, &chosen);
    links::learn_parsers(&group, &chosen, pages, &pairs, &task.limits)
}

pub(crate) fn check_task(pages: &[Page], task: &Task) -> Result<(), LearnError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if task.name.is_empty() || !task.name.chars().all(is_name) {
        return Err(LearnError::Name(task.name.clone()));
    }
    let is_field = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let known = known::fields_to_learn(pages, &[]);
    if let Some(name) = task
        .fields
        .iter()
        .chain(&known)
        .find(|name| !is_field(name))
    {
        return Err(LearnError::FieldName(name.clone()));
    }
    if pages.is_empty() {
        return Err(LearnError::NoPages);
    }
    Ok(())
}

/// Parses these pages. Their trees share a memory limit.
pub(crate) fn parse_pages(pages: &[Page], chosen: &[usize]) -> Vec<Document> {
    let trees = chosen
        .iter()
        .map(|&page| parse_page(&pages[page], chosen.len()));
    trees.collect()
}

/// Parses a page, with its share of the memory for `pages` trees.
pub(crate) fn parse_page(page: &Page, pages: usize) -> Document {
    let memory = ((1usize << 30) / pages.max(1)).clamp(8 << 20, 128 << 20);
    let limits = DocumentLimits {
        memory_bytes: memory,
        input_bytes: memory / 4,
        ..DocumentLimits::default()
    };
    match page.kind {
        PageKind::Html => Document::parse_html(&page.text, &limits),
        PageKind::Xml => Document::parse_xml(&page.text, &limits),
        PageKind::Json | PageKind::Text => Document::parse_html("", &limits),
    }
}

/// Chooses the pages of a group to learn from. Pages with the most known values come first.
fn choose_pages(pages: &[Page], group: &[usize], task: &Task) -> Vec<usize> {
    let knows = |page: &usize| {
        let page = &pages[*page];
        let said = usize::from(!page.said.is_empty()) * 1_000;
        said + page
            .known
            .values()
            .filter(|values| !values.is_empty())
            .count()
    };
    let mut chosen = group.to_vec();
    chosen.sort_by_key(|page| (usize::MAX - knows(page), *page));
    chosen.truncate(task.limits.pages.max(1));
    chosen.sort_unstable();
    chosen
}

/// Prepares the chosen pages of a group, with their trees, for learning.
pub(crate) fn prepare_group<'d>(
    pages: &'d [Page],
    documents: &'d [Document],
    chosen: &[usize],
) -> Group<'d> {
    let places: Vec<Places<'d>> = chosen
        .iter()
        .zip(documents)
        .map(|(&page, document)| Places::new(&pages[page], document))
        .collect();
    let values = known::folded_values(chosen.iter().map(|&page| &pages[page]));
    let leaks = Leaks::new(values.into_iter());
    let labels = Labels::new(&places, &leaks);
    Group {
        pages: places,
        labels,
        leaks,
        rows: None,
    }
}

fn learn_fields(group: &Group<'_>, fields: &[String], task: &Task) -> (Vec<FieldReport>, Vec<f64>) {
    let mut all: Vec<(String, LearnedField)> = Vec::new();
    for field in fields {
        let (labels, pointed) = known::labels_and_pointed_places(&group.pages, field);
        if labels.iter().all(|label| label.wanted.is_empty()) {
            continue;
        }
        let found = learn_field(group, labels, &pointed, None, &task.limits);
        all.push((field.clone(), found));
    }
    conflicts::resolve_conflicts(&mut all);
    let mut reports = Vec::new();
    let mut doubts = vec![0.0; group.pages.len()];
    for (field, found) in &all {
        reports.push(report::field_report(field, found, group));
        let of_field = report::doubts(found, group);
        doubts
            .iter_mut()
            .zip(of_field)
            .for_each(|(sum, doubt)| *sum += doubt);
    }
    (reports, doubts)
}

/// URLs that a group's URL patterns should not match: pages of other kinds, and of other groups of the site.
pub(crate) fn urls_of_others<'p>(
    pages: &'p [Page],
    groups: &[Vec<usize>],
    group: &[usize],
    other_urls: &'p [Url],
) -> Vec<&'p Url> {
    let own = |url: &Url| group.iter().any(|&page| pages[page].url == *url);
    let of_groups = groups.iter().filter(|other| *other != group).flatten();
    let urls = of_groups.map(|&page| &pages[page].url);
    urls.chain(other_urls).filter(|url| !own(url)).collect()
}

pub(crate) fn numbered_name(name: &str, before: usize) -> String {
    match before {
        0 => name.to_owned(),
        before => format!("{name}{}", before + 1),
    }
}

fn mapping_json(
    name: &str,
    patterns: &[String],
    links: &[Value],
    reports: &[FieldReport],
) -> Value {
    let patterns: Vec<Value> = patterns
        .iter()
        .map(|pattern| json!({"type": "regex", "pattern": pattern}))
        .collect();
    let fields: Vec<Value> = reports.iter().filter_map(field_json).collect();
    let mut mapping = json!({"name": name, "url_patterns": patterns});
    if !links.is_empty() {
        mapping["url_parsers"] = links.into();
    }
    mapping["fields"] = fields.into();
    mapping
}

/// The JSON of a mapping's field, made from the report on it; `None` if nothing was learned.
pub(crate) fn field_json(report: &FieldReport) -> Option<Value> {
    let processors = report.processors.clone()?;
    let mut field = json!({"name": report.field});
    if report.multiple {
        field["multiple"] = true.into();
    }
    if report.alternatives.is_empty() {
        field["processors"] = processors;
    } else {
        let mut all = vec![processors];
        all.extend(report.alternatives.iter().cloned());
        field["alternatives"] = all.into();
    }
    Some(field)
}
