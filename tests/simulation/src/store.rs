//! The simulated store: the saved pages, and the complete records. A page completes either every record that it
//! serves or none.

use std::collections::{BTreeMap, BTreeSet};

use webfill_scheduler::effects::BackfillWrite;

#[derive(Debug, Default)]
pub(crate) struct Store {
    /// The saved pages, by crawl and URL, and whether each was fetched in full.
    pages: BTreeMap<(String, String), bool>,
    resolved: BTreeSet<String>,
}

impl Store {
    /// Saves a page. Returns those of `records` that are complete now.
    pub(crate) fn save(
        &mut self,
        crawl: &str,
        url: &str,
        is_ok: bool,
        completes: bool,
        records: &[String],
    ) -> Vec<String> {
        self.pages.insert((crawl.to_owned(), url.to_owned()), is_ok);
        if is_ok && completes {
            self.resolved.extend(records.iter().cloned());
        }
        let complete = records.iter().filter(|record| self.is_resolved(record));
        complete.cloned().collect()
    }

    /// Applies a saved page to a further record. Returns whether the record is complete now, and whether the page's
    /// links are followed for it.
    pub(crate) fn apply(&mut self, application: &BackfillWrite, completes: bool) -> (bool, bool) {
        let page = &application.page;
        let is_ok = self.has_page(&application.crawl_id, &page.url);
        if is_ok && completes {
            self.resolved.insert(page.record.clone());
        }
        (self.is_resolved(&page.record), is_ok)
    }

    /// Whether the page was saved and had been fetched in full.
    pub(crate) fn has_page(&self, crawl: &str, url: &str) -> bool {
        let key = (crawl.to_owned(), url.to_owned());
        self.pages.get(&key).copied().unwrap_or(false)
    }

    pub(crate) fn is_resolved(&self, record: &str) -> bool {
        self.resolved.contains(record)
    }
}
