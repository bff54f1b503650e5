//! Metrics over time: a sample a minute, kept unchanged for a day and by the quarter of an hour for a month, in one
//! file of JSON lines in the state folder.
//!
//! The file is appended to. It is rewritten (beside it, then renamed) when it has twice as many lines as are kept. A
//! line cut off by a power loss is skipped, so at most some samples are lost. A sample covers the time since the
//! previous one. What happened while nothing was recorded is unknown, and charts have a gap there.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webfill_service::state::PRIVATE;

use crate::snapshot::{Records, Snapshot};

/// The time between samples.
pub(crate) const EVERY_S: i64 = 60;

/// Older samples are kept in pieces of [`PIECE_S`].
const FINE_S: i64 = 24 * 3_600;
const PIECE_S: i64 = 15 * 60;

/// Older samples are dropped.
const KEPT_S: i64 = 30 * 24 * 3_600;

/// The most samples, whatever the clock does.
const MOST: usize = ((FINE_S / EVERY_S) + (KEPT_S / PIECE_S)) as usize + 100;

const FILE: &str = "dashboard-history.jsonl";

/// The state at the end of a span, and what happened in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sample {
    /// The end, in seconds since the epoch.
    pub(crate) at: i64,
    /// The length of the span, in seconds.
    pub(crate) over: i64,
    pub(crate) queued: u64,
    pub(crate) leased: u64,
    /// The age in seconds of the longest-waiting task whose site may be fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oldest: Option<f64>,
    /// Pages fetched in the span.
    pub(crate) pages: u64,
    /// Tasks that ended in the span, by outcome.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) ended: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) records: Option<Kept>,
}

/// See [`Records`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) resolved: u64,
    pub(crate) open: u64,
    pub(crate) exhausted: u64,
}

impl From<Records> for Kept {
    fn from(records: Records) -> Kept {
        Kept {
            resolved: records.resolved,
            open: records.open,
            exhausted: records.exhausted,
        }
    }
}

/// The counters at the last sample. They only grow, except for restarts and dropped crawls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    at: i64,
    pages: u64,
    ended: BTreeMap<String, u64>,
}

impl Counters {
    /// The changes since the counters were last read. `None` if they had not been read, or the clock was set back.
    pub(crate) fn sample(&mut self, snapshot: &Snapshot) -> Option<Sample> {
        let status = &snapshot.status;
        let of = |key: &str| status[key].as_u64().unwrap_or(0);
        let ended = status["ended"].as_object().into_iter().flatten();
        let ended = ended.map(|(outcome, count)| (outcome.clone(), count.as_u64().unwrap_or(0)));
        let now = Counters {
            at: snapshot.at_ms.div_euclid(1_000),
            pages: of("pages"),
            ended: ended.collect(),
        };
        let before = std::mem::replace(self, now.clone());
        let over = now.at - before.at;
        if before.at == 0 || over <= 0 {
            return None;
        }
        let since = |outcome: &String, count: u64| {
            let known = before.ended.get(outcome).copied().unwrap_or(0);
            // After a restart counters begin at 0.
            count.checked_sub(known).unwrap_or(count)
        };
        let ended = now
            .ended
            .iter()
            .map(|(outcome, count)| (outcome.clone(), since(outcome, *count)));
        Some(Sample {
            at: now.at,
            over,
            queued: of("total_pending"),
            leased: of("leased"),
            oldest: status["oldest_due_s"].as_f64(),
            pages: now.pages.saturating_sub(before.pages),
            ended: ended.filter(|(_, count)| *count > 0).collect(),
            records: snapshot.records.map(Kept::from),
        })
    }
}

/// The samples, oldest first, and their file.
#[derive(Debug)]
pub(crate) struct History {
    samples: Vec<Sample>,
    path: Option<PathBuf>,
    /// The number of lines in the file.
    lines: usize,
    is_failing: bool,
}

impl History {
    /// Reads the stored samples. If the file cannot be read, the next sample begins a new one.
    pub(crate) fn open(state: Option<&Path>) -> History {
        let path = state.map(|state| state.join(FILE));
        let mut history = History {
            samples: Vec::new(),
            lines: 0,
            path,
            is_failing: false,
        };
        if let Some(Ok(file)) = history.path.as_ref().map(File::open) {
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            for line in lines.take(4 * MOST) {
                history.lines += 1;
                if let Ok(sample) = serde_json::from_str::<Sample>(&line) {
                    history.insert(sample);
                }
            }
            history.thin();
        }
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
    pub(crate) fn note(&mut self, sample: Sample) {
        let line = serde_json::to_string(&sample).unwrap_or_default() + "\n";
        self.insert(sample);
        self.thin();
        let written = match self.lines >= 2 * MOST {
            true => self.write_anew(),
            false => self.append(&line),
        };
        match written {
            Err(error) if !self.is_failing => {
                self.is_failing = true;
                tracing::warn!(event = "dashboard_history_unwritten", %error, "the dashboard's metrics over time cannot be stored");
            }
            Err(_) => {}
            Ok(()) => self.is_failing = false,
        }
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).mode(PRIVATE).open(path)?;
        file.write_all(line.as_bytes())?;
        self.lines += 1;
        Ok(())
    }

