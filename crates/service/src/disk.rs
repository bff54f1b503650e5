//! The free space on the disks that a process writes to. If it is less than the limit, the process pauses, and resumes
//! by itself when there is space again.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How often the disks are checked.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Settings: how much space must stay free on disks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskConfig {
    /// A process pauses while a disk that it writes to has fewer free MiB than this; 0 turns the check off.
    pub floor_mib: u64,
}

impl Default for DiskConfig {
    fn default() -> Self {
        DiskConfig { floor_mib: 128 }
    }
}

/// A disk with too little free space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    pub folder: PathBuf,
    pub free_mib: u64,
    pub floor_mib: u64,
}

impl fmt::Display for Shortage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} MiB are left on the disk of {}, less than disk.floor_mib = {}",
            self.free_mib,
            self.folder.display(),
            self.floor_mib
        )
    }
}

/// The disks that a process writes to. They are checked every [`CHECK_EVERY`].
#[derive(Debug)]
pub struct Disks {
    folders: Vec<PathBuf>,
    floor_mib: u64,
    next_check: Instant,
    shortage: Option<Shortage>,
}

impl Disks {
    pub fn new(folders: Vec<PathBuf>, config: &DiskConfig) -> Disks {
        Disks {
            folders,
            floor_mib: config.floor_mib,
            next_check: Instant::now(),
            shortage: None,
        }
    }

    /// Returns the disk with too little space, if there is one; the disks are checked if a check is due. Reports on
    /// standard error and in the log when the process must pause and when it resumes.
    pub fn check_shortage(&mut self) -> Option<&Shortage> {
        let now = Instant::now();
        if self.floor_mib > 0 && now >= self.next_check {
            self.next_check = now + CHECK_EVERY;
            let found = self.find_shortage();
            self.report_change(found.as_ref());
            self.shortage = found;
        }
        self.shortage.as_ref()
    }

    /// The folders whose disks are checked.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    fn find_shortage(&self) -> Option<Shortage> {
        // A paused process resumes only when there is a quarter more space than the limit, so that it does not pause
        // again immediately.
        let least_mib = match self.shortage {
            Some(_) => self.floor_mib + self.floor_mib / 4,
            None => self.floor_mib,
        };
        self.folders.iter().find_map(|folder| {
            let free_mib = FreeSpace::of(folder)?.free_bytes >> 20;
            (free_mib < least_mib).then(|| Shortage {
                folder: folder.clone(),
                free_mib,
                floor_mib: self.floor_mib,
            })
        })
    }

    fn report_change(&self, found: Option<&Shortage>) {
        match (&self.shortage, found) {
            (None, Some(shortage)) => {
                crate::say!("paused: {shortage}");
                tracing::warn!(event = "disk_low", folder = %shortage.folder.display(), free_mib = shortage.free_mib, "paused: too little room on a disk");
            }
            (Some(_), None) => {
                crate::say!("resumed: the disk has space again");
                tracing::info!(
                    event = "disk_has_space",
                    "resumed: the disk has space again"
                );
            }
            _ => {}
        }
    }
}

/// Whether a write failed because the disk, or this user's quota of it, is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// The space on a disk, as this user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// The space that this user may still write.
    pub free_bytes: u64,
    pub size_bytes: u64,
}

impl FreeSpace {
    /// The space on the disk of a folder; `None` if unknown, for example because the folder does not exist yet.
    pub fn of(folder: &Path) -> Option<FreeSpace> {
        let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
        // SAFETY: this struct contains only numbers, and zero bytes are valid for them.
        #[allow(unsafe_code)]
        let mut stats: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: the path ends with a zero byte, and the kernel fills in the given struct.
        #[allow(unsafe_code)]
        let result = unsafe { libc::statvfs(path.as_ptr(), &raw mut stats) };
        let bytes = |blocks: u64| blocks.saturating_mul(stats.f_frsize);
        (result == 0).then(|| FreeSpace {
            free_bytes: bytes(stats.f_bavail),
            size_bytes: bytes(stats.f_blocks),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disks(floor_mib: u64) -> Disks {
        let folders = vec!["/no/such/folder".into(), std::env::temp_dir()];
        Disks::new(folders, &DiskConfig { floor_mib })
    }

    #[test]
    fn a_disk_below_the_floor_is_reported() {
        assert_eq!(disks(0).check_shortage(), None);
        assert_eq!(
            disks(1).check_shortage(),
            None,
            "this machine's disk is full"
        );
        let mut disks = disks(1 << 40);
        let sentence = disks
            .check_shortage()
            .expect("no disk is as large")
            .to_string();
        assert!(
            sentence.contains("disk.floor_mib = 1099511627776"),
            "{sentence}"
        );
        assert!(
            disks.check_shortage().is_some(),
            "it is remembered between checks"
        );
    }
}
