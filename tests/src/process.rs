//! Finds the processes of one webfill run from outside, through `/proc`.
//!
//! Every process of a run inherits a mark in its environment. So it is found even if its parent was killed and it has
//! moved to another process group.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The environment variable with the mark. Each run has another value.
pub const MARK: &str = "TEST_RUN_MARK";

/// A live process of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    pub pid: u32,
    pub arguments: Vec<String>,
}

impl Process {
    /// The subcommand of the process, such as `crawl`, `dispatcher`, `supervisor` or `worker`.
    pub fn role(&self) -> &str {
        self.arguments.get(1).map_or("", String::as_str)
    }

    pub fn signal(&self, signal: Signal) {
        send_signal(self.pid, signal);
    }

    /// The most RAM that the process has used so far, in bytes; 0 if it has ended.
    pub fn peak_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}

/// The RAM that a process uses now, in bytes; 0 if it has ended. The memory that processes share is divided among them.
pub fn pss_bytes(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Sends a signal to a process. Does nothing if the process has ended.
pub fn send_signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// The live processes with this mark. The oldest comes first.
pub fn find_marked(mark: &str) -> Vec<Process> {
    let mark = format!("{MARK}={mark}");
    let mut found: Vec<Process> = all_pids()
        .filter(|pid| has_mark(*pid, &mark))
        .filter_map(|pid| {
            Some(Process {
                pid,
                arguments: read_arguments(pid)?,
            })
        })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// Kills all processes with the mark, and waits until they have ended. A marked process may start another one at any
/// time, so this is repeated until none is left.
pub fn kill_marked(mark: &str) {
    for _ in 0..1_000 {
        let found = find_marked(mark);
        if found.is_empty() {
            return;
        }
        for process in found {
            process.signal(Signal::KILL);
        }
        // The kernel needs a moment to remove a killed process.
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn all_pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn has_mark(pid: u32, mark: &str) -> bool {
    // The environment is empty for zombies and for processes that have just ended.
    let environment = fs::read(Path::new("/proc").join(pid.to_string()).join("environ"));
    let environment = environment.unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable == mark.as_bytes())
}

fn read_arguments(pid: u32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then_some(words)
}
