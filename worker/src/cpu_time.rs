//! Measures the CPU time of work, for tests with hostile input. Unlike elapsed time, CPU time does not grow with the
//! load of the machine.

use std::time::Duration;

pub(crate) fn measure_cpu_time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = thread_cpu_time();
    let done = work();
    (done, thread_cpu_time() - before)
}

fn thread_cpu_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds = told.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first is the time on a CPU"))
}