    fn write_anew(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let beside = path.with_extension("jsonl.new");
        let mut text = String::new();
        for sample in &self.samples {
            text += &serde_json::to_string(sample).unwrap_or_default();
            text.push('\n');
        }
        let mut options = OpenOptions::new();
        options
            .create(true)
            .write(true)
            .truncate(true)
            .mode(PRIVATE);
        let mut file = options.open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        self.lines = self.samples.len();
        Ok(())
    }

    /// Drops samples that are too old, and merges old ones.
    fn thin(&mut self) {
        let Some(last) = self.samples.last().map(|last| last.at) else {
            return;
        };
        let mut kept: Vec<Sample> = Vec::with_capacity(self.samples.len());
        for sample in self.samples.drain(..) {
            let age = last - sample.at;
            if age > KEPT_S {
                continue;
            }
            match kept.last_mut() {
                Some(before) if age > FINE_S && is_one_piece(before, &sample, PIECE_S) => {
                    before.add(&sample);
                }
                _ => kept.push(sample),
            }
        }
        let surplus = kept.len().saturating_sub(MOST);
        kept.drain(..surplus);
        self.samples = kept;
    }

    /// The samples of this many last seconds, merged to at most about `most`.
    pub(crate) fn since(&self, seconds: i64, most: usize) -> Vec<Sample> {
        let last = self.samples.last().map_or(0, |last| last.at);
        let piece_s = (seconds / most.max(1) as i64).max(1);
        let mut found: Vec<Sample> = Vec::new();
        for sample in self
            .samples
            .iter()
            .filter(|sample| last - sample.at < seconds)
        {
            match found.last_mut() {
                Some(before) if is_one_piece(before, sample, piece_s) => before.add(sample),
                _ => found.push(sample.clone()),
            }
        }
        found
    }
}

/// Whether two consecutive samples are merged: they are in the same piece of time, without a gap.
fn is_one_piece(before: &Sample, sample: &Sample, piece_s: i64) -> bool {
    before.at.div_euclid(piece_s) == sample.at.div_euclid(piece_s)
        && sample.at - sample.over - before.at < EVERY_S
}

impl Sample {
    /// Merges the following sample into this one.
    fn add(&mut self, next: &Sample) {
        let ended = std::mem::take(&mut self.ended);
        let (over, pages) = (self.over + next.over, self.pages + next.pages);
        let records = next.records.or(self.records);
        *self = Sample {
            over,
            pages,
            records,
            ..next.clone()
        };
        for (outcome, count) in ended {
            *self.ended.entry(outcome).or_default() += count;
        }
    }
}

/// Samples in the form for charts: a list for each metric, in order of time; null where unknown.
pub(crate) fn chart_json(samples: &[Sample]) -> Value {
    let mut columns = Columns::default();
    let mut outcomes: Vec<&String> = samples
        .iter()
        .flat_map(|sample| sample.ended.keys())
        .collect();
    outcomes.sort();
    outcomes.dedup();
    let mut ended_before = None;
    for sample in samples {
        let begins = sample.at - sample.over;
        if ended_before.is_some_and(|at| begins - at > EVERY_S) {
            columns.push(begins, None, &outcomes);
        }
        columns.push(sample.at, Some(sample), &outcomes);
        ended_before = Some(sample.at);
    }
    serde_json::to_value(columns).unwrap_or_default()
}

#[derive(Default, Serialize)]
struct Columns {
    at: Vec<i64>,
    queued: Vec<Option<u64>>,
    leased: Vec<Option<u64>>,
    oldest: Vec<Option<f64>>,
    pages_per_second: Vec<Option<f64>>,
    resolved: Vec<Option<u64>>,
    open: Vec<Option<u64>>,
    exhausted: Vec<Option<u64>>,
    /// Ended tasks per second.
    ended: BTreeMap<String, Vec<Option<f64>>>,
}

impl Columns {
    fn push(&mut self, at: i64, sample: Option<&Sample>, outcomes: &[&String]) {
        let per_second = |count: u64, sample: &Sample| {
            let rate = count as f64 / sample.over.max(1) as f64;
            (rate * 1_000.0).round() / 1_000.0
        };
        let records = sample.and_then(|sample| sample.records);
        self.at.push(at);
        self.queued.push(sample.map(|sample| sample.queued));
        self.leased.push(sample.map(|sample| sample.leased));
        self.oldest.push(sample.and_then(|sample| sample.oldest));
        self.pages_per_second
            .push(sample.map(|sample| per_second(sample.pages, sample)));
        self.resolved.push(records.map(|records| records.resolved));
        self.open.push(records.map(|records| records.open));
        self.exhausted
            .push(records.map(|records| records.exhausted));
        for outcome in outcomes {
            let count = |sample: &Sample| sample.ended.get(*outcome).copied().unwrap_or(0);
            let rate = sample.map(|sample| per_second(count(sample), sample));
            self.ended.entry((*outcome).clone()).or_default().push(rate);
        }
    }
}

#[cfg(test)]
mod tests;
