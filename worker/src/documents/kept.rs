//! Keeps documents in a folder. The folder holds each content once, in a file named after its SHA-256, two folder
//! levels deep. A file with such a name is complete and on disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;
use webfill_service::Fault;

/// Keeps a document, unless it is there already.
pub(super) fn save_document(folder: &Path, sha256: &str, body: &[u8]) -> Result<(), Fault> {
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
        // The file is there, but the process that wrote it may not have synced the folder yet.
        return sync_folder(&lower);
    }
    fs::create_dir_all(&lower)?;
    sync_folder(folder)?;
    sync_folder(&upper)?;
    // The name is random, because other machines may write the same document into the same folder.
    let names = || lower.join(format!("{sha256}.{}.part", Uuid::new_v4().simple()));
    let (unfinished, created) = create_new(names)?;
    let written = write_synced(created, body).and_then(|()| fs::rename(&unfinished, &file));
    if written.is_err() {
        // If the file cannot be removed, nothing is reported: the returned error already reports the failed write.
        let _ = fs::remove_file(&unfinished);
    }
    written?;
    sync_folder(&lower)
}

/// Creates a file under the first free name.
fn create_new(mut names: impl FnMut() -> PathBuf) -> io::Result<(PathBuf, File)> {
    loop {
        let name = names();
        match File::create_new(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_synced(mut file: File, body: &[u8]) -> io::Result<()> {
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
        save_document(folder.path(), &name, b"content").unwrap();
        let file = folder.path().join("ab/ab").join(&name);
        let written = fs::metadata(&file).unwrap().modified().unwrap();
        save_document(folder.path(), &name, b"content").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"content");
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
        let files = fs::read_dir(folder.path().join("ab/ab")).unwrap();
        assert_eq!(files.count(), 1, "nothing unfinished is left");
    }

    #[test]
    fn files_that_another_machine_is_writing_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [taken, free] = ["taken", "free"].map(|name| folder.path().join(name));
        fs::write(&taken, "half of").unwrap();
        let mut names = [taken.clone(), free.clone()].into_iter();
        let (name, file) = create_new(|| names.next().unwrap()).unwrap();
        write_synced(file, b"whole").unwrap();
        assert_eq!(name, free);
        assert_eq!(fs::read(taken).unwrap(), b"half of");
        assert_eq!(fs::read(free).unwrap(), b"whole");
    }

    #[test]
    fn a_file_in_place_of_a_folder_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ab"), "a file").unwrap();
        let fault = save_document(folder.path(), &"ab".repeat(32), b"x").unwrap_err();
        assert!(fault.message.contains("cannot write a document in"));
    }
}
