//! What every webfill process does before and after its work: logs, the state folder's lock,
//! signals, child processes, and the exit code that tells how it went; and the clock that all
//! processes of a machine share.

pub mod boot_clock;
pub mod child;
pub mod exit;
pub mod log;
pub mod signals;
pub mod state;

pub use exit::{ExitStatus, Fault};

/// Whether this process may do everything on its machine.
pub fn is_root() -> bool {
    // SAFETY: a plain system call that cannot fail.
    #[allow(unsafe_code)]
    unsafe {
        libc::geteuid() == 0
    }
}
