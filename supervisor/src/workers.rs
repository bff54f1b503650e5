//! Worker processes: started, watched, started again with growing waits.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use webfill_startup::child::{self, BackOff};
use webfill_startup::{ExitStatus, Fault};
use webfill_wire::socket::SocketName;

/// The sockets to the workers are named from here on, one per slot.
const FIRST_WORKER_SOCKET: SocketName = 100;

/// A worker unheard of for this long hangs.
const SILENT: Duration = Duration::from_secs(15);

/// A worker that is not ready by then is not going to be.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A slot rests at least this long after a death. Sites with delays up to the dispatcher's
/// lookahead (300 ms) have their next tasks here before the last answer; the one who knew when
/// that was is dead.
const REST: Duration = Duration::from_millis(300);

/// One worker slot.
pub struct Worker {
    pub slot: u16,
    /// Counts the starts.
    pub incarnation: u32,
    process: Option<Child>,
    back_off: BackOff,
    /// When a dead worker may be started again.
    start_at: Option<Instant>,
    /// It has said that it is ready.
    ready: bool,
    /// When it was last heard of, or started.
    heard: Instant,
}

/// What a look at a worker's process found.
pub enum Sight {
    /// Alive, or still waiting to be started again.
    Unchanged,
    /// It ended as it should, after a drain.
    Drained,
    /// It died; how is for the log.
    Died { how: String },
    /// It ended with a fault that a restart does not mend.
    Broken(Fault),
}

impl Worker {
    pub fn new(slot: u16) -> Worker {
        Worker {
            slot,
            incarnation: 0,
            process: None,
            back_off: BackOff::started(Instant::now()),
            start_at: Some(Instant::now()),
            ready: false,
            heard: Instant::now(),
        }
    }

    pub fn socket(&self) -> SocketName {
        FIRST_WORKER_SOCKET + SocketName::from(self.slot)
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether it is time to start the process.
    pub fn is_to_start(&self, now: Instant) -> bool {
        self.process.is_none() && self.start_at.is_some_and(|at| at <= now)
    }

    /// Starts the next incarnation; its socket must be open by then.
    pub fn start(&mut self, config_file: &Path) -> std::io::Result<()> {
        let arguments = [
            "worker".to_owned(),
            "--config".to_owned(),
            config_file.display().to_string(),
            "--slot".to_owned(),
            self.slot.to_string(),
            "--incarnation".to_owned(),
            self.incarnation.to_string(),
        ];
        self.process = Some(child::spawn(&arguments, Stdio::piped())?);
        self.start_at = None;
        self.heard = Instant::now();
        self.back_off.restarted(Instant::now());
        Ok(())
    }

    /// It has said something, perhaps that it is ready.
    pub fn heard(&mut self, ready: bool) {
        self.heard = Instant::now();
        self.ready |= ready;
    }

    /// Ends a worker that has not been heard of for too long: it hangs, on a page or as a whole.
    pub fn end_if_silent(&mut self, now: Instant) -> bool {
        let limit = if self.ready { SILENT } else { READY_WITHIN };
        let silent = now.duration_since(self.heard) > limit;
        match &mut self.process {
            // Its death is noticed, and accounted for, like any other.
            Some(process) if silent => process.kill().is_ok(),
            _ => false,
        }
    }

    /// Looks after the process.
    pub fn look(&mut self) -> Sight {
        let Some(process) = &mut self.process else {
            return Sight::Unchanged;
        };
        let status = match process.try_wait() {
            Ok(None) => return Sight::Unchanged,
            Ok(Some(status)) => status,
            Err(error) => {
                return Sight::Died {
                    how: error.to_string(),
                };
            }
        };
        let words = last_words(process);
        self.process = None;
        self.ready = false;
        match status.code() {
            Some(0) => Sight::Drained,
            Some(code) if code == i32::from(ExitStatus::Fatal.code()) => {
                Sight::Broken(Fault::fatal(words))
            }
            Some(code) if code == i32::from(ExitStatus::Usage.code()) => {
                Sight::Broken(Fault::usage(words))
            }
            _ => {
                let now = Instant::now();
                self.start_at = Some(self.back_off.died(now).max(now + REST));
                let how = if words.is_empty() {
                    status.to_string()
                } else {
                    format!("{status}: {words}")
                };
                Sight::Died { how }
            }
        }
    }
}

/// The last line that the process wrote on standard error, where faults and panics go.
fn last_words(process: &mut Child) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = &mut process.stderr {
        // What cannot be read leaves the exit status as the only account.
        let _ = stderr.take(64 << 10).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or_default()
        .trim_start_matches("webfill: ")
        .to_owned()
}
