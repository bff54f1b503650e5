//! A run of the `webfill` binary: its arguments, its processes, and its end. All processes of a run are ended with the
//! test.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::isolation::Network;
use crate::memory_limit::MemoryLimit;
use crate::process::{self, MARK, Process};
use crate::summary::Summary;

/// The default time limit of a run.
const TIME_LIMIT: Duration = Duration::from_secs(90);

/// How soon all other processes of a run must end after the first one has ended.
const AFTERLIFE: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(25);

/// The binary under test. It is next to the folder of the test binary.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let profile = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("tests run in target/PROFILE/deps");
    let binary = profile.join("webfill");
    assert!(
        binary.exists(),
        "{} is missing: run `cargo build` first",
        binary.display()
    );
    binary
}

/// The build of webfill that a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// The build under test.
    Today,
    /// The latest release, which `tests/released.sh` builds.
    Released,
}

impl Build {
    pub fn binary(self) -> PathBuf {
        match self {
            Build::Today => binary(),
            Build::Released => {
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/released/webfill")
            }
        }
    }
}

/// A run that has not been started yet.
pub struct Run {
    pub(crate) command: Command,
    pub(crate) args: Vec<OsString>,
    mark: String,
    input: Option<Vec<u8>>,
    stdin: Option<Stdio>,
    time_limit: Duration,
}

impl Run {
    /// Prepares a run of `webfill ARGS...`. Its environment has no proxies, no settings and no terminal.
    pub fn new<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Run {
        Run::of_build(Build::Today, args)
    }

    /// Prepares a run of another build.
    pub fn of_build<A: AsRef<OsStr>>(build: Build, args: impl IntoIterator<Item = A>) -> Run {
        Run::of_program(&build.binary()).args(args)
    }

    fn of_program(program: &Path) -> Run {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let mark = format!(
            "{}-{}",
            std::process::id(),
            RUNS.fetch_add(1, Ordering::SeqCst)
        );
        let mut command = Command::new(program);
        command
            .env_clear()
            .env(MARK, &mark)
            .env("PATH", "/usr/bin:/bin");
        command
            .env("LANG", "C.UTF-8")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Run {
            command,
            args: Vec::new(),
            mark,
            input: None,
            stdin: None,
            time_limit: TIME_LIMIT,
        }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Run {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Run {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.args.extend(args);
        self
    }

    /// Replaces the value of a flag that is already among the arguments.
    pub fn replace_flag(mut self, flag: &str, value: impl AsRef<OsStr>) -> Run {
        let place = self.args.iter().position(|arg| arg == flag);
        let place = place.unwrap_or_else(|| panic!("{flag} was not given before"));
        self.args[place + 1] = value.as_ref().to_owned();
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Run {
        self.command.env(name, value);
        self
    }

    /// Makes the run take place in another network, as on another machine (see [`Network`]).
    pub fn in_network(self, network: &Network) -> Run {
        let (enter, argument) = network.entry_command();
        let mut wrapper = Command::new(enter);
        wrapper.arg(argument);
        self.wrapped_in(wrapper)
    }

    /// Makes the run take place with limited memory, as on a small machine.
    pub fn with_memory_limit(self, limit: &MemoryLimit) -> Run {
        let mut wrapper = Command::new("/bin/sh");
        wrapper.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        wrapper.arg(limit.members_file());
        self.wrapped_in(wrapper)
    }

    /// Makes another program start the run. This program (`command`) must execute the command that follows its own
    /// arguments.
    fn wrapped_in(mut self, mut command: Command) -> Run {
        command.arg(self.command.get_program());
        command.env_clear();
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        let variables = self.command.get_envs();
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command = command;
        self
    }

    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Run {
        self.command.current_dir(folder.into());
        self
    }

    /// Sets the content of standard input, which is empty otherwise.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Run {
        self.input = Some(input.into());
        self
    }

    /// Sets the source of standard input, such as a pipe, for a test that writes to it during the run.
    pub fn stdin(mut self, stdin: impl Into<Stdio>) -> Run {
        self.stdin = Some(stdin.into());
        self
    }

    pub fn time_limit(mut self, limit: Duration) -> Run {
        self.time_limit = limit;
        self
    }

    pub fn start(mut self) -> Running {
        self.command.args(&self.args);
        let stdin = self.stdin.take();
        self.command.stdin(match self.input {
            Some(_) => Stdio::piped(),
            None => stdin.unwrap_or_else(Stdio::null),
        });
        let mut child = self.command.spawn().expect("the binary can be executed");
        if let (Some(input), Some(mut pipe)) = (self.input.take(), child.stdin.take()) {
            // A run that does not read its input may close the pipe, so errors of writing are ignored.
            std::thread::spawn(move || drop(pipe.write_all(&input)));
        }
        Running {
            stdout: CapturedOutput::from_pipe(child.stdout.take().expect("stdout is piped")),
            stderr: CapturedOutput::from_pipe(child.stderr.take().expect("stderr is piped")),
            child,
            mark: self.mark,
            started: Instant::now(),
            deadline: Instant::now() + self.time_limit,
        }
    }

    /// Runs the command to its end. Returns the result.
    pub fn finish(self) -> Finished {
        self.start().finish()
    }
}

/// The output of a run. A thread reads it, so that the run is never blocked by a full pipe.
struct CapturedOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl CapturedOutput {
    fn from_pipe(mut pipe: impl Read + Send + 'static) -> CapturedOutput {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                sink.lock()
                    .expect("no panic while holding it")
                    .extend_from_slice(&buffer[..length]);
            }
        });
        CapturedOutput {
            bytes,
            thread: Some(thread),
        }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no panic while holding it")).into_owned()
    }

    /// Waits for the end of the output and returns all of it. All processes that hold the pipe must have ended.
    fn read_to_end(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("reading does not panic");
        }
        self.so_far()
    }
}

