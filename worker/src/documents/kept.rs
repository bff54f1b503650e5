//! The folder of documents: each content is there once, in a file named after its SHA-256, two levels of
//! folders deep. A file that has its name is complete and on the disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use webfill_startup::Fault;

/// Tells the unfinished files of this process apart.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// Keeps a document, unless it is there already.
pub(super) fn keep(folder: &Path, sha256: &str, body: &[u8]) -> Result<(), Fault> {
    write(folder, sha256, body).map_err(|error| {
        let folder = folder.display();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Fault::fatal(format!(
                "no space left for documents in {folder}: free some and run the same command again"
            )),
            _ => Fault::fatal(format!(
                "cannot write a document in {folder}: {error}; see to it and run the same command again"
            )),
        }
    })
}

fn write(folder: &Path, sha256: &str, body: &[u8]) -> io::Result<()> {
    let upper = folder.join(&sha256[..2]);
    let lower = upper.join(&sha256[2..4]);
    let file = lower.join(sha256);
    if file.exists() {
        // Who wrote it may not have come to this yet.
        return sync_folder(&lower);
    }
    fs::create_dir_all(&lower)?;
    sync_folder(folder)?;
    sync_folder(&upper)?;
    let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
    let unfinished = lower.join(format!("{sha256}.{}-{number}.part", std::process::id()));
    let written = write_synced(&unfinished, body).and_then(|()| fs::rename(&unfinished, &file));
    if written.is_err() {
        // What cannot be removed is told by the error that is returned.
        let _ = fs::remove_file(&unfinished);
    }
    written?;
    sync_folder(&lower)
}

fn write_synced(path: &Path, body: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(body)?;
    file.sync_all()
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_kept_once_under_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let name = "ab".repeat(32);
        keep(folder.path(), &name, b"content").unwrap();
        let file = folder.path().join("ab/ab").join(&name);
        let written = fs::metadata(&file).unwrap().modified().unwrap();
        keep(folder.path(), &name, b"content").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"content");
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
        let files = fs::read_dir(folder.path().join("ab/ab")).unwrap();
        assert_eq!(files.count(), 1, "nothing unfinished is left");
    }

    #[test]
    fn a_folder_that_is_none_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ab"), "a file").unwrap();
        let fault = keep(folder.path(), &"ab".repeat(32), b"x").unwrap_err();
        assert!(fault.message.contains("cannot write a document in"));
    }
}
