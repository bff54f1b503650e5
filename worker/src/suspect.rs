//! Names the page that a worker works on in a small file, so that the supervisor knows whom to
//! blame should the worker die of it. A system call per page, which a crash cannot undo.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The file of one worker slot.
pub fn path(sockets: &Path, slot: u16) -> PathBuf {
    sockets.join(format!("worker-{slot}.suspect"))
}

/// Written by the worker.
pub struct Suspect {
    file: File,
}

impl Suspect {
    pub fn create(path: &Path) -> io::Result<Suspect> {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(path)?;
        Ok(Suspect { file })
    }

    /// From now on a death is to be blamed on this task.
    pub fn name(&self, task: u64) {
        self.write(task);
    }

    /// The task is through.
    pub fn clear(&self) {
        self.write(0);
    }

    fn write(&self, task: u64) {
        if let Err(error) = self.file.write_all_at(&task.to_ne_bytes(), 0) {
            // Only blame is lost: the task is given back all the same.
            tracing::warn!(event = "suspect_not_written", %error, "cannot name the current page");
        }
    }
}

/// Read by the supervisor after a death: the task that the worker was working on.
pub fn read(path: &Path) -> Option<u64> {
    let bytes = std::fs::read(path).ok()?;
    let task = u64::from_ne_bytes(bytes.try_into().ok()?);
    (task != 0).then_some(task)
}
