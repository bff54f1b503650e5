//! Removes a server's files, about 100 MB, if the test process ends without dropping its server. This happens if the
//! process is killed, or if the server is in a static variable.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that removes the files when the test process ends or when this value is dropped.
pub(crate) struct Sweeper {
    /// The child process. It waits until the pipe is closed.
    process: Child,
}

impl Sweeper {
    pub(crate) fn start(folder: &Path) -> Sweeper {
        // The killed server may still be writing files, so the removal is repeated until it succeeds.
        let script = "cat; until rm -rf \"$1\"; do sleep 0.1; done";
        let process = Command::new("sh")
            .args(["-c", script, "sweeper"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // If a test is killed with its whole process group, the child must survive, so it gets its own group.
            .process_group(0)
            .spawn();
        Sweeper {
            process: process.expect("a shell"),
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // If this fails, only a zombie process remains.
        let _ = self.process.wait();
    }
}
