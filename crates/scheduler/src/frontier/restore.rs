//! Backups and other copies of the file, and how a dispatcher starts from one.
//!
//! A copy does not contain the tasks that were handed out after it was made, and supervisors may still work on them. So
//! after a start from a copy, no lease and no supervisor of the file is valid any more. Every site counts as requested
//! until no request of the former fleet can be in flight.
//!
//! A backup is marked as one. Any other copy is detected by the creation time of the file: that is stored in the file,
//! and the file system gives a new file another one. So a copy is not detected if it was written into the original
//! file, or on a file system that does not keep creation times.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, params};

use super::config::{Backups, Restoring};
use super::model::CLOCK_SLACK_MS;
use super::{FILE_NAME, FrontierError, schema};

/// What is known about the origin of an opened file, which may be a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    /// Whether the file is a copy, or is declared to be one.
    pub(crate) begins_anew: bool,
    /// Whether the file is a copy and `--restored` was not given.
    pub(crate) is_copy: bool,
    /// Until this time, requests of a former fleet may be in flight; 0 if there can be none.
    pub(crate) quiet_until_ms: i64,
}

/// The row of the table `meta` with the time when the backup was made.
const MARK: &str = "backup_made_at_ms";

/// The row of the table `meta` with the file's creation time.
const CREATED: &str = "file_created_at_ns";

/// The row of the table `meta` that says how long requests of a former fleet may still be in flight. The next start
/// waits that long, whatever the wall clock says.
pub(super) const QUIET: &str = "quiet_left_ms";

/// Refuses an unexpected backup, and adopts an expected backup or a copy. `restoring` is `None` if the caller is not
/// a dispatcher: adopting is then left to the next dispatcher.
pub(super) fn check_or_adopt_copy(
    db: &Connection,
    path: &Path,
    restoring: Option<Restoring>,
    now_ms: i64,
) -> std::result::Result<Origin, FrontierError> {
    let fault = |source| FrontierError::database("open the frontier", path, source);
    let made_at_ms = read_meta(db, MARK).map_err(fault)?;
    let is_refused = restoring.is_none_or(|restoring| restoring.backups == Backups::Refused);
    match (made_at_ms, restoring) {
        (Some(made_at_ms), _) if is_refused => {
            let path = path.to_owned();
            Err(FrontierError::Backup { path, made_at_ms })
        }
        (_, None) => Ok(Origin::default()),
        (_, Some(restoring)) => {
            let is_declared = made_at_ms.is_some() || restoring.backups == Backups::Declared;
            adopt_if_copied(db, created_ns(path), is_declared, restoring, now_ms).map_err(fault)
        }
    }
}

/// Treats the file as a copy if it is declared to be one, or if its creation time differs from the stored one.
fn adopt_if_copied(
    db: &Connection,
    created_ns: Option<i64>,
    is_declared: bool,
    restoring: Restoring,
    now_ms: i64,
) -> Result<Origin> {
    let noted_ns = read_meta(db, CREATED)?;
    let differs = created_ns
        .zip(noted_ns)
        .is_some_and(|(now, then)| now != then);
    let begins_anew = is_declared || differs;
    if begins_anew {
        reset_fleet_state(db, restoring, now_ms)?;
    }
    if created_ns != noted_ns {
        store_meta(db, CREATED, created_ns)?;
    }
    Ok(Origin {
        begins_anew,
        is_copy: differs && !is_declared,
        quiet_until_ms: read_meta(db, QUIET)?.map_or(0, |left_ms| now_ms + left_ms),
    })
}

/// Forgets that the file is a copy. Called when it has applied the whole journal, so that it lacks nothing.
pub fn unmark_copy(db: &Connection) -> Result<()> {
    for name in [MARK, CREATED] {
        store_meta(db, name, None)?;
    }
    Ok(())
}

fn read_meta(db: &Connection, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE name = ?1";
    db.query_row(sql, [name], |row| row.get(0)).optional()
}

