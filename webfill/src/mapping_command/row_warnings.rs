//! Warnings of `webfill mapping check` about rows. It finds lists that belong together and should be rows. With the
//! pages of golden cases it also finds rows without a unique key, rules that find nothing, and lists that should mark
//! missing rows as gone but cannot.

mod side_by_side;

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use webfill_mapping::{Engine, Extraction, Listing, MappingIndex, ParallelLists};

use super::page::Page;
use super::save::compared_parts;
use side_by_side::{AdjacentLists, find_adjacent_lists};

/// A warning, with the mapping that should be written instead.
pub struct Warning {
    pub text: String,
    pub rewrite: Option<Value>,
}

pub fn row_warnings(engine: &Engine, pages: &[(MappingIndex, Page)]) -> Vec<Warning> {
    let set = engine.set();
    let mut warnings = Vec::new();
    let complete: HashSet<&str> = set
        .indexes()
        .flat_map(|index| set.datasets_with_completeness(index))
        .filter_map(|(dataset, complete)| complete.then_some(dataset))
        .collect();
    for index in set.indexes() {
        let mut own = pages.iter().filter(|(mapping, _)| *mapping == index);
        let own: Vec<&Page> = own.by_ref().map(|(_, page)| page).collect();
        let parallel = set.parallel_lists(index);
        let written: HashSet<&String> = parallel.iter().flat_map(|lists| &lists.fields).collect();
        let open = |name: &&str| !written.contains(&(*name).to_owned());
        let open: Vec<&str> = set
            .lists_without_positions(index)
            .into_iter()
            .filter(open)
            .collect();
        let shown = match open.len() {
            0 | 1 => AdjacentLists::default(),
            _ => find_adjacent_lists(engine, index, &open, &own),
        };
        let name = set.name(index);
        let has_rows = !set.rows_of(index).is_empty();
        let seen = shown.rows.into_iter().map(|(entries, fields)| {
            let rewrite = set.rows_rule(index, &entries, &fields);
            rewrite.ok_or(fields)
        });
        for lists in parallel.into_iter().map(Ok).chain(seen) {
            warnings.push(lists_warning(name, lists, has_rows));
        }
        for fields in shown.alike {
            warnings.push(equal_lengths_warning(name, &fields));
        }
        add_rule_warnings(name, engine, index, &own, &mut warnings);
        let mut lacking: Vec<&str> = set
            .datasets_with_completeness(index)
            .filter_map(|(dataset, is_so)| {
                (!is_so && complete.contains(dataset)).then_some(dataset)
            })
            .collect();
        lacking.dedup();
        warnings.extend(
            lacking
                .into_iter()
                .map(|dataset| incomplete_warning(name, dataset)),
        );
    }
    warnings
}

fn lists_warning(
    mapping: &str,
    lists: Result<ParallelLists, Vec<String>>,
    has_rows: bool,
) -> Warning {
    let (fields, rewrite) = match lists {
        Ok(lists) => (lists.fields, Some(lists.rewrite)),
        Err(fields) => (fields, None),
    };
    let fields = fields.join(", ");
    let advice = match (&rewrite, has_rows) {
        (Some(_), false) => "write this instead of these fields",
        (Some(_), true) => "add this rule to `rows` instead of these fields",
        (None, _) => "read them as rows",
    };
    let text = format!(
        "mapping {mapping}: fields {fields} are lists of parts of the same entries, so that an entry that lacks one \
         shifts all values after it: {advice}"
    );
    let rewrite = rewrite.map(|mut rewrite| match has_rows {
        true => rewrite["rows"].take(),
        false => rewrite,
    });
    Warning { text, rewrite }
}

fn equal_lengths_warning(mapping: &str, fields: &[String]) -> Warning {
    let fields = fields.join(", ");
    let text = format!(
        "mapping {mapping}: the lists of fields {fields} are as long as each other on all golden cases: if they belong \
         together, read them as `rows`, because an entry that lacks one shifts all values after it"
    );
    Warning {
        text,
        rewrite: None,
    }
}

fn incomplete_warning(mapping: &str, dataset: &str) -> Warning {
    let text = format!(
        "mapping {mapping}: rows of {dataset}: another rule for this dataset has `complete`, and this one has not: rows \
         that only this one still finds may be marked as gone"
    );
    Warning {
        text,
        rewrite: None,
    }
}

