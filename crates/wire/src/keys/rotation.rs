//! Files with the next and the former public key of a dispatcher. They are in its key folder while its key is replaced.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long after one of the files appears callers with another key are assumed not to have the new key yet. Without
/// this limit, strangers could try forever if the file is never removed.
const LASTS: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The paths of the next and the former public key, which exist only while the dispatcher's key is replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RotationFiles(Vec<PathBuf>);

impl RotationFiles {
    pub fn new(files: Vec<PathBuf>) -> RotationFiles {
        RotationFiles(files)
    }

    /// The files that exist.
    pub fn existing_files(&self) -> impl Iterator<Item = &Path> {
        self.0
            .iter()
            .map(PathBuf::as_path)
            .filter(|file| file.exists())
    }

    /// Whether one of the files appeared less than a week ago.
    pub(crate) fn is_recent(&self, now: SystemTime) -> bool {
        let came = self.0.iter().filter_map(|file| appeared_at(file));
        came.max()
            .is_some_and(|came| match now.duration_since(came) {
                Ok(age) => age < LASTS,
                // The file seems to come from the future, because it was created when the clock was ahead.
                Err(_) => true,
            })
    }
}

/// When the file appeared: the time of the last change of its metadata. The modification time would be too old, because
/// a key that is renamed keeps it.
fn appeared_at(file: &Path) -> Option<SystemTime> {
    let seconds = std::fs::metadata(file).ok()?.ctime();
    Some(UNIX_EPOCH + Duration::from_secs(seconds.max(0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_as_recent_for_a_week() {
        let folder = tempfile::tempdir().unwrap();
        let [next, former] = ["next", "former"].map(|name| folder.path().join(name));
        let files = RotationFiles::new(vec![next, former.clone()]);
        let day = Duration::from_secs(24 * 3_600);
        let now = SystemTime::now();
        assert!(!files.is_recent(now));
        let written = std::fs::File::create(&former).unwrap();
        // The key was written long ago, but its file was renamed just now.
        written.set_modified(now - 400 * day).unwrap();
        assert!(files.is_recent(now));
        assert!(files.is_recent(now + 6 * day));
        assert!(!files.is_recent(now + 8 * day));
        assert_eq!(files.existing_files().collect::<Vec<_>>(), [former]);
    }
}
