//! Ends a command whose parent has died. The Python package starts commands with `--parent-process`, so that a killed
//! interpreter leaves none behind. The kernel's own signal for this (`PR_SET_PDEATHSIG`) is not used: it is sent when
//! the thread ends that started the command, which may be long before its process ends.

use std::os::unix::process::parent_id;
use std::time::Duration;

use webfill_service::ExitStatus;

const CHECK_EVERY: Duration = Duration::from_millis(200);

/// How long the command may drain. Its children are killed when it ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// Drains this process once its parent is no longer `parent`.
pub fn drain_after_parent(parent: u32) {
    let watch = move || {
        while parent_id() == parent {
            std::thread::sleep(CHECK_EVERY);
        }
        // SAFETY: a plain system call.
        #[allow(unsafe_code)]
        unsafe {
            libc::kill(libc::getpid(), libc::SIGTERM)
        };
        std::thread::sleep(PATIENCE);
        std::process::exit(ExitStatus::Interrupted.code().into());
    };
    std::thread::spawn(watch);
}
