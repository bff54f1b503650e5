//! The costs of a fleet: the processor time and the messages of the dispatcher for each task, and the memory of each
//! process.

use std::time::Instant;

use serde_json::Value;
use webfill_tests::process::pss_bytes;
use webfill_tests::units::Units;

use crate::machines::Client;

/// The number of ticks per second. The kernel counts the processor time of processes in ticks.
const TICKS_PER_SECOND: f64 = 100.0;

const MIB: f64 = 1_048_576.0;

/// The counters of the dispatcher at one moment.
pub(crate) struct Counters {
    at: Instant,
    cpu_s: f64,
    done: f64,
    messages: f64,
}

impl Counters {
    pub(crate) fn read(units: &Units, client: &Client) -> Counters {
        let status = client.status().expect("the dispatcher answers");
        let number = |value: &Value| value.as_f64().expect("a number");
        let messages = &status["messages"];
        Counters {
            at: Instant::now(),
            cpu_s: cpu_s(units.pid("dispatcher").expect("it was started")),
            done: number(&status["done"]),
            messages: number(&messages["received"]) + number(&messages["sent"]),
        }
    }

    /// The differences from earlier counters, as lines of a table: name and value.
    pub(crate) fn rows_since(&self, before: &Counters) -> Vec<(&'static str, String)> {
        let seconds = (self.at - before.at).as_secs_f64();
        let tasks = self.done - before.done;
        let cpu_s = self.cpu_s - before.cpu_s;
        let messages = self.messages - before.messages;
        vec![
            ("tasks a second", format!("{:.1}", tasks / seconds)),
            (
                "dispatcher, CPU for a task",
                format!("{:.2} ms", cpu_s * 1e3 / tasks),
            ),
            (
                "dispatcher, share of a core",
                format!("{:.1} %", cpu_s * 100.0 / seconds),
            ),
            ("messages for a task", format!("{:.2}", messages / tasks)),
            ("messages a second", format!("{:.0}", messages / seconds)),
        ]
    }
}

/// The processor time that a process has used, in seconds.
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let field = |number: usize| -> f64 {
        let text = fields.split(' ').nth(number).unwrap_or_default();
        text.parse().unwrap_or(0.0)
    };
    // The fields `utime` and `stime` of the process. Their numbers count from the field after the command name.
    (field(11) + field(12)) / TICKS_PER_SECOND
}

/// The memory of the processes of each role, as lines of a table: the mean and the largest peak of a process, including
/// shared pages. A further mean divides shared pages among the processes.
pub(crate) fn memory_rows(units: &Units) -> Vec<(&'static str, String)> {
    let processes = units.processes();
    let roles = [
        ("dispatcher", "memory of the dispatcher"),
        ("supervisor", "memory of a supervisor"),
        ("worker", "memory of a worker"),
    ];
    let of_role = |(role, what): (&str, &'static str)| {
        let own: Vec<_> = processes.iter().filter(|one| one.role() == role).collect();
        let count = own.len().max(1) as f64;
        let peaks: Vec<f64> = own
            .iter()
            .map(|one| one.peak_bytes() as f64 / MIB)
            .collect();
        let mean = peaks.iter().sum::<f64>() / count;
        let most = peaks.iter().copied().fold(0.0, f64::max);
        let shared = own.iter().map(|one| pss_bytes(one.pid) as f64).sum::<f64>() / MIB / count;
        let reported = format!(
            "{mean:.1} MiB at its peak, {most:.1} at most; {shared:.1} with the program shared"
        );
        (what, reported)
    };
    roles.into_iter().map(of_role).collect()
}
