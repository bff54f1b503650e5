//! Runs of `webfill fill` as child processes. Each leads its own process group, so it gets signals only from this
//! process. It drains if this process is killed.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;
use webfill_service::{Fault, child};

use super::input::Signals;

/// How many runs are remembered after their end. The results of older runs are in the files beside their tables.
const MOST_ENDED: usize = 64;

/// How many bytes of a run's output are kept.
const MOST_PRINTED: u64 = 64 << 10;
/// How many of the last lines of its standard error are kept.
const MOST_LINES: usize = 20;
/// How many bytes of each line of standard error are kept.
const LONGEST_LINE: u64 = 64 << 10;

/// When the server ends: how long runs may drain, and how long they may take to stop after that.
const DRAINS_FOR: Duration = Duration::from_secs(10);
const STOPS_FOR: Duration = Duration::from_secs(5);

/// How often to check for the end of a run that has closed its pipes.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// The prefix of the program's own messages.
const PREFIX: &str = "webfill: ";

/// All runs of this server. Only one runs at a time. Each run has its own dispatcher, so two runs together would
/// request pages of a site at twice the allowed rate.
#[derive(Debug, Default)]
pub struct Fills(Mutex<Runs>);

#[derive(Debug, Default)]
struct Runs {
    /// The runs by the paths of their tables.
    by_table: BTreeMap<PathBuf, Arc<Fill>>,
    /// Whether the server is ending, so that no further run starts.
    is_ending: bool,
}

/// A run of `webfill fill`.
#[derive(Debug)]
pub struct Fill {
    child: Arc<Mutex<Child>>,
    was_asked_to_stop: AtomicBool,
    /// Whether the run only shows its plan.
    pub is_dry: bool,
    pub state: watch::Receiver<FillState>,
}

#[derive(Debug, Clone, Default)]
pub struct FillState {
    /// The last line of progress of each kind.
    pub progress: Map<String, Value>,
    pub end: Option<End>,
}

#[derive(Debug, Clone)]
pub struct End {
    /// The exit code; `None` if a signal killed the run.
    pub code: Option<i32>,
    /// The output of the run: the plan, and the summary in sentences.
    pub printed: String,
    /// The last message of the run on standard error.
    pub said: String,
}

impl Fills {
    /// Starts a run. `name` is the table's name for people.
    pub fn start(
        &self,
        table: &Path,
        name: &str,
        arguments: &[String],
        is_dry: bool,
    ) -> Result<Arc<Fill>, Fault> {
        let mut runs = lock(&self.0);
        if runs.is_ending {
            return Err(Fault::interrupted("the server is ending"));
        }
        let fills = &mut runs.by_table;
        if fills.get(table).is_some_and(|fill| fill.is_running()) {
            return Err(Fault::usage(format!(
                "{name} is being completed: `fill_state` shows how far it is, `fill_stop` stops it"
            )));
        }
        if fills.values().any(|fill| fill.is_running()) {
            return Err(Fault::usage(
                "another table is being completed, and one is at a time: wait for it, or stop it",
            ));
        }
        if fills.len() >= MOST_ENDED {
            fills.clear();
        }
        let fill = Arc::new(Fill::spawn(arguments, is_dry)?);
        fills.insert(table.to_owned(), Arc::clone(&fill));
        Ok(fill)
    }

    pub fn get(&self, table: &Path) -> Option<Arc<Fill>> {
        lock(&self.0).by_table.get(table).cloned()
    }

    /// Drains all runs and waits for their ends. After a signal, or if draining takes too long, they are stopped
    /// immediately.
    pub async fn end_all(&self, signals: &mut Signals) {
        let fills: Vec<Arc<Fill>> = {
            let mut runs = lock(&self.0);
            runs.is_ending = true;
            runs.by_table.values().cloned().collect()
        };
        // Skip runs that are draining already, because a second request would stop them immediately.
        let undrained = fills.iter().filter(|fill| !fill.was_asked_to_stop());
        undrained.for_each(|fill| fill.stop());
        for (patience, is_last) in [(DRAINS_FOR, false), (STOPS_FOR, true)] {
            if is_last {
                fills.iter().for_each(|fill| fill.stop());
            }
            tokio::select! {
                () = wait_for_all(&fills) => return,
                () = tokio::time::sleep(patience) => {}
                () = signals.next() => {}
            }
        }
        fills.iter().for_each(|fill| fill.kill());
    }
}

async fn wait_for_all(fills: &[Arc<Fill>]) {
    for fill in fills {
        fill.wait().await;
    }
}

