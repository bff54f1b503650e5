//! The exit codes of all processes, and [`Fault`], the error that contains an exit code.

use std::fmt;
use std::io;
use std::path::Path;

use crate::disk::is_full;

/// How a process ended. Its parent and scripts see it as the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Every task reached an outcome.
    Done = 0,
    /// The process ended with an error.
    Error = 1,
    /// Bad usage or configuration, found before anything was opened.
    Usage = 2,
    /// The process was interrupted. The same command with the same `--state` and `--crawl` resumes it.
    Interrupted = 11,
    /// A limit such as `--max-pages` was reached, or this machine is offline.
    Limit = 12,
    /// A fault that webfill cannot work around, such as a full disk; the state is intact.
    Fatal = 17,
}

impl ExitStatus {
    /// All exit statuses, in the order of their codes.
    pub const ALL: [ExitStatus; 6] = [
        ExitStatus::Done,
        ExitStatus::Error,
        ExitStatus::Usage,
        ExitStatus::Interrupted,
        ExitStatus::Limit,
        ExitStatus::Fatal,
    ];

    pub fn code(self) -> u8 {
        self as u8
    }

    /// The meaning of the status, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            ExitStatus::Done => "all is done; of a crawl, every task reached an outcome",
            ExitStatus::Error => "an error; of a crawl, also what --fail-on names",
            ExitStatus::Usage => "bad usage or configuration, found before anything was opened",
            ExitStatus::Interrupted => "interrupted; can be resumed",
            ExitStatus::Limit => {
                "a limit was reached (--max-pages, --max-time), or this machine is offline"
            }
            ExitStatus::Fatal => "a fatal fault such as a full disk; the state is intact",
        }
    }
}

/// An error that ends the process, with its exit status. The message is one sentence.
#[derive(Debug, Clone)]
pub struct Fault {
    pub status: ExitStatus,
    pub message: String,
}

impl Fault {
    pub fn usage(message: impl fmt::Display) -> Fault {
        Fault::new(ExitStatus::Usage, message)
    }

    pub fn error(message: impl fmt::Display) -> Fault {
        Fault::new(ExitStatus::Error, message)
    }

    pub fn fatal(message: impl fmt::Display) -> Fault {
        Fault::new(ExitStatus::Fatal, message)
    }

    /// The fault of a file or folder that cannot be written. If the disk is full, the fault is fatal: what was written
    /// before is intact, and the same command resumes once there is space.
    pub fn unwritable(path: &Path, error: &io::Error) -> Fault {
        let path = path.display();
        match is_full(error) {
            true => Fault::fatal(format!(
                "cannot write {path}: the disk is full: free some space and run the same command again"
            )),
            false => Fault::error(format!("cannot write {path}: {error}")),
        }
    }

    pub fn interrupted(message: impl fmt::Display) -> Fault {
        Fault::new(ExitStatus::Interrupted, message)
    }

    fn new(status: ExitStatus, message: impl fmt::Display) -> Fault {
        Fault {
            status,
            message: message.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
