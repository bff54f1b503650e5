//! Finds records that are rows of a page: several records link to the same page, or (with `--rows`) their values are on
//! it.

use std::collections::{BTreeMap, BTreeSet};

use webfill_learn::{KnownRow, Learned, Limits, Page, RowsTask, Task, find_records_on_page};
use webfill_service::Fault;
use webfill_urls::Url;

use super::gathered::GatheredPage;
use super::records::{KnownRecord, KnownRecords};

/// A page counts as a list of records if it has at least this many.
const SEVERAL: usize = 2;

/// The records on each page. For a page with fewer than two records, the list is empty.
pub struct ListedRecords(Vec<Vec<KnownRow>>);

impl ListedRecords {
    /// Finds the records on each page. With `by_values`, records that do not link to the page are searched for by their
    /// values.
    pub fn new(pages: &[GatheredPage], records: &KnownRecords, by_values: bool) -> ListedRecords {
        let known: Vec<KnownRow> = match by_values {
            true => records.records.iter().map(known_row).collect(),
            false => Vec::new(),
        };
        let rows = pages.iter().map(|page| {
            let linked = page.urls().flat_map(|name| records.find_all_by_link(name));
            let linked: BTreeMap<&str, &KnownRecord> =
                linked.map(|record| (record.id.as_str(), record)).collect();
            if linked.len() >= SEVERAL {
                return linked.into_values().map(known_row).collect();
            }
            let found = find_records_on_page(&page_to_learn(page), &known);
            match found.len() >= SEVERAL {
                true => found.into_iter().map(|at| known[at].clone()).collect(),
                false => Vec::new(),
            }
        });
        ListedRecords(rows.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    pub fn lists_records(&self, page: usize) -> bool {
        !self.0[page].is_empty()
    }

    /// Removes fields whose names are not allowed in mappings.
    pub fn leave_out_unusable_names(
        &mut self,
        is_usable: impl Fn(&str) -> bool,
    ) -> BTreeSet<String> {
        let mut left_out = BTreeSet::new();
        for row in self.0.iter_mut().flatten() {
            let known = std::mem::take(&mut row.known);
            let (usable, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
                known.into_iter().partition(|(name, _)| is_usable(name));
            row.known = usable;
            left_out.extend(others.into_keys());
        }
        left_out
    }

    pub fn learn(
        &self,
        pages: &[GatheredPage],
        links: &[Url],
        others: &[Url],
        task: &Task,
        dataset: Option<&String>,
    ) -> Result<Learned, Fault> {
        let pages: Vec<Page> = pages.iter().map(page_to_learn).collect();
        let task = RowsTask {
            dataset: dataset.unwrap_or(&task.name).clone(),
            task: Task {
                limits: Limits::default(),
                ..task.clone()
            },
        };
        webfill_learn::learn_rows(&pages, &self.0, links, others, &task).map_err(Fault::usage)
    }
}

fn known_row(record: &KnownRecord) -> KnownRow {
    KnownRow {
        record: Some(record.id.clone()),
        known: record.known.clone(),
        nodes: Vec::new(),
    }
}

fn page_to_learn(page: &GatheredPage) -> Page {
    Page {
        url: page.url.clone(),
        kind: page.kind,
        text: page.text.clone(),
        record: None,
        known: BTreeMap::new(),
        said: BTreeMap::new(),
    }
}
