//! Starts the dispatcher and the supervisor of `webfill crawl`, restarts them if they die, and ends them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use webfill_service::child::{self, BackOff};
use webfill_service::{ExitStatus, Fault};

/// How long a process may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A process that dies this often in a row, each time within a minute after its start, is not restarted.
const MOST_EARLY_DEATHS: u32 = 5;

/// Whether a process was killed when it had nothing left to do but to end.
static KILLED_AT_END: AtomicBool = AtomicBool::new(false);

/// Whether the crawl failed only because one of its processes was killed while it was ending.
pub fn was_killed_at_end() -> bool {
    KILLED_AT_END.load(Ordering::Relaxed)
}

/// A child process with its role.
struct Process {
    role: &'static str,
    child: Child,
    last_line: Arc<Mutex<String>>,
    back_off: BackOff,
}

/// The two processes of a crawl.
pub struct Fleet {
    config_file: PathBuf,
    dispatcher: Process,
    supervisor: Process,
}

impl Fleet {
    /// Starts the dispatcher, then the supervisor, and waits until each is ready.
    pub fn start(config_file: &Path) -> Result<Fleet, Fault> {
        Ok(Fleet {
            dispatcher: Process::start("dispatcher", config_file)?,
            supervisor: Process::start("supervisor", config_file)?,
            config_file: config_file.to_owned(),
        })
    }

    /// Restarts dead processes. An error that a restart does not repair ends the crawl.
    pub fn restart_dead(&mut self) -> Result<(), Fault> {
        self.dispatcher.restart_if_dead(&self.config_file)?;
        self.supervisor.restart_if_dead(&self.config_file)
    }

    /// Waits for both processes to end. A dispatcher that drains also ends the supervisor. A supervisor that connects
    /// after that is drained by this function.
    pub fn wait(&mut self, give_up: &impl Fn() -> bool) -> Result<(), Fault> {
        if self.dispatcher.wait(give_up)? {
            if let Ok(None) = self.supervisor.child.try_wait() {
                child::request_drain(&self.supervisor.child);
            }
            if self.supervisor.wait(give_up)? {
                return Ok(());
            }
        }
        self.stop();
        Ok(())
    }

    /// Whether the dispatcher has ended.
    pub fn has_dispatcher_ended(&mut self) -> bool {
        matches!(self.dispatcher.child.try_wait(), Ok(Some(_)))
    }

    /// Kills both processes immediately. Their last commits are durable.
    pub fn stop(&mut self) {
        for process in [&mut self.supervisor, &mut self.dispatcher] {
            // An error means that the process has ended already.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Process {
    /// Starts a process. If it is killed before it is ready, for example by the kernel for lack of memory, it is
    /// started again.
    fn start(role: &'static str, config_file: &Path) -> Result<Process, Fault> {
        let mut deaths = 0;
        loop {
            match Process::try_start(role, config_file)? {
                Ok(process) => return Ok(process),
                Err((status, _)) if status.code().is_none() && deaths < MOST_EARLY_DEATHS => {
                    deaths += 1;
                }
                Err((_, fault)) => return Err(fault),
            }
        }
    }

    /// Starts a process once. The inner error means that it ended before it was ready.
    fn try_start(
        role: &'static str,
        config_file: &Path,
    ) -> Result<Result<Process, (std::process::ExitStatus, Fault)>, Fault> {
        let arguments = [
            role.to_owned(),
            "--config".to_owned(),
            config_file.display().to_string(),
            "--local".to_owned(),
        ];
        let mut child = child::spawn(&arguments, Stdio::piped())
            .map_err(|error| Fault::error(format!("cannot start the {role}: {error}")))?;
        let last_line = Arc::new(Mutex::new(String::new()));
        let ready = spawn_stderr_reader(&mut child, Arc::clone(&last_line));
        let mut process = Process {
            role,
            child,
            last_line,
            back_off: BackOff::starting_at(Instant::now()),
        };
        match ready.recv_timeout(READY_WITHIN) {
            Ok(()) => Ok(Ok(process)),
            Err(_) => match child::wait_at_most(&mut process.child, Duration::from_secs(1)) {
                Some(status) => Ok(Err((status, process.fault_of_exit(status)))),
                None => {
                    let _ = process.child.kill();
                    Err(Fault::error(format!(
                        "the {role} does not become ready; see its log"
                    )))
                }
            },
        }
    }

    /// Waits for the process to end successfully. Returns false if `give_up` returned true before.
    fn wait(&mut self, give_up: &impl Fn() -> bool) -> Result<bool, Fault> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(true),
                Ok(Some(_)) if give_up() => return Ok(false),
                Ok(Some(status)) => {
                    let is_killed = status.code().is_none();
                    KILLED_AT_END.store(is_killed, Ordering::Relaxed);
                    return Err(self.fault_of_exit(status));
                }
                _ if give_up() => return Ok(false),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn restart_if_dead(&mut self, config_file: &Path) -> Result<(), Fault> {
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status,
            _ => return Ok(()),
        };
        let fault = self.fault_of_exit(status);
        tracing::error!(
            event = "process_died",
            role = self.role,
            fault = fault.message,
            "a process died"
        );
        let again =
            fault.status == ExitStatus::Error && self.back_off.early_deaths() < MOST_EARLY_DEATHS;
        if !again {
            return Err(fault);
        }
        let at = self.back_off.note_death(Instant::now());
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        let mut process = Process::start(self.role, config_file)?;
        std::mem::swap(&mut process.back_off, &mut self.back_off);
        process.back_off.note_restart(Instant::now());
        *self = process;
        Ok(())
    }

    /// The error the process ended with, made from its last line on standard error.
    fn fault_of_exit(&self, status: std::process::ExitStatus) -> Fault {
        // The line may still be in the pipe.
        std::thread::sleep(Duration::from_millis(50));
        let words = self
            .last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let words = words.trim_start_matches("webfill: ").trim();
        let message = match words {
            "" | "ready" => format!("the {} ended: {status}", self.role),
            words => words.to_owned(),
        };
        match status.code() {
            Some(code) if code == i32::from(ExitStatus::Fatal.code()) => Fault::fatal(message),
            Some(code) if code == i32::from(ExitStatus::Usage.code()) => Fault::usage(message),
            _ => Fault::error(message),
        }
    }
}

/// Reads the child's standard error to its end. It signals the line `ready` to the receiver, and stores the last line.
fn spawn_stderr_reader(child: &mut Child, last_line: Arc<Mutex<String>>) -> mpsc::Receiver<()> {
    let (send_ready, ready) = mpsc::channel();
    let stderr = child.stderr.take();
    std::thread::spawn(move || {
        let Some(stderr) = stderr else { return };
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line == "ready" {
                // An error means that nobody waits for the line any more.
                let _ = send_ready.send(());
            }
            if !line.trim().is_empty() {
                *last_line.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        }
    });
    ready
}
