//! Metrics over time: a sample every half minute. Samples are kept unchanged for two hours, merged into minutes for a
//! day, and merged into quarters of an hour for ninety days. They are in one file of JSON lines in the state folder, or
//! without one in memory.
//!
//! A power loss destroys at most a few samples. A sample covers the time since the previous one. What happened while
//! nothing was recorded is unknown, and charts have a gap there.

mod chart;
mod counters;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use self::chart::chart_json;
pub(crate) use self::counters::Counters;
use crate::line_file::{LineFile, Writing};
use crate::snapshot::Records;

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

/// The progress of one crawl in a span. See [`CrawlCounters`](crate::snapshot::CrawlCounters).
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

#[cfg(test)]
mod tests;
