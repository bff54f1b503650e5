//! Pages that may be blocks although nothing on them says so.
//!
//! - An answer that its worker *suspects* (an outcome `blocked` without evidence) is not taken for the page: its
//!   task is queued again, and waits until others of its site had their turn, by which the worker knows.
//! - Short pages without fields and links that a site served *before a block*, since its last good page, may have
//!   been blocks that nobody has recognised. When the site begins to rest, their tasks are queued again.
//!
//! The first is durable. The second is in memory, and bounded: a restart forgets it, and the pages stay as they are.

use std::collections::HashMap;

use rusqlite::Result;
use webfill_wire::{Outcome, RestReason, TaskDone};

use super::Frontier;
use super::answers::{SiteId, TaskId};
use super::give_back::HeldTask;
use super::rests::Disposition;
use crate::site_state::Phase;

/// A page of more bytes says something.
const SHORT_BYTES: u64 = 4_096;

/// So many pages of one site are remembered, the oldest first, and so many sites.
const MOST_PAGES: usize = 16;
const MOST_SITES: usize = 4_096;

/// How long a suspected answer waits beyond two delays of its site, within which another page is requested if there is
/// one.
const WAIT_MS: i64 = 1_000;

/// The short pages without content that each site has served since its last good one.
#[derive(Debug, Default)]
pub(super) struct Doubts(HashMap<SiteId, Vec<TaskId>>);

impl Doubts {
    /// A task has ended with a page or without.
    pub(super) fn note(&mut self, site: SiteId, report: &TaskDone) {
        if report.outcome != Outcome::Ok {
            return;
        }
        if report.fields > 0 || !report.links.is_empty() || report.body_bytes > SHORT_BYTES {
            self.0.remove(&site);
            return;
        }
        if self.0.len() >= MOST_SITES && !self.0.contains_key(&site) {
            self.0.clear();
        }
        let tasks = self.0.entry(site).or_default();
        if tasks.len() < MOST_PAGES {
            tasks.push(report.task);
        }
    }

    pub(super) fn take(&mut self, site: SiteId) -> Vec<TaskId> {
        self.0.remove(&site).unwrap_or_default()
    }
}

/// Whether the worker only suspects a block.
fn is_suspicion(report: &TaskDone) -> bool {
    report.outcome == Outcome::Blocked && report.status_code.is_some() && report.evidence.is_none()
}

impl Frontier {
    /// What becomes of a task whose answer is only suspected. `None` if it is not, or if its site is known to
    /// block: then it is one more block.
    pub(super) fn doubt(
        &mut self,
        task: &HeldTask,
        report: &TaskDone,
        now_ms: i64,
    ) -> Result<Option<Disposition>> {
        if !is_suspicion(report) || self.is_blocking(task.site)? {
            return Ok(None);
        }
        let wall_ms = self.wall_ms(now_ms);
        if self.known_crawl(task.crawl)?.ending(wall_ms).is_some() {
            return Ok(Some(Disposition::Ends));
        }
        self.note_try(report, now_ms)?;
        let delay_ms = i64::from(report.clock.delay_ms.unwrap_or(0));
        let not_before_ms = now_ms + 2 * delay_ms + WAIT_MS;
        self.queue_again(task, report.task, task.priority, not_before_ms)?;
        Ok(Some(Disposition::Waits))
    }

    fn is_blocking(&self, site: SiteId) -> Result<bool> {
        if !self.rests.known.contains(&site) {
            return Ok(false);
        }
        let state = self.site_state(site)?.state;
        Ok(state.reason == RestReason::Blocked && state.phase != Phase::Open)
    }
}
