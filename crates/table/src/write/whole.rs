//! A file that is written completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file with a hidden temporary name in the same folder until [`AtomicFile::persist`] renames it. If it is dropped
/// before, it is removed. A killed process leaves the temporary file, and the next run overwrites it.
pub(crate) struct AtomicFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
    is_whole: bool,
}

impl AtomicFile {
    pub(crate) fn create(path: &Path) -> io::Result<AtomicFile> {
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
        let part = path.with_file_name(format!(".{}.part", name.to_string_lossy()));
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&part)?;
        file.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing it")
            }
            fs::TryLockError::Error(error) => error,
        })?;
        file.set_len(0)?;
        Ok(AtomicFile {
            file,
            part,
            path: path.to_owned(),
            is_whole: false,
        })
    }

    /// Renames the file once all of it is on disk.
    pub(crate) fn persist(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.part, &self.path)?;
        self.is_whole = true;
        let folder = self.path.parent().filter(|folder| *folder != Path::new(""));
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // The error is ignored: the error that led here is reported, and the next run overwrites the file.
            let _ = fs::remove_file(&self.part);
        }
    }
}
