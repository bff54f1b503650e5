//! Retention: how long pages and the log of pages are kept, and how many samples of pages.
//!
//! Records, crawls and fields filled from a page stay when the page is dropped. The page's text, if it is a
//! [sample](crate::Sample), is dropped with it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const ONE_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long pages and the log of pages are kept, and how many samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// After how many days pages are dropped, counted from their fetch; 0 means never.
    pub pages_days: u32,
    /// After how many days entries of MongoDB's log of pages are dropped; 0 means only together with their pages.
    pub log_days: u32,
    /// The most MiB of page texts that are kept for repairing mappings, for all mappings together; 0 means none.
    pub samples_mib: u32,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        RetentionConfig {
            pages_days: 0,
            log_days: 0,
            samples_mib: 256,
        }
    }
}

impl RetentionConfig {
    /// The limits that apply at this time.
    pub fn cutoff(&self, now_ms: i64) -> Cutoff {
        let kept = |days: u32| (days > 0).then(|| ONE_DAY * days);
        Cutoff {
            samples_bytes: Some(u64::from(self.samples_mib) << 20),
            ..Cutoff::from_retention(now_ms, kept(self.pages_days), kept(self.log_days))
        }
    }
}

/// The limits beyond which entries are dropped; `None` means that nothing is dropped. Times are in milliseconds since
/// the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutoff {
    /// Pages and samples are dropped if their fetch started before this time.
    pub pages_ms: Option<i64>,
    /// Entries of the log are dropped if they were written before this time. SQLite has no log besides its pages.
    pub log_ms: Option<i64>,
    /// How many bytes of sample texts are kept. Samples of alerts are kept longest, then the latest others.
    pub samples_bytes: Option<u64>,
}

impl Cutoff {
    /// The limits if pages and the log are kept for these times. A log entry is dropped before its page: by a day, or
    /// by half as long as pages are kept, if that is shorter. So a reader that is too slow gets an error while the page
    /// still exists, and never misses a page unnoticed.
    pub fn from_retention(now_ms: i64, pages: Option<Duration>, log: Option<Duration>) -> Cutoff {
        let before = |kept: Duration| {
            let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            now_ms.saturating_sub(kept_ms)
        };
        let ahead_of_pages = pages.map(|kept| before(kept - ONE_DAY.min(kept / 2)));
        Cutoff {
            pages_ms: pages.map(before),
            log_ms: log.map(before).max(ahead_of_pages),
            samples_bytes: None,
        }
    }
}

/// The result of one call of [`Retention::drop_old`](crate::Retention::drop_old).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropResult {
    pub pages: u64,
    pub log_entries: u64,
    pub samples: u64,
    /// Whether more entries are to be dropped, by another call.
    pub has_more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;
    const NOW_MS: i64 = 1_000 * DAY_MS;

    fn cutoff(pages_days: u32, log_days: u32) -> Cutoff {
        let config = RetentionConfig {
            pages_days,
            log_days,
            samples_mib: 3,
        };
        config.cutoff(NOW_MS)
    }

    fn cutoff_days_ago(pages: Option<i64>, log: Option<i64>) -> Cutoff {
        Cutoff {
            pages_ms: pages.map(|days| NOW_MS - days * DAY_MS),
            log_ms: log.map(|days| NOW_MS - days * DAY_MS),
            samples_bytes: Some(3 << 20),
        }
    }

    #[test]
    fn log_entries_are_dropped_before_their_pages() {
        assert_eq!(cutoff(0, 0), cutoff_days_ago(None, None));
        assert_eq!(cutoff(0, 7), cutoff_days_ago(None, Some(7)));
        assert_eq!(cutoff(30, 0), cutoff_days_ago(Some(30), Some(29)));
        assert_eq!(cutoff(30, 7), cutoff_days_ago(Some(30), Some(7)));
        assert_eq!(cutoff(30, 90), cutoff_days_ago(Some(30), Some(29)));
        let short = cutoff(1, 0);
        assert_eq!(short.log_ms, Some(NOW_MS - DAY_MS / 2));
    }
}
