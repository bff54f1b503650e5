//! Settings that are the same in all worlds.

/// The wall clock at the beginning.
pub(crate) const EPOCH_MS: i64 = 1_800_000_000_000;

/// The longest wait that a server can demand (`politeness.max_delay`).
pub(crate) const LONGEST_WAIT_MS: u64 = 21_600_000;

/// The waits before the two further attempts of a page.
pub(crate) const RETRY_AFTER_S: [f64; 2] = [2.0, 20.0];

/// The duration of a backoff, and the number of consecutive ones.
pub(crate) const REST_S: f64 = 30.0;
pub(crate) const MOST_BACKOFFS: usize = 20;
