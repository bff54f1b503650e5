//! Runs as versions before 7 of the file stored them: slices in a table of the database.

use std::path::Path;

use rusqlite::{Connection, Result};

use super::runs::{Entry, NewRun, delete_others};
use super::slices::{Layout, Slice, Widths};

/// A run of the table `older_seen_runs`.
struct OlderRun {
    id: i64,
    slices: u64,
    keys: u64,
    last_task: u64,
    packed: bool,
}

/// Writes the runs of the older tables to files. If it fails, none is left.
pub(crate) fn move_to_files(db: &Connection, folder: &Path) -> Result<()> {
    // What an attempt before this one may have left, if it was killed.
    delete_others(folder, &[]);
    move_all(db, folder).inspect_err(|_| delete_others(folder, &[]))
}

fn move_all(db: &Connection, folder: &Path) -> Result<()> {
    let sql = "SELECT id, slices, keys, last_task, packed FROM older_seen_runs
               WHERE state = 'live' ORDER BY id";
    let older: Vec<OlderRun> = db
        .prepare(sql)?
        .query_map([], |row| {
            Ok(OlderRun {
                id: row.get(0)?,
                slices: row.get::<_, i64>(1)? as u64,
                keys: row.get::<_, i64>(2)? as u64,
                last_task: row.get::<_, i64>(3)? as u64,
                packed: row.get(4)?,
            })
        })?
        .collect::<Result<_>>()?;
    older
        .iter()
        .try_for_each(|run| move_to_file(db, folder, run))
}

fn move_to_file(db: &Connection, folder: &Path, older: &OlderRun) -> Result<()> {
    let layout = Layout::new(older.slices, older.last_task);
    let mut run = NewRun::begin(db, folder, older.keys, older.last_task)?;
    let sql =
        "SELECT id - ?1, entries FROM seen_slices WHERE id >= ?1 AND id < ?1 + ?2 ORDER BY id";
    let mut select = db.prepare(sql)?;
    let mut rows = select.query([older.id << 32, older.slices as i64])?;
    // Its slices may be others: what belongs to the last one so far may go on in the next row.
    let mut entries: Vec<Entry> = Vec::new();
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(1)?.as_blob()?;
        let slice = match older.packed {
            true => {
                let count = bytes.len() / layout.widths.entry();
                layout.slice(row.get::<_, i64>(0)? as u64, count, bytes)
            }
            false => unpacked(bytes),
        };
        entries.extend(slice.entries());
        let complete = entries.last().map_or(0, |last| run.slice_of(last.0));
        let ready = entries.partition_point(|entry| run.slice_of(entry.0) < complete);
        run.write(&entries[..ready])?;
        entries.drain(..ready);
    }
    run.write(&entries)?;
    run.finish(db)?;
    Ok(())
}

/// Keys of eight bytes, tasks of five.
fn unpacked(bytes: &[u8]) -> Slice<'_> {
    let widths = Widths { key: 8, task: 5 };
    Slice {
        bytes,
        count: bytes.len() / widths.entry(),
        base: 0,
        widths,
    }
}
