//! Backups and other copies of the file, and the start from one.
//!
//! What was handed out after a copy was made is unknown to it, and supervisors may still work on it. So
//! the start from a copy begins anew: no lease and no supervisor of the file counts any more, and every
//! site counts as requested until nothing of the former fleet can be under way.
//!
//! A backup is marked as one. Any other copy is noticed by the time at which the file was created: that
//! is noted in the file, and the file system gives the copy its own. It is not noticed on a file system
//! that does not keep that time.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, params};

use super::{FILE_NAME, Frontier, FrontierError, schema};

/// How to start from a file that may be older than what its fleet has done.
#[derive(Debug, Clone, Copy)]
pub struct Restoring {
    /// How long requests of the former fleet may still be under way.
    pub quiet_ms: i64,
    /// The delay of sites whose own delay is not known.
    pub default_delay_ms: u32,
    pub backups: Backups,
}

/// What is done with a file that is marked as a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backups {
    /// It is refused: a dispatcher of a fleet must be told of a backup.
    Refused,
    Taken,
    /// The file is said to be one, whether it is marked or not.
    Told,
}

/// What there is to know of a file that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// It is a copy, of which nobody has said anything.
    pub(crate) is_copy: bool,
    /// Until then, requests of a former fleet may be under way.
    pub(crate) quiet_until_ms: i64,
}

/// The time at which a backup was made, in `meta`.
const MARK: &str = "backup_made_at_ms";

/// The time at which the file was created, in `meta`.
const CREATED: &str = "file_created_at_ns";

/// [`Origin::quiet_until_ms`], in `meta`: a start within that time waits for the rest of it.
const QUIET: &str = "quiet_until_ms";

impl Frontier {
    /// Copies the frontier of a state folder into another folder, as of one commit, while a dispatcher
    /// may be at work on it. The copy is on disk when this returns. It is marked, so that no dispatcher
    /// takes it for its own file by mistake.
    pub fn back_up(
        state: &Path,
        into: &Path,
        now_ms: i64,
    ) -> std::result::Result<PathBuf, FrontierError> {
        let path = state.join(FILE_NAME);
        let copy = into.join(FILE_NAME);
        let fault = |source| FrontierError::database("back up", &path, source);
        let unfinished = into.join(format!("{FILE_NAME}.unfinished"));
        let text = unfinished.display().to_string();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db =
            Connection::open_with_flags(&path, flags).map_err(|source| FrontierError::Open {
                path: path.clone(),
                source,
            })?;
        if !schema::is_current(&db).map_err(fault)? {
            return Err(FrontierError::Foreign { path });
        }
        db.execute("VACUUM INTO ?1", [text]).map_err(fault)?;
        let marked = Connection::open(&unfinished).and_then(|copy| note(&copy, MARK, Some(now_ms)));
        marked.map_err(fault)?;
        let renamed = std::fs::File::open(&unfinished)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&unfinished, &copy))
            .and_then(|()| std::fs::File::open(into)?.sync_all());
        renamed.map_err(|source| FrontierError::Copy {
            path: copy.clone(),
            source,
        })?;
        Ok(copy)
    }
}

/// Refuses a backup that the dispatcher was not told of. A backup that it was told of, and a copy, it makes
/// its own.
pub(super) fn check(
    db: &Connection,
    path: &Path,
    restoring: Restoring,
    now_ms: i64,
) -> std::result::Result<Origin, FrontierError> {
    let fault = |source| FrontierError::database("open the frontier", path, source);
    let made_at_ms = noted(db, MARK).map_err(fault)?;
    if let (Backups::Refused, Some(made_at_ms)) = (restoring.backups, made_at_ms) {
        let path = path.to_owned();
        return Err(FrontierError::Backup { path, made_at_ms });
    }
    let is_told = made_at_ms.is_some() || restoring.backups == Backups::Told;
    adopt(db, created_ns(path), is_told, restoring, now_ms).map_err(fault)
}

/// Begins anew if the file is said to be a copy, or if it was created at another time than noted.
fn adopt(
    db: &Connection,
    created_ns: Option<i64>,
    is_told: bool,
    restoring: Restoring,
    now_ms: i64,
) -> Result<Origin> {
    let noted_ns = noted(db, CREATED)?;
    let differs = created_ns
        .zip(noted_ns)
        .is_some_and(|(now, then)| now != then);
    if is_told || differs {
        begin_anew(db, restoring, now_ms)?;
    }
    if created_ns != noted_ns {
        note(db, CREATED, created_ns)?;
    }
    // The wall clock may have been set back meanwhile.
    let quiet_until_ms = noted(db, QUIET)?.unwrap_or(0);
    Ok(Origin {
        is_copy: differs && !is_told,
        quiet_until_ms: quiet_until_ms.min(now_ms + restoring.quiet_ms),
    })
}

fn noted(db: &Connection, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE name = ?1";
    db.query_row(sql, [name], |row| row.get(0)).optional()
}

/// `None` if the file system does not keep it.
fn created_ns(path: &Path) -> Option<i64> {
    let created = std::fs::metadata(path)
        .and_then(|file| file.created())
        .ok()?;
    let since = created.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

fn note(db: &Connection, name: &str, value: Option<i64>) -> Result<usize> {
    match value {
        Some(value) => {
            let sql = "INSERT OR REPLACE INTO meta VALUES (?1, ?2)";
            db.execute(sql, params![name, value])
        }
        None => db.execute("DELETE FROM meta WHERE name = ?1", [name]),
    }
}

/// Without supervisors the leases belong to nobody, and come back when the dispatcher restores them.
fn begin_anew(db: &Connection, restoring: Restoring, now_ms: i64) -> Result<()> {
    db.execute("DELETE FROM supervisors", [])?;
    let quiet_from_ms = now_ms + restoring.quiet_ms;
    db.execute(
        "UPDATE sites SET last_start_ms = ?1,
             due_at_ms = max(due_at_ms, ?1 + coalesce(rule_delay_ms, delay_ms, ?2))",
        params![quiet_from_ms, restoring.default_delay_ms],
    )?;
    note(db, QUIET, Some(quiet_from_ms))?;
    note(db, MARK, None)?;
    Ok(())
}
