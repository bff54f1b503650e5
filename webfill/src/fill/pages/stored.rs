//! The pages of a store, of one crawl after another.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use webfill_store::{CrawlId, page_id};

use crate::fill::stored_page::StoredPage;

/// The stored pages of one crawl after another.
#[derive(Default)]
pub(super) struct StoredPages {
    /// By canonical URL.
    pub(super) pages: BTreeMap<String, StoredPage>,
    /// URLs whose last request failed for a reason that may pass.
    pub(super) failing: BTreeSet<String>,
    /// URLs by the keys of their pages.
    pub(super) urls: HashMap<String, String>,
    /// The index of the crawl that fetched a URL last, if it was not the first one.
    pub(super) fetched_in: HashMap<String, usize>,
}

impl StoredPages {
    /// Adds a page. It replaces the page of an earlier crawl, unless its own fetch failed for a reason that may pass
    /// and the earlier one did not.
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
