//! Lists that continue from page to page: how far each was read, and which rows it no longer holds.
//!
//! A list is a first page together with all pages that it leads to, from page to page, and that the same mapping
//! reads. Its state follows only from the stored pages. So a process may die at any moment, and judging a list twice
//! gives the same result.
//!
//! - A list is complete if each of its pages is stored as `ok` and [lacks](PageLack) nothing.
//! - A row is gone once all lists that held it were read to their end without it, each after the row was last seen
//!   there. Its record stays, and the row is back when it is seen again. A list counts as read at the time when the
//!   fetch of its first page began. A row seen later, anywhere, is not gone.
//! - A list that was not read in one go proves nothing about its rows. A row may have moved from a page that was read
//!   later to a page that was read before. A list that has lost more than half of its rows, or all, proves nothing
//!   either: a faulty page is more likely.

use serde::{Deserialize, Serialize};

/// The data of one page about its list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageOfList {
    /// The URL of the list's first page. The store fills it in when it saves the page.
    #[serde(default)]
    pub first: String,
    /// The pages where the list continues.
    #[serde(default)]
    pub next: Vec<String>,
    /// The datasets that this list has in full: their rows that are missing from it are marked as gone.
    #[serde(default)]
    pub complete: Vec<String>,
    /// Why some rows of the page are missing; `None` if it gives all of them.
    #[serde(default)]
    pub lacks: Option<PageLack>,
    /// Whether the URL shows that this is not the first page of a list.
    #[serde(default)]
    pub is_further: bool,
    /// Whether the page gives the number of pages of its list.
    #[serde(default)]
    pub is_counted: bool,
}

/// Why a page does not give all rows of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageLack {
    /// The page has neither rows nor fields, like a block page.
    Empty,
    /// Some rows, or links to further pages, were left out because there are too many.
    Cut,
    /// Some rows have no value for a field of their key.
    RowsWithoutKey,
    /// The list continues, but the page's links are not followed, or the page is at the crawl's depth limit.
    NotFollowed,
    /// The page does not give the number of entries or pages, which is needed to derive the URLs of the further pages.
    NoCount,
}

impl PageLack {
    /// The reason in words, for users.
    pub fn text(self) -> &'static str {
        match self {
            PageLack::Empty => "it has neither rows nor fields",
            PageLack::Cut => "it has more than is read of one page",
            PageLack::RowsWithoutKey => "rows have no key",
            PageLack::NotFollowed => {
                "the crawl does not follow its links to further pages (--depth)"
            }
            PageLack::NoCount => "it has no count of the list's pages",
        }
    }
}

/// A stored page, with the members that matter for its list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedPage {
    /// The key of the page; see [`page_id`](crate::page_id).
    pub id: String,
    pub url: String,
    pub parent: Option<String>,
    /// The target, if the page was redirected.
    pub final_url: Option<String>,
    pub outcome: String,
    pub mapping: Option<String>,
    /// The keys of the records that the page was fetched for; only the first few are stored.
    pub records: Vec<String>,
    pub started_at_ms: i64,
    pub rows: u64,
    /// The page's data about its list; `None` if no mapping with rows has read the page.
    pub list: Option<PageOfList>,
}

/// The rows of a list, counted after a reading: a pass over all its pages that began at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListedRows {
    /// Rows that the list held before the reading.
    pub held: u64,
    /// Rows that the list held before, and that the reading has not seen.
    pub unseen: u64,
    /// Rows seen since the reading began.
    pub seen: u64,
    /// Rows that this or an earlier reading of the list has shown to be gone.
    pub gone: u64,
    /// Rows that only this reading has shown to be gone.
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
    /// The pages of the list were fetched at very different times.
    ReadPiecemeal,
    /// The list has no rows any more.
    Empty,
    /// More than half of the rows that the list held are missing.
    MostAreMissing,
}

impl Doubt {
    /// The doubt in words, for users.
    pub fn text(self) -> &'static str {
        match self {
            Doubt::ReadPiecemeal => "its pages were not read in one go",
            Doubt::Empty => "it has no rows left",
            Doubt::MostAreMissing => "more than half of its rows are missing",
        }
    }
}

