//! Runs `webfill fill` and measures its time and memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use webfill_bench::program::binary;
use webfill_bench::sites::Failure;

use crate::catalogue::Table;
use crate::write_table;

/// The time between two readings of the peak memory. The kernel forgets it when the process ends.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

pub struct Cost {
    pub seconds: f64,
    /// How long the command itself ran on a core. On a busy machine, the elapsed time says little.
    pub core_seconds: f64,
    /// The largest memory of the command itself. The processes of its crawl do not count.
    pub peak_kib: u64,
}

/// Runs `webfill fill` on the table in this folder, without delays. Returns its time and memory.
pub fn fill(
    table: &Table,
    folder: &Path,
    address: &str,
    doubts: Option<&str>,
) -> Result<Cost, Failure> {
    write_table(table, folder)?;
    let resolve = format!("*:80:{address}");
    let mut command = Command::new(binary()?);
    command
        .args(["fill", "books.csv", "--delay", "0", "--progress", "none"])
        .args(["--allow-private-networks", "--resolve", &resolve])
        .current_dir(folder)
        .stdout(Stdio::null());
    if let Some(doubts) = doubts {
        command.args(["--doubts", doubts]);
    }
    let began = Instant::now();
    let mut child = command.spawn()?;
    let (mut peak_kib, mut used) = (0, 0.0);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak_kib = peak_kib.max(read_peak_memory(child.id()).unwrap_or(0));
        used = read_core_seconds(child.id()).unwrap_or(used);
        std::thread::sleep(SAMPLE_EVERY);
    };
    match status.success() {
        true => Ok(Cost {
            seconds: began.elapsed().as_secs_f64(),
            core_seconds: used,
            peak_kib,
        }),
        false => Err(format!("webfill fill ended with {status}").into()),
    }
}

fn read_peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// The time that all threads of a process have spent on cores, in user and in system mode.
fn read_core_seconds(process: u32) -> Option<f64> {
    /// The unit of these times is a hundredth of a second, whatever tick the kernel itself uses.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The fields come after the name of the process, which may contain spaces.
    let (_, figures) = stat.rsplit_once(") ")?;
    let mut times = figures.split(' ').skip(11).map(str::parse::<u64>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    Some((user + system) as f64 / TICKS)
}

/// Removes the learned mappings, but not the stored pages.
pub fn remove_mappings(folder: &Path) -> Result<(), Failure> {
    for name in ["mappings", "learned"] {
        std::fs::remove_dir_all(folder.join("books.webfill").join(name))?;
    }
    Ok(())
}

/// Answers every doubt in the file with `accept`.
pub fn accept_all(folder: &Path) -> Result<(), Failure> {
    let file = folder.join("books.doubts.csv");
    let mut reader = csv::Reader::from_path(&file)?;
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(reader.headers()?)?;
    for record in reader.records() {
        let record = record?;
        let cells = record.iter().take(record.len() - 1);
        out.write_record(cells.chain(["accept"]))?;
    }
    let text = out.into_inner().map_err(|error| error.to_string())?;
    Ok(std::fs::write(file, text)?)
}
