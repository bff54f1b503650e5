//! The machine's clock since boot (`CLOCK_BOOTTIME`), in milliseconds. It includes the time of suspension, cannot be
//! set, and is the same for all processes of a machine, so one process can use it to give another a deadline.

/// Milliseconds since boot.
pub fn boot_ms() -> u64 {
    let now = read_clock(libc::CLOCK_BOOTTIME);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// The time in microseconds by `CLOCK_MONOTONIC`, which stops during suspension. systemd expects it in
/// `MONOTONIC_USEC`.
pub(crate) fn monotonic_us() -> u64 {
    let now = read_clock(libc::CLOCK_MONOTONIC);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

fn read_clock(clock: libc::clockid_t) -> libc::timespec {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills in the given value; both clocks have existed since Linux 2.6.39.
    #[allow(unsafe_code)]
    unsafe {
        libc::clock_gettime(clock, &raw mut now);
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_advances_with_time() {
        let (before, started) = (boot_ms(), std::time::Instant::now());
        assert!(before > 0);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let passed = boot_ms() - before;
        assert!(passed >= 19 && u128::from(passed) <= started.elapsed().as_millis() + 1);
    }
}