/// The file's creation time; `None` if the file system does not keep it.
fn created_ns(path: &Path) -> Option<i64> {
    let created = std::fs::metadata(path)
        .and_then(|file| file.created())
        .ok()?;
    let since = created.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

pub(super) fn store_meta(db: &Connection, name: &str, value: Option<i64>) -> Result<usize> {
    match value {
        Some(value) => {
            let sql = "INSERT OR REPLACE INTO meta VALUES (?1, ?2)";
            db.execute(sql, params![name, value])
        }
        None => db.execute("DELETE FROM meta WHERE name = ?1", [name]),
    }
}

/// Removes the former supervisors. Their leases have no holder then, and are taken back when the dispatcher restores
/// them.
fn reset_fleet_state(db: &Connection, restoring: Restoring, now_ms: i64) -> Result<()> {
    let quiet_ms = quiet_ms(db, restoring)?;
    db.execute("DELETE FROM supervisors", [])?;
    db.execute(
        "UPDATE sites SET last_start_ms = ?1,
             due_at_ms = max(due_at_ms, ?1 + coalesce(rule_delay_ms, delay_ms, ?2))",
        params![now_ms + quiet_ms, restoring.default_delay_ms],
    )?;
    store_meta(db, QUIET, (quiet_ms > 0).then_some(quiet_ms))?;
    store_meta(db, MARK, None)?;
    Ok(())
}

/// How long tasks of the former fleet may be in flight.
fn quiet_ms(db: &Connection, restoring: Restoring) -> Result<i64> {
    let sql = "SELECT coalesce(max(longest_request_ms), 0) FROM supervisors";
    let known_ms: i64 = db.query_row(sql, [], |row| row.get(0))?;
    let longest_request_ms = known_ms.max(restoring.longest_request_ms as i64);
    Ok(restoring.lease_ms as i64 + CLOCK_SLACK_MS + longest_request_ms)
}

/// Copies the frontier of a state folder into another folder, as of one commit. A dispatcher may use the frontier
/// meanwhile. The copy is on disk when this returns. It is marked, so that no dispatcher mistakes it for its own
/// file.
pub(super) fn back_up(
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
    let db = Connection::open_with_flags(&path, flags)
        .map_err(|source| FrontierError::opening(&path, source))?;
    schema::check_format(&db, &path)?;
    schema::create_private_file(&unfinished);
    db.execute("VACUUM INTO ?1", [text]).map_err(fault)?;
    let marked =
        Connection::open(&unfinished).and_then(|copy| store_meta(&copy, MARK, Some(now_ms)));
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    fn restoring(backups: Backups) -> Restoring {
        Restoring {
            lease_ms: 10_000,
            longest_request_ms: 40_000,
            default_delay_ms: 0,
            backups,
        }
    }

    fn open_database() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let db = schema::open(&path, &super::super::FrontierConfig::default()).unwrap();
        (folder, db)
    }

    #[test]
    fn a_file_is_a_copy_if_it_was_created_at_another_time_than_noted() {
        let (_folder, db) = open_database();
        let adopted = |created_ns| {
            let restoring = restoring(Backups::Refused);
            adopt_if_copied(&db, created_ns, false, restoring, NOW_MS)
                .unwrap()
                .is_copy
        };
        assert!(!adopted(Some(1)), "it is new");
        assert!(!adopted(Some(1)), "it is where it was");
        assert!(adopted(Some(2)), "it was created later");
        assert!(!adopted(Some(2)), "it is known by now");
        assert!(adopted(Some(1)), "it was created earlier");
        assert!(!adopted(None), "its file system does not say");
        assert!(!adopted(Some(3)), "nothing is known of the time before");
        assert!(adopted(Some(4)));
    }

    #[test]
    fn the_wait_is_for_the_longest_request_of_all_supervisors_that_are_known() {
        let (_folder, db) = open_database();
        let wait_ms = |backups| quiet_ms(&db, restoring(backups)).unwrap();
        assert_eq!(wait_ms(Backups::Declared), 51_000);
        let add = "INSERT INTO supervisors VALUES ('patient', 1, 300000, 0)";
        db.execute(add, []).unwrap();
        assert_eq!(wait_ms(Backups::Declared), 311_000);
        assert_eq!(wait_ms(Backups::Refused), 311_000);
        assert_eq!(wait_ms(Backups::Taken), 311_000);
    }
}
