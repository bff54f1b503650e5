//! The dispatcher and the supervisor of `webfill crawl`: started, watched, started again if they
//! die, and ended in order.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use webfill_startup::child::{self, BackOff};
use webfill_startup::{ExitStatus, Fault};

/// A process that is not ready by then is not going to be.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A process that dies so often within a minute of its start each time is given up.
const MOST_EARLY_DEATHS: u32 = 5;

/// A role that this crawl runs as a process of its own.
struct Process {
    role: &'static str,
    child: Child,
    last_words: Arc<Mutex<String>>,
    back_off: BackOff,
}

/// Both processes.
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

    /// Starts again what has died; a fault that a restart does not mend ends the crawl.
    pub fn look_after(&mut self) -> Result<(), Fault> {
        self.dispatcher.look_after(&self.config_file)?;
        self.supervisor.look_after(&self.config_file)
    }

    /// Waits for both to end. A dispatcher told to drain sees to that, but for a supervisor that
    /// came to join when the dispatcher had drained already.
    pub fn wait(&mut self, give_up: &impl Fn() -> bool) -> Result<(), Fault> {
        if self.dispatcher.ends(give_up)? {
            if let Ok(None) = self.supervisor.child.try_wait() {
                child::ask_to_drain(&self.supervisor.child);
            }
            if self.supervisor.ends(give_up)? {
                return Ok(());
            }
        }
        self.stop();
        Ok(())
    }

    /// Ends both at once. Their state is as their last commit left it.
    pub fn stop(&mut self) {
        for process in [&mut self.supervisor, &mut self.dispatcher] {
            // Already ended is as good.
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
    fn start(role: &'static str, config_file: &Path) -> Result<Process, Fault> {
        let arguments = [
            role.to_owned(),
            "--config".to_owned(),
            config_file.display().to_string(),
            "--local".to_owned(),
        ];
        let mut child = child::spawn(&arguments, Stdio::piped())
            .map_err(|error| Fault::error(format!("cannot start the {role}: {error}")))?;
        let last_words = Arc::new(Mutex::new(String::new()));
        let ready = listen(&mut child, Arc::clone(&last_words));
        let mut process = Process {
            role,
            child,
            last_words,
            back_off: BackOff::started(Instant::now()),
        };
        match ready.recv_timeout(READY_WITHIN) {
            Ok(()) => Ok(process),
            Err(_) => match child::wait_at_most(&mut process.child, Duration::from_secs(1)) {
                Some(status) => Err(process.fault(status)),
                None => {
                    let _ = process.child.kill();
                    Err(Fault::error(format!(
                        "the {role} does not become ready; its log says why"
                    )))
                }
            },
        }
    }

    /// Waits for the process to end as it should; false if that was given up.
    fn ends(&mut self, give_up: &impl Fn() -> bool) -> Result<bool, Fault> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(true),
                Ok(Some(_)) if give_up() => return Ok(false),
                Ok(Some(status)) => return Err(self.fault(status)),
                _ if give_up() => return Ok(false),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn look_after(&mut self, config_file: &Path) -> Result<(), Fault> {
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status,
            _ => return Ok(()),
        };
        let fault = self.fault(status);
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
        let at = self.back_off.died(Instant::now());
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        let mut process = Process::start(self.role, config_file)?;
        std::mem::swap(&mut process.back_off, &mut self.back_off);
        process.back_off.restarted(Instant::now());
        *self = process;
        Ok(())
    }

    /// How the process ended, in its own last words where there are any.
    fn fault(&self, status: std::process::ExitStatus) -> Fault {
        // The line may still be on its way through the pipe.
        std::thread::sleep(Duration::from_millis(50));
        let words = self
            .last_words
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

/// Reads the child's standard error to its end: the line `ready`, and the last words.
fn listen(child: &mut Child, last_words: Arc<Mutex<String>>) -> mpsc::Receiver<()> {
    let (tell_ready, ready) = mpsc::channel();
    let stderr = child.stderr.take();
    std::thread::spawn(move || {
        let Some(stderr) = stderr else { return };
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line == "ready" {
                // Nobody waits for a second one.
                let _ = tell_ready.send(());
            }
            if !line.trim().is_empty() {
                *last_words.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        }
    });
    ready
}
