//! The crash marker: a small file that names the task whose page a worker is extracting.
//!
//! If the worker dies meanwhile (a stack overflow, the out-of-memory killer), its supervisor reads the file and blames
//! that task; the worker's other tasks are given back without blame. The file holds one `u64`: the task's number, or 0
//! between two pages. It is written with one system call per page and never synced. The page cache survives the death
//! of a process, and after a crash of the machine the file is not read.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use webfill_service::state::PRIVATE;

/// The crash marker of one worker, in the folder of its supervisor's sockets.
pub fn marker_path(sockets: &Path, worker_index: u16) -> PathBuf {
    sockets.join(format!("worker-{worker_index}.crash-marker"))
}

/// The worker's side: writes the file.
pub struct CrashMarker {
    file: File,
}

impl CrashMarker {
    pub fn create(path: &Path) -> io::Result<CrashMarker> {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(PRIVATE)
            .open(path)?;
        Ok(CrashMarker { file })
    }

    /// Names the task that is to blame if the process dies from now on.
    pub fn set(&self, task: u64) {
        self.write(task);
    }

    /// Clears the file: if the process dies from now on, no task is blamed.
    pub fn clear(&self) {
        self.write(0);
    }

    fn write(&self, task: u64) {
        if let Err(error) = self.file.write_all_at(&task.to_ne_bytes(), 0) {
            // If the worker dies now, its task is given back without blame.
            tracing::warn!(event = "crash_marker_not_written", %error, "cannot write the crash marker");
        }
    }
}

/// The supervisor's side: reads the file after a death. `None` if no page was being extracted.
pub fn read(path: &Path) -> Option<u64> {
    let bytes = std::fs::read(path).ok()?;
    let task = u64::from_ne_bytes(bytes.try_into().ok()?);
    (task != 0).then_some(task)
}
