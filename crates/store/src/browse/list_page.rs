//! Pages of lists, and the limits on the read of one page.

use std::time::{Duration, Instant};

use super::place::Place;

/// The most rows of a page, whatever limit a request gives.
pub const MAX_LIST_PAGE: u32 = 1_000;

/// Limits on the read of one page of a list: checked rows, time, and bytes.
pub(crate) const MOST_EXAMINED: u64 = 20_000;
const SEARCH_TIME: Duration = Duration::from_millis(100);
const MOST_BYTES: usize = 4 << 20;

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage<T> {
    /// At most the requested number of rows. There may be fewer or none even if the list continues.
    pub rows: Vec<T>,
    /// Where the list continues; `None` at its end.
    pub next: Option<Place>,
    /// How many rows were checked, including those that the filter excludes.
    pub examined: u64,
}

impl<T> ListPage<T> {
    /// The empty page at the end of a list.
    pub fn end() -> ListPage<T> {
        ListPage {
            rows: Vec::new(),
            next: None,
            examined: 0,
        }
    }
}

/// A page that is being read, row by row.
pub(crate) struct UnfinishedPage<T> {
    page: ListPage<T>,
    wanted: usize,
    bytes: usize,
    began: Instant,
}

impl<T> UnfinishedPage<T> {
    pub(crate) fn begin(wanted: usize) -> UnfinishedPage<T> {
        UnfinishedPage {
            page: ListPage::end(),
            wanted,
            bytes: 0,
            began: Instant::now(),
        }
    }

    /// Counts a checked row of this many bytes, and adds it if the filter accepts it.
    pub(crate) fn add(&mut self, bytes: usize, row: Option<T>) {
        self.page.examined += 1;
        self.page.rows.extend(row);
        self.bytes += bytes;
    }

    /// Whether the page ends here: it has all wanted rows, or the read has reached its limit of rows, time or bytes.
    pub(crate) fn is_full(&self) -> bool {
        self.page.rows.len() >= self.wanted
            || self.page.examined >= MOST_EXAMINED
            || self.bytes >= MOST_BYTES
            || self.began.elapsed() >= SEARCH_TIME
    }

    /// The page, and where its list continues.
    pub(crate) fn end_at(self, next: Option<Place>) -> ListPage<T> {
        ListPage { next, ..self.page }
    }
}

/// The number of rows for a requested limit.
pub(crate) fn rows_of(limit: u32) -> usize {
    limit.clamp(1, MAX_LIST_PAGE) as usize
}
