//! Patience: how long a dispatcher waits for failing sites before their URLs end with a failure. A fleet has none by
//! default, and waits as long as its tables of retries and backoffs say. `webfill crawl` always has one, because
//! somebody waits for its end.
//!
//! The tables stay in force. Patience only shortens their waits, so that several attempts fall within it. The first
//! wait is at most 1/[`FIRST_SHARE`] of it, each further one is [`GROWTH`] times as long, and no wait goes beyond its
//! end. A long patience leaves the tables as they are.

use webfill_wire::{Outcome, SiteClock, TaskDone};

/// The first wait is the patience divided by this number, and each further one is [`GROWTH`] times as long. With a
/// patience of two minutes, the waits are 5, 25 and 90 seconds.
const FIRST_SHARE: i64 = 24;
const GROWTH: i64 = 5;

/// Maximum exponent of [`GROWTH`], which keeps the product in range. No patience is long enough to reach it.
const MOST_GROWTHS: u32 = 12;

/// The longest delay between two requests that workers derive from a site's refusals.
const LONGEST_PACE_MS: i64 = 60_000;

/// A site counts as not answering after this many consecutive refusals at the pace that was derived for it.
const MOST_WAITS_OF_PACE: u32 = 8;

/// How long the dispatcher waits for failing sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub ms: i64,
    /// The delay of sites whose own delay is not known yet.
    pub default_delay_ms: u32,
}

impl Patience {
    /// The wait before the attempt with this index, after failures since `since_ms`, if the table of retries or
    /// backoffs says `table_ms`. `None`: the patience is over.
    pub fn wait_ms(self, table_ms: i64, index: usize, since_ms: i64, now_ms: i64) -> Option<i64> {
        let left_ms = since_ms.saturating_add(self.ms).saturating_sub(now_ms);
        let wait_ms = table_ms.min(self.longest_wait_ms(index));
        if wait_ms <= left_ms {
            return Some(wait_ms);
        }
        // A last attempt right after the previous one shows nothing new.
        (left_ms > 0 && left_ms >= wait_ms / 4).then_some(left_ms)
    }

    /// The longest wait before the attempt with this index.
    fn longest_wait_ms(self, index: usize) -> i64 {
        let growths = u32::try_from(index).map_or(MOST_GROWTHS, |index| index.min(MOST_GROWTHS));
        let first_ms = (self.ms / FIRST_SHARE).max(1);
        first_ms.saturating_mul(GROWTH.pow(growths))
    }

    /// Whether a table's first wait is longer than the whole patience.
    pub fn is_shorter_than(self, waits_s: &[f64]) -> bool {
        waits_s
            .first()
            .is_some_and(|first| first * 1_000.0 > self.ms as f64)
    }

    /// The patience with a site that answers 429 to consecutive requests. The time that the crawler itself waits
    /// between them, because the site accepts no more, does not count as silence of the site.
    pub fn extended_by_pace(self, clock: SiteClock, in_a_row: u32) -> Patience {
        let delay_ms = clock.delay_ms.unwrap_or(0);
        let pace_ms = i64::from(delay_ms.saturating_sub(self.default_delay_ms));
        let pace_ms = pace_ms.min(LONGEST_PACE_MS);
        let waits = i64::from(in_a_row.min(MOST_WAITS_OF_PACE)) + 1;
        Patience {
            ms: self.ms.saturating_add(pace_ms * waits),
            ..self
        }
    }

    /// Whether the next request to a site comes after the end of the patience, because the server demands it or because
    /// the site backs off. `failures`: the number of consecutive failures at an open site; `None` if the attempt was
    /// the test after a backoff.
    pub fn is_exceeded_by(
        self,
        clock: SiteClock,
        failures: Option<u32>,
        since_ms: i64,
        now_ms: i64,
    ) -> bool {
        let next_in_ms = i64::from(clock.next_in_ms);
        if now_ms.saturating_add(next_in_ms) <= since_ms.saturating_add(self.ms) {
            return false;
        }
        let Some(failures) = failures else {
            return true;
        };
        // The crawler's own backoff doubles with each failure. If the wait is longer, the server has demanded it.
        let delay_ms = clock.delay_ms.unwrap_or(self.default_delay_ms).max(1_000);
        next_in_ms > i64::from(delay_ms) << failures.min(6)
    }
}

