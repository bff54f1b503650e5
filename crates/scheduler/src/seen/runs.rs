//! Runs: the part of the seen index on disk, sorted by key.
//!
//! Each run is a file in the folder [`FOLDER`]; the table `seen_runs` names the runs that are in use. A run divides the
//! key space into equal slices, so that a look-up is one read of some 700 bytes at a computed position. A key is stored
//! as its distance to the slice's first key. Both numbers of an entry have only as many bytes as the largest ones of
//! the run may need. The file holds
//!
//! - the slices: for each, its keys in ascending order, then their tasks in the same order;
//! - the directory, which is kept in memory: for each slice the number of entries before it, and their total number at
//!   the end, in four bytes each, the lowest byte first.
//!
//! A file is written once, synced before the commit that names it, and never changed. It is deleted after the commit
//! that no longer names it; leftovers of a crash are deleted at the next start. With a table of SQLite instead, a
//! look-up would descend its tree, and each entry would be written twice.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Result, ffi, params};
use webfill_service::state::PRIVATE;

use super::slices::{Layout, Slice};

/// The folder of the files, next to the database.
pub(crate) const FOLDER: &str = "seen";

const ENDING: &str = ".run";

/// The maximum number of keys in a run.
pub(super) const MOST_KEYS: u64 = u32::MAX as u64;

/// The average number of keys in a slice (a small part of a run that is read at once).
const KEYS_PER_SLICE: u64 = 120;

/// A growing file is synced whenever this many bytes were written, so that no commit waits for a large sync.
const BYTES_BETWEEN_SYNCS: u64 = 8 << 20;

/// A key, and the task of its URL.
pub(super) type Entry = (u64, u64);

/// One sorted run: a file of keys, which is never changed.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) keys: u64,
    /// All tasks up to this one are in this run or in older ones.
    pub(super) last_task: u64,
    layout: Layout,
    stored: Arc<RunFile>,
}

/// A run's file, and the positions of its slices.
#[derive(Debug)]
struct RunFile {
    path: PathBuf,
    file: File,
    /// The number of entries before each slice, and the total number.
    starts: Vec<u32>,
}

impl Run {
    pub(super) fn slice_count(&self) -> u64 {
        self.layout.slices
    }

    pub(super) fn path(&self) -> &Path {
        &self.stored.path
    }

    pub(super) fn slice_of(&self, key: u64) -> u64 {
        self.layout.slice_of(key)
    }

    pub(super) fn first_key_of(&self, slice: u64) -> u64 {
        self.layout.first_key_of(slice)
    }

    pub(super) fn contains(&self, key: u64) -> Result<bool> {
        let slice = self.slice_of(key);
        let keys = self.count_entries(slice) * self.layout.widths.key;
        self.with_slice_bytes(slice, keys, |slice| slice.position(key).is_some())
    }

    /// The task of a key, if it is in this run.
    pub(super) fn find(&self, key: u64) -> Result<Option<u64>> {
        let slice = self.slice_of(key);
        let entries = self.count_entries(slice) * self.layout.widths.entry_bytes();
        self.with_slice_bytes(slice, entries, |slice| slice.find(key))
    }

    /// Appends the entries of a slice to `entries`, in ascending order.
    pub(super) fn read_slice(&self, slice: u64, entries: &mut Vec<Entry>) -> Result<()> {
        let bytes = self.count_entries(slice) * self.layout.widths.entry_bytes();
        self.with_slice_bytes(slice, bytes, |slice| entries.extend(slice.entries()))
    }

    /// Appends the entries with keys from `from` up to but excluding `end`, in ascending order.
    pub(super) fn read_keys(
        &self,
        from: u64,
        end: Option<u64>,
        entries: &mut Vec<Entry>,
    ) -> Result<()> {
        let last = end.map_or(self.slice_count() - 1, |end| self.slice_of(end - 1));
        for slice in self.slice_of(from)..=last {
            self.read_slice(slice, entries)?;
        }
        entries.retain(|(key, _)| *key >= from && end.is_none_or(|end| *key < end));
        Ok(())
    }

    /// Removes the run from the index. Its file may be deleted after the commit.
    pub(super) fn delete_row(&self, db: &Connection) -> Result<PathBuf> {
        let name = self.stored.path.file_name().unwrap_or_default();
        let mut delete = db.prepare_cached("DELETE FROM seen_runs WHERE file = ?1")?;
        delete.execute([name.to_string_lossy()])?;
        Ok(self.stored.path.clone())
    }

