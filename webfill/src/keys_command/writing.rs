//! Writes into a folder of keys. What root writes there belongs to the folder's owner, so that the user of
//! the dispatcher can read and change it later.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use serde_json::{Value, json};
use webfill_startup::{Fault, is_root};
use webfill_store::iso_time;

use crate::feeding::now_ms;
use crate::keys::KeyFolder;

/// Writes a file that must not exist yet. An incomplete file is removed.
pub(super) fn create(path: &Path, text: &str, mode: u32) -> Result<(), Fault> {
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(mode)
        .open(path)
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(path),
            _ => cannot_write(path, &error),
        })?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| give_to_owner_of_folder(&file, path))
        .and_then(|()| file.sync_all());
    written.map_err(|error| {
        let _ = fs::remove_file(path);
        cannot_write(path, &error)
    })
}

pub(super) fn exists(path: &Path) -> Fault {
    Fault::usage(format!(
        "{} exists, and keys are never overwritten: move it away to make a new one",
        path.display()
    ))
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Fault {
    Fault::usage(format!("cannot write {}: {error}", path.display()))
}

/// Adds a line to the folder's audit log. It is on the disk when this returns.
pub(super) fn audit(folder: &KeyFolder, deed: &Value) -> Result<(), Fault> {
    let path = folder.audit_file();
    let mut line =
        json!({"timestamp": iso_time(now_ms()), "who": user(), "by": "user", "result": "done"});
    if let (Value::Object(line), Value::Object(deed)) = (&mut line, deed) {
        line.extend(deed.clone());
    }
    open_audit(&path)
        .and_then(|mut file| {
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_all()
        })
        .map_err(|error| cannot_write(&path, &error))
}

/// The folder may belong to a user whom root must not write elsewhere for: what that user has put in the
/// place of the log, a link to another file, is not followed.
fn open_audit(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o640)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.nlink() != 1 {
        return Err(io::Error::other("it is not a file of this folder alone"));
    }
    give_to_owner_of_folder(&file, path)?;
    Ok(file)
}

fn give_to_owner_of_folder(file: &File, path: &Path) -> io::Result<()> {
    if !is_root() {
        return Ok(());
    }
    let folder = fs::metadata(path.parent().unwrap_or(Path::new(".")))?;
    let owner = |of: &Metadata| (of.uid(), of.gid());
    if owner(&file.metadata()?) == owner(&folder) {
        return Ok(());
    }
    fchown(file, Some(folder.uid()), Some(folder.gid()))
}

/// The user who runs this process, by name if the machine knows one; behind `sudo`, both users.
fn user() -> String {
    let uid = fs::metadata("/proc/self").map_or(u32::MAX, |process| process.uid());
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    let user = named.unwrap_or_else(|| uid.to_string());
    match std::env::var("SUDO_USER") {
        Ok(behind) if behind != user => format!("{user}, for {behind}"),
        _ => user,
    }
}
