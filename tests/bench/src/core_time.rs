//! Measures the time of the calling thread on a core. Unlike elapsed time, it is meaningful on a busy machine.

use std::time::Duration;

/// How long this thread has run on a core so far. Linux counts it in nanoseconds, in the first column of the
/// thread's `schedstat` (proc(5)).
///
/// # Errors
///
/// The kernel does not count it (`CONFIG_SCHED_INFO`).
pub fn time_on_core() -> Result<Duration, Box<dyn std::error::Error>> {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = figures.split(' ').next().unwrap_or_default();
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}
