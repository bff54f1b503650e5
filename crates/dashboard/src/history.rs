//! Metrics over time: a sample every half minute. Samples are kept unchanged for two hours, merged into minutes for a
//! day, and merged into quarters of an hour for ninety days. They are in one file of JSON lines in the state folder, or
//! without one in memory.
//!
//! A power loss destroys at most a few samples. A sample covers the time since the previous one. What happened while
//! nothing was recorded is unknown, and charts have a gap there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::line_file::{LineFile, Writing};
use crate::snapshot::{CrawlCounters, Records, Snapshot};
use crate::views::words::outcome_group;

/// The time between two samples, in seconds.
pub(crate) const EVERY_S: i64 = 30;

/// Pairs of an age and a length, in seconds. Samples older than the age are merged into pieces of this length.
const PIECES: [(i64, i64); 2] = [(24 * 3_600, 15 * 60), (2 * 3_600, 60)];

/// Samples that are older than this are dropped, in seconds.
const KEPT_S: i64 = 90 * 24 * 3_600;

/// How often old samples are merged and dropped, in seconds.
const THINNED_EVERY_S: i64 = 15 * 60;

/// How many samples are kept at most, even if the clock was changed.
const MOST: usize = (2 * 3_600 / EVERY_S + 24 * 60 + KEPT_S / (15 * 60)) as usize + 200;

const FILE: &str = "dashboard-history.jsonl";

/// A sample of the metrics: the state at the end of a span of time, and what happened within it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sample {
    /// The end of the span, in seconds since the epoch.
    pub(crate) at: i64,
    /// The length of the span, in seconds.
    pub(crate) over: i64,
    pub(crate) queued: u64,
    pub(crate) leased: u64,
    /// How long the oldest queued task of a site that may be fetched has waited, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oldest: Option<f64>,
    /// How many pages were fetched in the span.
    pub(crate) pages: u64,
    /// How many tasks ended in the span, by outcome.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) ended: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) records: Option<RecordCounts>,
    /// Whether the sample stands for the beginning of the span, so that only its rates are valid. Charts need such
    /// samples.
    #[serde(skip)]
    pub(crate) is_begin: bool,
    /// The progress of each unfinished crawl in the span, by `APP/CRAWL`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) runs: BTreeMap<String, RunSample>,
}

/// The progress of one crawl in a span. See [`CrawlCounters`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunSample {
    /// The end and the length of the span that these counters cover, in seconds. They differ from those of the sample,
    /// because each crawl stores its counters at its own times.
    pub(crate) at: i64,
    pub(crate) over: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) ended: BTreeMap<String, u64>,
    pub(crate) resolved: u64,
    pub(crate) queued: u64,
}

/// The records of crawls by state. See [`Records`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordCounts {
    pub(crate) resolved: u64,
    pub(crate) open: u64,
    pub(crate) exhausted: u64,
}

impl From<Records> for RecordCounts {
    fn from(records: Records) -> RecordCounts {
        RecordCounts {
            resolved: records.resolved,
            open: records.open,
            exhausted: records.exhausted,
        }
    }
}

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

/// All recorded samples, the oldest first, and their file.
#[derive(Debug)]
pub(crate) struct History {
    samples: Vec<Sample>,
    file: LineFile,
    thinned_at: i64,
}

impl History {
    /// Reads the samples that are stored in the state folder.
    pub(crate) fn open(state: Option<&Path>) -> History {
        let (file, samples) = LineFile::open(state, FILE, MOST);
        let mut history = History {
            samples: Vec::new(),
            file,
            thinned_at: 0,
        };
        for sample in samples {
            history.insert(sample);
        }
        history.thin_old_samples();
        history
    }

    fn insert(&mut self, sample: Sample) {
        // If the clock was set back, samples with later times are removed.
        while self.samples.last().is_some_and(|last| last.at >= sample.at) {
            self.samples.pop();
        }
        self.samples.push(sample);
    }

    /// Adds a sample.
    pub(crate) fn add_sample(&mut self, sample: Sample) -> Writing {
        self.insert(sample.clone());
        self.thin_old_samples();
        self.file.prepare_write(&[sample], self.samples.iter())
    }

