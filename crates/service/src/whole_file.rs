//! Atomic file writes: a file is written whole or not at all, even if the power fails.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::state::PRIVATE;

/// Writes a file under a hidden name in its folder, which must exist, and renames it as soon as it is on disk. When
/// this returns, the new name is on disk, too.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    write_with_mode(path, content, 0o666)
}

/// Like [`write_whole`], for a file in a state folder, which is private.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    write_with_mode(path, content, PRIVATE)
}

/// Like [`write_whole`], with content that is written piece by piece.
pub fn write_whole_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    write_part_and_rename(path, 0o666, write)
}

fn write_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write_part_and_rename(path, mode, |file| file.write_all(content))
}

fn write_part_and_rename(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let part = part_path(path);
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(mode);
    let written = options.open(&part).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&part, path));
    if renamed.is_err() {
        // The partial file is useless, so an error while removing it is ignored.
        let _ = fs::remove_file(&part);
        return renamed;
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The hidden name of a file while this process writes it.
pub fn part_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{PART}{}", std::process::id()))
}

const PART: &str = ".part-";

/// Removes the partial files that killed processes have left in a folder. Partial files of running processes stay, and
/// so do files with a final name where `is_ours` is false.
pub fn remove_remains(folder: &Path, is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let parts = name.to_str().and_then(split_part_name);
        if parts.is_some_and(|(name, process)| is_ours(name) && !is_running(process)) {
            // A file that cannot be removed only takes up space.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The final name of a partial file, and the id of the process that writes it.
fn split_part_name(name: &str) -> Option<(&str, u32)> {
    let (name, process) = name.strip_prefix('.')?.rsplit_once(PART)?;
    Some((name, process.parse().ok()?))
}

fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_whole(&path, b"old").unwrap();
        fs::create_dir(folder.path().join("b.json")).unwrap();
        // A folder has the new name, so the rename fails.
        write_whole(&folder.path().join("b.json"), b"new").unwrap_err();
        write_whole(&folder.path().join("none/a.json"), b"new").unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for text in ["old", "new"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_remains_of_ended_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let (ended, running) = (ended.id(), std::process::id());
        let kept = [
            format!(".a.csv.part-{running}"),
            format!(".b.csv.part-{ended}"),
            format!("a.csv.part-{ended}"),
            String::from(".a.csv.part-"),
            String::from("a.csv"),
        ];
        let removed = [format!(".a.csv.part-{ended}")];
        for name in kept.iter().chain(&removed) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        remove_remains(folder.path(), |name| name == "a.csv");
        let there = |name: &String| folder.path().join(name).exists();
        assert!(kept.iter().all(there) && !removed.iter().any(there));
    }
}
