//! The files of the audit log: `audit.DATE.log`; `audit.log` links to the newest, as for every log. Unlike in other
//! logs, a line is in the file as soon as [`AuditFile::write`] returns, and the log level does not matter.
//!
//! The last lines may be replaced. A caller that sums up the events of a second writes the sums so far, and the next
//! write replaces them by greater sums. So the file contains the latest sums even if the process is killed.
//!
//! Actions that dashboards carry out themselves are in a separate file, which several processes may append to
//! ([`add_to_dashboard_audit`]).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::state::PRIVATE;

use super::file::{
    FilePosition, file_name, link_newest_and_prune, list_log_files, next_position,
    position_for_today,
};

/// The name of the log.
const NAME: &str = "audit";

/// The file of the audit log that is being written.
#[derive(Debug)]
pub struct AuditFile {
    folder: PathBuf,
    max_bytes: u64,
    keep: usize,
    place: FilePosition,
    file: File,
    /// The offset in the file of the lines that may still be replaced.
    settled: u64,
    /// The length in bytes of the lines that may still be replaced.
    open: u64,
}

impl AuditFile {
    /// Opens the audit log. Continues the newest file of today, if there is one.
    pub fn open(folder: &Path, max_mib: u64, keep: usize) -> io::Result<AuditFile> {
        std::fs::create_dir_all(folder)?;
        let place = position_for_today(folder, NAME)?;
        let (file, settled) = open_at_end(&folder.join(file_name(NAME, place)))?;
        link_newest_and_prune(folder, NAME, place, keep.max(1));
        Ok(AuditFile {
            folder: folder.to_owned(),
            max_bytes: max_mib << 20,
            keep: keep.max(1),
            place,
            file,
            settled,
            open: 0,
        })
    }

    /// Writes final lines, and after them lines that the next call replaces. With `sync`, all are on disk when this
    /// returns. After an error, nothing counts as written.
    pub fn write(&mut self, lines: &[u8], open: &[u8], sync: bool) -> io::Result<()> {
        let both = [lines, open].concat();
        self.file.write_all_at(&both, self.settled)?;
        if sync {
            self.file.sync_data()?;
        }
        self.settled += lines.len() as u64;
        self.open = open.len() as u64;
        Ok(())
    }

    /// Makes the last lines final, and begins a new file if this one is full or from an earlier day. After an error,
    /// nothing has changed: the last lines may still be replaced.
    pub fn finish_open_lines(&mut self) -> io::Result<()> {
        let settled = self.settled + self.open;
        let place = next_position(self.place, settled >= self.max_bytes);
        if place == self.place {
            (self.settled, self.open) = (settled, 0);
            return Ok(());
        }
        let (file, settled) = open_at_end(&self.folder.join(file_name(NAME, place)))?;
        (self.file, self.settled, self.open, self.place) = (file, settled, 0, place);
        link_newest_and_prune(&self.folder, NAME, place, self.keep);
        Ok(())
    }
}

/// The files of the audit log in a folder, oldest first.
pub fn audit_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let found = list_log_files(folder, NAME)?;
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The path of the file for actions that dashboards carry out themselves, without a dispatcher.
pub fn dashboard_audit_file(folder: &Path) -> PathBuf {
    folder.join("dashboard-audit.log")
}

/// Appends a line to the dashboards' audit file. The line is on disk when this returns.
pub fn add_to_dashboard_audit(folder: &Path, line: &str) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(PRIVATE)
        .open(dashboard_audit_file(folder))?;
    // The line is written at once, so that the lines of two processes do not mix.
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
}

/// Opens a file at its end. If its last line was cut off by a loss of power, the line is ended first.
fn open_at_end(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(PRIVATE)
        .open(path)?;
    let end = file.seek(SeekFrom::End(0))?;
    if end == 0 {
        return Ok((file, 0));
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(end - 1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok((file, end));
    }
    file.write_all_at(b"\n", end)?;
    Ok((file, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = format!("webfill-audit-{name}-{}", std::process::id());
            Folder(std::env::temp_dir().join(folder))
        }

        fn read_log(&self) -> String {
            std::fs::read_to_string(self.0.join("audit.log")).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn open_lines_replace_the_open_lines_before_them() {
        let folder = Folder::new("open");
        let mut audit = AuditFile::open(&folder.0, 1, 3).unwrap();
        audit.write(b"", b"fed 1\n", false).unwrap();
        assert_eq!(folder.read_log(), "fed 1\n");
        audit.write(b"stop\n", b"fed 20\n", true).unwrap();
        assert_eq!(folder.read_log(), "stop\nfed 20\n");
        audit.finish_open_lines().unwrap();
        audit.write(b"drain\n", b"", true).unwrap();
        assert_eq!(folder.read_log(), "stop\nfed 20\ndrain\n");
        drop(audit);
        // Another process that opens the file later keeps the lines that it finds.
        let mut audit = AuditFile::open(&folder.0, 1, 3).unwrap();
        audit.write(b"", b"fed 3\n", false).unwrap();
        assert_eq!(folder.read_log(), "stop\nfed 20\ndrain\nfed 3\n");
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_spoil_the_next_one() {
        let folder = Folder::new("cut");
        let mut audit = AuditFile::open(&folder.0, 1, 3).unwrap();
        audit.write(b"one\ntw", b"", false).unwrap();
        drop(audit);
        let mut audit = AuditFile::open(&folder.0, 1, 3).unwrap();
        audit.write(b"three\n", b"", false).unwrap();
        assert_eq!(folder.read_log(), "one\ntw\nthree\n");
    }

    #[test]
    fn a_full_file_is_followed_by_another_and_few_are_kept() {
        let folder = Folder::new("full");
        let mut audit = AuditFile::open(&folder.0, 0, 2).unwrap();
        for line in ["a\n", "b\n", "c\n"] {
            audit.write(line.as_bytes(), b"", false).unwrap();
            audit.finish_open_lines().unwrap();
        }
        audit.write(b"d\n", b"", false).unwrap();
        let files = audit_files(&folder.0).unwrap();
        let texts = files
            .iter()
            .map(|file| std::fs::read_to_string(file).unwrap());
        assert_eq!(texts.collect::<Vec<_>>(), ["c\n", "d\n"]);
        assert_eq!(folder.read_log(), "d\n", "the link leads to the newest");
    }

    #[test]
    fn while_the_next_file_cannot_be_opened_the_last_lines_are_written_once() {
        let folder = Folder::new("failing");
        let mut audit = AuditFile::open(&folder.0, 0, 3).unwrap();
        audit.write(b"", b"fed 1\n", false).unwrap();
        let next = folder
            .0
            .join(file_name(NAME, next_position(audit.place, true)));
        std::fs::create_dir(&next).unwrap();
        for _ in 0..3 {
            audit.finish_open_lines().unwrap_err();
            audit.write(b"", b"fed 2\n", false).unwrap();
        }
        assert_eq!(folder.read_log(), "fed 2\n");
        std::fs::remove_dir(&next).unwrap();
        audit.finish_open_lines().unwrap();
        audit.write(b"stop\n", b"", false).unwrap();
        assert_eq!(folder.read_log(), "stop\n");
        let files = audit_files(&folder.0).unwrap();
        assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), "fed 2\n");
    }
}
