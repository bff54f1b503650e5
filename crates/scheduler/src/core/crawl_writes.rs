//! Writes the states of crawls to the store: those of changed crawls from time to time, in batches, and all at the
//! end.

use webfill_wire::CrawlKey;

use crate::core::context::Context;
use crate::effects::{CrawlWrite, StoreWrite};
use crate::frontier::{FrontierError, ignore_pruned};

/// How often the states of changed crawls are written to the store.
const CRAWLS_EVERY_MS: i64 = 5_000;

/// The maximum number of crawls written at a time. The rest follows [`MORE_CRAWLS_AFTER_MS`] later, so that the store
/// keeps up.
const CRAWLS_AT_ONCE: usize = 200;
const MORE_CRAWLS_AFTER_MS: i64 = 500;

/// When to write changed crawls next.
#[derive(Debug)]
pub(super) struct CrawlWrites {
    next_ms: i64,
}

impl CrawlWrites {
    pub(super) fn new(now_ms: i64) -> CrawlWrites {
        CrawlWrites { next_ms: now_ms }
    }

    /// Writes a batch of the changed crawls, if it is time and the store keeps up.
    pub(super) fn queue_due_writes(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        if now_ms < self.next_ms || cx.surroundings.store_is_behind {
            return Ok(());
        }
        mark_open_crawls_changed(cx);
        let wait_ms = match queue_crawl_writes(cx, CRAWLS_AT_ONCE, now_ms)? {
            true => MORE_CRAWLS_AFTER_MS,
            false => CRAWLS_EVERY_MS,
        };
        self.next_ms = now_ms + wait_ms;
        Ok(())
    }
}

/// Marks all crawls that have not ended as changed, so that they are written again.
pub(super) fn mark_open_crawls_changed(cx: &mut Context) {
    for crawl in cx.crawls.open_crawls() {
        cx.frontier.crawls().mark_changed(crawl);
    }
}

pub(super) fn queue_crawl_write(
    cx: &mut Context,
    crawl: CrawlKey,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let going_on = !cx.draining;
    let mut row = cx
        .crawls
        .crawl_document(&mut cx.frontier, crawl, going_on, now_ms)?;
    let unsaved = cx.frontier.unsaved_crawls().find_end(crawl)?;
    if let (Some(end), Some(finished_at_ms)) = (unsaved, &mut row.finished_at_ms) {
        *finished_at_ms = end.at_ms.min(now_ms);
        row.started_at_ms = row.started_at_ms.min(*finished_at_ms);
    }
    let done = cx.frontier.crawls().status(crawl)?.done;
    cx.paces.record_finished(crawl, done, now_ms);
    cx.store_writes.push(StoreWrite::Crawl(CrawlWrite {
        crawl: Box::new(row),
        note: unsaved.map(|end| end.number),
    }));
    Ok(())
}

/// Queues store writes for up to `most` changed crawls. Returns true if there may be more.
pub(super) fn queue_crawl_writes(
    cx: &mut Context,
    most: usize,
    now_ms: i64,
) -> Result<bool, FrontierError> {
    let touched = cx.frontier.crawls().take_changed(most);
    for crawl in &touched {
        ignore_pruned(queue_crawl_write(cx, *crawl, now_ms), ())?;
    }
    Ok(touched.len() == most)
}
