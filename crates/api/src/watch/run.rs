//! The permanent record of a watch's run: when it was due, how it went, what it found.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::schedule::{LastRun, Schedule};

/// The record of a run. Times are milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchRun {
    /// The number of the run, counted from 1.
    pub number: u64,
    pub due_ms: i64,
    pub started_ms: i64,
    /// When the run ended; `None` while it is under way.
    pub ended_ms: Option<i64>,
    pub how: Option<RunEnd>,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Earlier due times without a run, because no process was waiting.
    #[serde(default)]
    pub missed: u64,
    /// How many due times passed while the run was under way.
    #[serde(default)]
    pub skipped: u64,
    /// The numbers of pages, outcomes, fields and records.
    #[serde(default)]
    pub counts: Map<String, Value>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Everything was checked.
    Finished,
    /// The run fetched as many pages as its budget allows.
    Budget,
    /// The run's time window was over.
    Window,
    /// All remaining sites were backing off for longer than `patience`.
    BackingOff,
    /// The machine could not reach the web for longer than `patience`.
    Offline,
    /// A signal ended the run.
    Interrupted,
    /// The crawl of the run was stopped, or its watch removed.
    Stopped,
    /// A fault ended the run.
    Failed,
}

impl RunEnd {
    pub fn as_str(self) -> &'static str {
        match self {
            RunEnd::Finished => "finished",
            RunEnd::Budget => "budget",
            RunEnd::Window => "window",
            RunEnd::BackingOff => "backing_off",
            RunEnd::Offline => "offline",
            RunEnd::Interrupted => "interrupted",
            RunEnd::Stopped => "stopped",
            RunEnd::Failed => "failed",
        }
    }
}

impl WatchRun {
    pub fn new(number: u64, due_ms: i64, started_ms: i64) -> WatchRun {
        WatchRun {
            number,
            due_ms,
            started_ms,
            ended_ms: None,
            how: None,
            why: None,
            missed: 0,
            skipped: 0,
            counts: Map::new(),
        }
    }

    /// Ends the run, and counts the due times that it has skipped.
    pub fn end(&mut self, ended_ms: i64, how: RunEnd, why: Option<String>, schedule: &Schedule) {
        self.ended_ms = Some(ended_ms.max(self.started_ms));
        self.how = Some(how);
        self.why = why;
        if let Some(last) = self.times() {
            self.skipped = schedule.count_skipped_during(&last);
        }
    }

    /// The times of the run; `None` while it is under way.
    pub fn times(&self) -> Option<LastRun> {
        Some(LastRun {
            due_ms: self.due_ms,
            started_ms: self.started_ms,
            ended_ms: self.ended_ms?,
        })
    }

    /// The run for people and programs; times are seconds since the epoch.
    pub fn json(&self) -> Value {
        let seconds = |ms: i64| ms as f64 / 1_000.0;
        json!({
            "run": self.number,
            "due": seconds(self.due_ms),
            "started": seconds(self.started_ms),
            "ended": self.ended_ms.map(seconds),
            "how": self.how,
            "why": self.why,
            "missed": self.missed,
            "skipped": self.skipped,
            "counts": self.counts,
        })
    }
}
