//! Removes a server's files, about 100 MB, after the test process has ended without dropping its server:
//! because it was killed, or because the server is in a static variable.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that waits for the end of this process, or of this value.
pub(crate) struct Sweeper {
    /// Holds the pipe and waits for its end.
    process: Child,
}

impl Sweeper {
    pub(crate) fn of(folder: &Path) -> Sweeper {
        // The server dies at the same moment, but may still be writing.
        let script = "cat; until rm -rf \"$1\"; do sleep 0.1; done";
        let process = Command::new("sh")
            .args(["-c", script, "sweeper"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // In a process group of its own: a killed test's group is killed with it.
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
        // A failure would only leave a zombie.
        let _ = self.process.wait();
    }
}