impl Fill {
    fn spawn(arguments: &[String], is_dry: bool) -> Result<Fill, Fault> {
        let started = child::own_program()
            .arg("fill")
            .arg("--progress=json")
            .arg(format!("--parent-process={}", std::process::id()))
            .args(arguments)
            // With this variable, the command would complete a collection instead of the table.
            .env_remove("WEBFILL_RECORDS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut started = started
            .map_err(|error| Fault::error(format!("cannot start `webfill fill`: {error}")))?;
        let (stdout, stderr) = (started.stdout.take(), started.stderr.take());
        let (stdout, stderr) = stdout.zip(stderr).expect("both are pipes");
        let (states, state) = watch::channel(FillState::default());
        let child = Arc::new(Mutex::new(started));
        let attended = Arc::clone(&child);
        std::thread::spawn(move || follow_run(&attended, stdout, stderr, &states));
        Ok(Fill {
            child,
            was_asked_to_stop: AtomicBool::new(false),
            is_dry,
            state,
        })
    }

    pub fn is_running(&self) -> bool {
        self.state.borrow().end.is_none()
    }

    pub fn was_asked_to_stop(&self) -> bool {
        self.was_asked_to_stop.load(Ordering::Relaxed)
    }

    pub async fn wait(&self) {
        let mut state = self.state.clone();
        // An error means that the thread which follows the run is gone.
        let _ = state.wait_for(|state| state.end.is_some()).await;
    }

    /// Stops the run. The first call drains it: fetches in progress are finished. The second call stops it immediately.
    /// Fetched pages are kept.
    pub fn stop(&self) {
        self.was_asked_to_stop.store(true, Ordering::Relaxed);
        let mut child = lock(&self.child);
        // The child was not waited for yet, so no other process can have its id.
        if let Ok(None) = child.try_wait() {
            child::request_drain(&child);
        }
    }

    fn kill(&self) {
        child::kill_group_and_wait(&mut lock(&self.child));
    }
}

/// Stops a run on drop, because its caller no longer wants it.
pub struct StopOnDrop(pub Option<Arc<Fill>>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(fill) = &self.0 {
            fill.stop();
        }
    }
}

/// Follows a run to its end.
fn follow_run(
    child: &Mutex<Child>,
    stdout: ChildStdout,
    stderr: ChildStderr,
    states: &watch::Sender<FillState>,
) {
    let printing = std::thread::spawn(move || read_beginning(stdout));
    let mut said = VecDeque::new();
    for line in Lines(BufReader::new(stderr)) {
        match parse_event(&line) {
            Some((kind, event)) => states.send_modify(|state| {
                state.progress.insert(kind, event);
            }),
            None => {
                said.push_back(line);
                if said.len() > MOST_LINES {
                    said.pop_front();
                }
            }
        }
    }
    let printed = printing.join().unwrap_or_default();
    // The run has closed its pipes, so it is about to end.
    let status = loop {
        let ended = lock(child).try_wait();
        match ended {
            Ok(None) => std::thread::sleep(POLL_EVERY),
            Ok(Some(status)) => break Some(status),
            Err(_) => break None,
        }
    };
    states.send_modify(|state| {
        state.end = Some(End {
            code: status.and_then(|status| status.code()),
            printed,
            said: last_message(said.make_contiguous()),
        });
    });
}

/// Reads the output to its end, but returns only its beginning.
fn read_beginning(mut output: impl Read) -> String {
    let mut start = Vec::new();
    let _ = output.by_ref().take(MOST_PRINTED).read_to_end(&mut start);
    let _ = std::io::copy(&mut output, &mut std::io::sink());
    String::from_utf8_lossy(&start).into_owned()
}

/// The lines of a stream. Lines that are too long are truncated.
struct Lines<R>(R);

impl<R: BufRead> Iterator for Lines<R> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = self
            .0
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line);
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }
}

/// Parses a line of progress. Also returns its kind.
fn parse_event(line: &str) -> Option<(String, Value)> {
    let event: Value = serde_json::from_str(line).ok()?;
    let kind = event.get("kind")?.as_str()?.to_owned();
    Some((kind, event))
}

/// The last message that the program has printed on standard error. It may have several lines.
fn last_message(said: &[String]) -> String {
    let start = said.iter().rposition(|line| line.starts_with(PREFIX));
    let said = said[start.unwrap_or(0)..].join("\n");
    said.strip_prefix(PREFIX).unwrap_or(&said).to_owned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_on_standard_error_is_found() {
        let said = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|&line| line.into()).collect();
            last_message(&lines)
        };
        assert_eq!(said(&[]), "");
        assert_eq!(said(&["a panic"]), "a panic");
        assert_eq!(
            said(&["webfill: one", "webfill: two", "  more of it"]),
            "two\n  more of it"
        );
    }

    #[test]
    fn long_lines_are_read_in_bounded_memory() {
        let long = "x".repeat(200_000);
        let text = format!("one\r\n{{\"kind\": \"fill\"}}\n{long}\nlast");
        let lines: Vec<String> = Lines(text.as_bytes()).collect();
        assert_eq!((lines[0].as_str(), lines.len()), ("one", 7));
        assert_eq!(parse_event(&lines[1]).unwrap().0, "fill");
        assert!(lines.iter().all(|line| line.len() as u64 <= LONGEST_LINE));
        assert_eq!(parse_event("{}"), None);
        assert_eq!(parse_event("webfill: {"), None);
    }
}
