//! Handles pages that may be blocks; see [`doubts`](super::doubts).

use rusqlite::{Result, params};
use webfill_wire::likeness_of;
use webfill_wire::{BackoffReason, Outcome, TaskDone};

use super::backoff::Disposition;
use super::context::Context;
use super::doubts::DoubtfulPage;
use super::model::SiteId;
use super::task_rows::HeldTask;
use super::{attempts, crawl_rows, retraction, retrying, state_changes};
use crate::site_state::Phase;

/// Updates the list of a site's doubtful pages (they may be block pages) after a task has ended.
pub(super) fn update_doubtful_pages(
    cx: &mut Context,
    site: SiteId,
    report: &TaskDone,
) -> Result<()> {
    if report.outcome != Outcome::Ok {
        return Ok(());
    }
    let Some(page) = as_doubtful_page(report) else {
        return take_doubts(cx, site).map(drop);
    };
    if cx.doubts.0.len() >= MOST_SITES
        && !cx.doubts.0.contains_key(&site)
        && let Some(oldest) = cx.doubts.site_of_oldest()
    {
        take_doubts(cx, oldest)?;
    }
    let pages = cx.doubts.0.entry(site).or_default();
    if pages.len() >= MOST_PAGES || pages.iter().any(|known| known.task == page.task) {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO doubtful_pages (site, task, place, answer, fields)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let answer = page.answer.map(|answer| answer as i64);
    let place = pages.len() as i64;
    let values = params![site, page.task as i64, place, answer, page.fields];
    cx.db.prepare_cached(sql)?.execute(values)?;
    pages.push(page);
    Ok(())
}

/// Called when a site blocks: the pages that it has served since its last good page are to be fetched again.
pub(super) fn requeue_doubtful_pages(
    cx: &mut Context,
    site: SiteId,
    report: &TaskDone,
) -> Result<()> {
    let pages = take_doubts(cx, site)?;
    let sign = report.evidence.as_ref().map_or("", |found| &found.sign);
    for page in probable_blocks(pages, sign) {
        match page.fields {
            0 => cx.backoff.add_suspects(vec![page.task]),
            _ => retraction::request_retraction(cx, page.task)?,
        }
    }
    Ok(())
}

pub(super) fn take_doubts(cx: &mut Context, site: SiteId) -> Result<Vec<DoubtfulPage>> {
    let Some(pages) = cx.doubts.0.remove(&site) else {
        return Ok(Vec::new());
    };
    let sql = "DELETE FROM doubtful_pages WHERE site = ?1";
    cx.db.prepare_cached(sql)?.execute([site])?;
    Ok(pages)
}

/// Decides about a task whose answer is only suspected to be a block. `None` if it is not suspected, or if its site is
/// known to block: then the answer counts as a block.
pub(super) fn decide_suspected_block(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    now_ms: i64,
) -> Result<Option<Disposition>> {
    if !is_suspected_block(report) || is_blocking(cx, task.site)? {
        return Ok(None);
    }
    let wall_ms = cx.wall_ms(now_ms);
    if crawl_rows::load_known_crawl(cx, task.crawl)?
        .ending_outcome(wall_ms)
        .is_some()
    {
        return Ok(Some(Disposition::Ends));
    }
    attempts::note_try(cx, report, now_ms)?;
    let delay_ms = i64::from(report.clock.delay_ms.unwrap_or(0));
    let not_before_ms = now_ms + 2 * delay_ms + WAIT_MS;
    retrying::requeue_leased(cx, task, report.task, task.priority, not_before_ms)?;
    Ok(Some(Disposition::Waits))
}

pub(super) fn is_blocking(cx: &Context, site: SiteId) -> Result<bool> {
    if !cx.backoff.known.contains(&site) {
        return Ok(false);
    }
    let state = state_changes::site_state(cx, site)?.state;
    Ok(state.reason == BackoffReason::Blocked && state.phase != Phase::Open)
}

/// Whether the worker only suspects that the answer is a block.
pub(super) fn is_suspected_block(report: &TaskDone) -> bool {
    report.outcome == Outcome::Blocked && report.status_code.is_some() && report.evidence.is_none()
}

/// The page of a report if it is doubtful, that is, may be a block page; `None` for a good page.
pub(super) fn as_doubtful_page(report: &TaskDone) -> Option<DoubtfulPage> {
    let is_empty =
        report.fields == 0 && report.links.is_empty() && report.body_bytes <= SHORT_BYTES;
    let answer = likeness_of(report).filter(|_| !is_empty);
    (is_empty || answer.is_some()).then_some(DoubtfulPage {
        task: report.task,
        answer,
        fields: report.fields,
    })
}

/// Of a site's doubtful pages, the ones that probably were block pages, now that the site blocks with this sign.
pub(super) fn probable_blocks(mut pages: Vec<DoubtfulPage>, sign: &str) -> Vec<DoubtfulPage> {
    let last = pages.iter().rev().find_map(|page| page.answer);
    let same = pages.iter().filter(|page| page.answer == last);
    let is_repeated = sign.contains(COMPARED) || same.count() > 1;
    pages.retain(|page| page.answer.is_none() || (page.answer == last && is_repeated));
    pages
}

/// How long a task whose answer may be a block waits before it is requested again, in addition to two delays of its
/// site. Another page is requested meanwhile, if there is one.
pub(super) const WAIT_MS: i64 = 1_000;

/// Part of the sign of a block that was recognised by comparison with earlier answers.
pub(super) const COMPARED: &str = "(rule repeated-";

/// A page with more bytes than this has content.
pub(super) const SHORT_BYTES: u64 = 4_096;

/// The maximum number of doubtful pages (possible block pages) remembered per site, oldest first, and the maximum
/// number of sites with such pages.
pub(super) const MOST_PAGES: usize = 16;

pub(super) const MOST_SITES: usize = 4_096;
