//! The process of a dispatcher in a separate folder.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_bench::program::binary;

use crate::Failure;

/// The address of the measured dispatchers. It is not the default, so that a fleet on this machine is not disturbed.
pub const HOST: &str = "127.7.7.10";

/// The address where a standby answers probes.
const PROBES: &str = "127.7.7.10:8090";

/// The delay between two requests to a site, in milliseconds.
pub const DELAY_MS: u32 = 100;

const READY_WITHIN: Duration = Duration::from_secs(600);
const CHECK_EVERY: Duration = Duration::from_millis(50);

pub struct Dispatcher {
    process: Child,
    store: String,
    /// The folder of the dispatcher's state, which is removed when this value is dropped.
    folder: tempfile::TempDir,
}

impl Dispatcher {
    /// Starts a dispatcher that serves.
    pub fn start(store: &str, has_journal: bool) -> Result<Dispatcher, Failure> {
        let journal = has_journal.to_string();
        let started = Dispatcher::run(
            store,
            &[],
            &[("WEBFILL_DISPATCHER_JOURNAL", journal.as_str())],
        )?;
        let log = started.folder.path().join("stderr");
        wait_until("a dispatcher serves", || {
            Ok(fs::read_to_string(&log)?.contains("ready"))
        })?;
        Ok(started)
    }

    /// Starts another dispatcher, which stands by and has an empty folder.
    pub fn start_standby(&self) -> Result<Dispatcher, Failure> {
        Dispatcher::run(
            &self.store,
            &["--standby"],
            &[("WEBFILL_PROBES_DISPATCHER", PROBES)],
        )
    }

    fn run(store: &str, args: &[&str], more: &[(&str, &str)]) -> Result<Dispatcher, Failure> {
        let folder = tempfile::tempdir()?;
        let process = Command::new(binary()?)
            .args([
                "dispatcher",
                "--listen",
                HOST,
                "--state",
                "state",
                "--store",
                store,
            ])
            .args(args)
            .env("WEBFILL_DISPATCHER_HTTP", "off")
            .env(
                "WEBFILL_POLITENESS_DELAY",
                (f64::from(DELAY_MS) / 1e3).to_string(),
            )
            .envs(more.iter().copied())
            .current_dir(folder.path())
            .stderr(File::create(folder.path().join("stderr"))?)
            .spawn()?;
        Ok(Dispatcher {
            process,
            store: store.to_owned(),
            folder,
        })
    }

    /// The number of the last record in the dispatcher's journal.
    pub fn last_record(&self) -> Result<u64, Failure> {
        let socket = zmq::Context::new().socket(zmq::REQ)?;
        socket.connect(&format!("tcp://{HOST}:5557"))?;
        socket.send(json!({"action": "status"}).to_string().into_bytes(), 0)?;
        let status: Value = serde_json::from_slice(&socket.recv_bytes(0)?)?;
        let record = status["journal"]["record"].as_u64();
        Ok(record.ok_or("the dispatcher has no journal")?)
    }

    /// Waits until the standby has applied the journal's record with this number.
    pub fn wait_for_record(&self, record: u64) -> Result<(), Failure> {
        let mut reported = String::new();
        wait_until("a standby is ready", || {
            let status = read_status().unwrap_or_default();
            let words = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
            if words(&status) != words(&reported) {
                reported.clone_from(&status);
                println!("  {status}");
            }
            let applied = status
                .split_once("record ")
                .filter(|_| status.contains("is applied"));
            let number = applied.and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
            Ok(number.is_some_and(|number| number >= record))
        })
    }

    /// The CPU time of the dispatcher's process. Linux counts it in hundredths of a second, in the columns after the
    /// name in parentheses.
    pub fn cpu_time(&self) -> Result<Duration, Failure> {
        let stat = self.read_proc("stat")?;
        let columns = stat.rsplit(") ").next().unwrap_or_default();
        let ticks = columns.split(' ').skip(11).take(2);
        let ticks = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }

    pub fn peak_mib(&self) -> Result<f64, Failure> {
        let status = self.read_proc("status")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().split(' ').next()?.parse::<f64>().ok());
        Ok(kib.ok_or("no memory figures in /proc")? / 1_024.0)
    }

    fn read_proc(&self, name: &str) -> Result<String, Failure> {
        let of_process = Path::new("/proc").join(self.process.id().to_string());
        Ok(fs::read_to_string(of_process.join(name))?)
    }
}

/// The answer of the standby to a probe.
fn read_status() -> Result<String, Failure> {
    let mut stream = TcpStream::connect(PROBES)?;
    write!(
        stream,
        "GET /readyz HTTP/1.1\r\nHost: {PROBES}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer
        .rsplit("\r\n\r\n")
        .next()
        .unwrap_or_default()
        .to_owned())
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > READY_WITHIN {
            return Err(format!("waited for {READY_WITHIN:?} in vain until {what}").into());
        }
        std::thread::sleep(CHECK_EVERY);
    }
    Ok(())
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // If the process has already ended, these calls fail.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
