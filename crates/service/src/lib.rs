//! What every webfill process needs around its work: logging, printing, the state folder and its lock, signals,
//! child processes, exit codes, the room on disks, the service manager, files that are written whole, the clock that
//! all processes of a machine share, how long a crawl is claimed by it, and what figures need of the past: starts and
//! the last backup. [`http`] serves within limits, and [`metrics`] serves figures and probes.

// Printed is by `say!` and `terminal::stdout`, which let no control characters through.
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
