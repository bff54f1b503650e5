//! Handles pages that turn out to have been block pages: their values are removed from records, and then the pages are
//! queued again.

use webfill_store::{Page, Save};
use webfill_wire::{CrawlKey, Outcome};

use crate::core::context::Context;
use crate::core::handing_out;
use crate::crawl_registry::crashed_page;
use crate::effects::{RetractionWrite, StoreWrite};
use crate::frontier::{FrontierError, PendingRetraction, TaskId, ignore_pruned};

/// After a start: repeats the requests to take back values, because the store may not have carried them out.
pub(in crate::core) fn resume_retractions(
    cx: &mut Context,
    now_ms: i64,
) -> Result<(), FrontierError> {
    for page in cx.frontier.records().load_pending_retractions()? {
        ignore_pruned(send_retraction(cx, page, now_ms), ())?;
    }
    Ok(())
}

/// Asks the store to take back values that have just turned out to be false.
pub(super) fn send_new_retractions(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    for page in cx.frontier.records().take_new_retractions()? {
        cx.crawls.on_backfill_queued(page.crawl);
        send_retraction(cx, page, now_ms)?;
    }
    Ok(())
}

fn send_retraction(
    cx: &mut Context,
    page: PendingRetraction,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let Some(task) = cx.frontier.tasks().get(page.task)? else {
        return Ok(());
    };
    let spec = cx.frontier.crawls().spec(page.crawl)?;
    tracing::warn!(
        event = "page_taken_back",
        task = page.task,
        crawl_id = spec.crawl_id,
        url = task.url,
        "a page turns out to have been a block: its values are taken back"
    );
    let wall_ms = cx.wall_ms(now_ms);
    let spec = cx.frontier.crawls().spec(page.crawl)?;
    let block = Page {
        outcome: Outcome::Blocked,
        ..crashed_page(spec, (page.task, page.delivery), task, wall_ms)
    };
    let save = Save {
        page: block,
        records: page.records,
    };
    let (crawl, task) = (page.crawl, page.task);
    let write = RetractionWrite { crawl, task, save };
    cx.store_writes.push(StoreWrite::TakeBack(Box::new(write)));
    Ok(())
}

/// Handles the store's confirmation that the values of a page were taken back. `open`: those of its records that
/// are incomplete again.
pub(in crate::core) fn on_page_retracted(
    cx: &mut Context,
    (crawl, task): (CrawlKey, TaskId),
    open: &[String],
    now_ms: i64,
) -> Result<(), FrontierError> {
    cx.crawls.on_backfill_applied(crawl);
    let again = cx
        .frontier
        .records()
        .finish_retraction(task, open, now_ms)?;
    let woken = cx.frontier.reopening().requeue(&again, now_ms)?;
    handing_out::wake_sites(cx, woken);
    cx.window.next_site_ms = Some(now_ms);
    cx.window.underserved.add(crawl);
    Ok(())
}
