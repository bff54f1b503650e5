//! Snapshots: copies of a dispatcher's file. Other dispatchers start from such a copy if the journal no longer has the
//! records that they lack.
//!
//! A snapshot knows how far it has applied the journal. It lacks a file's data about itself: the runs of its index of
//! seen URLs, and marks of backups and copies.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Result};
use webfill_urls::DroppedParameters;

use super::changes::{Applied, delete_own_rows, read_applied_position};
use super::{FILE_NAME, FrontierError, schema};
use crate::seen::{SeenUrls, runs};

/// Copies the file of a state folder, as of one commit. A dispatcher may use the file meanwhile. Returns how far the
/// copy has applied the journal.
pub fn make_snapshot(state: &Path, copy: &Path) -> std::result::Result<Applied, FrontierError> {
    let path = state.join(FILE_NAME);
    let fault = |source| FrontierError::database("make a snapshot of", &path, source);
    let unwritable = |source| FrontierError::Copy {
        path: copy.to_owned(),
        source,
    };
    remove_if_there(copy).map_err(unwritable)?;
    schema::create_private_file(copy);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copied = Connection::open_with_flags(&path, flags).and_then(|db| {
        db.execute("VACUUM INTO ?1", [copy.display().to_string()])?;
        let db = Connection::open(copy)?;
        delete_own_rows(&db)?;
        read_applied_position(&db)
    });
    copied.map_err(fault)
}

/// How far a snapshot has applied the journal. An error if the file is not a frontier or has another format.
pub fn read_snapshot_position(snapshot: &Path) -> std::result::Result<Applied, FrontierError> {
    let fault = |source| FrontierError::database("open the snapshot", snapshot, source);
    let db = open_snapshot(snapshot).map_err(fault)?;
    schema::check_format(&db, snapshot)?;
    read_applied_position(&db).map_err(fault)
}

fn open_snapshot(snapshot: &Path) -> Result<Connection> {
    Connection::open_with_flags(snapshot, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Whether a snapshot is a later state of this file, and not of another fleet's file: the two then have the same first
/// epoch. An unused file has no epoch, so any snapshot continues it.
pub fn is_continued_by(db: &Connection, snapshot: &Path) -> Result<bool> {
    let own = first_epoch(db)?;
    Ok(own.is_none() || own == first_epoch(&open_snapshot(snapshot)?)?)
}

fn first_epoch(db: &Connection) -> Result<Option<i64>> {
    let sql = "SELECT epoch FROM epochs ORDER BY id LIMIT 1";
    db.query_row(sql, [], |row| row.get(0)).optional()
}

/// Puts a snapshot, which is on disk, in the place of the file of a state folder. Nobody has that file open.
pub fn install_snapshot(state: &Path, snapshot: &Path) -> std::io::Result<()> {
    let path = state.join(FILE_NAME);
    std::fs::rename(snapshot, &path)?;
    // Remove the write-ahead log of the former file, which is empty since the last connection was closed.
    for ending in ["-wal", "-shm"] {
        let mut name = path.clone().into_os_string();
        name.push(ending);
        remove_if_there(&PathBuf::from(name))?;
    }
    match std::fs::remove_dir_all(state.join(runs::FOLDER)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::File::open(state)?.sync_all()
}

/// Extends the index of seen URLs by the tasks of a file that no frontier has open, so that the next frontier need not
/// read all of them. The latest tasks, as many as fit into memory, are left to that frontier. Returns the number of the
/// last task.
pub fn extend_seen_index(
    db: &mut Connection,
    state: &Path,
    memory_bytes: usize,
    dropped: &DroppedParameters,
) -> Result<u64> {
    let last = last_task_id(db)?;
    if last > 0 {
        let transaction = db.transaction()?;
        let mut seen = SeenUrls::open(&transaction, state, memory_bytes, dropped.clone())?;
        transaction.commit()?;
        seen.delete_merged_files();
    }
    Ok(last)
}

/// The number of the last task of a file; 0: there is none.
pub fn last_task_id(db: &Connection) -> Result<u64> {
    let sql = "SELECT coalesce(max(id), 0) FROM tasks";
    db.query_row(sql, [], |row| row.get::<_, i64>(0))
        .map(|last| last as u64)
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
