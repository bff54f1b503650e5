//! Notes of crawls on demand that have ended. A note stays as long as the store lacks the crawl's last state, or has
//! not judged which rows its lists no longer hold.
//!
//! A note is added in the transaction that ends the crawl, and removed once the store has the crawl and its lists are
//! judged. After a crash the noted crawls are written and judged again.

use rusqlite::OptionalExtension;
use webfill_wire::CrawlKey;

use super::parts::UnsavedCrawls;
use super::{FrontierError, crawl_rows};

/// The note that a crawl has ended and is not saved completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsavedEnd {
    /// The number of the note, in ascending order.
    pub number: i64,
    /// When the crawl ended.
    pub at_ms: i64,
}

impl UnsavedCrawls<'_> {
    /// The crawls whose ends are not saved completely, in the order of their notes.
    pub(crate) fn unsaved_crawls(&mut self) -> std::result::Result<Vec<CrawlKey>, FrontierError> {
        self.0.run("look for crawls that are not saved", |cx| {
            let sql = "SELECT crawl FROM unsaved_crawls ORDER BY number";
            let mut select = cx.db.prepare_cached(sql)?;
            select.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// The note that a crawl's end is not saved completely; `None` if there is none.
    pub(crate) fn find_end(
        &mut self,
        crawl: CrawlKey,
    ) -> std::result::Result<Option<UnsavedEnd>, FrontierError> {
        self.0.run("look for the note of a crawl", |cx| {
            crawl_rows::write_counters(cx)?;
            let sql = "SELECT number, changed_at_ms FROM unsaved_crawls
                       JOIN crawls ON crawls.id = unsaved_crawls.crawl WHERE crawl = ?1";
            let mut select = cx.db.prepare_cached(sql)?;
            let note = select.query_row([crawl], |row| {
                Ok(UnsavedEnd {
                    number: row.get(0)?,
                    at_ms: row.get(1)?,
                })
            });
            note.optional()
        })
    }

    /// Removes the note of a crawl whose end is saved completely. If the crawl has changed since, it has another note.
    pub(crate) fn delete_note(&mut self, number: i64) -> std::result::Result<(), FrontierError> {
        self.0.run("cross out a saved crawl", |cx| {
            let sql = "DELETE FROM unsaved_crawls WHERE number = ?1";
            cx.db.prepare_cached(sql)?.execute([number])?;
            Ok(())
        })
    }
}