    /// Drops samples that are too old, and merges samples that are no longer kept one by one.
    fn thin_old_samples(&mut self) {
        let Some(last) = self.samples.last().map(|last| last.at) else {
            return;
        };
        // The difference is negative if the clock was set back.
        if (0..THINNED_EVERY_S).contains(&(last - self.thinned_at)) {
            return;
        }
        self.thinned_at = last;
        let mut kept: Vec<Sample> = Vec::with_capacity(self.samples.len());
        for sample in self.samples.drain(..) {
            let age = last - sample.at;
            if age > KEPT_S {
                continue;
            }
            let piece = PIECES.iter().find(|(older, _)| age > *older);
            match (kept.last_mut(), piece) {
                (Some(before), Some((_, piece_s))) if can_merge(before, &sample, *piece_s) => {
                    before.merge_next(&sample);
                }
                _ => kept.push(sample),
            }
        }
        let surplus = kept.len().saturating_sub(MOST);
        kept.drain(..surplus);
        self.samples = kept;
    }

    /// The beginning of the first sample that ends after `from`.
    pub(crate) fn first_since(&self, from: i64) -> Option<i64> {
        let first = self.samples.iter().find(|sample| sample.at > from)?;
        Some(first.at - first.over)
    }

    /// The samples that overlap a span of time, merged so that they are about `most`.
    pub(crate) fn samples_between(&self, from: i64, to: i64, most: usize) -> Vec<Sample> {
        let piece_s = ((to - from) / most.max(1) as i64).max(1);
        let mut found: Vec<Sample> = Vec::new();
        let of_span = |sample: &&Sample| sample.at > from && sample.at - sample.over <= to;
        for sample in self.samples.iter().filter(of_span) {
            match found.last_mut() {
                Some(before) if can_merge(before, sample, piece_s) => before.merge_next(sample),
                _ => found.push(sample.clone()),
            }
        }
        found
    }
}

/// Whether two consecutive samples can be merged: both end in the same piece of time, and there is no gap between them.
fn can_merge(before: &Sample, sample: &Sample, piece_s: i64) -> bool {
    before.at.div_euclid(piece_s) == sample.at.div_euclid(piece_s)
        && sample.at - sample.over - before.at < EVERY_S
}

impl Sample {
    /// Merges the following sample into this one.
    fn merge_next(&mut self, next: &Sample) {
        let (ended, runs) = (
            std::mem::take(&mut self.ended),
            std::mem::take(&mut self.runs),
        );
        let (over, pages) = (self.over + next.over, self.pages + next.pages);
        let records = next.records.or(self.records);
        *self = Sample {
            over,
            pages,
            records,
            ..next.clone()
        };
        add_counts(&mut self.ended, ended);
        for (name, run) in runs {
            match self.runs.get_mut(&name) {
                Some(later) => {
                    later.over = later.at - (run.at - run.over);
                    add_counts(&mut later.ended, run.ended);
                }
                // Only the first of the two samples has this crawl, because it ended before the second.
                None => {
                    self.runs.insert(name, run);
                }
            }
        }
    }

    /// A sample for the beginning of the span, with the same rates. Records and the age of the queue were measured only
    /// at the end.
    fn to_begin_sample(&self) -> Sample {
        Sample {
            is_begin: true,
            records: None,
            oldest: None,
            ..self.clone()
        }
    }

    /// The progress of one crawl in this sample, as a sample of its own.
    pub(crate) fn sample_of_run(&self, name: &str) -> Option<Sample> {
        let run = self.runs.get(name).filter(|run| run.over > 0)?.clone();
        Some(Sample {
            at: run.at,
            over: run.over,
            queued: run.queued,
            pages: run.ended.values().sum(),
            ended: run.ended,
            records: Some(RecordCounts {
                resolved: run.resolved,
                ..RecordCounts::default()
            }),
            ..Sample::default()
        })
    }
}

