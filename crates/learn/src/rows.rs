//! Learns how to read lists: which elements are rows, and where the fields of a row are. It learns from known records
//! on the pages.
//!
//! Known values show where records are next to each other (`standing`), and what rows look like (`likeness`). So other
//! rows are distinguished from headers, advertisements and spacers (`target`). Then an XPath is made that selects all
//! rows and nothing else (`select`). Fields are learned from each row as from a page, starting at the row (`roots`).
//! Rows may also be objects (`objects`), and a field may occur only once for all rows of a page (`shared`).

mod fields;
mod key;
mod likeness;
mod objects;
mod paging;
mod prepared_page;
mod roots;
mod rule;
mod select;
mod shared;
mod standing;
mod target;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_document::Document;
use webfill_urls::Url;

use self::fields::learn_fields;
use self::prepared_page::{ListPage, PreparedPage};
use self::rule::{RowNode, Rule, likeliest_rule, rule_of_elements};
use crate::evaluate;
use crate::fold::KnownValue;
use crate::groups::group_pages;
use crate::learning::{self, field_json, parse_pages};
use crate::places::Places;
use crate::report;
use crate::types::{
    FieldReport, KnownRow, LearnError, Learned, LearnedMapping, LeftOut, Page, RowsReport,
    RowsTask, SelectedRows,
};
use crate::url_patterns;

/// The most pages of one layout that are used for learning.
const MOST_PAGES: usize = 20;

/// If a field of rows has a lower confidence than this, values that occur once on the page are tried for it.
const SURE: f64 = 0.9;

/// A mapping of rows that was learned from fewer records is a draft.
const ENOUGH: usize = 3;

/// Learns a mapping with `rows` for each group of pages of one site and layout that contain known records. `rows` are
/// the records of each page. For `links` and `other_urls`, see [`crate::learn_with_links`].
///
/// # Errors
///
/// There are no pages, nothing is known about them, or a name cannot be used.
pub fn learn_rows(
    pages: &[Page],
    rows: &[Vec<KnownRow>],
    links: &[Url],
    other_urls: &[Url],
    task: &RowsTask,
) -> Result<Learned, LearnError> {
    learning::check_task(pages, &task.task)?;
    if rows.iter().all(Vec::is_empty) {
        return Err(LearnError::NothingKnown);
    }
    let sketches = pages
        .iter()
        .map(|page| learning::parse_page(page, 8).sketch());
    let groups =
        url_patterns::merge_inseparable_groups(group_pages(pages, sketches.collect()), pages);
    let mut learned = Learned {
        mappings: Vec::new(),
        left_out: Vec::new(),
    };
    for group in &groups {
        let chosen = choose_pages(rows, group);
        if chosen.iter().all(|&page| rows[page].is_empty()) {
            continue;
        }
        match learn_group(pages, rows, &chosen, task) {
            Ok(listing) => {
                let others = learning::urls_of_others(pages, &groups, group, other_urls);
                let urls: Vec<&Url> = group.iter().map(|&page| &pages[page].url).collect();
                let own = listing.further.iter().chain(links).cloned();
                let links: Vec<Url> = own.collect();
                let patterns = url_patterns::patterns_with_links(&urls, &links, &others);
                let name = learning::numbered_name(&task.task.name, learned.mappings.len());
                learned
                    .mappings
                    .push(listing.into_mapping(&name, &patterns, &urls));
            }
            Err(why) => learned.left_out.extend(chosen.iter().map(|&page| LeftOut {
                url: pages[page].url.to_string(),
                why: why.clone(),
            })),
        }
    }
    Ok(learned)
}

