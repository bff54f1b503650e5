//! The counts of a worker process, which its supervisor (parent process) serves as metrics. Both always have the same
//! build, because the worker is started from the same executable. So the frames of counts are not part of the versioned
//! messages, and may change with each build. Their first byte distinguishes them from messages.
//!
//! Each frame has all counts since the worker's start, so a lost frame does no harm.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::codec::{self, CodecError};
use crate::vocabulary::Outcome;

/// The first byte of a frame of counts. No build uses it as a version of messages.
const FIGURES: u8 = u8::MAX;

/// The upper bounds of a histogram's buckets, in seconds. They cover short durations, such as a write to a store, and
/// long ones, such as the backoff of a slow site.
pub const BOUNDS: [f64; 15] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// The most mappings that are counted separately. Pages of all other mappings are counted for [`OTHER_MAPPINGS`].
pub const MOST_MAPPINGS: usize = 50;

/// The name that all further mappings are counted under; see [`MOST_MAPPINGS`].
pub const OTHER_MAPPINGS: &str = "other";

/// A histogram of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// The number of durations in each bucket. The last one is for durations above the last bound.
    counts: [u64; BOUNDS.len() + 1],
    sum_us: u64,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.counts[bucket] += 1;
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// Adds another histogram.
    pub fn add(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    /// Each bound of a bucket, with the number of durations up to it.
    pub fn cumulative_counts(&self) -> impl Iterator<Item = (f64, u64)> {
        let so_far = self.counts.iter().scan(0_u64, |sum, count| {
            *sum = sum.saturating_add(*count);
            Some(*sum)
        });
        BOUNDS.into_iter().zip(so_far)
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        let counts = self.counts.iter();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The sum of all durations.
    pub fn sum_seconds(&self) -> f64 {
        self.sum_us as f64 / 1e6
    }
}

/// How many fields of a mapping's pages were filled, and how many stayed empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FieldTotals {
    pub filled: u64,
    pub empty: u64,
}

/// How many rows a mapping has found, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RowTotals {
    pub stored: u64,
    pub without_key: u64,
    pub same_key: u64,
    /// The number of pages where some rows were left out because of a limit.
    pub cut_pages: u64,
}

impl RowTotals {
    pub fn add(&mut self, more: &RowTotals) {
        self.stored = self.stored.saturating_add(more.stored);
        self.without_key = self.without_key.saturating_add(more.without_key);
        self.same_key = self.same_key.saturating_add(more.same_key);
        self.cut_pages = self.cut_pages.saturating_add(more.cut_pages);
    }
}

/// A worker's counts since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerTotals {
    /// Stored pages by outcome. Pages of tasks that are retried count too.
    pub pages: BTreeMap<Outcome, u64>,
    /// Responses to page requests, by the first digit of their status.
    pub answers: BTreeMap<u8, u64>,
    /// Bytes of response bodies, measured after decompression.
    pub fetched_bytes: u64,
    /// Requests for robots.txt.
    pub robots: u64,
    /// Durations from the beginning of a page request to the end of its response.
    pub fetch: Histogram,
    /// Durations from the arrival of a task at its worker to the worker's first request for the page.
    pub queue: Histogram,
    /// Durations of writes to the store.
    pub save: Histogram,
    /// How many fields were filled and how many stayed empty, by mapping.
    pub fields: BTreeMap<String, FieldTotals>,
    /// Counts of rows, by mapping. Only mappings whose pages list rows are included; each of them is in `fields` too.
    pub rows: BTreeMap<String, RowTotals>,
    /// Pages that were read but have no mapping, not counting sitemaps.
    pub unmatched: u64,
}

/// A worker's counts, which it sends to its supervisor on the socket for outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerCounts {
    pub worker_index: u16,
    /// The number of the worker's process: how often it was started.
    pub incarnation: u32,
    pub totals: WorkerTotals,
    /// Whether the store is unreachable now.
    pub is_store_away: bool,
}

/// Encodes the counts as a frame.
pub fn encode(counts: &WorkerCounts) -> Vec<u8> {
    codec::encode_in_version(FIGURES, counts)
}

/// Reads a frame; `None` if it is not a frame of counts.
pub fn read(frame: &[u8]) -> Option<Result<WorkerCounts, CodecError>> {
    let (first, body) = frame.split_first()?;
    (*first == FIGURES).then(|| codec::decode_body(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::WIRE_VERSION;
    use crate::message::WorkerToSupervisor;

    #[test]
    fn counts_and_messages_are_never_confused() {
        const { assert!(FIGURES > WIRE_VERSION) };
        let mut totals = WorkerTotals::default();
        totals.pages.insert(Outcome::Ok, 7);
        totals.fields.entry("shop".into()).or_default().filled = 3;
        totals.fetch.observe(Duration::from_millis(7));
        let sent = WorkerCounts {
            worker_index: 1,
            incarnation: 2,
            totals,
            is_store_away: true,
        };
        let frame = encode(&sent);
        assert_eq!(read(&frame), Some(Ok(sent)));
        assert!(codec::decode::<WorkerToSupervisor>(&frame).is_err());
        assert!(matches!(read(&frame[..frame.len() - 1]), Some(Err(_))));
        assert_eq!(read(&[WIRE_VERSION, 1, 2]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn a_duration_equal_to_a_bound_belongs_to_its_bucket() {
        let mut reported = Histogram::default();
        reported.observe(Duration::from_millis(50));
        reported.observe(Duration::from_micros(50_001));
        let at = |bound: f64| {
            let mut buckets = reported.cumulative_counts();
            buckets.find(|(found, _)| *found == bound).unwrap().1
        };
        assert_eq!(
            (at(0.025), at(0.05), at(0.1), reported.count()),
            (0, 1, 2, 2)
        );
        let mut sum = reported;
        sum.add(&reported);
        assert_eq!(sum.count(), 4);
        assert!((sum.sum_seconds() - 0.200_002).abs() < 1e-9);
    }
}
