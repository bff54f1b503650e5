//! Keeps a web's server and the measured processes on different cores, so that neither takes the other's time or cache.
//!
//! Threads and processes inherit the cores of the thread that starts them, so it is enough to move that one.

use std::process::Command;

use crate::failure::Failure;

/// Runs `work`, which starts servers, on the last core.
pub fn run_on_last_core<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    run_on_core(<[usize]>::last, work)
}

/// Runs `work`, which starts measured processes, on the first core.
pub fn run_on_first_core<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    run_on_core(<[usize]>::first, work)
}

/// Runs `work` on the chosen core. If there is only one core, everything shares it.
fn run_on_core<T>(
    choose: fn(&[usize]) -> Option<&usize>,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let allowed = allowed_cores()?;
    let cores = parse_list(&allowed);
    match choose(&cores).filter(|_| cores.len() > 1) {
        None => work(),
        Some(core) => {
            keep_to(&core.to_string())?;
            let done = work();
            keep_to(&allowed)?;
            done
        }
    }
}

/// The list of this thread's cores, such as `0-3,6`.
fn allowed_cores() -> Result<String, Failure> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(list
        .ok_or("Linux does not name the cores")?
        .trim()
        .to_owned())
}

fn parse_list(list: &str) -> Vec<usize> {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Moves this thread to the cores in the list.
fn keep_to(list: &str) -> Result<(), Failure> {
    let thread = std::fs::read_link("/proc/thread-self")?;
    let thread = thread.file_name().ok_or("this thread has no number")?;
    let moved = Command::new("taskset")
        .args(["--pid", "--cpu-list", list])
        .arg(thread)
        .output()?;
    match moved.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&moved.stderr).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_has_ranges() {
        assert_eq!(parse_list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(parse_list("1"), [1]);
    }
}