/// Finds the rows of pages, by the known records or by elements that a person pointed at. Returns the chain (list of
/// extraction steps) that selects them, and the positions of their first elements on each page. `None` if the records
/// are not next to each other.
pub fn select_rows(pages: &[Page], rows: &[Vec<KnownRow>]) -> Option<SelectedRows> {
    let all: Vec<usize> = (0..pages.len()).collect();
    let documents = parse_pages(pages, &all);
    let sheets = prepare_pages(pages, rows, &all, &documents);
    let (rule, _) = rule_of_elements(&sheets, &standing::locate_records(&sheets))?;
    let mut elements = vec![Vec::new(); pages.len()];
    for row in &rule.rows {
        if let RowNode::Element(element) = row.what {
            elements[row.sheet].push(element.position());
        }
    }
    Some(SelectedRows {
        select: rule.select,
        anchor: rule.anchor,
        elements,
    })
}

fn prepare_pages<'d>(
    pages: &'d [Page],
    rows: &'d [Vec<KnownRow>],
    chosen: &[usize],
    documents: &'d [Document],
) -> Vec<PreparedPage<'d>> {
    let sheet = |(&page, document): (&usize, &'d Document)| PreparedPage {
        list: ListPage {
            page: &pages[page],
            rows: &rows[page][..],
        },
        document,
        places: Places::new(&pages[page], document),
    };
    chosen.iter().zip(documents).map(sheet).collect()
}

/// The indexes of those records that are on a page. At least two values of the record, or its only one, must be on the
/// page. One of them must be a text that occurs in few places.
pub fn find_records_on_page(page: &Page, records: &[KnownRow]) -> Vec<usize> {
    /// In how many places of the page a value may occur and still identify its record.
    const FEW: usize = 4;
    /// The fewest characters of a value that can identify its record.
    const LEAST_CHARS: usize = 4;
    if records.is_empty() {
        return Vec::new();
    }
    let document = learning::parse_page(page, 8);
    let places = Places::new(page, &document);
    let stands = |record: &KnownRow| {
        let wanted = record.known_values();
        let of_values = wanted.iter().map(|one| (one, places.find_exact(one).len()));
        let found: Vec<(&KnownValue, usize)> = of_values.filter(|(_, count)| *count > 0).collect();
        let is_distinctive = |(one, count): &(&KnownValue, usize)| {
            *count <= FEW && one.text.chars().filter(|c| c.is_alphanumeric()).count() >= LEAST_CHARS
        };
        found.len() >= wanted.len().min(2) && found.iter().any(is_distinctive)
    };
    (0..records.len())
        .filter(|&at| stands(&records[at]))
        .collect()
}

/// Chooses the pages used for learning. Those with the most known records come first.
fn choose_pages(rows: &[Vec<KnownRow>], group: &[usize]) -> Vec<usize> {
    let mut chosen = group.to_vec();
    chosen.sort_by_key(|&page| (usize::MAX - rows[page].len(), page));
    chosen.truncate(MOST_PAGES);
    chosen.sort_unstable();
    chosen
}

/// The result of learning the rows of a group of pages.
struct Listing {
    rule: Value,
    fields: Vec<FieldReport>,
    parsers: Vec<Value>,
    /// The URLs of further pages of the list, which the given pages link to.
    further: Vec<Url>,
    report: RowsReport,
}

impl Listing {
    fn into_mapping(self, name: &str, patterns: &[String], urls: &[&Url]) -> LearnedMapping {
        let patterns = patterns
            .iter()
            .map(|pattern| json!({"type": "regex", "pattern": pattern}));
        let mut mapping = json!({"name": name, "url_patterns": patterns.collect::<Vec<Value>>()});
        if !self.parsers.is_empty() {
            mapping["url_parsers"] = self.parsers.into();
        }
        mapping["rows"] = self.rule;
        let is_unsure = self.report.matched < ENOUGH || self.report.confidence < SURE;
        let mut learned = report::mapping_report(mapping, urls, self.fields, None);
        learned.draft |= is_unsure;
        learned.rows = Some(self.report);
        learned
    }
}

