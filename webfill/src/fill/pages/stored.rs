//! The pages of a table that its crawls have stored.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use webfill_store::{CrawlId, page_id};
use webfill_wire::Outcome;

use crate::fill::stored_page::StoredPage;

/// The stored pages of all crawls. They are added crawl by crawl, the oldest first.
#[derive(Default)]
pub(super) struct StoredPages {
    /// The pages by canonical URL.
    pub(super) pages: BTreeMap<String, StoredPage>,
    /// URLs whose last request failed for a reason that may be temporary.
    pub(super) failing: BTreeSet<String>,
    /// URLs by the keys of their pages.
    pub(super) urls: HashMap<String, String>,
    /// The index of the crawl that last fetched a URL; missing if that was the first crawl.
    pub(super) fetched_in: HashMap<String, usize>,
}

impl StoredPages {
    pub(super) fn count_at_private_addresses(&self) -> usize {
        let outcomes = self.pages.values().map(|page| page.outcome);
        outcomes
            .filter(|outcome| *outcome == Outcome::UnsafeAddress)
            .count()
    }

    /// Adds a page of a crawl in place of the page that an earlier crawl has stored for the URL. If the new fetch
    /// failed for a temporary reason and the earlier one did not, the earlier page stays.
    pub(super) fn add_unless_failed(&mut self, page: &Value, earlier: &[CrawlId]) {
        let (Some(url), Some(key), Some(found)) = (
            page["url"].as_str(),
            page["_id"].as_str(),
            StoredPage::read(page),
        ) else {
            return;
        };
        if !earlier.is_empty() {
            self.fetched_in.insert(url.to_owned(), earlier.len());
        }
        let fails = found.may_succeed_later();
        match fails {
            true => drop(self.failing.insert(url.to_owned())),
            false => drop(self.failing.remove(url)),
        }
        let is_kept = |former: &StoredPage| !former.may_succeed_later();
        if fails && self.pages.get(url).is_some_and(is_kept) {
            return;
        }
        for crawl in earlier {
            let key = page_id(&crawl.app_id, &crawl.crawl_id, url);
            self.urls.remove(&key);
        }
        self.urls.insert(key.to_owned(), url.to_owned());
        self.pages.insert(url.to_owned(), found);
    }
}