/// The wait before the retry with this index, by a list of waits and the patience, if there is one; `None` if there
/// is no further retry. Only the waits count, not the time in the queue, because a retry may be behind thousands of
/// pages of its site.
pub fn nth_wait_ms(patience: Option<Patience>, waits_s: &[f64], index: usize) -> Option<i64> {
    let table_ms = |index: usize| waits_s.get(index).map(|seconds| (seconds * 1_000.0) as i64);
    let Some(patience) = patience else {
        return table_ms(index);
    };
    let mut waited_ms = 0;
    for before in 0..index {
        waited_ms += patience.wait_ms(table_ms(before)?, before, 0, waited_ms)?;
    }
    patience.wait_ms(table_ms(index)?, index, 0, waited_ms)
}

/// Whether a name server has answered that the name does not exist.
pub fn is_unknown_host(report: &TaskDone) -> bool {
    report.outcome == Outcome::DnsError
        && report
            .evidence
            .as_ref()
            .is_some_and(|evidence| !evidence.no_route)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(seconds: i64) -> Patience {
        Patience {
            ms: seconds * 1_000,
            default_delay_ms: 15_000,
        }
    }

    fn waits(patience: Option<Patience>, table: &[f64]) -> Vec<i64> {
        (0..)
            .map_while(|index| nth_wait_ms(patience, table, index))
            .collect()
    }

    #[test]
    fn a_short_patience_compresses_a_table_and_a_long_one_leaves_it() {
        let table = [60.0, 600.0, 3_600.0];
        for (patience, expected) in [
            (None, vec![60_000, 600_000, 3_600_000]),
            (Some(patience(21_600)), vec![60_000, 600_000, 3_600_000]),
            (Some(patience(120)), vec![5_000, 25_000, 90_000]),
            (Some(patience(3)), vec![125, 625, 2_250]),
            (Some(patience(600)), vec![25_000, 125_000, 450_000]),
        ] {
            assert_eq!(waits(patience, &table), expected, "{patience:?}");
        }
        assert!(waits(Some(patience(120)), &[]).is_empty());
        assert_eq!(waits(Some(patience(120)), &[0.3, 0.3]), [300, 300]);
        assert!(waits(Some(patience(0)), &table).is_empty());
    }

    #[test]
    fn a_wait_ends_with_the_patience() {
        let patience = patience(120);
        let left = |now_s: i64| patience.wait_ms(3_600_000, 2, 0, now_s * 1_000);
        assert_eq!(left(30), Some(90_000));
        assert_eq!(left(88), Some(32_000));
        assert_eq!(left(89), None, "it would follow too soon");
        assert_eq!(left(121), None);
    }

    #[test]
    fn a_wait_demanded_by_the_server_is_distinguished_from_our_own_backoff() {
        let patience = patience(120);
        let clock = |next_in_s: u32, delay_s: u32| SiteClock {
            next_in_ms: next_in_s * 1_000,
            delay_ms: Some(delay_s * 1_000),
        };
        for (clock, failures, exceeds) in [
            (clock(3_600, 1), Some(1), true),
            (clock(100, 1), Some(1), false),
            // Waits of one and two times the site's own delay are within the patience, a longer wait is not.
            (clock(3_600, 3_600), Some(1), false),
            (clock(7_200, 3_600), Some(1), false),
            (clock(10_000, 3_600), Some(1), true),
            (clock(3_600, 3_600), None, true),
            (clock(60, 15), None, false),
        ] {
            let found = patience.is_exceeded_by(clock, failures, 0, 0);
            assert_eq!(found, exceeds, "{clock:?} {failures:?}");
        }
    }
}
