//! The counters of a fleet or a store, and the samples of their growth.

use std::collections::BTreeMap;

use super::{RecordCounts, RunSample, Sample};
use crate::snapshot::{CrawlCounters, Snapshot};

/// The counters when the last sample was taken. They only grow, except after restarts and when crawls are dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    at: i64,
    /// When the crawls were read from the store, in seconds since the epoch.
    stored_at: i64,
    pages: u64,
    ended: BTreeMap<String, u64>,
    runs: BTreeMap<String, CrawlCounters>,
}

/// The shortest time that rates are computed over, in seconds. Over a shorter time they are too inaccurate.
const LEAST_OVER_S: i64 = 5;

impl Counters {
    /// Returns a sample of the changes since the last call, and keeps the new counters. `None` if this is the first
    /// call, no time has passed, or the clock was set back.
    pub(crate) fn take_sample(&mut self, snapshot: &Snapshot) -> Option<Sample> {
        let mut now = Counters::read(snapshot)?;
        let sample = self.sample_between(&now, snapshot);
        if snapshot.crawls.is_none() {
            now.stored_at = self.stored_at;
            now.runs = std::mem::take(&mut self.runs);
        }
        *self = now;
        sample
    }

    /// A sample of the changes since the last recorded one. It is not recorded.
    pub(crate) fn sample_until(&self, snapshot: &Snapshot) -> Option<Sample> {
        if snapshot.fault.is_some() {
            // The fleet could not be read, so the status in the snapshot is an older one.
            return None;
        }
        let sample = self.sample_between(&Counters::read(snapshot)?, snapshot);
        sample.filter(|sample| sample.over >= LEAST_OVER_S)
    }

    /// The counters in a snapshot; `None` if the snapshot has none.
    fn read(snapshot: &Snapshot) -> Option<Counters> {
        let status = &snapshot.status;
        let of = |key: &str| status[key].as_u64().unwrap_or(0);
        let ended = status["ended"].as_object().into_iter().flatten();
        let ended = ended.map(|(outcome, count)| (outcome.clone(), count.as_u64().unwrap_or(0)));
        let crawls = snapshot.crawls.as_ref();
        let mut now = Counters {
            at: snapshot.at_ms.div_euclid(1_000),
            stored_at: crawls.map_or(0, |crawls| crawls.read_at_ms.div_euclid(1_000)),
            pages: of("pages"),
            ended: ended.collect(),
            runs: crawls.map(|crawls| crawls.runs.clone()).unwrap_or_default(),
        };
        if status.is_null() {
            // Without a fleet, the counters are those that crawls have written to the store.
            let crawls = crawls?;
            now.at = now.stored_at;
            now.pages = crawls.pages;
            now.ended = crawls.ended.clone();
        }
        Some(now)
    }

    /// The changes from these counters to later ones, with the current state from the snapshot.
    fn sample_between(&self, now: &Counters, snapshot: &Snapshot) -> Option<Sample> {
        let over = now.at - self.at;
        if self.at == 0 || over <= 0 {
            return None;
        }
        let status = &snapshot.status;
        let of = |key: &str| status[key].as_u64().unwrap_or(0);
        let (queued, leased) = match &snapshot.crawls {
            Some(crawls) if status.is_null() => (crawls.queued, crawls.leased),
            _ => (of("total_pending"), of("leased")),
        };
        let runs = now
            .runs
            .iter()
            .filter_map(|(name, run)| Some((name.clone(), self.growth_of_run(name, run)?)));
        Some(Sample {
            at: now.at,
            over,
            queued,
            leased,
            oldest: status["oldest_due_s"].as_f64(),
            pages: now.pages.saturating_sub(self.pages),
            ended: counter_growth(&self.ended, &now.ended),
            records: snapshot.records.map(RecordCounts::from),
            runs: runs.collect(),
            is_begin: false,
        })
    }

    /// The progress of a crawl since these counters were read. `None` if the crawl has stored no new counters; the next
    /// sample then covers this time as well.
    fn growth_of_run(&self, name: &str, run: &CrawlCounters) -> Option<RunSample> {
        let known = self.runs.get(name).cloned();
        // A crawl that began after the store was last read counts from 0. For other unknown crawls the start of the
        // counters is not known, so they are left out of this sample.
        let is_new = self.stored_at > 0 && run.began_s >= self.stored_at;
        let at_begin = || CrawlCounters {
            at_s: run.began_s,
            ..CrawlCounters::default()
        };
        let known = known.or_else(|| is_new.then(at_begin))?;
        let over = run.at_s - known.at_s;
        (over > 0).then(|| RunSample {
            at: run.at_s,
            over,
            ended: counter_growth(&known.ended, &run.ended),
            resolved: run.resolved,
            queued: run.queued,
        })
    }
}

/// How much each counter has grown. A counter that has decreased was reset to 0 by a restart.
fn counter_growth(
    before: &BTreeMap<String, u64>,
    now: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let grown = now.iter().map(|(outcome, count)| {
        let known = before.get(outcome).copied().unwrap_or(0);
        (outcome.clone(), count.checked_sub(known).unwrap_or(*count))
    });
    grown.filter(|(_, count)| *count > 0).collect()
}
