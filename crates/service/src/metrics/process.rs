//! Metrics of processes, read from the operating system, and of the running build.

use std::fs;

use webfill_wire::codec::WIRE_VERSION;

use crate::metrics::exposition::Exposition;

/// The unit of times in `/proc`. It is a constant of Linux's interface, whatever the kernel uses internally.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process that metrics report on, with the labels of its time series.
#[derive(Debug)]
pub struct ReportedProcess<'l> {
    pub pid: u32,
    pub labels: Vec<(&'static str, &'l str)>,
}

/// Facts about a process.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ProcessFacts {
    resident_bytes: u64,
    /// When the process started, in seconds since 1970 by the current wall clock.
    started_s: f64,
    cpu_s: f64,
    open_files: u64,
    most_files: u64,
}

/// Adds the time series with the version of the running program.
pub fn add_build(page: &mut Exposition) {
    let wire = WIRE_VERSION.to_string();
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("wire_version", &*wire),
    ];
    page.add_gauge("webfill_build_info", "The build that runs; always 1.")
        .add_series(&labels, 1);
}

/// Adds how many times the role was started with its state folder.
pub fn add_starts(page: &mut Exposition, starts: u64) {
    page.add_counter(
        "webfill_starts_total",
        "Starts of the role on its state folder. The count is kept there, so it also shows a crash loop whose processes all die before the next scrape.",
    )
    .set_value(starts);
}

/// Adds the metrics of these processes, as far as they can be read: a process may have just ended. Except for the first
/// one, the metrics have the names that all Prometheus clients use.
pub fn add_processes(page: &mut Exposition, processes: &[ReportedProcess<'_>]) {
    let known: Vec<(&ReportedProcess<'_>, ProcessFacts)> = processes
        .iter()
        .filter_map(|process| Some((process, read_process_facts(process.pid)?)))
        .collect();
    let mut gauge = |name, help, value: fn(&ProcessFacts) -> f64| {
        let mut family = page.add_gauge(name, help);
        for (process, facts) in &known {
            family.add_series(&process.labels, value(facts));
        }
    };
    gauge(
        "webfill_process_resident_memory_bytes",
        "Memory in RAM of the dispatcher, the supervisor and each worker (by its index), without browsers and readers of documents.",
        |facts| facts.resident_bytes as f64,
    );
    gauge(
        "process_start_time_seconds",
        "Start of the process, in seconds since the epoch.",
        |facts| facts.started_s,
    );
    gauge("process_open_fds", "Open file descriptors.", |facts| {
        facts.open_files as f64
    });
    gauge(
        "process_max_fds",
        "Maximum number of open file descriptors.",
        |facts| facts.most_files as f64,
    );
    let mut cpu = page.add_counter(
        "process_cpu_seconds_total",
        "User and kernel CPU time of the process.",
    );
    for (process, facts) in &known {
        cpu.add_series(&process.labels, facts.cpu_s);
    }
}

fn read_process_facts(pid: u32) -> Option<ProcessFacts> {
    let folder = format!("/proc/{pid}");
    let read = |name: &str| fs::read_to_string(format!("{folder}/{name}")).ok();
    let (cpu_ticks, started_ticks) = parse_ticks(&read("stat")?)?;
    let resident_kib = number_after(&read("status")?, "VmRSS:")?;
    Some(ProcessFacts {
        resident_bytes: resident_kib << 10,
        started_s: boot_time_s()? as f64 + started_ticks as f64 / TICKS_PER_SECOND,
        cpu_s: cpu_ticks as f64 / TICKS_PER_SECOND,
        open_files: fs::read_dir(format!("{folder}/fd")).ok()?.count() as u64,
        most_files: number_after(&read("limits")?, "Max open files")?,
    })
}

/// The CPU time of a process, and the time from boot to its start, in ticks. `stat` contains the name of the process in
/// parentheses, and the name may contain any character.
fn parse_ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, after_name) = stat.rsplit_once(')')?;
    // The first field after the name is number 3 of the file: the state of the process.
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some((field(14)?.checked_add(field(15)?)?, field(22)?))
}

/// When the machine booted, in seconds since 1970. This is read each time, because it changes when the wall clock is
/// set.
fn boot_time_s() -> Option<u64> {
    number_after(&fs::read_to_string("/proc/stat").ok()?, "btime")
}

/// The first number after `beginning` in the first line that begins with it.
fn number_after(text: &str, beginning: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_facts_of_a_running_process_are_read() {
        let now_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs_f64();
        let before = read_process_facts(std::process::id()).unwrap();
        assert!(before.resident_bytes > 100 << 10, "{before:?}");
        assert!(before.started_s > now_s - 86_400.0, "{before:?}");
        assert!(before.started_s < now_s + 2.0, "{before:?}");
        assert!(before.most_files >= before.open_files, "{before:?}");
        let file = fs::File::open("/proc/self/stat").unwrap();
        let after = read_process_facts(std::process::id()).unwrap();
        assert!(after.open_files > 3 && after.cpu_s >= before.cpu_s);
        drop(file);
        assert_eq!(read_process_facts(u32::MAX), None);
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_is_no_field() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 17 18 4711 20";
        for name in ["webfill", "a ) b (", "9 9 9"] {
            let stat = format!("42 ({name}) {rest}");
            assert_eq!(parse_ticks(&stat), Some((300, 4711)), "{name}");
        }
        assert_eq!(parse_ticks("42 (short) S 1 2"), None);
    }
}
