//! Lists that continue from page to page: how far a list was read, and which rows it no longer holds.
//!
//! A list is a first page together with all pages that it leads to, from page to page, and that the same mapping
//! reads. Its state follows only from the stored pages. So a process may die at any moment, and judging a list twice
//! gives the same result.
//!
//! - A list is complete if each of its pages is stored as `ok` and [lacks](Lack) nothing.
//! - A row is gone once all lists that held it were read to their end without it, each after the row was last seen
//!   there. Its record stays, and the row is back when it is seen again. A list counts as read at the time when the
//!   fetch of its first page began. A row seen later, anywhere, is not gone.
//! - A list that was not read in one go proves nothing about its rows: a row may have moved from a page that was read
//!   later to one that was read before. A list that has lost more than half of its rows, or all, proves nothing
//!   either: a faulty page is more likely.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::page::page_id;
use crate::store::Store;

/// What a page knows about its list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageOfList {
    /// The URL of the list's first page. The store fills it in when it saves the page.
    #[serde(default)]
    pub first: String,
    /// The pages where the list continues.
    #[serde(default)]
    pub next: Vec<String>,
    /// The datasets whose missing rows the list marks as gone.
    #[serde(default)]
    pub complete: Vec<String>,
    /// Why some rows of the page are missing; `None` if it gives all of them.
    #[serde(default)]
    pub lacks: Option<Lack>,
    /// The URL shows that this is not the first page of a list.
    #[serde(default)]
    pub is_further: bool,
    /// The page gives the number of pages of its list.
    #[serde(default)]
    pub is_counted: bool,
}

/// Why a page does not give all rows of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// The page has neither rows nor fields, like a block page.
    Empty,
    /// Some rows, or links to further pages, were left out because there are too many.
    Cut,
    /// Some rows have no value for a field of their key.
    RowsWithoutKey,
    /// The list continues, but the page's links are not followed, or the page is at the crawl's depth limit.
    NotFollowed,
    /// The count from which the further pages are derived is missing.
    NoCount,
}

impl Lack {
    /// The reason in words, for users.
    pub fn text(self) -> &'static str {
        match self {
            Lack::Empty => "it has neither rows nor fields",
            Lack::Cut => "it has more than is read of one page",
            Lack::RowsWithoutKey => "rows have no key",
            Lack::NotFollowed => "the crawl does not follow its links to further pages (--depth)",
            Lack::NoCount => "it has no count of the list's pages",
        }
    }
}

/// A stored page, with the members that matter for its list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedPage {
    /// The key of the page; see [`page_id`].
    pub id: String,
    pub url: String,
    pub parent: Option<String>,
    /// The target, if the page was redirected.
    pub final_url: Option<String>,
    pub outcome: String,
    pub mapping: Option<String>,
    /// The keys of the first records that the page was fetched for.
    pub records: Vec<String>,
    pub started_at_ms: i64,
    pub rows: u64,
    /// What the page knows about its list; `None` if no mapping with rows has read it.
    pub list: Option<PageOfList>,
}

/// The rows of a list, counted after a reading that began at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListedRows {
    /// Rows that the list held before the reading.
    pub held: u64,
    /// Rows that the list held before, and that were not seen since.
    pub unseen: u64,
    /// Rows seen since the reading began.
    pub seen: u64,
    /// Rows gone since some reading of this list.
    pub gone: u64,
    /// Rows gone since this reading.
    pub newly_gone: u64,
}

/// The result of one step of [`StoredLists::mark_gone`](crate::StoredLists::mark_gone).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MarkedGone {
    /// The keys of the records that this step has marked as gone.
    pub gone: Vec<String>,
    /// Where the next step begins; `None` after the last one.
    pub after: Option<String>,
}

/// How far a list was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListState {
    /// The list was read to its end.
    Complete,
    /// Some pages have not been fetched yet.
    Open,
    /// Some page has failed or is incomplete.
    BrokenOff,
}

/// Why a list does not show which rows are gone, although it was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Its pages were fetched at very different times.
    ReadPiecemeal,
    /// It has no rows any more.
    Empty,
    /// More than half of the rows that the list held are missing.
    MostAreMissing,
}

