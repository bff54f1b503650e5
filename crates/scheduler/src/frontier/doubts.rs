//! Pages that may be blocks although nothing on them says so.
//!
//! - An answer that its worker *suspects* (an outcome `blocked` without evidence) is not taken for the page: its
//!   task is queued again, and waits until others of its site had their turn, by which the worker knows.
//! - *Doubtful* pages are all that their site has served since its last good page: short ones without fields and links,
//!   and those that resemble a challenge, as their worker says. If the site blocks then, they may have been blocks that
//!   nobody has recognised: their tasks are queued again, to be fetched after the rest, or to end as blocked if there is no
//!   waiting for it. What they have brought into records is taken back before ([`taking_back`](super::taking_back)).
//!   Of those that resemble a challenge only the last answer counts, and only if it came more than once.
//!
//! Both are durable (table `doubtful_pages`). The second is bounded: what is beyond stays as it is.

use std::collections::HashMap;

use rusqlite::{Connection, Result, params};
use webfill_wire::{BackoffReason, Outcome, TaskDone, likeness_of};

use super::backoff::Disposition;
use super::context::Context;
use super::model::{SiteId, TaskId};
use super::task_rows::HeldTask;
use super::{backoff, crawls, retries, site_states, taking_back};
use crate::site_state::Phase;

/// A page of more bytes says something.
const SHORT_BYTES: u64 = 4_096;

/// So many pages of one site are remembered, the oldest first, and so many sites.
const MOST_PAGES: usize = 16;
const MOST_SITES: usize = 4_096;

/// How long a suspected answer waits beyond two delays of its site, within which another page is requested if there is
/// one.
const WAIT_MS: i64 = 1_000;

/// What a block is recognised by that was compared with the answers before it.
const COMPARED: &str = "(rule repeated-";

#[derive(Debug, Clone, Copy)]
struct DoubtfulPage {
    task: TaskId,
    /// If it resembles a challenge: which answer it is. Otherwise it is one without content.
    answer: Option<u64>,
    fields: u32,
}

/// The doubtful pages of each site, as they are stored.
#[derive(Debug, Default)]
pub(super) struct Doubts(HashMap<SiteId, Vec<DoubtfulPage>>);

impl Doubts {
    pub(super) fn open(db: &Connection) -> Result<Doubts> {
        let mut doubts = Doubts::default();
        let sql = "SELECT site, task, answer, fields FROM doubtful_pages ORDER BY place";
        let mut select = db.prepare(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let pages = doubts.0.entry(row.get(0)?).or_default();
            pages.push(DoubtfulPage {
                task: row.get::<_, i64>(1)? as TaskId,
                answer: row.get::<_, Option<i64>>(2)?.map(|answer| answer as u64),
                fields: row.get(3)?,
            });
        }
        Ok(doubts)
    }

    /// The site whose doubtful pages are the oldest.
    fn oldest(&self) -> Option<SiteId> {
        let newest_page = |(_, pages): &(&SiteId, &Vec<DoubtfulPage>)| {
            let newest = pages.last();
            newest.map(|page| page.task)
        };
        let oldest = self.0.iter().min_by_key(newest_page);
        oldest.map(|(site, _)| *site)
    }
}

/// Whether the worker only suspects a block.
fn is_suspicion(report: &TaskDone) -> bool {
    report.outcome == Outcome::Blocked && report.status_code.is_some() && report.evidence.is_none()
}

/// `None`: a good page.
fn doubtful(report: &TaskDone) -> Option<DoubtfulPage> {
    let is_empty =
        report.fields == 0 && report.links.is_empty() && report.body_bytes <= SHORT_BYTES;
    let answer = likeness_of(report).filter(|_| !is_empty);
    (is_empty || answer.is_some()).then_some(DoubtfulPage {
        task: report.task,
        answer,
        fields: report.fields,
    })
}

/// Those of a site's doubtful pages that were blocks, as far as can be said, now that it blocks by this sign.
fn blocks_among(mut pages: Vec<DoubtfulPage>, sign: &str) -> Vec<DoubtfulPage> {
    let last = pages.iter().rev().find_map(|page| page.answer);
    let same = pages.iter().filter(|page| page.answer == last);
    let is_repeated = sign.contains(COMPARED) || same.count() > 1;
    pages.retain(|page| page.answer.is_none() || (page.answer == last && is_repeated));
    pages
}

/// A task has ended, with a page or without.
pub(super) fn note_doubt(cx: &mut Context, site: SiteId, report: &TaskDone) -> Result<()> {
    if report.outcome != Outcome::Ok {
        return Ok(());
    }
    let Some(page) = doubtful(report) else {
        return take_doubts(cx, site).map(drop);
    };
    if cx.doubts.0.len() >= MOST_SITES
        && !cx.doubts.0.contains_key(&site)
        && let Some(oldest) = cx.doubts.oldest()
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

/// The site blocks: what it has served since its last good page is to be fetched again.
pub(super) fn suspect_doubtful_pages(
    cx: &mut Context,
    site: SiteId,
    report: &TaskDone,
) -> Result<()> {
    let pages = take_doubts(cx, site)?;
    let sign = report.evidence.as_ref().map_or("", |found| &found.sign);
    for page in blocks_among(pages, sign) {
        match page.fields {
            0 => cx.backoff.suspect(vec![page.task]),
            _ => taking_back::note_to_take_back(cx, page.task)?,
        }
    }
    Ok(())
}

fn take_doubts(cx: &mut Context, site: SiteId) -> Result<Vec<DoubtfulPage>> {
    let Some(pages) = cx.doubts.0.remove(&site) else {
        return Ok(Vec::new());
    };
    let sql = "DELETE FROM doubtful_pages WHERE site = ?1";
    cx.db.prepare_cached(sql)?.execute([site])?;
    Ok(pages)
}

/// What becomes of a task whose answer is only suspected. `None` if it is not, or if its site is known to
/// block: then it is one more block.
pub(super) fn doubt(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    now_ms: i64,
) -> Result<Option<Disposition>> {
    if !is_suspicion(report) || is_blocking(cx, task.site)? {
        return Ok(None);
    }
    let wall_ms = cx.wall_ms(now_ms);
    if crawls::known_crawl(cx, task.crawl)?
        .ending(wall_ms)
        .is_some()
    {
        return Ok(Some(Disposition::Ends));
    }
    backoff::note_try(cx, report, now_ms)?;
    let delay_ms = i64::from(report.clock.delay_ms.unwrap_or(0));
    let not_before_ms = now_ms + 2 * delay_ms + WAIT_MS;
    retries::queue_again(cx, task, report.task, task.priority, not_before_ms)?;
    Ok(Some(Disposition::Waits))
}

fn is_blocking(cx: &Context, site: SiteId) -> Result<bool> {
    if !cx.backoff.known.contains(&site) {
        return Ok(false);
    }
    let state = site_states::site_state(cx, site)?.state;
    Ok(state.reason == BackoffReason::Blocked && state.phase != Phase::Open)
}
