//! The records of a watch's runs on one machine: a file of JSON lines in the state folder. A run has one line when it
//! begins and another when it has ended. The last line of a run counts. If a process dies before its run has ended, the
//! next process resumes the run.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use webfill_api::{RunEnd, Schedule, Watch, WatchRun};
use webfill_notifications::append_line;
use webfill_service::Fault;
use webfill_service::state::PRIVATE;

use super::watch::{End, Limit};
use crate::feeding::now_ms;
use crate::summary::Summary;

/// How many times a run may be resumed if its processes are killed at its end.
const MOST_GONE_ON: usize = 5;

/// The run of a watch (a crawl with a schedule) that a crawl carries out.
#[derive(Debug, Clone)]
pub struct WatchedRun {
    pub watch: Watch,
    /// When the run was due, in milliseconds since the epoch; `None` if the user has requested it now.
    pub due_ms: Option<i64>,
}

/// The file that records the runs of a watch.
pub struct RunFile {
    path: PathBuf,
}

impl RunFile {
    pub fn new(state: &Path, name: &str) -> RunFile {
        let name = name.replace(':', "_");
        RunFile {
            path: state.join(format!("runs-{name}.jsonl")),
        }
    }

    /// The last run, if there was one. A truncated line from a crash is skipped.
    pub fn last_run(&self) -> Result<Option<WatchRun>, Fault> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.file_fault("read", &error)),
        };
        let mut runs = text.lines().rev();
        Ok(runs.find_map(|line| serde_json::from_str(line).ok()))
    }

    /// The latest runs that have ended, newest first.
    pub fn latest_ended_runs(&self, most: u64) -> Result<Vec<WatchRun>, Fault> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(self.file_fault("read", &error)),
        };
        let runs = text.lines().rev();
        let runs = runs.filter_map(|line| serde_json::from_str::<WatchRun>(line).ok());
        let ended = runs.filter(|run| run.ended_ms.is_some());
        Ok(ended.take(most as usize).collect())
    }

    fn count_run_lines(&self, number: u64) -> Result<usize, Fault> {
        let text = std::fs::read_to_string(&self.path);
        let text = text.map_err(|error| self.file_fault("read", &error))?;
        let runs = text.lines().rev();
        let runs = runs.filter_map(|line| serde_json::from_str::<WatchRun>(line).ok());
        Ok(runs.take_while(|run| run.number == number).count())
    }

    /// Appends the state of a run as a line, and waits until it is on disk.
    fn append_run(&self, run: &WatchRun) -> Result<(), Fault> {
        let opened = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .mode(PRIVATE)
            .open(&self.path);
        opened
            .and_then(|file| append_line(file, &json!(run)))
            .map_err(|error| self.file_fault("write", &error))
    }

    fn file_fault(&self, what: &str, error: &std::io::Error) -> Fault {
        Fault::error(format!("cannot {what} {}: {error}", self.path.display()))
    }
}

/// The record of the current run, and the file that it is written to.
pub struct RunRecord {
    file: RunFile,
    run: WatchRun,
    schedule: Schedule,
    window: Option<Duration>,
    /// When the time window of the run ended; set only if no process was working on the run at that time.
    over_ms: Option<i64>,
}

impl RunRecord {
    /// Begins the next run, or resumes one that has not ended. The state folder is locked, so no other process uses
    /// it.
    pub fn begin(watched: &WatchedRun, state: &Path) -> Result<RunRecord, Fault> {
        let watch = &watched.watch;
        let file = RunFile::new(state, &watch.name);
        let last = file.last_run()?;
        let now_ms = now_ms();
        let window_ms = watch.window_ms;
        let mut over_ms = None;
        let run = match last {
            Some(run) if run.ended_ms.is_none() => {
                let passed = window_ms.map(|window_ms| run.started_ms.saturating_add(window_ms));
                over_ms = passed.filter(|over_ms| *over_ms <= now_ms);
                run
            }
            last => {
                // The run must begin after all earlier fetches, even if the clock was set back meanwhile.
                let ended_ms = last.as_ref().and_then(|last| last.ended_ms);
                let began_ms = ended_ms.map_or(now_ms, |ended_ms| now_ms.max(ended_ms + 1));
                let number = last.map_or(1, |last| last.number + 1);
                let due_ms = watched.due_ms.unwrap_or(began_ms);
                let mut run = WatchRun::new(number, due_ms, began_ms);
                run.missed = watch.schedule.count_due_between(due_ms, began_ms);
                file.append_run(&run)?;
                run
            }
        };
        Ok(RunRecord {
            file,
            run,
            schedule: watch.schedule.clone(),
            window: watch.window_ms.map(|ms| Duration::from_millis(ms as u64)),
            over_ms,
        })
    }

