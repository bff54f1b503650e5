//! Follows the lists of a crawl through its stored pages, and finds their missing rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::list::{CheckedRows, GoneMarking, ListPass, ListState, ListedPage};
use crate::page::page_id;
use crate::store::Store;

/// The most pages of one list.
const MOST_PAGES: usize = 100_000;

/// How many pages are requested at a time.
const PAGES_AT_ONCE: usize = 500;

/// How many lists are requested at a time.
const LISTS_AT_ONCE: u32 = 200;

/// Follows a list through its stored pages, to find how far it was read.
pub async fn read_list(
    store: &dyn Store,
    crawl: &CrawlId,
    first: &ListedPage,
) -> Result<ListPass, StoreError> {
    let mut reading = ListPass::from_first_page(first);
    if first.list.as_ref().is_some_and(|list| list.is_further) {
        reading.break_off(&first.url, "not_the_first_page");
    } else if let Some(parent) = &first.parent {
        // If the page that led here is not stored, it is unknown whether the list begins here.
        let id = page_id(&crawl.app_id, &crawl.crawl_id, parent);
        if store.listed_pages(vec![id]).await?.is_empty() {
            reading.break_off(&first.url, "beginning_unknown");
        }
    }
    let mut known: HashSet<String> = HashSet::from([first.url.clone()]);
    let mut wanted = reading.add_page(first);
    let mut not_fetched = 0;
    while !wanted.is_empty() {
        wanted.retain(|url| known.insert(url.clone()));
        if known.len() > MOST_PAGES {
            reading.break_off(&first.url, "too_many_pages");
            break;
        }
        let mut further = Vec::new();
        for urls in wanted.chunks(PAGES_AT_ONCE) {
            let id = |url: &String| page_id(&crawl.app_id, &crawl.crawl_id, url);
            let found = store.listed_pages(urls.iter().map(id).collect()).await?;
            let found: HashMap<&str, &ListedPage> =
                found.iter().map(|page| (page.url.as_str(), page)).collect();
            for url in urls {
                match found.get(url.as_str()) {
                    Some(page) => further.extend(reading.add_page(page)),
                    None => {
                        not_fetched += 1;
                        reading.add_incomplete_reason(url, "not_fetched");
                    }
                }
            }
        }
        wanted = further;
    }
    reading.finish_pass(not_fetched);
    Ok(reading)
}

/// Iterates over the lists of a crawl. Memory is bounded by the pages of the longest list.
pub struct Lists {
    store: Arc<dyn Store>,
    crawl: CrawlId,
    /// The first pages of the lists to return next, the next one last.
    firsts: Vec<ListedPage>,
    after: String,
}

impl Lists {
    pub fn new(store: &Arc<dyn Store>, crawl: &CrawlId) -> Lists {
        Lists {
            store: Arc::clone(store),
            crawl: crawl.clone(),
            firsts: Vec::new(),
            after: String::new(),
        }
    }

    /// The next list, in no particular order; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<ListPass>, StoreError> {
        if self.firsts.is_empty() {
            let (crawl, after) = (&self.crawl, &self.after);
            self.firsts = self.store.first_pages(crawl, after, LISTS_AT_ONCE).await?;
            if let Some(last) = self.firsts.last() {
                self.after.clone_from(&last.id);
            }
            self.firsts.reverse();
        }
        match self.firsts.pop() {
            Some(first) => read_list(&*self.store, &self.crawl, &first).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Judges the rows that a list held before, for each dataset that it covers. Missing rows are marked as gone if
/// `marks` allows it. Repeating the call changes nothing.
pub async fn check_and_mark_missing_rows(
    store: &dyn Store,
    list: &ListPass,
    marks: GoneMarking,
) -> Result<Vec<CheckedRows>, StoreError> {
    let (url, began_ms) = (list.first.as_str(), list.began_ms);
    let mut judged = Vec::with_capacity(list.complete.len());
    for dataset in &list.complete {
        let rows = store.listed_rows(url, dataset, began_ms).await?;
        let mut one = CheckedRows {
            dataset: dataset.clone(),
            rows,
            ..CheckedRows::default()
        };
        if list.state == ListState::Complete && rows.unseen > 0 {
            // If the pages were fetched at very different times, the doubt remains even if a user has confirmed that
            // rows are missing.
            one.doubt = list.doubt.or(match marks {
                GoneMarking::Confirmed => None,
                GoneMarking::Nothing | GoneMarking::Believed => rows.reason_to_doubt(),
            });
            if marks != GoneMarking::Nothing && one.doubt.is_none() {
                let mut after = Some(String::new());
                while let Some(begin) = after {
                    let step = store.mark_gone(url, dataset, began_ms, &begin).await?;
                    one.marked.extend(step.gone);
                    after = step.after;
                }
                one.rows = store.listed_rows(url, dataset, began_ms).await?;
            }
        }
        judged.push(one);
    }
    Ok(judged)
}
