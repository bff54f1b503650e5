//! Operations on whole crawls, whoever opened them: registers them, queues their unlinked pages at the end, and finds
//! out whether all remaining sites are backing off.

use webfill_wire::CrawlKey;

use super::outcomes;
use crate::core::context::Context;
use crate::frontier::FrontierError;

/// The maximum number of unlinked pages (those that a run of a watch has not found) queued in one turn of the loop.
const UNLINKED_AT_ONCE: usize = 250;

/// Registers a crawl, new or from before the start, and queues its pending backfills (stored pages to be applied to
/// further records). If some of its pages turned out to be block pages, the crawl is not finished until their values
/// are removed from the records.
pub(super) fn register_and_backfill_crawl(
    cx: &mut Context,
    crawl: CrawlKey,
    now_ms: i64,
) -> Result<(), FrontierError> {
    cx.frontier.crawls().spec(crawl)?;
    if !cx.crawls.register(crawl, now_ms) {
        return Ok(());
    }
    for page in cx.frontier.records().pending_backfills(crawl)? {
        outcomes::queue_backfill(cx, crawl, page)?;
    }
    // The store was asked at the start to remove these pages' values; only the wait for it is registered here.
    for page in cx.frontier.records().load_pending_retractions()? {
        if page.crawl == crawl {
            cx.crawls.on_backfill_queued(crawl);
        }
    }
    Ok(())
}

/// Queues some of the watch's pages that its run has not found, if all of the run's seeds were fed. Returns whether
/// there may be more.
pub(super) fn queue_unlinked_pages(
    cx: &mut Context,
    crawl: CrawlKey,
    now_ms: i64,
) -> Result<bool, FrontierError> {
    if !cx.frontier.crawls().status(crawl)?.seeds_ended {
        return Ok(false);
    }
    let (has_more, tally) =
        cx.frontier
            .runs()
            .queue_unlinked_pages(crawl, UNLINKED_AT_ONCE, now_ms)?;
    if tally.accepted > 0 {
        let pages = tally.accepted;
        tracing::info!(
            event = "unlinked_queued",
            crawl,
            pages,
            "checking pages that the run has not found"
        );
    }
    outcomes::apply_feed_tally(cx, crawl, tally, now_ms)?;
    Ok(has_more)
}

/// The end of the common backoff of all remaining sites of the crawls, if it is more than `patience_ms` away.
pub(super) fn common_backoff_end_ms(
    cx: &mut Context,
    crawls: &[CrawlKey],
    now_ms: i64,
    patience_ms: u64,
) -> Result<Option<i64>, FrontierError> {
    let horizon_ms = now_ms.saturating_add_unsigned(patience_ms);
    let mut first = None;
    for crawl in crawls {
        if cx.frontier.crawls().status(*crawl)?.queued == 0 {
            continue;
        }
        match cx
            .frontier
            .site_states()
            .first_handout_after(*crawl, horizon_ms)?
        {
            None => return Ok(None),
            Some(until_ms) => {
                first = Some(first.map_or(until_ms, |so_far: i64| so_far.min(until_ms)));
            }
        }
    }
    Ok(first)
}