    pub fn began_ms(&self) -> i64 {
        self.run.started_ms
    }

    /// How long the run may take in total.
    pub fn window_ms(&self) -> Option<i64> {
        self.window.map(|window| window.as_millis() as i64)
    }

    /// The scheduled time between two runs.
    pub fn period_ms(&self) -> Option<i64> {
        self.schedule.period_ms(self.run.started_ms)
    }

    /// How long the run may still take; `None` without a window.
    pub fn remaining_window(&self) -> Option<Duration> {
        let gone_ms = now_ms().saturating_sub(self.run.started_ms).max(0);
        let gone = Duration::from_millis(gone_ms as u64);
        self.window.map(|window| window.saturating_sub(gone))
    }

    /// Appends a line that lets the next process resume the run although this process has failed. Returns false after
    /// too many attempts, because the run itself may be the cause.
    pub fn allow_resumption(&self) -> Result<bool, Fault> {
        let begun = self.file.count_run_lines(self.run.number)?;
        if begun > MOST_GONE_ON {
            return Ok(false);
        }
        self.file.append_run(&self.run)?;
        Ok(true)
    }

    /// Notes in memory how the run has ended. [`RunRecord::write_end`] writes it to the file.
    pub fn note_end(&mut self, ended: &Result<(Summary, End), Fault>) {
        // If the time window of the run ended while no process was working on it, the run ended at that time. So runs
        // that became due later still take place.
        let ended_ms = self.over_ms.unwrap_or_else(now_ms);
        let (how, why) = match ended {
            Ok((_, end)) => (run_end(*end), None),
            Err(fault) => (RunEnd::Failed, Some(fault.message.clone())),
        };
        self.run.end(ended_ms, how, why, &self.schedule);
        if let Ok((summary, _)) = ended {
            self.run.counts = counts_to_record(summary);
        }
    }

    pub fn run(&self) -> &WatchRun {
        &self.run
    }

    /// Writes the end of the run to the file.
    pub fn write_end(self) -> Result<(), Fault> {
        self.file.append_run(&self.run)
    }
}

fn run_end(end: End) -> RunEnd {
    match end {
        End::Finished => RunEnd::Finished,
        End::Interrupted => RunEnd::Interrupted,
        End::Limit(Limit::Pages) => RunEnd::Budget,
        End::Limit(Limit::Time) => RunEnd::Window,
        End::Limit(Limit::Backoffs) => RunEnd::BackingOff,
        End::Limit(Limit::Offline) => RunEnd::Offline,
    }
}

/// The counts of the summary that are kept in the record of the run.
fn counts_to_record(summary: &Summary) -> Map<String, Value> {
    const KEPT: &[&str] = &[
        "pages",
        "outcomes",
        "skipped",
        "records",
        "fields",
        "rows",
        "rows_stored",
        "links",
        "bytes",
        "queued",
        "sites",
    ];
    let whole = summary.json();
    let kept = KEPT
        .iter()
        .map(|key| ((*key).to_owned(), whole[*key].clone()));
    let found = ["changes", "documents", "unmatched"]
        .map(|key| (key.to_owned(), whole["found"][key].clone()))
        .into_iter()
        // A count is null if it was not requested or could not be made.
        .filter(|(_, count)| !count.is_null());
    kept.chain(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_always_dies_at_its_end_is_not_resumed_forever() {
        let folder = tempfile::tempdir().unwrap();
        let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "every 1h"});
        let watched = WatchedRun {
            watch: Watch::parse(watch).unwrap(),
            due_ms: None,
        };
        for _ in 0..MOST_GONE_ON {
            let record = RunRecord::begin(&watched, folder.path()).unwrap();
            assert_eq!(record.run().number, 1);
            assert!(record.allow_resumption().unwrap());
        }
        let mut record = RunRecord::begin(&watched, folder.path()).unwrap();
        assert!(!record.allow_resumption().unwrap());
        record.note_end(&Err(Fault::error("killed")));
        record.write_end().unwrap();
        let next = RunRecord::begin(&watched, folder.path()).unwrap();
        assert_eq!(next.run().number, 2);
        assert!(next.allow_resumption().unwrap());
        let file = RunFile::new(folder.path(), "w");
        let text = std::fs::read_to_string(&file.path).unwrap();
        assert!(text.lines().all(|line| !line.is_empty()), "{text}");
    }
}
