//! Backups of the file, and the start from one.
//!
//! What was handed out after a backup was made is unknown to it, and supervisors may still work on it.
//! So a start from a backup has to be told that it is one ([`Restored`]): no lease and no supervisor of
//! the file counts any more, and every site counts as requested until nothing of the former fleet can be
//! under way.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, params};

use super::{FILE_NAME, Frontier, FrontierError, schema};

/// How to start from a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// How long requests of the former fleet may still be under way.
    pub quiet_ms: i64,
    /// The delay of sites whose own delay is not known.
    pub default_delay_ms: u32,
    /// Only if the file is marked as a backup.
    pub if_marked: bool,
}

/// The time at which a backup was made, in `meta`.
const MARK: &str = "backup_made_at_ms";

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
        let marked = Connection::open(&unfinished).and_then(|copy| {
            let sql = "INSERT OR REPLACE INTO meta VALUES (?1, ?2)";
            copy.execute(sql, params![MARK, now_ms])
        });
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

/// Refuses a backup that the dispatcher was not told of; makes one that it was told of its own.
pub(super) fn check(
    db: &Connection,
    path: &Path,
    restored: Option<Restored>,
    now_ms: i64,
) -> std::result::Result<(), FrontierError> {
    let fault = |source| FrontierError::database("open the frontier", path, source);
    let made_at_ms = made_at_ms(db).map_err(fault)?;
    match (restored, made_at_ms) {
        (None, Some(made_at_ms)) => Err(FrontierError::Backup {
            path: path.to_owned(),
            made_at_ms,
        }),
        (
            Some(Restored {
                if_marked: true, ..
            })
            | None,
            None,
        ) => Ok(()),
        (Some(restored), _) => begin_anew(db, restored, now_ms).map_err(fault),
    }
}

fn made_at_ms(db: &Connection) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE name = ?1";
    db.query_row(sql, [MARK], |row| row.get(0)).optional()
}

/// Without supervisors the leases belong to nobody, and come back when the dispatcher restores them.
fn begin_anew(db: &Connection, restored: Restored, now_ms: i64) -> Result<()> {
    db.execute("DELETE FROM supervisors", [])?;
    let quiet_from_ms = now_ms + restored.quiet_ms;
    db.execute(
        "UPDATE sites SET last_start_ms = ?1,
             due_at_ms = max(due_at_ms, ?1 + coalesce(rule_delay_ms, delay_ms, ?2))",
        params![quiet_from_ms, restored.default_delay_ms],
    )?;
    db.execute("DELETE FROM meta WHERE name = ?1", [MARK])?;
    Ok(())
}
