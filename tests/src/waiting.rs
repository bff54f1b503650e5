//! Waits for conditions, and never for a fixed time.

use std::time::{Duration, Instant};

/// Every condition in the tests must be true within this time, even on a slow machine.
const WAIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Repeats `check` until it returns a value. Panics after a minute.
pub fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + WAIT;
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(POLL);
    }
}
