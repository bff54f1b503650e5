//! Writes files in a folder of keys. Files that root creates there belong to the owner of the dispatcher's secret key.
//! Without such a key, they belong to the folder's owner. So the dispatcher's user can read and change them later.
//! Existing files keep their owner.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use serde_json::{Value, json};
use webfill_service::{Fault, is_root};
use webfill_store::iso_time;

use crate::feeding::now_ms;
use crate::keys::{DISPATCHER, KeyFolder};

/// Writes a file that must not exist yet. If writing fails, the incomplete file is removed.
pub(super) fn create_new_file(path: &Path, text: &str, mode: u32) -> Result<(), Fault> {
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(mode)
        .open(path)
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists_fault(path),
            _ => cannot_write(path, &error),
        })?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| give_to_owner_of_keys(&file, path))
        .and_then(|()| file.sync_all());
    written.map_err(|error| {
        let _ = fs::remove_file(path);
        cannot_write(path, &error)
    })
}

pub(super) fn exists_fault(path: &Path) -> Fault {
    Fault::usage(format!(
        "{} exists, and keys are never overwritten: move it away to create a new one",
        path.display()
    ))
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Fault {
    Fault::usage(format!("cannot write {}: {error}", path.display()))
}

/// Adds a line to the folder's audit log. It is on disk when this returns.
pub(super) fn append_to_audit_log(folder: &KeyFolder, audited: &Value) -> Result<(), Fault> {
    let path = folder.audit_file();
    let mut line = json!({"timestamp": iso_time(now_ms()), "who": user_name(), "by": "user", "result": "done"});
    if let (Value::Object(line), Value::Object(audited)) = (&mut line, audited) {
        line.extend(audited.clone());
    }
    open_audit(&path)
        .and_then(|mut file| {
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_all()
        })
        .map_err(|error| cannot_write(&path, &error))
}

/// Opens the audit log. The folder may belong to another user, who must not make root write elsewhere. So if that user
/// has replaced the log by a link, the link is not followed. An existing log is opened without O_CREAT. With it, the
/// kernel would refuse root another user's file in a sticky folder (`fs.protected_regular`).
fn open_audit(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .mode(0o640)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let file = options.create_new(true).open(path)?;
            give_to_owner_of_keys(&file, path)?;
            Ok(file)
        }
        opened => {
            let file = opened?;
            require_single_link(&file)?;
            Ok(file)
        }
    }
}

fn require_single_link(file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    match found.is_file() && found.nlink() == 1 {
        true => Ok(()),
        false => Err(io::Error::other("it is not a file of this folder alone")),
    }
}

/// Gives a newly created file to the owner of the keys.
fn give_to_owner_of_keys(file: &File, path: &Path) -> io::Result<()> {
    if !is_root() {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let secret = fs::symlink_metadata(KeyFolder::new(folder).secret_file(DISPATCHER));
    let whose = match secret.ok().filter(Metadata::is_file) {
        Some(secret) => secret,
        None => fs::metadata(folder)?,
    };
    fchown(file, Some(whose.uid()), Some(whose.gid()))
}

/// Gives a new file the owner and the mode of the file that it will replace, so that the same users can read it.
pub(super) fn copy_owner_and_mode(new: &Path, present: &Path) -> io::Result<()> {
    let present = match fs::symlink_metadata(present) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(new)?;
    require_single_link(&file)?;
    let found = file.metadata()?;
    let owner = |of: &Metadata| (of.uid(), of.gid());
    if is_root() && owner(&found) != owner(&present) {
        fchown(&file, Some(present.uid()), Some(present.gid()))?;
    }
    if found.mode() != present.mode() {
        file.set_permissions(present.permissions())?;
    }
    Ok(())
}

/// The name of the user who runs this process, or the number if the name is unknown; under `sudo`, both users.
fn user_name() -> String {
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
