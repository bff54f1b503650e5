//! Ends a command whose parent process has died. The Python package starts commands with `--parent-process`, so that no
//! command outlives a killed interpreter. The kernel's signal for this (`PR_SET_PDEATHSIG`) is not used. It is sent
//! when the thread that started the command ends, which may be long before the parent process ends.

use std::os::unix::process::parent_id;
use std::time::Duration;

use webfill_service::ExitStatus;

const CHECK_EVERY: Duration = Duration::from_millis(200);

/// How long the command may take to finish its work. Then it ends, and its children are killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Drains this process once its parent is no longer `parent`.
pub fn drain_after_parent(parent: u32) {
    let watch = move || {
        while parent_id() == parent {
            std::thread::sleep(CHECK_EVERY);
        }
        // SAFETY: the call takes no pointers.
        #[allow(unsafe_code)]
        unsafe {
            libc::kill(libc::getpid(), libc::SIGTERM)
        };
        std::thread::sleep(PATIENCE);
        std::process::exit(ExitStatus::Interrupted.code().into());
    };
    std::thread::spawn(watch);
}