/// Whether lists that mark missing rows as gone can be followed to their next page, over all pages.
#[derive(Default)]
struct ContinuationCheck {
    /// The number of pages with links, and the number of pages whose link to the next page the mapping reads.
    with_links: usize,
    with_next: usize,
    without_count: usize,
}

impl ContinuationCheck {
    fn add(&mut self, extraction: &Extraction) {
        let Some(continuation) = &extraction.continuation else {
            return;
        };
        self.with_links += usize::from(!extraction.links.is_empty());
        self.with_next += usize::from(!continuation.next.is_empty());
        self.without_count += usize::from(continuation.lacks_count);
    }

    fn warning_texts(&self, mapping: &str) -> Vec<String> {
        let mut texts = Vec::new();
        if self.with_links > 0 && self.with_next == 0 {
            texts.push(format!(
                "mapping {mapping}: rows are `complete`, but no link of the golden cases leads to a page that this \
                 mapping reads: if the list continues there, each of its pages passes for a list of its own"
            ));
        }
        if self.without_count > 0 {
            texts.push(format!(
                "mapping {mapping}: rows are `complete`, but `pagination` finds no count on {} of the golden cases: \
                 such a list is never complete",
                self.without_count
            ));
        }
        texts
    }
}

/// The flaws in the rows of one rule, over all pages.
#[derive(Default)]
struct RowFlaws {
    dataset: String,
    rows: usize,
    /// For each field of the key, the number of rows that lack it.
    missing: BTreeMap<String, usize>,
    /// The number of rows whose key occurs more than once on their page, and an example of such a key.
    again: usize,
    example: Option<String>,
}

fn add_rule_warnings(
    mapping: &str,
    engine: &Engine,
    index: MappingIndex,
    pages: &[&Page],
    warnings: &mut Vec<Warning>,
) {
    let rules = engine.set().rows_of(index).len();
    if rules == 0 || pages.is_empty() {
        return;
    }
    let is_complete = engine
        .set()
        .datasets_with_completeness(index)
        .any(|(_, complete)| complete);
    let mut continuing = ContinuationCheck::default();
    let mut lacks: Vec<RowFlaws> = Vec::new();
    lacks.resize_with(rules, RowFlaws::default);
    for page in pages {
        let Ok(extraction) = page.extract(engine, index, compared_parts()) else {
            return;
        };
        continuing.add(&extraction);
        for (lacks, listing) in lacks.iter_mut().zip(&extraction.listings) {
            lacks.add(listing);
        }
    }
    let of_lists = match is_complete {
        true => continuing.warning_texts(mapping),
        false => Vec::new(),
    };
    let texts = lacks.iter().flat_map(|lacks| lacks.warning_texts(mapping));
    let texts = texts.chain(of_lists);
    warnings.extend(texts.map(|text| Warning {
        text,
        rewrite: None,
    }));
}

impl RowFlaws {
    fn add(&mut self, listing: &Listing) {
        self.dataset.clone_from(&listing.dataset);
        self.rows += listing.rows.len();
        // Key fields that come from the record are left out, because they are the same for all rows of a page.
        let own = listing.key.iter();
        let own: Vec<&String> = own
            .filter(|name| !listing.from_record.contains_key(*name))
            .collect();
        let mut seen = HashSet::new();
        for row in &listing.rows {
            let is_missing = |name: &&&String| row.fields.get(**name).is_none_or(Value::is_null);
            let missing: Vec<&&String> = own.iter().filter(is_missing).collect();
            for name in &missing {
                *self.missing.entry((**name).clone()).or_default() += 1;
            }
            let values = own.iter().map(|name| row.fields[*name].clone());
            let key = Value::from_iter(values).to_string();
            if missing.is_empty() && !seen.insert(key.clone()) {
                self.again += 1;
                self.example.get_or_insert(key);
            }
        }
    }

    fn warning_texts(&self, mapping: &str) -> Vec<String> {
        let (dataset, rows) = (&self.dataset, self.rows);
        let head = format!("mapping {mapping}: rows of {dataset}: ");
        if rows == 0 {
            return vec![format!("{head}`select` finds nothing on any golden case")];
        }
        let missing = self.missing.iter().map(|(name, count)| {
            format!(
                "{head}{count} of {rows} rows of the golden cases have no {name}, which is in the key, and are not stored"
            )
        });
        let again = self.example.iter().map(|example| {
            format!(
                "{head}{} of {rows} rows of the golden cases have the key of another row of their page, such as {example}, \
                 and are not stored: add a field to the key that tells them apart",
                self.again
            )
        });
        missing.chain(again).collect()
    }
}
