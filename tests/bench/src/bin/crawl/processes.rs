//! Measures the costs of a tree of processes: the CPU time until its end, and the memory while it runs.
//!
//! The CPU time is the kernel's own sum over all ended children and their descendants. A sampler divides this sum by
//! role, and reads the memory. All figures come from /proc.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The unit of CPU times in /proc. It is a hundredth of a second on all common Linux systems.
const TICK: Duration = Duration::from_millis(10);

const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// The time between two samples of memory. It is longer than the one for CPU times, because the kernel walks every
/// memory mapping for a sample.
const MEMORY_EVERY: Duration = Duration::from_millis(500);

/// The memory of a tree of processes, in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The memory, counting a page shared by several processes only once (PSS).
    pub pss_kib: u64,
    /// The memory, counting a shared page for each process that has it (RSS).
    pub rss_kib: u64,
}

/// The number of processes of each role, and their total memory.
pub type Roles = BTreeMap<String, (usize, Memory)>;

/// The costs of a finished tree of processes.
#[derive(Debug, Default)]
pub struct Cost {
    pub cpu: Duration,
    pub elapsed: Duration,
    /// The CPU time by role, as last sampled. The sum is slightly less than `cpu`, because processes run on after their
    /// last sample.
    pub roles: BTreeMap<String, Duration>,
    /// The largest total memory that was sampled.
    pub peak: Memory,
    /// The memory by role at the time of `peak`.
    pub peak_roles: Roles,
    pub exit_code: Option<i32>,
}

/// Runs a command to its end and measures it. `while_it_runs` is called with each sample of memory.
pub fn measure(
    mut command: Command,
    mut while_it_runs: impl FnMut(&Roles),
) -> Result<Cost, Failure> {
    let before = children_cpu()?;
    let started = Instant::now();
    let mut child = command.spawn()?;
    let mut cost = Cost::default();
    let mut seen = BTreeMap::new();
    let mut memory_at = started;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let tree = process_tree(&child);
        for process in &tree {
            // Processes that have just begun or ended have no command line, so their role is unknown.
            if !process.role.is_empty() {
                seen.insert(process.pid, (process.role.clone(), process.cpu));
            }
        }
        if Instant::now() >= memory_at {
            memory_at = Instant::now() + MEMORY_EVERY;
            cost.note_memory(&tree, &mut while_it_runs);
        }
        std::thread::sleep(SAMPLE_EVERY);
    };
    cost.elapsed = started.elapsed();
    cost.cpu = children_cpu()? - before;
    cost.exit_code = status.code();
    for (role, cpu) in seen.into_values() {
        *cost.roles.entry(role).or_default() += cpu;
    }
    Ok(cost)
}

impl Cost {
    fn note_memory(&mut self, tree: &[Process], report: &mut impl FnMut(&Roles)) {
        let mut sum = Memory::default();
        let mut roles = Roles::new();
        for process in tree.iter().filter(|process| process.role != "crawl") {
            let memory = read_memory(process.pid);
            sum.add(memory);
            let (count, role_sum) = roles.entry(process.role.clone()).or_default();
            *count += 1;
            role_sum.add(memory);
        }
        report(&roles);
        if sum.pss_kib > self.peak.pss_kib {
            self.peak = sum;
            self.peak_roles = roles;
        }
    }
}

impl Memory {
    fn add(&mut self, other: Memory) {
        self.pss_kib += other.pss_kib;
        self.rss_kib += other.rss_kib;
    }
}

/// The CPU time so far of a process and of its live descendants.
pub fn cpu_of_tree(root: &Child) -> Duration {
    process_tree(root).iter().map(|process| process.cpu).sum()
}

struct Process {
    pid: u32,
    /// The first argument of the process, such as `worker` of `webfill worker ...`.
    role: String,
    cpu: Duration,
}

fn process_tree(root: &Child) -> Vec<Process> {
    let mut found = Vec::new();
    let mut ahead = vec![root.id()];
    while let Some(pid) = ahead.pop() {
        // A process without a CPU time has ended meanwhile, so it is left out.
        let Some(cpu) = read_cpu_time(&format!("/proc/{pid}/stat"), OWN) else {
            continue;
        };
        found.push(Process {
            pid,
            role: read_role(pid),
            cpu,
        });
        for task in fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            ahead.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    found
}

fn read_role(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut arguments = line.split(|byte| *byte == 0);
    let role = arguments.nth(1).unwrap_or_default();
    String::from_utf8_lossy(role.rsplit(|byte| *byte == b'/').next().unwrap_or_default())
        .into_owned()
}

/// The positions of CPU times in /proc/PID/stat, counted after the name in brackets: of the process itself, and of its
/// ended children.
const OWN: [usize; 2] = [11, 12];
const CHILDREN: [usize; 2] = [13, 14];

fn children_cpu() -> Result<Duration, Failure> {
    read_cpu_time("/proc/self/stat", CHILDREN).ok_or_else(|| "cannot read /proc/self/stat".into())
}

fn read_cpu_time(stat: &str, fields: [usize; 2]) -> Option<Duration> {
    let text = fs::read_to_string(stat).ok()?;
    let values: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
    let mut ticks = 0;
    for field in fields {
        ticks += values.get(field)?.parse::<u32>().ok()?;
    }
    Some(TICK * ticks)
}

fn read_memory(pid: u32) -> Memory {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let kib = |name: &str| {
        let line = rollup.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
            .unwrap_or(0)
    };
    Memory {
        pss_kib: kib("Pss:"),
        rss_kib: kib("Rss:"),
    }
}