/// Adds progress of a run that the samples lack: from before the first sample, from after the last one, or of a run
/// that is shorter than a sample. So charts cover the whole run, which has the counts `totals`.
pub(crate) fn complete_run(samples: &mut Vec<Sample>, totals: Sample) {
    let began = totals.at - totals.over;
    let ends = totals.at.max(began + 1);
    samples.retain(|sample| sample.at > began && sample.at - sample.over < ends);
    if let Some(first) = samples.first_mut() {
        first.over = first.over.min(first.at - began);
    }
    let mut known = BTreeMap::new();
    for sample in samples.iter() {
        add_counts(&mut known, sample.ended.clone());
    }
    let left = |(outcome, count): (&String, &u64)| {
        let left = count.saturating_sub(known.get(outcome).copied().unwrap_or(0));
        (left > 0).then(|| (outcome.clone(), left))
    };
    let ended: BTreeMap<String, u64> = totals.ended.iter().filter_map(left).collect();
    let pages: u64 = ended.values().sum();
    let first = samples.first().map(|sample| sample.at - sample.over);
    if let Some(first) = first.filter(|first| first - began > EVERY_S) {
        // The dashboard did not record the beginning of the run, so a sample for it is computed.
        let before = Sample {
            at: first,
            over: first - began,
            pages,
            ended,
            ..Sample::default()
        };
        samples.insert(0, before);
        return;
    }
    match samples.last_mut().filter(|last| last.at >= ends) {
        Some(last) => {
            last.pages += pages;
            add_counts(&mut last.ended, ended);
        }
        None => {
            let since = samples.last().map_or(began, |last| last.at);
            samples.push(Sample {
                at: ends,
                over: ends - since,
                pages,
                ended,
                ..totals
            });
        }
    }
}

fn add_counts(to: &mut BTreeMap<String, u64>, counts: BTreeMap<String, u64>) {
    for (outcome, count) in counts {
        *to.entry(outcome).or_default() += count;
    }
}

/// Samples as the columns of a chart: a list for each metric, in order of time, with null for unknown values. Outcomes
/// are counted by their groups. A rate is constant over the whole span of its sample.
pub(crate) fn chart_json(samples: &[Sample]) -> Value {
    let mut columns = ChartColumns::default();
    let names = samples.iter().flat_map(|sample| sample.ended.keys());
    let groups: BTreeSet<&str> = names.map(|name| group_of_outcome(name)).collect();
    let mut ended_before = None;
    for sample in samples {
        let begins = sample.at - sample.over;
        let is_after_gap = ended_before.is_none_or(|at| begins - at > EVERY_S);
        if let Some(at) = ended_before.filter(|_| is_after_gap) {
            columns.push(at + 1, None, &groups);
        }
        if is_after_gap && sample.over > 0 {
            columns.push(begins, Some(&sample.to_begin_sample()), &groups);
        }
        columns.push(sample.at, Some(sample), &groups);
        ended_before = Some(sample.at);
    }
    serde_json::to_value(columns).unwrap_or_default()
}

fn group_of_outcome(outcome: &str) -> &'static str {
    outcome.parse().map_or("refused", outcome_group)
}

#[derive(Default, Serialize)]
struct ChartColumns {
    at: Vec<i64>,
    queued: Vec<Option<u64>>,
    leased: Vec<Option<u64>>,
    oldest: Vec<Option<f64>>,
    pages_per_second: Vec<Option<f64>>,
    resolved: Vec<Option<u64>>,
    open: Vec<Option<u64>>,
    exhausted: Vec<Option<u64>>,
    /// Tasks that ended per second, by group of outcomes.
    ended: BTreeMap<String, Vec<Option<f64>>>,
}

impl ChartColumns {
    fn push(&mut self, at: i64, sample: Option<&Sample>, groups: &BTreeSet<&str>) {
        let per_second = |count: u64, sample: &Sample| {
            let rate = count as f64 / sample.over.max(1) as f64;
            (rate * 1_000.0).round() / 1_000.0
        };
        let records = sample.and_then(|sample| sample.records);
        self.at.push(at);
        let level = sample.filter(|sample| !sample.is_begin);
        self.queued.push(level.map(|sample| sample.queued));
        self.leased.push(level.map(|sample| sample.leased));
        self.oldest.push(sample.and_then(|sample| sample.oldest));
        self.pages_per_second
            .push(sample.map(|sample| per_second(sample.pages, sample)));
        self.resolved.push(records.map(|records| records.resolved));
        self.open.push(records.map(|records| records.open));
        self.exhausted
            .push(records.map(|records| records.exhausted));
        for group in groups {
            let count = |sample: &Sample| {
                let of_group = sample.ended.iter();
                let of_group = of_group.filter(|(name, _)| group_of_outcome(name) == *group);
                of_group.map(|(_, count)| count).sum::<u64>()
            };
            let rate = sample.map(|sample| per_second(count(sample), sample));
            self.ended
                .entry((*group).to_owned())
                .or_default()
                .push(rate);
        }
    }
}

#[cfg(test)]
mod tests;
