//! Starts, watches and restarts one worker process.
//!
//! - *Waiting*: not running; started once `start_at` has come.
//! - *Starting*: running, but has not reported ready; killed after [`READY_TIMEOUT`] without a message.
//! - *Ready*: running; killed after [`HEARTBEAT_TIMEOUT`] without a message.
//!
//! A process that dies is restarted after an exponential backoff. After the exit codes 2 and 17, it would end in the
//! same way again, so the supervisor ends instead. Workers die with their supervisor (`PR_SET_PDEATHSIG`), so a killed
//! supervisor leaves none behind.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use webfill_service::child::{self, BackOff};
use webfill_service::{ExitStatus, Fault};
use webfill_wire::socket::SocketName;

/// The name of the socket to worker 0. The sockets of the other workers have the next numbers.
const FIRST_WORKER_SOCKET: SocketName = 100;

/// A ready worker that sends nothing for this long is stuck, and is killed.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(15);

/// A worker that has not reported ready after this long is killed.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The minimum time between a worker's death and its restart. The dispatcher sends a site's next task up to 300 ms
/// before the site's delay is over. Only the dead worker knew the exact time, so the next process must not start
/// before.
const MIN_RESTART_DELAY: Duration = Duration::from_millis(300);

/// A worker's process, and the time of its next start.
pub struct WorkerProcess {
    pub worker_index: u16,
    /// How many times the process was started.
    pub incarnation: u32,
    process: Option<Child>,
    back_off: BackOff,
    /// The earliest time of the next start; `None` if the process must not be started again.
    start_at: Option<Instant>,
    /// Whether the process has reported that it takes tasks.
    ready: bool,
    /// The time of the worker's last message, or of its start.
    last_message_at: Instant,
}

/// The result of [`WorkerProcess::poll`].
pub enum ProcessChange {
    /// The process is alive, or waits to be started again.
    Unchanged,
    /// The process exited with code 0, as only a drained worker does.
    Drained,
    /// The process died; `how` describes the death for the log.
    Died { how: String },
    /// The process exited with a fault that a restart would not repair.
    Broken(Fault),
}

impl WorkerProcess {
    pub fn new(worker_index: u16) -> WorkerProcess {
        WorkerProcess {
            worker_index,
            incarnation: 0,
            process: None,
            back_off: BackOff::starting_at(Instant::now()),
            start_at: Some(Instant::now()),
            ready: false,
            last_message_at: Instant::now(),
        }
    }

    pub fn socket(&self) -> SocketName {
        FIRST_WORKER_SOCKET + SocketName::from(self.worker_index)
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// The process id, if the process runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Whether the worker takes tasks.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether it is time to start the process.
    pub fn is_due_to_start(&self, now: Instant) -> bool {
        self.process.is_none() && self.start_at.is_some_and(|at| at <= now)
    }

    /// Starts the next process of this worker. Its socket must be open by then.
    pub fn start(&mut self, config_file: &Path, is_local: bool) -> std::io::Result<()> {
        let mut arguments = vec![
            "worker".to_owned(),
            "--config".to_owned(),
            config_file.display().to_string(),
            "--worker-index".to_owned(),
            self.worker_index.to_string(),
            "--incarnation".to_owned(),
            self.incarnation.to_string(),
        ];
        if is_local {
            arguments.push("--local".to_owned());
        }
        self.process = Some(child::spawn(&arguments, Stdio::piped())?);
        self.start_at = None;
        self.last_message_at = Instant::now();
        self.back_off.note_restart(Instant::now());
        Ok(())
    }

    /// Notes that a message of the process has arrived. `ready` means that it reports that the worker takes tasks.
    pub fn note_message(&mut self, ready: bool) {
        self.last_message_at = Instant::now();
        self.ready |= ready;
    }

    /// Kills a process that has sent nothing for too long. Returns whether it was killed.
    pub fn kill_if_silent(&mut self, now: Instant) -> bool {
        let limit = if self.ready {
            HEARTBEAT_TIMEOUT
        } else {
            READY_TIMEOUT
        };
        let silent = now.duration_since(self.last_message_at) > limit;
        match &mut self.process {
            // `poll` then finds the process dead, as after any other death.
            Some(process) if silent => process.kill().is_ok(),
            _ => false,
        }
    }

    /// Asks the operating system whether the process has ended.
    pub fn poll(&mut self) -> ProcessChange {
        let Some(process) = &mut self.process else {
            return ProcessChange::Unchanged;
        };
        let status = match process.try_wait() {
            Ok(None) => return ProcessChange::Unchanged,
            Ok(Some(status)) => status,
            Err(error) => {
                return ProcessChange::Died {
                    how: error.to_string(),
                };
            }
        };
        let message = child::last_stderr_line(process);
        self.process = None;
        self.ready = false;
        match status.code() {
            Some(0) => ProcessChange::Drained,
            Some(code) if code == i32::from(ExitStatus::Fatal.code()) => {
                ProcessChange::Broken(Fault::fatal(message))
            }
            Some(code) if code == i32::from(ExitStatus::Usage.code()) => {
                ProcessChange::Broken(Fault::usage(message))
            }
            _ => {
                let now = Instant::now();
                self.start_at = Some(self.back_off.note_death(now).max(now + MIN_RESTART_DELAY));
                let how = if message.is_empty() {
                    status.to_string()
                } else {
                    format!("{status}: {message}")
                };
                ProcessChange::Died { how }
            }
        }
    }
}
