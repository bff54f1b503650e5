//! Failures that turn out to be a machine's: the sites that they were counted against are as they
//! were, and the tasks are queued again.

use rusqlite::Result;

use super::answers::{SiteId, TaskId, Woken};
use super::rests::has_answered;
use super::{Frontier, FrontierError};

impl Frontier {
    /// Whether a site has answered before, and is in no trouble.
    pub fn is_well(&mut self, site: SiteId) -> std::result::Result<bool, FrontierError> {
        self.guarded("see whether a site is well", |frontier| {
            Ok(!frontier.rests.known.contains(&site) && has_answered(&frontier.db, site)?)
        })
    }

    /// Takes failures back. `sites`: each with whether it was well before them. Those that were are
    /// open again; of the others, those that were given up. Returns the sites inside the window that
    /// got tasks by it.
    pub fn forgive(
        &mut self,
        tasks: &[TaskId],
        sites: &[(SiteId, bool)],
        now_ms: i64,
    ) -> std::result::Result<Vec<Woken>, FrontierError> {
        self.guarded("take failures back", |frontier| {
            for (site, was_well) in sites {
                match was_well {
                    true => frontier.forget_rest(*site)?,
                    false => frontier.wake_if_given_up(*site, now_ms)?,
                }
            }
            tasks.iter().try_for_each(|task| frontier.discount(*task))
        })?;
        self.reopen(tasks, now_ms)
    }

    /// What a task has tried does not count against its retries.
    fn discount(&self, task: TaskId) -> Result<()> {
        let sql = "UPDATE tries SET counts = 0 WHERE task = ?1 AND counts = 1";
        self.db.prepare_cached(sql)?.execute([task as i64])?;
        Ok(())
    }
}
