//! What the operating system knows of a process, and which build it is.

use std::fs;

use webfill_wire::codec::WIRE_VERSION;

use crate::exposition::{Exposition, Family};

/// Adds the series that tells which build runs.
pub fn add_build(page: &mut Exposition) {
    let wire = WIRE_VERSION.to_string();
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("wire_version", &*wire),
    ];
    page.gauge("webfill_build_info", "The build that runs; always 1.")
        .with(&labels, 1);
}

/// Adds the resident memory of a process, as far as it can be read: it may have ended.
pub fn add_process(family: &mut Family<'_>, labels: &[(&str, &str)], pid: u32) {
    if let Some(bytes) = resident_bytes(pid) {
        family.with(labels, bytes);
    }
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_process_that_runs_is_known() {
        let own = resident_bytes(std::process::id()).unwrap();
        assert!(own > 100 << 10, "{own}");
        assert_eq!(resident_bytes(u32::MAX), None);
    }
}
