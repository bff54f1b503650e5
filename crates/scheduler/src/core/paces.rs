//! The pace of each crawl: how many of its tasks have finished recently. Kept in memory only, for people, and unknown
//! for a while after a start.

use std::collections::BTreeMap;

use webfill_wire::CrawlKey;

/// A pace is an average over the last one to two spans of this length.
const SPAN_MS: i64 = 60_000;

/// The minimum measuring time before a pace is reported.
const LEAST_MS: i64 = 10_000;

/// Samples that are older than this say nothing about the present.
const FORGOTTEN_MS: i64 = 3 * SPAN_MS;

/// A crawl without a finished task for this long has a pace of 0.
const STILL_MS: i64 = 2 * SPAN_MS;

/// The maximum number of crawls that are measured. Further ones have no pace.
const MOST_CRAWLS: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct CrawlPaces {
    crawls: BTreeMap<CrawlKey, PaceSamples>,
}

/// The number of finished tasks of a crawl at the beginnings of the last two spans.
#[derive(Debug, Clone, Copy)]
struct PaceSamples {
    from: PaceSample,
    between: PaceSample,
    /// The last sample where the number had changed.
    changed: PaceSample,
    last_ms: i64,
}

#[derive(Debug, Clone, Copy)]
struct PaceSample {
    done: u64,
    at_ms: i64,
}

impl CrawlPaces {
    /// Records the number of finished tasks of a crawl.
    pub(super) fn record_finished(&mut self, crawl: CrawlKey, done: u64, now_ms: i64) {
        let mark = PaceSample {
            done,
            at_ms: now_ms,
        };
        let begun = PaceSamples {
            from: mark,
            between: mark,
            changed: mark,
            last_ms: now_ms,
        };
        if !self.crawls.contains_key(&crawl) && self.crawls.len() >= MOST_CRAWLS {
            self.crawls
                .retain(|_, followed| now_ms - followed.last_ms < FORGOTTEN_MS);
            if self.crawls.len() >= MOST_CRAWLS {
                return;
            }
        }
        let followed = self.crawls.entry(crawl).or_insert(begun);
        // The number of finished tasks shrinks when tasks are queued again. Then measuring starts over.
        if done < followed.between.done || now_ms - followed.last_ms > FORGOTTEN_MS {
            *followed = begun;
        }
        if now_ms - followed.between.at_ms >= SPAN_MS {
            followed.from = followed.between;
            followed.between = mark;
        }
        if done != followed.changed.done {
            followed.changed = mark;
        }
        followed.last_ms = now_ms;
    }

    /// The recent pace of a crawl in tasks per second, given its present number of finished tasks.
    pub(super) fn per_second(&self, crawl: CrawlKey, done: u64, now_ms: i64) -> Option<f64> {
        let followed = self.crawls.get(&crawl)?;
        let changed = followed.changed;
        if done == changed.done && now_ms - changed.at_ms >= STILL_MS {
            return Some(0.0);
        }
        let passed_ms = now_ms - followed.from.at_ms;
        let ended = done.checked_sub(followed.from.done)?;
        (passed_ms >= LEAST_MS).then(|| ended as f64 * 1_000.0 / passed_ms as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_that_of_the_last_minutes() {
        let mut paces = CrawlPaces::default();
        assert_eq!(paces.per_second(1, 0, 0), None);
        for second in 0..600 {
            let per_second = if second < 300 { 10 } else { 2 };
            let done = second.min(300) as u64 * 10 + (second.max(300) - 300) as u64 * 2;
            paces.record_finished(1, done, second * 1_000);
            let reported = paces.per_second(1, done, second * 1_000);
            match second {
                0..10 => assert_eq!(reported, None),
                10..300 | 430.. => assert_eq!(reported, Some(f64::from(per_second))),
                _ => {}
            }
        }
    }

    #[test]
    fn a_crawl_without_finished_tasks_has_a_pace_of_zero() {
        let mut paces = CrawlPaces::default();
        for second in 0..100 {
            paces.record_finished(1, second * 5, second as i64 * 1_000);
        }
        let last_ms = 99_000;
        assert_eq!(paces.per_second(1, 495, last_ms), Some(5.0));
        let reported = paces.per_second(1, 495, last_ms + STILL_MS - 1);
        assert!(reported.is_some_and(|pace| pace > 0.0), "{reported:?}");
        assert_eq!(paces.per_second(1, 495, last_ms + STILL_MS), Some(0.0));
        let reported = paces.per_second(1, 496, last_ms + STILL_MS);
        assert!(reported.is_some_and(|pace| pace > 0.0), "{reported:?}");
    }

    #[test]
    fn requeued_tasks_and_long_gaps_restart_the_measurement_of_a_pace() {
        let mut paces = CrawlPaces::default();
        paces.record_finished(1, 100, 0);
        paces.record_finished(1, 50, 5_000);
        assert_eq!(paces.per_second(1, 50, 9_000), None);
        assert_eq!(paces.per_second(1, 60, 15_000), Some(1.0));
        paces.record_finished(1, 60, 15_000 + FORGOTTEN_MS + 1);
        assert_eq!(paces.per_second(1, 60, 15_000 + FORGOTTEN_MS + 2), None);
    }
}
