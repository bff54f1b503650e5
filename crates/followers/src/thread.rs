//! Threads with an async runtime of their own. When the process ends, it waits for them, but only for a limited time.
//! Work that is not done by then is left as after a crash, and the next process does it.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use webfill_service::Fault;

/// How often a thread is checked for having ended.
const POLL_EVERY: Duration = Duration::from_millis(2);

/// Starts a thread that runs a future. `what` names it in the error if it cannot be started.
pub(crate) fn spawn<F: Future<Output = ()>>(
    name: &str,
    what: &str,
    run: impl FnOnce() -> F + Send + 'static,
) -> Result<JoinHandle<()>, Fault> {
    let failed = |error: io::Error| Fault::error(format!("cannot start {what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || runtime.block_on(run()))
        .map_err(failed)
}

/// Waits for a thread that was asked to end, but not beyond `until` if that is given. Returns false if the thread
/// panicked. A thread that is still running then continues until the process ends.
pub fn wait_for_end(thread: JoinHandle<()>, until: Option<Instant>) -> bool {
    while let Some(until) = until
        && !thread.is_finished()
    {
        if Instant::now() >= until {
            let name = thread.thread().name().unwrap_or_default();
            tracing::info!(
                event = "thread_left",
                thread = name,
                "a thread's unfinished work is left to the next dispatcher"
            );
            return true;
        }
        std::thread::sleep(POLL_EVERY);
    }
    thread.join().is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_that_does_not_end_is_abandoned() {
        let (sender, receiver) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = receiver.recv();
        });
        let until = Instant::now() + Duration::from_millis(20);
        assert!(wait_for_end(thread, Some(until)));
        assert!(Instant::now() >= until);
        drop(sender);
    }

    #[test]
    fn a_thread_that_has_panicked_is_reported() {
        let far = Instant::now() + Duration::from_secs(60);
        for until in [None, Some(far)] {
            let thread = std::thread::spawn(|| panic!("on purpose"));
            assert!(!wait_for_end(thread, until));
            assert!(wait_for_end(std::thread::spawn(|| ()), until));
        }
    }
}
