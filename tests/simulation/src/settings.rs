//! Settings that are the same in all worlds.

/// The wall clock at the beginning of a world, in milliseconds since 1970.
pub(crate) const EPOCH_MS: i64 = 1_800_000_000_000;

/// The longest wait that a server can demand (`politeness.max_delay`).
pub(crate) const LONGEST_WAIT_MS: u64 = 21_600_000;

/// The waits before the second and the third attempt at a page, in seconds.
pub(crate) const RETRY_AFTER_S: [f64; 2] = [2.0, 20.0];

/// The duration of a backoff in seconds, and the most consecutive backoffs of a site.
pub(crate) const REST_S: f64 = 30.0;
pub(crate) const MOST_BACKOFFS: usize = 20;
