//! Step 2 of a URL's journey: whether a crawl has seen it before, and as which task.
//!
//! The durable fact is the task's own row; this index is derived from it and can be rebuilt. A URL is represented by
//! a 64-bit hash of crawl and URL, keyed with a secret of the database, so that no page can construct collisions.
//! Among 100 million URLs the probability that any URL is taken for another is one in 3,700.
//!
//! The index is a log-structured merge tree. A key is in one of two places:
//!
//! - the *tail*, in memory, holds the keys of the latest tasks; after a crash it is rebuilt from the tasks after the
//!   last indexed one;
//! - *runs*, on disk, are sorted. A full tail becomes a run, and runs of similar size are merged, so that there are
//!   few.
//!
//! In front of the runs are two structures of fixed size in memory ([`front`]): an exact cache of recently used keys,
//! and a Bloom filter that recognises most new keys. After a start both are filled from the runs little by little,
//! while they are already in use. Memory is bounded; each key takes ten bytes on disk and is written about five
//! times. Missing runs are rebuilt from the tasks, which takes a pass over all of them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Result};
use siphasher::sip::SipHasher13;
use webfill_urls::DroppedParameters;
use webfill_wire::CrawlKey;

use self::front::LookupCache;
use self::merge::Merge;
use self::runs::{Entry, MOST_KEYS, Run, RunWriter};

mod cache_lines;
mod filter;
mod front;
mod hot_keys;
mod merge;
pub(crate) mod runs;
mod slices;

/// The memory per key in bytes: its entry with its task in the tail's hash table, and in the copy that exists while the
/// tail is written.
const TAIL_ENTRY_BYTES: usize = 32;

/// The minimum number of slices (small parts of a run) read per call while the filter is filled. Reading them takes a
/// fraction of a millisecond.
const SLICES_READ: u64 = 96;

/// The number of slices (small parts of a run) read at the start. They hold about a million keys, which takes a tenth
/// of a second.
const SLICES_READ_AT_ONCE: u64 = 8_000;

/// The seen index of all crawls.
#[derive(Debug)]
pub(crate) struct SeenUrls {
    secret: (u64, u64),
    dropped_parameters: DroppedParameters,
    /// The folder of the runs (sorted files of keys).
    folder: PathBuf,
    tail: HashMap<u64, u64, BuildHasherDefault<AlreadyHashed>>,
    tail_limit: usize,
    last_task: u64,
    /// The number of insertions since the merge was last advanced.
    unpaced: u64,
    /// The runs (sorted files of keys), oldest first.
    runs: Vec<Run>,
    /// The current merge, always of the last runs.
    merge: Option<Merge>,
    /// Files that no run uses from the next commit on.
    dropped: Vec<PathBuf>,
    front: LookupCache,
}

impl SeenUrls {
    /// Rebuilds the memory: the tail from the tasks that are in no run yet, and a part of the rest from the runs.
    /// [`maintain`](SeenUrls::maintain) reads the rest of the runs little by little. URLs that differ only in `dropped`
    /// parameters count as one.
    pub(crate) fn open(
        db: &Connection,
        state: &Path,
        memory_bytes: usize,
        dropped: DroppedParameters,
    ) -> Result<SeenUrls> {
        SeenUrls::open_with_read_speed(db, state, memory_bytes, dropped, SLICES_READ_AT_ONCE)
    }

    fn open_with_read_speed(
        db: &Connection,
        state: &Path,
        memory_bytes: usize,
        dropped_parameters: DroppedParameters,
        at_once: u64,
    ) -> Result<SeenUrls> {
        let tail_bytes = memory_bytes / 8;
        let folder = state.join(runs::FOLDER);
        let runs = runs::open(db, &folder)?;
        let mut seen = SeenUrls {
            secret: load_or_create_secret(db)?,
            dropped_parameters,
            folder,
            tail: HashMap::default(),
            tail_limit: tail_limit(tail_bytes),
            last_task: runs.last().map_or(0, |run| run.last_task),
            unpaced: 0,
            runs,
            merge: None,
            dropped: Vec::new(),
            front: LookupCache::new(memory_bytes - tail_bytes),
        };
        seen.read_tail(db)?;
        seen.front.resize(seen.indexed_keys());
        seen.front.advance_rebuild(&seen.runs, at_once)?;
        // These insertions were not new, so they make no maintenance due.
        seen.unpaced = 0;
        seen.plan_merge(db)?;
        Ok(seen)
    }

