//! Learns how to read lists: which elements are rows, and where the fields of a row are. It learns from known records
//! on the pages.
//!
//! Known values show where records are next to each other (`standing`), and what rows look like (`likeness`). So other
//! rows are distinguished from headers, advertisements and spacers (`target`). Then an XPath is made that selects all
//! rows and nothing else (`select`). Fields are learned from each row as from a page, starting at the row (`roots`).
//! Rows may also be objects (`objects`), and a field may occur only once for all rows of a page (`shared`).

mod key;
mod likeness;
mod objects;
mod paging;
mod prepared_page;
mod roots;
mod select;
mod shared;
mod standing;
mod target;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value, json};
use webfill_document::{Document, NodeRef};
use webfill_urls::Url;

use self::prepared_page::{ListPage, PreparedPage};
use self::roots::Shape;
use crate::conflicts;
use crate::evaluate::{self, RowReader};
use crate::field::{LearnedField, learn_field};
use crate::fold::KnownValue;
use crate::groups::group_pages;
use crate::known;
use crate::labels::{Labels, Leaks};
use crate::learning::{self, field_json, parse_pages};
use crate::page_group::Group;
use crate::places::Places;
use crate::report;
use crate::types::{
    FieldReport, KnownRow, LearnError, Learned, LearnedMapping, LeftOut, Page, RowsReport,
    RowsTask, SelectedRows,
};
use crate::url_patterns;

/// The most pages of one layout that are used for learning.
const MOST_PAGES: usize = 20;

/// The most known rows that are used for learning, and the most other rows.
const MOST_KNOWN: usize = 80;
const MOST_OTHERS: usize = 120;

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

/// A row of a page, prepared for learning.
struct PreparedRow<'d> {
    sheet: usize,
    position: usize,
    what: RowNode<'d>,
    known: Option<usize>,
}

enum RowNode<'d> {
    Element(NodeRef<'d>),
    Object(Value),
}

/// The rule that selects rows.
struct Rule<'d> {
    select: Vec<Value>,
    anchor: String,
    shape: Shape,
    rows: Vec<PreparedRow<'d>>,
    /// How well a rule that is learned from one half of the known rows selects the other half.
    confidence: f64,
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
        format!("the values of {known} known records do not stand side by side, in elements or objects of their own")
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

/// The likeliest way to select rows: as elements, or as objects if these contain more known values.
fn likeliest_rule<'d>(sheets: &[PreparedPage<'d>]) -> Option<Rule<'d>> {
    let standings = standing::locate_records(sheets);
    let elements = rule_of_elements(sheets, &standings);
    let objects = objects::find(sheets);
    let values: usize = sheets
        .iter()
        .flat_map(|sheet| sheet.list.rows)
        .map(|row| row.known_values().len())
        .sum();
    let of_elements = elements
        .as_ref()
        .map_or(0.0, |(_, read)| *read as f64 / values.max(1) as f64);
    match (elements, objects) {
        (Some((rule, _)), Some(objects)) if of_elements + 0.02 >= objects.coverage => Some(rule),
        (_, Some(objects)) => Some(rule_of_objects(objects)),
        (elements, None) => elements.map(|(rule, _)| rule),
    }
}

fn rule_of_objects<'d>(objects: objects::Objects) -> Rule<'d> {
    let mut rows = Vec::new();
    for (sheet, (values, known)) in objects.rows.into_iter().zip(objects.known).enumerate() {
        let of_sheet = values.into_iter().zip(known).enumerate();
        rows.extend(of_sheet.map(|(position, (value, known))| PreparedRow {
            sheet,
            position,
            what: RowNode::Object(value),
            known,
        }));
    }
    let anchor = match objects.select[0]["type"].as_str() {
        Some("json_ld") => "linked data",
        _ => "JSON of the page",
    };
    Rule {
        anchor: anchor.to_owned(),
        select: objects.select,
        shape: Shape {
            width: 1,
            first: None,
        },
        rows,
        confidence: 1.0,
    }
}

