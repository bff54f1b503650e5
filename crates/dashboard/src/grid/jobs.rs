//! Makes indexes in the background: one job for each index, however many visitors wait for it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::files::Files;
use super::{Grid, building, listing};

/// How long a request waits for an index before the page says that it is being made. The index of a small table is
/// mostly ready within a longer time, so such a request waits longer.
const WAIT: Duration = Duration::from_millis(100);
const WAIT_IF_SMALL: Duration = Duration::from_secs(2);

/// The largest size of a small table, in bytes.
const SMALL: u64 = 4 << 20;

/// How long to wait before a failed job is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// How many jobs may run at a time. Each uses a processor core.
const MOST: usize = 2;

/// The background jobs that make indexes of tables, by the path of the index.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    jobs: Mutex<HashMap<PathBuf, Job>>,
    ended: Condvar,
}

#[derive(Debug)]
enum Job {
    Running(Arc<AtomicU64>),
    Failed(String, Instant),
}

/// The index that a visitor needs, or how far it is.
pub(crate) enum IndexOutcome {
    Ready(Box<Grid>),
    /// The index is not ready. The number is how many rows are done; while the index is being sorted, it is the number
    /// of all rows.
    Preparing(u64),
}

impl Jobs {
    /// Opens the index of a table. If there is none for the present files, a job makes it, and this call waits for it
    /// for a short time.
    pub(crate) fn open_or_build(&self, files: &Files) -> Result<IndexOutcome, String> {
        if let Some(grid) = Grid::open(files)? {
            return Ok(IndexOutcome::Ready(Box::new(grid)));
        }
        let own = files.clone();
        let done = self.start_or_wait(files, move |done| building::build(&own, done))?;
        match Grid::open(files)? {
            Some(grid) => Ok(IndexOutcome::Ready(Box::new(grid))),
            None => Ok(IndexOutcome::Preparing(done)),
        }
    }

    /// Like [`Jobs::open_or_build`], but the index is also sorted by a column.
    pub(crate) fn open_or_sort(
        &self,
        files: &Files,
        column: usize,
    ) -> Result<IndexOutcome, String> {
        let grid = match self.open_or_build(files)? {
            IndexOutcome::Ready(grid) => grid,
            preparing => return Ok(preparing),
        };
        if listing::is_sorted(&grid, column) {
            return Ok(IndexOutcome::Ready(grid));
        }
        let (own, kind) = (files.clone(), grid.meta.columns[column].kind);
        let rows = grid.meta.rows;
        drop(grid);
        // Sorting has the same key as making the index, so both never run at once. Otherwise one of two changes to an
        // index would be lost.
        self.start_or_wait(files, move |_| listing::sort(&own.index, column, kind))?;
        match Grid::open(files)? {
            Some(grid) if listing::is_sorted(&grid, column) => {
                Ok(IndexOutcome::Ready(Box::new(grid)))
            }
            _ => Ok(IndexOutcome::Preparing(rows)),
        }
    }

    /// Starts a job for an index unless one is running, and waits a short time for its end. Returns how many rows are
    /// done.
    fn start_or_wait(
        &self,
        files: &Files,
        work: impl FnOnce(&AtomicU64) -> Result<(), String> + Send + 'static,
    ) -> Result<u64, String> {
        let key = files.index.as_path();
        let mut jobs = self.0.lock();
        if let Some(Job::Failed(error, at)) = jobs.get(key) {
            if at.elapsed() < AGAIN {
                return Err(error.clone());
            }
            jobs.remove(key);
        }
        if !jobs.contains_key(key) {
            let running = jobs.values().filter(|job| matches!(job, Job::Running(_)));
            if running.count() >= MOST {
                return Ok(0);
            }
            let done = Arc::new(AtomicU64::new(0));
            jobs.insert(key.to_owned(), Job::Running(Arc::clone(&done)));
            let (shared, own) = (Arc::clone(&self.0), key.to_owned());
            std::thread::spawn(move || {
                // Without this, a job that panics would count as running forever.
                let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&done)));
                let worked = worked.unwrap_or_else(|_| Err(String::from("making it broke down")));
                let mut jobs = shared.lock();
                match worked {
                    Ok(()) => jobs.remove(&own),
                    Err(error) => {
                        tracing::warn!(event = "table_index_failed", %error, "the index of a table cannot be made");
                        jobs.insert(own, Job::Failed(error, Instant::now()))
                    }
                };
                shared.ended.notify_all();
            });
        }
        let is_running =
            |jobs: &mut HashMap<PathBuf, Job>| matches!(jobs.get(key), Some(Job::Running(_)));
        let wait = match files.bytes() <= SMALL {
            true => WAIT_IF_SMALL,
            false => WAIT,
        };
        let waited = self.0.ended.wait_timeout_while(jobs, wait, is_running);
        let (jobs, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match jobs.get(key) {
            None => Ok(0),
            Some(Job::Running(done)) => Ok(done.load(Ordering::Relaxed)),
            Some(Job::Failed(error, _)) => Err(error.clone()),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
