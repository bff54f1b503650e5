//! Removes a server's files, about 100 MB, if the test process ends without dropping its server: because the process
//! was killed, or because the server is in a static variable.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that removes the files once this process ends or this value is dropped.
pub(crate) struct Sweeper {
    /// The child, which waits for the end of the pipe.
    process: Child,
}

impl Sweeper {
    pub(crate) fn start(folder: &Path) -> Sweeper {
        // The server dies at the same moment, but may still be writing its files.
        let script = "cat; until rm -rf \"$1\"; do sleep 0.1; done";
        let process = Command::new("sh")
            .args(["-c", script, "sweeper"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The child has a process group of its own, because a killed test's group is killed with it.
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
        // If this fails, all that remains is a zombie.
        let _ = self.process.wait();
    }
}