/// The likeliest rule that selects elements, and how many known values are in the rows of their records.
fn rule_of_elements<'d>(
    sheets: &[PreparedPage<'d>],
    standings: &[standing::RecordElements<'d>],
) -> Option<(Rule<'d>, usize)> {
    let (layout, target, selected) = select_by_layout(sheets, standings)?;
    let width = match layout.is_wide {
        true => 1 + target.tails,
        false => 1,
    };
    let mut rows = Vec::new();
    let mut read = 0;
    for (sheet, elements) in selected.rows.iter().enumerate() {
        for (position, element) in elements.iter().enumerate() {
            let is_it = |(number, head): &&(usize, NodeRef<'d>)| {
                standings[*number].sheet == sheet && head == element
            };
            let standing = layout
                .heads
                .iter()
                .find(is_it)
                .map(|(number, _)| &standings[*number]);
            read += standing.map_or(0, |standing| {
                let row = target::row_elements(*element, width);
                let holds = |node: &NodeRef<'d>| row.iter().any(|part| part.contains(*node));
                standing
                    .values
                    .iter()
                    .filter(|nodes| nodes.iter().any(holds))
                    .count()
            });
            rows.push(PreparedRow {
                sheet,
                position,
                what: RowNode::Element(*element),
                known: standing.map(|standing| standing.row),
            });
        }
    }
    let confidence = confidence(sheets, standings, &layout, selected.f1);
    let rule = Rule {
        select: vec![json!({"type": "xpath", "parameters": {"expression": selected.expression}})],
        anchor: selected.anchor.name().to_owned(),
        shape: Shape {
            width,
            first: selected.first,
        },
        rows,
        confidence,
    };
    Some((rule, read))
}

type Selection<'d> = (
    standing::Layout<'d>,
    target::Target<'d>,
    select::RowSelector<'d>,
);

fn select_by_layout<'d>(
    sheets: &[PreparedPage<'d>],
    standings: &[standing::RecordElements<'d>],
) -> Option<Selection<'d>> {
    let layout = standing::likeliest_layout(standings)?;
    let target = target::Target::new(sheets, standings, &layout);
    let values = sheets
        .iter()
        .flat_map(|sheet| sheet.list.rows)
        .flat_map(KnownRow::known_values);
    let leaks = Leaks::new(values.map(|wanted| wanted.folded));
    let selected = select::select(sheets, standings, &layout, &target, &leaks)?;
    Some((layout, target, selected))
}

/// The confidence of a rule. It is `f1` times the share of known rows that are selected by a rule learned from the
/// other half of them.
fn confidence<'d>(
    sheets: &[PreparedPage<'d>],
    standings: &[standing::RecordElements<'d>],
    layout: &standing::Layout<'d>,
    f1: f64,
) -> f64 {
    if layout.heads.len() < 2 * ENOUGH - 2 {
        return f1;
    }
    let (mut right, mut all) = (0usize, 0usize);
    for half in 0..2 {
        let is_shown = |number: usize| number % 2 == half;
        let shown: Vec<standing::RecordElements<'d>> = standings
            .iter()
            .enumerate()
            .filter(|(number, _)| is_shown(*number))
            .map(|(_, standing)| standing.clone())
            .collect();
        let found = select_by_layout(sheets, &shown).map(|(_, _, selected)| selected.rows);
        let withheld = layout.heads.iter().filter(|(number, _)| !is_shown(*number));
        for (number, head) in withheld {
            let rows = found.as_ref().map(|rows| &rows[standings[*number].sheet]);
            all += 1;
            right += usize::from(rows.is_some_and(|rows| rows.contains(head)));
        }
    }
    (f1 * 1_000.0 * right as f64 / all.max(1) as f64).round() / 1_000.0
}

/// Learns the fields of rows from each row as from a page.
fn learn_fields(
    sheets: &[PreparedPage<'_>],
    rule: &Rule<'_>,
    task: &RowsTask,
) -> Vec<(&'static str, FieldReport)> {
    let rows = choose_rows(&rule.rows);
    let heads: BTreeMap<usize, HashSet<usize>> = head_positions(&rule.rows);
    let of_rows: Vec<Page> = rows
        .iter()
        .map(|row| row_as_page(sheets, row, rule, &heads))
        .collect();
    let places = rows.iter().zip(&of_rows).map(|(row, page)| {
        let document = sheets[row.sheet].document;
        match &row.what {
            RowNode::Element(element) => {
                let roots = roots::roots_of_row(*element, &rule.shape, &heads[&row.sheet]);
                Places::from_row(page, document, roots)
            }
            RowNode::Object(value) => Places::from_object(page, document, value),
        }
    });
    let places: Vec<Places<'_>> = places.collect();
    let values = known::folded_values(of_rows.iter());
    let leaks = Leaks::new(values.into_iter());
    let labels = Labels::new(&places, &leaks);
    let group = Group {
        pages: places,
        labels,
        leaks,
        rows: Some(RowReader {
            select: rule.select.clone(),
            pages: sheets.iter().map(|sheet| sheet.list.page).collect(),
            rows: rows.iter().map(|row| (row.sheet, row.position)).collect(),
        }),
    };
    let mut all: Vec<(String, LearnedField)> = Vec::new();
    for field in known::fields_to_learn(&of_rows, &task.task.fields) {
        let (labels, pointed) = known::labels_and_pointed_places(&group.pages, &field);
        if labels.iter().any(|label| !label.wanted.is_empty()) {
            let found = learn_field(&group, labels, &pointed, None, &task.task.limits);
            all.push((field, found));
        }
    }
    conflicts::resolve_conflicts(&mut all);
    let reports = all
        .iter()
        .map(|(field, found)| ("row", report::field_report(field, found, &group)));
    reports.collect()
}

fn choose_rows<'r, 'd>(rows: &'r [PreparedRow<'d>]) -> Vec<&'r PreparedRow<'d>> {
    let (mut known, mut others) = (0, 0);
    let is_taken = |row: &&PreparedRow<'_>| {
        let (count, most) = match row.known {
            Some(_) => (&mut known, MOST_KNOWN),
            None => (&mut others, MOST_OTHERS),
        };
        *count += 1;
        *count <= most
    };
    rows.iter().filter(is_taken).collect()
}

