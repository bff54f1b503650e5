//! The costs of a tree of processes: CPU time to the end, and memory while it runs.
//!
//! CPU comes from the kernel's own sum over children that have been waited for, and over theirs. A sampler splits
//! that sum by role and reads the memory. All from /proc.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// /proc counts CPU time in ticks of a hundredth of a second, on every Linux of today.
const TICK: Duration = Duration::from_millis(10);

const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Memory is summed less often: the kernel walks every mapping for it.
const MEMORY_EVERY: Duration = Duration::from_millis(500);

/// Sums over a tree of processes, in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Shared pages counted once, divided among the processes that share them.
    pub pss_kib: u64,
    /// Shared pages counted for each process.
    pub rss_kib: u64,
}

/// The number of processes of each role, and their total memory.
pub type Roles = BTreeMap<String, (usize, Memory)>;

/// The costs of a finished tree of processes.
#[derive(Debug, Default)]
pub struct Cost {
    pub cpu: Duration,
    pub elapsed: Duration,
    /// CPU by role, as last sampled: a little less than `cpu` in all.
    pub roles: BTreeMap<String, Duration>,
    /// The largest sum seen.
    pub peak: Memory,
    /// Memory by role at that moment.
    pub peak_roles: Roles,
    pub exit_code: Option<i32>,
}

/// Runs a command to its end. `while_it_runs` is called with each sample of memory.
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
            // A process that has just begun or ended has no command line.
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
            let memory = memory(process.pid);
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
    /// Its first argument: `worker` of `webfill worker ...`.
    role: String,
    cpu: Duration,
}

fn process_tree(root: &Child) -> Vec<Process> {
    let mut found = Vec::new();
    let mut ahead = vec![root.id()];
    while let Some(pid) = ahead.pop() {
        // A process may end at any moment; then it is no longer counted.
        let Some(cpu) = read_cpu_time(&format!("/proc/{pid}/stat"), OWN) else {
            continue;
        };
        found.push(Process {
            pid,
            role: role_of(pid),
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

fn role_of(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut arguments = line.split(|byte| *byte == 0);
    let role = arguments.nth(1).unwrap_or_default();
    String::from_utf8_lossy(role.rsplit(|byte| *byte == b'/').next().unwrap_or_default())
        .into_owned()
}

/// Fields of /proc/PID/stat, counted after the name in brackets.
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

fn memory(pid: u32) -> Memory {
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
