//! Copies a file while others write to it.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::fault::{Fault, store_error, store_name};
use crate::error::StoreError;

/// Copies the file, as of one commit, into a folder under its own name. The copy is on disk when this returns.
pub(crate) fn back_up(path: &Path, into: &Path) -> Result<PathBuf, StoreError> {
    let refused = |fault| store_error(&store_name(path), fault);
    let name = path.file_name().unwrap_or(path.as_os_str());
    let (copy, unfinished) = (into.join(name), into.join("unfinished"));
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copied = Connection::open_with_flags(path, flags)
        .and_then(|db| db.execute("VACUUM INTO ?1", [unfinished.display().to_string()]));
    copied.map_err(|error| refused(Fault::Sql(error)))?;
    let kept = std::fs::File::open(&unfinished)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(&unfinished, &copy))
        .and_then(|()| std::fs::File::open(into)?.sync_all());
    kept.map_err(|error| {
        refused(Fault::Unusable(format!(
            "cannot write {}: {error}",
            copy.display()
        )))
    })?;
    Ok(copy)
}