fn head_positions(rows: &[PreparedRow<'_>]) -> BTreeMap<usize, HashSet<usize>> {
    let mut heads: BTreeMap<usize, HashSet<usize>> = BTreeMap::new();
    for row in rows {
        let of_sheet = heads.entry(row.sheet).or_default();
        if let RowNode::Element(element) = row.what {
            of_sheet.insert(element.position());
        }
    }
    heads
}

/// Makes a page of a row, with the row's known values, and the nodes in it that a person pointed at.
fn row_as_page(
    sheets: &[PreparedPage<'_>],
    row: &PreparedRow<'_>,
    rule: &Rule<'_>,
    heads: &BTreeMap<usize, HashSet<usize>>,
) -> Page {
    let sheet = &sheets[row.sheet];
    let mut url = sheet.list.page.url.clone();
    url.set_fragment(Some(&format!("row-{}", row.position)));
    let known = row.known.map(|known| &sheet.list.rows[known]);
    let mut page = Page {
        url,
        kind: sheet.list.page.kind,
        text: String::new(),
        record: known.and_then(|known| known.record.clone()),
        known: known.map(|known| known.known.clone()).unwrap_or_default(),
        said: BTreeMap::new(),
    };
    let RowNode::Element(element) = row.what else {
        return page;
    };
    let own = heads.get(&row.sheet);
    let parts = target::row_elements(element, rule.shape.width).into_iter();
    let parts: Vec<NodeRef<'_>> = parts
        .take_while(|part| {
            *part == element || own.is_none_or(|own| !own.contains(&part.position()))
        })
        .collect();
    let is_within = |path: &&String| {
        let node = standing::element_at_path(sheet, path);
        node.is_some_and(|node| parts.iter().any(|part| part.contains(node)))
    };
    for (field, said) in &sheet.list.page.said {
        let mut of_row = said.clone();
        of_row.nodes = said.nodes.iter().filter(is_within).cloned().collect();
        of_row.rejected_nodes = said
            .rejected_nodes
            .iter()
            .filter(is_within)
            .cloned()
            .collect();
        of_row.absent = false;
        if !of_row.nodes.is_empty() || !of_row.rejected_nodes.is_empty() {
            page.said.insert(field.clone(), of_row);
        }
    }
    page
}
