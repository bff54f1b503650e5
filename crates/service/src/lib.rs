//! The common parts of every webfill process: logging, printing, the state folder and its lock, signals, child
//! processes, exit codes, disk space, the service manager and atomic file writes. Also the clock that all processes of
//! a machine share, the end of a claim to a crawl by that clock, the number of starts, and the time of the last backup.
//! [`http`] serves HTTP within limits, and [`metrics`] serves metrics and probes.

// Only `say!` and `terminal::printable_stdout` may print, because they escape control characters.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod boot_clock;
pub mod child;
pub mod claim_file;
pub mod disk;
pub mod exit;
pub mod http;
pub mod journey;
pub mod last_backup;
pub mod log;
pub mod metrics;
pub mod own_names;
pub mod private_file;
pub mod service_manager;
pub mod signals;
pub mod starts;
pub mod state;
pub mod terminal;
pub mod whole_file;

pub use exit::{ExitStatus, Fault};

/// Whether this process runs as root.
pub fn is_root() -> bool {
    // SAFETY: a plain system call that cannot fail.
    #[allow(unsafe_code)]
    unsafe {
        libc::geteuid() == 0
    }
}