    /// Renames the run's damaged file, so that the next start rebuilds the index from this run on.
    pub(super) fn mark_damaged(&self, error: &io::Error) -> rusqlite::Error {
        let path = &self.stored.path;
        fs::rename(path, path.with_extension("damaged")).ok();
        run_file_error("read", path, error)
    }

    fn count_entries(&self, slice: u64) -> usize {
        let slice = slice as usize;
        (self.stored.starts[slice + 1] - self.stored.starts[slice]) as usize
    }

    /// Reads the first bytes of a slice.
    fn with_slice_bytes<T>(
        &self,
        slice: u64,
        count: usize,
        read: impl FnOnce(Slice<'_>) -> T,
    ) -> Result<T> {
        let place =
            u64::from(self.stored.starts[slice as usize]) * self.layout.widths.entry_bytes() as u64;
        let mut few = [0; 2_048];
        let mut many = Vec::new();
        let bytes = match few.get_mut(..count) {
            Some(bytes) => bytes,
            // The slice has more entries than a good hash produces, so they don't fit into the buffer on the stack.
            None => {
                many.resize(count, 0);
                many.as_mut_slice()
            }
        };
        let done = self.stored.file.read_exact_at(bytes, place);
        done.map_err(|error| self.mark_damaged(&error))?;
        Ok(read(self.layout.decode(
            slice,
            self.count_entries(slice),
            bytes,
        )))
    }
}

/// A run that is being written.
#[derive(Debug)]
pub(super) struct RunWriter {
    keys: u64,
    last_task: u64,
    layout: Layout,
    path: PathBuf,
    file: BufWriter<File>,
    starts: Vec<u32>,
    unsynced_bytes: u64,
}

impl RunWriter {
    /// Begins a run with at most this many keys in the folder of runs.
    pub(super) fn begin(
        db: &Connection,
        folder: &Path,
        keys: u64,
        last_task: u64,
    ) -> Result<RunWriter> {
        let layout = Layout::new(keys.div_ceil(KEYS_PER_SLICE).max(1), last_task);
        let sql = "SELECT lower(hex(randomblob(8)))";
        let name: String = db.query_row(sql, [], |row| row.get(0))?;
        let path = folder.join(name + ENDING);
        let created = create_folder(folder).and_then(|()| {
            let mut options = File::options();
            options.read(true).write(true).create_new(true);
            options.mode(PRIVATE).open(&path)
        });
        let file = created.map_err(|error| run_file_error("create", &path, &error))?;
        Ok(RunWriter {
            keys,
            last_task,
            starts: Vec::with_capacity(layout.slices as usize + 1),
            layout,
            path,
            file: BufWriter::with_capacity(1 << 16, file),
            unsynced_bytes: 0,
        })
    }

    pub(super) fn slice_count(&self) -> u64 {
        self.layout.slices
    }

    pub(super) fn slice_of(&self, key: u64) -> u64 {
        self.layout.slice_of(key)
    }

    /// Writes entries slice by slice. They must be in ascending order, and come after those written before.
    pub(super) fn write(&mut self, entries: &[Entry]) -> Result<()> {
        let layout = self.layout;
        let is_of_one = |a: &Entry, b: &Entry| layout.slice_of(a.0) == layout.slice_of(b.0);
        for slice in entries.chunk_by(is_of_one) {
            self.write_slice(layout.slice_of(slice[0].0), slice)?;
        }
        Ok(())
    }

    /// Writes one slice, which must come after those written before; skipped slices are empty. The entries must be in
    /// ascending order and belong to the slice.
    pub(super) fn write_slice(&mut self, slice: u64, entries: &[Entry]) -> Result<()> {
        let written = self.count_written_entries();
        self.starts.resize(slice as usize + 1, written);
        let bytes = self.layout.encode(slice, entries);
        self.unsynced_bytes += bytes.len() as u64;
        let mut done = self.file.write_all(&bytes);
        if self.unsynced_bytes >= BYTES_BETWEEN_SYNCS {
            self.unsynced_bytes = 0;
            done = done
                .and_then(|()| self.file.flush())
                .and_then(|()| self.file.get_ref().sync_data());
        }
        done.map_err(|error| run_file_error("write", &self.path, &error))?;
        self.starts.push(written + entries.len() as u32);
        Ok(())
    }

