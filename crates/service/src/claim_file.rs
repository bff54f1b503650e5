//! A file that says when the claim of `webfill crawl` to its crawl ends. `webfill crawl` writes it into the state
//! folder, and its supervisor reads it. If `webfill crawl` hangs, another process may take over the crawl; the file
//! then tells the supervisor to stop requests.
//!
//! The time is in milliseconds of the [clock since boot](crate::boot_clock), as twenty digits. They are overwritten in
//! place, so the file always has the same length.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const NAME: &str = "claim";

/// The file with the end of a claim; see the documentation of the module.
#[derive(Debug, Clone)]
pub struct ClaimFile {
    path: PathBuf,
}

impl ClaimFile {
    pub fn in_folder(state: &Path) -> ClaimFile {
        ClaimFile {
            path: state.join(NAME),
        }
    }

    pub fn write(&self, until_ms: u64) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(crate::state::PRIVATE)
            .open(&self.path)?;
        file.write_all_at(format!("{until_ms:020}").as_bytes(), 0)
    }

    /// Reads when the claim ends; `None` if the file cannot be read or is incomplete.
    pub fn read(&self) -> Option<u64> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        (text.len() == 20).then(|| text.parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = ClaimFile::in_folder(folder.path());
        assert_eq!(file.read(), None);
        for until_ms in [12_345, 0, u64::MAX] {
            file.write(until_ms).unwrap();
            assert_eq!(file.read(), Some(until_ms));
        }
        std::fs::write(folder.path().join(NAME), "123").unwrap();
        assert_eq!(file.read(), None);
    }
}