/// A reason why a list is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncompleteReason {
    pub url: String,
    /// The reason: the outcome of a page, or another fixed word such as `beginning_unknown`.
    pub why: String,
}

/// A list as reconstructed from the stored pages of a crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPass {
    /// The URL of the list's first page.
    pub first: String,
    pub mapping: Option<String>,
    /// The keys of the records that the first page was fetched for; only the first few are stored.
    pub records: Vec<String>,
    /// The datasets whose missing rows the list marks as gone.
    pub complete: Vec<String>,
    pub state: ListState,
    pub pages_done: u64,
    /// How many pages the list has, as far as known.
    pub pages_known: u64,
    /// Whether the number of pages is known: the first page gives it, or the end of the list was reached.
    pub is_end_known: bool,
    pub rows: u64,
    /// The first reasons why the list is incomplete.
    pub breaches: Vec<IncompleteReason>,
    /// When the fetch of the first page began.
    pub began_ms: i64,
    /// Set if the list was read to its end, but not in one go.
    pub doubt: Option<Doubt>,
}

/// Which rows [`check_and_mark_missing_rows`](crate::check_and_mark_missing_rows) marks as gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneMarking {
    Nothing,
    /// Missing rows of lists without a [`Doubt`].
    Believed,
    /// Also missing rows of lists that have lost more than half or all of their rows. A user has confirmed that the
    /// rows are gone.
    Confirmed,
}

/// The judgement on a list's rows of one dataset.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CheckedRows {
    pub dataset: String,
    pub rows: ListedRows,
    /// Why the missing rows are not believed to be gone.
    pub doubt: Option<Doubt>,
    /// The keys of the records that were marked as gone.
    pub marked: Vec<String>,
}

/// How many reasons why a list is incomplete are kept.
const MOST_BREACHES: usize = 5;

/// The longest time between the fetches of the first and any other page of one reading.
const LONGEST_READING_MS: i64 = 24 * 60 * 60 * 1_000;

impl ListPass {
    pub(crate) fn from_first_page(first: &ListedPage) -> ListPass {
        let list = first.list.as_ref();
        ListPass {
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

    pub(crate) fn break_off(&mut self, url: &str, why: &str) {
        self.state = ListState::BrokenOff;
        self.add_incomplete_reason(url, why);
    }

    pub(crate) fn add_incomplete_reason(&mut self, url: &str, why: &str) {
        if self.breaches.len() < MOST_BREACHES {
            self.breaches.push(IncompleteReason {
                url: url.to_owned(),
                why: why.to_owned(),
            });
        }
    }

    /// Adds a page of the list. Returns the URLs of the pages where the list continues.
    pub(crate) fn add_page(&mut self, page: &ListedPage) -> Vec<String> {
        // A redirect to another page is followed. A redirect to the first page of the list is not, because block pages
        // and lost sessions redirect there, so the content of the page is unknown.
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
                self.break_off(&page.url, "another_page");
                return Vec::new();
            }
            _ => {
                self.break_off(&page.url, &page.outcome);
                return Vec::new();
            }
        };
        self.rows += page.rows;
        match list.lacks {
            Some(lack) => self.break_off(&page.url, lack_name(lack)),
            None => self.pages_done += 1,
        }
        let reading = self.began_ms..=self.began_ms.saturating_add(LONGEST_READING_MS);
        if !reading.contains(&page.started_at_ms) {
            self.doubt = Some(Doubt::ReadPiecemeal);
        }
        list.next.clone()
    }

    pub(crate) fn finish_pass(&mut self, not_fetched: usize) {
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
fn lack_name(lack: PageLack) -> &'static str {
    match lack {
        PageLack::Empty => "empty",
        PageLack::Cut => "cut",
        PageLack::RowsWithoutKey => "rows_without_key",
        PageLack::NotFollowed => "not_followed",
        PageLack::NoCount => "no_count",
    }
}

impl ListedRows {
    pub(crate) fn reason_to_doubt(&self) -> Option<Doubt> {
        if self.seen == 0 {
            return Some(Doubt::Empty);
        }
        (self.unseen * 2 > self.held).then_some(Doubt::MostAreMissing)
    }
}
