//! Atomic file writes: a file is written whole or not at all, even if the power fails.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::state::PRIVATE;

/// Writes a file under a hidden name in the same folder, which must exist, and renames it once it is on disk. When
/// this returns, the name is on disk, too.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    write_with_mode(path, content, 0o666)
}

/// Like [`write_whole`], for a file in a state folder, which is private.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    write_with_mode(path, content, PRIVATE)
}

fn write_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.part-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(mode);
    let written = options.open(&part).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&part, path));
    if renamed.is_err() {
        // The partial file is of no use, and only the first error is reported.
        let _ = fs::remove_file(&part);
        return renamed;
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
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
        // A folder already has the new name, so the rename fails.
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
}