impl Doubt {
    /// The doubt in words, for users.
    pub fn text(self) -> &'static str {
        match self {
            Doubt::ReadPiecemeal => "its pages were not read in one go",
            Doubt::Empty => "it has no rows any more",
            Doubt::MostAreMissing => "more than half of its rows are missing",
        }
    }
}

/// A reason why a list is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Breach {
    pub url: String,
    /// The reason: an outcome, or another stable word.
    pub why: String,
}

/// A list as reconstructed from the stored pages of a crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct ListReading {
    /// The URL of the list's first page.
    pub first: String,
    pub mapping: Option<String>,
    /// The keys of the first records that the first page was fetched for.
    pub records: Vec<String>,
    /// The datasets whose missing rows the list marks as gone.
    pub complete: Vec<String>,
    pub state: ListState,
    pub pages_done: u64,
    /// How many pages the list has, as far as known.
    pub pages_known: u64,
    /// All pages of the list are known: the first one counts them, or the end was reached.
    pub is_end_known: bool,
    pub rows: u64,
    /// The first reasons why the list is incomplete.
    pub breaches: Vec<Breach>,
    /// When the fetch of the first page began.
    pub began_ms: i64,
    /// Set if the list was read to its end, but not in one go.
    pub doubt: Option<Doubt>,
}

/// Which rows [`judge_rows`] marks as gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    Nothing,
    /// Missing rows of lists that are not doubted.
    Believed,
    /// Also missing rows of lists that have lost most or all of their rows, because a user has confirmed the loss.
    Confirmed,
}

/// The judgement on a list's rows of one dataset.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JudgedRows {
    pub dataset: String,
    pub rows: ListedRows,
    /// Why the missing rows are not believed to be gone.
    pub doubt: Option<Doubt>,
    /// The keys of the records that were marked as gone.
    pub marked: Vec<String>,
}

/// The most breaches of a list that are named.
const MOST_BREACHES: usize = 5;

/// The most pages of one list.
const MOST_PAGES: usize = 100_000;

/// How many pages are requested at a time.
const PAGES_AT_ONCE: usize = 500;

/// How many lists are requested at a time.
const LISTS_AT_ONCE: u32 = 200;

/// The longest time between the fetches of the first and any other page of one reading.
const LONGEST_READING_MS: i64 = 24 * 60 * 60 * 1_000;

impl ListReading {
    fn of(first: &ListedPage) -> ListReading {
        let list = first.list.as_ref();
        ListReading {
            first: first.url.clone(),
            mapping: first.mapping.clone(),
            records: first.records.clone(),
            complete: list.map_or_else(Vec::new, |list| list.complete.clone()),
            state: ListState::Complete,
            pages_done: 0,
            pages_known: 0,
            is_end_known: list.is_some_and(|list| list.is_counted),
            rows: 0,
            breaches: Vec::new(),
            began_ms: first.started_at_ms,
            doubt: None,
        }
    }

    fn broken(&mut self, url: &str, why: &str) {
        self.state = ListState::BrokenOff;
        self.note(url, why);
    }

    fn note(&mut self, url: &str, why: &str) {
        if self.breaches.len() < MOST_BREACHES {
            self.breaches.push(Breach {
                url: url.to_owned(),
                why: why.to_owned(),
            });
        }
    }

    /// Adds a page. Returns where the list continues.
    fn take(&mut self, page: &ListedPage) -> Vec<String> {
        // A redirect to the first page is not followed: block pages and lost sessions redirect there, so the content
        // of this page is unknown.
        if page.outcome == "redirected"
            && let Some(target) = &page.final_url
            && *target != self.first
        {
            return vec![target.clone()];
        }
        self.pages_known += 1;
        let list = match &page.list {
            Some(list) if page.outcome == "ok" && page.mapping == self.mapping => list,
            _ if page.outcome == "ok" => {
                self.broken(&page.url, "another_page");
                return Vec::new();
            }
            _ => {
                self.broken(&page.url, &page.outcome);
                return Vec::new();
            }
        };
        self.rows += page.rows;
        match list.lacks {
            Some(lack) => self.broken(&page.url, word(lack)),
            None => self.pages_done += 1,
        }
        let reading = self.began_ms..=self.began_ms.saturating_add(LONGEST_READING_MS);
        if !reading.contains(&page.started_at_ms) {
            self.doubt = Some(Doubt::ReadPiecemeal);
        }
        list.next.clone()
    }