    /// The key of a canonical URL within a crawl. Never zero.
    pub(crate) fn key(&self, crawl: CrawlKey, url: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        hasher.write(&crawl.to_le_bytes());
        hasher.write(self.dropped_parameters.strip_from(url).as_bytes());
        hasher.finish().max(1)
    }

    /// Whether the index treats two canonical URLs as one.
    pub(crate) fn are_same_url(&self, url: &str, other: &str) -> bool {
        url == other
            || self.dropped_parameters.strip_from(url) == self.dropped_parameters.strip_from(other)
    }

    /// The key of a pair of URL and record, for [`SeenUrls::was_noted_recently`].
    pub(crate) fn pair_key(&self, key: u64, record: i64) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret.1, self.secret.0);
        hasher.write(&key.to_le_bytes());
        hasher.write(&record.to_le_bytes());
        hasher.finish().max(1)
    }

    /// Reads ahead for look-ups of these keys. In a separate loop, the waits for memory overlap.
    pub(crate) fn prefetch(&self, keys: &[u64]) {
        let read = |key: &u64| self.front.prefetch(*key) ^ u64::from(self.tail.contains_key(key));
        std::hint::black_box(keys.iter().map(read).fold(0, |all, word| all ^ word));
    }

    /// Whether the URL was seen before.
    pub(crate) fn contains(&mut self, key: u64) -> Result<bool> {
        if self.front.is_hot(key) || self.tail.contains_key(&key) {
            return Ok(true);
        }
        if !self.front.may_be_in_runs(key) {
            return Ok(false);
        }
        // The oldest run is by far the largest, so it most probably holds the key.
        for run in &self.runs {
            if run.contains(key)? {
                self.front.insert_hot(key);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The latest task of a URL.
    pub(crate) fn task_of(&mut self, key: u64) -> Result<Option<u64>> {
        if let Some(task) = self.tail.get(&key) {
            return Ok(Some(*task));
        }
        if !self.front.may_be_in_runs(key) {
            return Ok(None);
        }
        for run in self.runs.iter().rev() {
            if let Some(task) = run.find(key)? {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }

    /// Adds a URL with its task; a later task of the same URL replaces an earlier one.
    pub(crate) fn insert(&mut self, key: u64, task: u64) {
        self.tail.insert(key, task);
        self.last_task = self.last_task.max(task);
        self.unpaced += 1;
    }

    /// Whether a pair of URL and record was noted recently. Notes are kept in memory only, so false negatives are
    /// possible.
    pub(crate) fn was_noted_recently(&mut self, pair_key: u64) -> bool {
        self.front.is_hot(pair_key)
    }

    pub(crate) fn note_pair(&mut self, pair_key: u64) {
        self.front.insert_hot(pair_key);
    }

    /// Writes a full tail to disk, advances the merge and fills the filter, inside the transaction of the tasks. Must
    /// be called after each batch of insertions.
    pub(crate) fn maintain(&mut self, db: &Connection) -> Result<()> {
        if self.tail.len() >= self.tail_limit {
            let entries = self.flush_tail(db)?;
            self.front.resize(self.indexed_keys());
            self.front.insert(&entries);
        } else if self.unpaced > 0 {
            let share = self.count_due_slices(self.merge.as_ref().map_or(0, Merge::slice_count));
            self.advance_merge(db, share)?;
        }
        if self.front.is_rebuilding() {
            let largest = self.runs.iter().map(Run::slice_count).max();
            let share = self.count_due_slices(largest.unwrap_or(0));
            let slices = share.clamp(SLICES_READ, SLICES_READ_AT_ONCE);
            self.front.advance_rebuild(&self.runs, slices)?;
        }
        self.unpaced = 0;
        Ok(())
    }

    /// Deletes the files that were merged into others. Must be called after each commit. If a file cannot be deleted,
    /// the next start tries it again.
    pub(crate) fn delete_merged_files(&mut self) {
        for path in self.dropped.drain(..) {
            runs::delete(&path);
        }
    }

    fn indexed_keys(&self) -> u64 {
        self.runs.iter().map(|run| run.keys).sum()
    }

    /// How many slices are to be read or merged now, if all `slices` must be done before the tail is half full.
    fn count_due_slices(&self, slices: u64) -> u64 {
        (slices * self.unpaced).div_ceil(self.tail_limit as u64 / 2)
    }

    /// Turns the tail into a run. A current merge must end first, because it merges the last runs.
    fn flush_tail(&mut self, db: &Connection) -> Result<Vec<Entry>> {
        self.advance_merge(db, u64::MAX)?;
        let entries = self.write_tail(db)?;
        self.plan_merge(db)?;
        Ok(entries)
    }

    fn write_tail(&mut self, db: &Connection) -> Result<Vec<Entry>> {
        let mut entries: Vec<_> = self.tail.drain().collect();
        entries.sort_unstable();
        let mut run = RunWriter::begin(db, &self.folder, entries.len() as u64, self.last_task)?;
        run.write(&entries)?;
        self.runs.push(run.finish(db)?);
        Ok(entries)
    }

    fn read_tail(&mut self, db: &Connection) -> Result<()> {
        let sql = "SELECT id, crawl, url FROM tasks WHERE id > ?1";
        let stored: Vec<PathBuf> = self.runs.iter().map(|run| run.path().to_owned()).collect();
        let mut select = db.prepare(sql)?;
        let mut rows = select.query([self.last_task as i64])?;
        while let Some(row) = rows.next()? {
            let key = self.key(row.get(1)?, row.get_ref(2)?.as_str()?);
            self.insert(key, row.get::<_, i64>(0)? as u64);
            // The tail is full here only if all runs are rebuilt.
            if self.tail.len() >= self.tail_limit {
                self.flush_tail(db)?;
                // No commit has named these files yet, so they can be deleted at once.
                let new = self.dropped.extract_if(.., |path| !stored.contains(path));
                new.for_each(|path| runs::delete(&path));
            }
        }
        Ok(())
    }

    /// Plans a merge of the last runs: a run joins if it is at most twice as large as all later ones together. So
    /// each run that stays is more than twice as large as everything after it.
    fn plan_merge(&mut self, db: &Connection) -> Result<()> {
        let mut keys = 0;
        let mut merged = 0;
        for run in self.runs.iter().rev() {
            let is_larger = merged > 0 && run.keys > 2 * keys;
            if is_larger || keys + run.keys > MOST_KEYS {
                break;
            }
            keys += run.keys;
            merged += 1;
        }
        if merged > 1 {
            let sources = &self.runs[self.runs.len() - merged..];
            self.merge = Some(Merge::begin(db, &self.folder, sources)?);
        }
        Ok(())
    }

    fn advance_merge(&mut self, db: &Connection, slices: u64) -> Result<()> {
        let Some(mut merge) = self.merge.take() else {
            return Ok(());
        };
        merge.advance(slices)?;
        if !merge.is_complete() {
            self.merge = Some(merge);
            return Ok(());
        }
        let sources = merge.source_count();
        let (output, dropped) = merge.finish(db)?;
        self.runs.truncate(self.runs.len() - sources);
        self.runs.push(output);
        self.dropped.extend(dropped);
        Ok(())
    }
}

/// The largest number of keys whose hash table fits into `bytes`. The table's size is a power of two, and it is at
/// most 7/8 full.
fn tail_limit(bytes: usize) -> usize {
    let buckets = (bytes / TAIL_ENTRY_BYTES).max(1_024);
    (1 << buckets.ilog2()) / 8 * 7
}

/// The database's secret, created when it is first opened.
fn load_or_create_secret(db: &Connection) -> Result<(u64, u64)> {
    let sql = "INSERT OR IGNORE INTO meta VALUES ('seen_secret', randomblob(16))";
    db.execute(sql, [])?;
    let sql = "SELECT value FROM meta WHERE name = 'seen_secret'";
    let secret: [u8; 16] = db.query_row(sql, [], |row| row.get(0))?;
    let secret = u128::from_le_bytes(secret);
    Ok((secret as u64, (secret >> 64) as u64))
}

/// A hasher that returns the key itself, because keys are hashes already.
#[derive(Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only keys are hashed, and they are u64");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
pub(crate) mod tests;