/// A run in progress. When this value is dropped, all processes of the run are killed.
pub struct Running {
    child: Child,
    mark: String,
    stdout: CapturedOutput,
    stderr: CapturedOutput,
    started: Instant,
    deadline: Instant,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit status of the first process; `None` as long as it runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child
            .try_wait()
            .expect("our own child can be waited for")
    }

    /// The live processes of this run, including the first one.
    pub fn processes(&self) -> Vec<Process> {
        process::find_marked(&self.mark)
    }

    pub fn processes_of_role(&self, role: &str) -> Vec<Process> {
        let mut found = self.processes();
        found.retain(|process| process.role() == role);
        found
    }

    /// Waits until `count` processes with this role are alive. Returns them.
    pub fn wait_for_role(&mut self, role: &str, count: usize) -> Vec<Process> {
        self.wait_until(&format!("{count} {role} processes live"), |run| {
            run.processes_of_role(role).len() >= count
        });
        self.processes_of_role(role)
    }

    /// Kills the oldest process with this role by `kill -9`. Returns its process id.
    pub fn kill_role(&mut self, role: &str) -> u32 {
        let victim = self.wait_for_role(role, 1).remove(0);
        victim.signal(Signal::KILL);
        victim.pid
    }

    /// Sends a signal to the first process, as a user at the terminal would.
    pub fn signal(&self, signal: Signal) {
        process::send_signal(self.child.id(), signal);
    }

    /// Whether the first process has signals that it has not received yet.
    pub fn has_pending_signals(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.unwrap_or_default();
        let mut pending = status
            .lines()
            .filter_map(|line| line.strip_prefix("ShdPnd:"));
        pending.any(|mask| mask.trim().chars().any(|digit| digit != '0'))
    }

    pub fn wait_until(&mut self, what: &str, condition: impl Fn(&Running) -> bool) {
        while !condition(self) {
            if let Ok(Some(status)) = self.child.try_wait() {
                // The condition may have become true between the last check and the end of the run.
                assert!(
                    condition(self),
                    "ended with {status} before {what}:\n{}",
                    self.output()
                );
                return;
            }
            assert!(
                Instant::now() < self.deadline,
                "waited in vain until {what}:\n{}",
                self.output()
            );
            std::thread::sleep(POLL);
        }
    }

    /// Waits until standard error contains `text`.
    pub fn wait_for_stderr(&mut self, text: &str) {
        self.wait_until(&format!("standard error says `{text}`"), |run| {
            run.stderr.so_far().contains(text)
        });
    }

    /// The standard output so far. The last line may be incomplete.
    pub fn stdout_so_far(&self) -> String {
        self.stdout.so_far()
    }

    /// The standard error so far. The last line may be incomplete.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.so_far()
    }

    fn output(&self) -> String {
        format!(
            "stdout:\n{}\nstderr:\n{}",
            self.stdout.so_far(),
            self.stderr.so_far()
        )
    }

    /// Waits until the first process and all other processes have ended. Panics if this takes too long.
    pub fn finish(mut self) -> Finished {
        let status = self.wait();
        let elapsed = self.started.elapsed();
        self.wait_for_stragglers();
        Finished {
            status,
            elapsed,
            stdout: self.stdout.read_to_end(),
            stderr: self.stderr.read_to_end(),
        }
    }

    fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.exit_status() {
                return status;
            }
            assert!(
                Instant::now() < self.deadline,
                "the run did not end in time:\n{}",
                self.output()
            );
            std::thread::sleep(POLL);
        }
    }

    fn wait_for_stragglers(&self) {
        let deadline = Instant::now() + AFTERLIFE;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "left behind: {left:#?}\n{}",
                self.output()
            );
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        process::kill_marked(&self.mark);
        // The process has already ended, so this only removes the zombie.
        let _ = self.child.wait();
    }
}

/// A run whose processes have all ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub elapsed: Duration,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Checks that the run has ended with this exit code. If it has not, panics and shows all output.
    pub fn expect_code(self, code: i32) -> Finished {
        let found = self.status.code();
        let Finished {
            status,
            stdout,
            stderr,
            ..
        } = &self;
        assert_eq!(
            found,
            Some(code),
            "ended with {status}\nstdout:\n{stdout}\nstderr:\n{stderr}"
        );
        self
    }

    /// The summary that a run with `--summary json` has printed.
    pub fn summary(&self) -> Summary {
        Summary::parse(&self.stdout)
    }

    /// The only line on standard error. Panics if there is no line or more than one.
    pub fn one_sentence(&self) -> &str {
        let mut lines = self.stderr.lines().filter(|line| !line.trim().is_empty());
        let sentence = lines.next().expect("a sentence on standard error");
        assert_eq!(
            lines.next(),
            None,
            "more than one line on standard error:\n{}",
            self.stderr
        );
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        sentence
    }
}

#[cfg(test)]
mod tests;