    /// The number of entries written so far, which is recorded for the next slice.
    fn count_written_entries(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Syncs the file, and names it in the table.
    pub(super) fn finish(mut self, db: &Connection) -> Result<Run> {
        let written = self.count_written_entries();
        self.starts.resize(self.layout.slices as usize + 1, written);
        let directory: Vec<u8> = self.starts.iter().flat_map(|n| n.to_le_bytes()).collect();
        let path = self.path;
        let written = self.file.write_all(&directory).and_then(|()| {
            let file = self.file.into_inner()?;
            file.sync_all()?;
            sync_folder_of(&path)?;
            Ok(file)
        });
        let file = written.map_err(|error| run_file_error("write", &path, &error))?;
        let sql = "INSERT INTO seen_runs (file, slices, keys, last_task) VALUES (?1, ?2, ?3, ?4)";
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (slices, keys) = (self.layout.slices as i64, self.keys as i64);
        db.prepare_cached(sql)?
            .execute(params![name, slices, keys, self.last_task as i64])?;
        let starts = self.starts;
        Ok(Run {
            keys: self.keys,
            last_task: self.last_task,
            layout: self.layout,
            stored: Arc::new(RunFile { path, file, starts }),
        })
    }
}

/// Opens the runs, oldest first. Files without a run are deleted. If a file is damaged, or missing because only the
/// database was copied, the index ends before it: the rest must be rebuilt.
pub(super) fn open(db: &Connection, folder: &Path) -> Result<Vec<Run>> {
    let sql = "SELECT file, slices, keys, last_task, id FROM seen_runs ORDER BY id";
    let mut select = db.prepare(sql)?;
    let mut rows = select.query([])?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        let number = |column| row.get::<_, i64>(column).map(|n| n as u64);
        let path = folder.join(row.get::<_, String>(0)?);
        match open_run(&path, number(1)?, number(2)?, number(3)?) {
            Ok(run) => runs.push(run),
            Err(error) if is_lost(&error) => {
                tracing::warn!(
                    event = "seen_index_is_built_anew",
                    file = %path.display(),
                    %error,
                    "a file of the index of seen URLs is missing: rebuilding the index from the tasks"
                );
                db.execute("DELETE FROM seen_runs WHERE id >= ?1", [number(4)? as i64])?;
                break;
            }
            Err(error) => return Err(run_file_error("open", &path, &error)),
        }
    }
    delete_unused_files(folder, &runs);
    Ok(runs)
}

/// Whether the file is lost permanently, unlike after an error such as too many open files.
fn is_lost(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidData
    )
}

fn open_run(path: &Path, slices: u64, keys: u64, last_task: u64) -> io::Result<Run> {
    let layout = Layout::new(slices, last_task);
    let file = File::open(path)?;
    let directory_bytes = (slices + 1) * 4;
    let bytes = file.metadata()?.len();
    let entries_bytes = bytes
        .checked_sub(directory_bytes)
        .ok_or_else(damaged_error)?;
    let mut directory = vec![0; directory_bytes as usize];
    file.read_exact_at(&mut directory, entries_bytes)?;
    let (starts, _) = directory.as_chunks::<4>();
    let starts: Vec<u32> = starts.iter().map(|n| u32::from_le_bytes(*n)).collect();
    let in_all = u64::from(starts.last().copied().unwrap_or(0));
    if in_all * layout.widths.entry_bytes() as u64 != entries_bytes || !starts.is_sorted() {
        return Err(damaged_error());
    }
    let path = path.to_owned();
    Ok(Run {
        keys,
        last_task,
        layout,
        stored: Arc::new(RunFile { path, file, starts }),
    })
}

pub(super) fn damaged_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "it differs from the written data",
    )
}

/// Deletes the files of runs that are not among these. A file that cannot be deleted takes up space until the next
/// start tries again.
fn delete_unused_files(folder: &Path, runs: &[Run]) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_run_file_name(&entry.file_name()) && runs.iter().all(|run| run.stored.path != path) {
            delete(&path);
        }
    }
}

pub(super) fn delete(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(
            event = "not_deleted",
            file = %path.display(),
            %error,
            "cannot delete an unused file of the index of seen URLs"
        );
    }
}

/// Whether a file has the name of a run. All other files in the folder are left alone.
fn is_run_file_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let id = name.strip_suffix(ENDING);
    id.is_some_and(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    sync_folder_of(folder)
}

/// Syncs the folder of a file, so that the file's name is on the disk.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// The error in the form of SQLite's errors about its own file, so that a full disk is recognised.
fn run_file_error(doing: &str, path: &Path, error: &io::Error) -> rusqlite::Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ffi::SQLITE_FULL,
        _ => ffi::SQLITE_IOERR,
    };
    let message = format!("cannot {doing} {}: {error}", path.display());
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(message))
}