fn learn_group(
    pages: &[Page],
    rows: &[Vec<KnownRow>],
    chosen: &[usize],
    task: &RowsTask,
) -> Result<Listing, String> {
    let documents = parse_pages(pages, chosen);
    let sheets = prepare_pages(pages, rows, chosen, &documents);
    let known: usize = sheets.iter().map(|sheet| sheet.list.rows.len()).sum();
    let rule = likeliest_rule(&sheets).ok_or_else(|| {
        format!("the values of {known} known records are not next to each other, in separate elements or objects")
    })?;
    let matched = rule.rows.iter().filter(|row| row.known.is_some()).count();
    let mut fields = learn_fields(&sheets, &rule, task);
    for name in known_fields(&sheets, task) {
        let is_missing = fields
            .iter()
            .all(|(_, report)| report.field != name || report.confidence < SURE);
        let shared = Some(name).filter(|_| is_missing);
        let shared =
            shared.and_then(|name| shared::learn(&sheets, &documents, &name, &task.task.limits));
        let Some(shared) = shared else { continue };
        let of_row = fields
            .iter()
            .position(|(_, report)| report.field == shared.report.field);
        let is_better = of_row.is_none_or(|at| shared.report.confidence > fields[at].1.confidence);
        if is_better {
            fields.retain(|(_, report)| report.field != shared.report.field);
            fields.push((shared.from, shared.report));
        }
    }
    fields.sort_by(|(_, one), (_, other)| one.field.cmp(&other.field));
    finish_listing(&sheets, rule, fields, known, matched, task)
}

fn known_fields(sheets: &[PreparedPage<'_>], task: &RowsTask) -> Vec<String> {
    let rows = sheets.iter().flat_map(|sheet| sheet.list.rows);
    let names: BTreeSet<&String> = rows.flat_map(|row| row.known.keys()).collect();
    let is_wanted =
        |name: &&&String| task.task.fields.is_empty() || task.task.fields.contains(name);
    names
        .iter()
        .filter(is_wanted)
        .map(|name| (*name).clone())
        .collect()
}

fn finish_listing(
    sheets: &[PreparedPage<'_>],
    rule: Rule<'_>,
    fields: Vec<(&'static str, FieldReport)>,
    known: usize,
    matched: usize,
    task: &RowsTask,
) -> Result<Listing, String> {
    let written = fields.iter().filter_map(|(from, report)| {
        let field = field_json(report)?;
        Some(match *from {
            "row" => field,
            from => shared::with_origin(field, from),
        })
    });
    let written: Vec<Value> = written.collect();
    let single = fields
        .iter()
        .filter(|(_, report)| !report.multiple && report.processors.is_some());
    let single: Vec<String> = single.map(|(_, report)| report.field.clone()).collect();
    let Some(first) = single.first() else {
        return Err(format!(
            "{matched} of {known} known records were found in rows, and no field of them that could be their key"
        ));
    };
    let mut written = json!({
        "dataset": task.dataset,
        "select": rule.select,
        "fields": written,
        "key": [first],
    });
    let read: Vec<key::Rows> = sheets
        .iter()
        .map(|sheet| evaluate::read_rows(&written, sheet.list.page))
        .collect();
    let key = key::find_key(&read, &single);
    written["key"] = key.clone().into();
    let paging = paging::find(sheets);
    let count = read.iter().map(Vec::len).sum();
    let (parsers, further) = match paging {
        Some(paging) => (
            vec![json!({"description": "The further pages.", "processors": paging.processors})],
            paging.urls,
        ),
        None => (Vec::new(), Vec::new()),
    };
    let share = format!("{matched} of {known} known records stand in rows of their own");
    Ok(Listing {
        report: RowsReport {
            dataset: task.dataset.clone(),
            key,
            anchor: rule.anchor.clone(),
            rows: count,
            known,
            matched,
            confidence: rule.confidence,
            why: format!(
                "found by {}; {share}; {count} rows are read on {} pages",
                rule.anchor,
                sheets.len()
            ),
        },
        rule: written,
        fields: fields.into_iter().map(|(_, report)| report).collect(),
        parsers,
        further,
    })
}