    fn finish(&mut self, not_fetched: usize) {
        self.pages_known += not_fetched as u64;
        if self.state == ListState::Complete && not_fetched > 0 {
            self.state = ListState::Open;
        }
        if self.state == ListState::Complete {
            self.is_end_known = true;
        } else {
            self.doubt = None;
        }
    }
}

/// The name of a lack in JSON.
fn word(lack: Lack) -> &'static str {
    match lack {
        Lack::Empty => "empty",
        Lack::Cut => "cut",
        Lack::RowsWithoutKey => "rows_without_key",
        Lack::NotFollowed => "not_followed",
        Lack::NoCount => "no_count",
    }
}

/// Follows a list through its stored pages, to find how far it was read.
pub async fn read_list(
    store: &dyn Store,
    crawl: &CrawlId,
    first: &ListedPage,
) -> Result<ListReading, StoreError> {
    let mut reading = ListReading::of(first);
    if first.list.as_ref().is_some_and(|list| list.is_further) {
        reading.broken(&first.url, "not_the_first_page");
    } else if let Some(parent) = &first.parent {
        // If the page that led here is not stored, it is unknown whether the list begins here.
        let id = page_id(&crawl.app_id, &crawl.crawl_id, parent);
        if store.listed_pages(vec![id]).await?.is_empty() {
            reading.broken(&first.url, "beginning_unknown");
        }
    }
    let mut known: HashSet<String> = HashSet::from([first.url.clone()]);
    let mut wanted = reading.take(first);
    let mut not_fetched = 0;
    while !wanted.is_empty() {
        wanted.retain(|url| known.insert(url.clone()));
        if known.len() > MOST_PAGES {
            reading.broken(&first.url, "too_many_pages");
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
                    Some(page) => further.extend(reading.take(page)),
                    None => {
                        not_fetched += 1;
                        reading.note(url, "not_fetched");
                    }
                }
            }
        }
        wanted = further;
    }
    reading.finish(not_fetched);
    Ok(reading)
}

/// Iterates over the lists of a crawl. Memory is bounded by the pages of the longest list.
pub struct Lists {
    store: Arc<dyn Store>,
    crawl: CrawlId,
    /// The first pages of the next lists, in reverse order.
    firsts: Vec<ListedPage>,
    after: String,
}

impl Lists {
    pub fn of(store: &Arc<dyn Store>, crawl: &CrawlId) -> Lists {
        Lists {
            store: Arc::clone(store),
            crawl: crawl.clone(),
            firsts: Vec::new(),
            after: String::new(),
        }
    }

    /// The next list. The order has no meaning.
    pub async fn next(&mut self) -> Result<Option<ListReading>, StoreError> {
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
pub async fn judge_rows(
    store: &dyn Store,
    list: &ListReading,
    marks: Marks,
) -> Result<Vec<JudgedRows>, StoreError> {
    let (url, began_ms) = (list.first.as_str(), list.began_ms);
    let mut judged = Vec::with_capacity(list.complete.len());
    for dataset in &list.complete {
        let rows = store.listed_rows(url, dataset, began_ms).await?;
        let mut one = JudgedRows {
            dataset: dataset.clone(),
            rows,
            ..JudgedRows::default()
        };
        if list.state == ListState::Complete && rows.unseen > 0 {
            // If the pages are of different times, not even a user can confirm that rows are missing.
            one.doubt = list.doubt.or(match marks {
                Marks::Confirmed => None,
                Marks::Nothing | Marks::Believed => rows.doubt(),
            });
            if marks != Marks::Nothing && one.doubt.is_none() {
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

impl ListedRows {
    fn doubt(&self) -> Option<Doubt> {
        if self.seen == 0 {
            return Some(Doubt::Empty);
        }
        (self.unseen * 2 > self.held).then_some(Doubt::MostAreMissing)
    }
}
