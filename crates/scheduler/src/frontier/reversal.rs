//! Takes back failures that turn out to be a machine's fault: the affected sites get their former states, and the tasks
//! are queued again.

use rusqlite::Result;
use webfill_wire::{BackoffReason, Outcome};

use super::context::Context;
use super::model::{SiteId, TaskId, WokenSite};
use super::parts::SiteStates;
use super::site_states::{SiteHealth, has_answered};
use super::task_rows::find_ended_tasks;
use super::{FrontierError, backing_off, reopen, state_changes};

impl SiteStates<'_> {
    /// The present health of a site: whether it has ever answered, and whether it is in trouble.
    pub fn site_health(&mut self, site: SiteId) -> std::result::Result<SiteHealth, FrontierError> {
        self.0.run("see how a site stands", |cx| {
            Ok(SiteHealth {
                has_answered: has_answered(&cx.db, site)?,
                is_in_trouble: cx.backoff.known.contains(&site),
            })
        })
    }

    /// Takes failures back. `sites`: each with its health before the failures. Sites that were not in trouble become
    /// open; the backoffs of the others end now. Returns the sites in memory that got tasks by this.
    pub fn undo_failures(
        &mut self,
        tasks: &[TaskId],
        sites: &[(SiteId, SiteHealth)],
        now_ms: i64,
    ) -> std::result::Result<Vec<WokenSite>, FrontierError> {
        self.0.run("take failures back", |cx| {
            for (site, before) in sites {
                match before.is_in_trouble {
                    true => backing_off::end_backoff(cx, *site, now_ms)?,
                    false => state_changes::clear_backoff(cx, *site)?,
                }
            }
            tasks
                .iter()
                .try_for_each(|task| exclude_tries_from_retries(cx, *task))
        })?;
        let failed = self.0.run("look up what has failed", |cx| {
            filter_machine_failures(cx, tasks)
        })?;
        self.0.run("queue ended tasks again", |cx| {
            reopen::requeue_ended(cx, &failed, now_ms)
        })
    }
}

/// Of these tasks, returns the ones that have ended with a failure that an offline machine causes.
fn filter_machine_failures(cx: &Context, tasks: &[TaskId]) -> Result<Vec<TaskId>> {
    let ended = find_ended_tasks(&cx.db, tasks)?.into_iter();
    let failed = ended.filter(|task| may_be_machine_failure(task.outcome));
    Ok(failed.map(|task| task.id).collect())
}

/// Makes a task's attempts up to now not count as retries.
fn exclude_tries_from_retries(cx: &Context, task: TaskId) -> Result<()> {
    let sql = "UPDATE tries SET counts = 0 WHERE task = ?1 AND counts = 1";
    cx.db.prepare_cached(sql)?.execute([task as i64])?;
    Ok(())
}

/// Whether tasks end with this outcome on a machine that does not reach the web.
fn may_be_machine_failure(outcome: Outcome) -> bool {
    let trouble = outcome.site_trouble();
    trouble.is_some_and(|trouble| trouble.reason != BackoffReason::Blocked)
}
