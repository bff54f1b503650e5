//! The restarted dispatcher, and the simulated fleet that waits for it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use webfill_wire::socket::{ArrivedFrame, Outbox, Pattern, SocketSpec, Sockets};
use webfill_wire::{Credit, DispatcherToSupervisor, Hello, Lane, codec, handshake};

use crate::Failure;
use crate::state::{MadeState, supervisor_name};

/// The address of the measured dispatcher. It is not the default, so that a fleet on this machine is not disturbed.
const HOST: &str = "127.7.7.8";

/// The address of the fleet's dashboard.
pub const DASHBOARD: &str = "127.7.7.8:8080";

/// How long a supervisor waits before it repeats its hello (its request to join).
const HELLO_EVERY: Duration = Duration::from_secs(1);

/// The number of supervisors that share one thread of sockets. libzmq allows about a thousand sockets in each thread's
/// context.
const OF_ONE_THREAD: usize = 125;

const PATIENCE: Duration = Duration::from_secs(120);

/// A dispatcher that serves, and the details of its start.
pub struct StartedDispatcher {
    pub dispatcher: Process,
    /// The supervisors' sockets. The fleet is connected as long as they exist.
    _sockets: Vec<Sockets>,
    pub begun: StartTimes,
    /// The CPU time that the dispatcher used until the whole fleet was served.
    pub cpu: Duration,
}

/// Times from the start of the dispatcher's process.
pub struct StartTimes {
    pub tasks_after: Duration,
    pub welcomed: usize,
    pub welcomed_within: Duration,
}

/// A process that is killed when this value is dropped.
pub struct Process(Child);

impl Process {
    /// The peak memory of the process, in MiB.
    pub fn peak_mib(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        Ok(kib.ok_or("no memory figures in /proc")?.parse::<f64>()? / 1_024.0)
    }

    /// The CPU time of the process. Linux counts it in hundredths of a second. The columns come after the name in
    /// parentheses.
    fn cpu_time(&self) -> Result<Duration, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let columns = stat.rsplit(") ").next().unwrap_or_default();
        let ticks = columns.split(' ').skip(11).take(2);
        let ticks = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn restart(binary: &Path, dir: &Path, made: &MadeState) -> Result<StartedDispatcher, Failure> {
    let (heard, arrivals) = mpsc::channel();
    let tasks = format!("tcp://{HOST}:5555");
    let waiting: Vec<SocketSpec> = (0..made.held.len() as u32)
        .map(|name| SocketSpec::connect(name, Pattern::Dealer, &tasks))
        .collect();
    let mut sockets = Vec::new();
    for waiting in waiting.chunks(OF_ONE_THREAD) {
        let heard = heard.clone();
        sockets.push(Sockets::start(waiting.to_vec(), move |arrived| {
            let _ = heard.send(arrived);
        })?);
    }
    let outboxes: Vec<Outbox> = sockets.iter().map(Sockets::outbox).collect();
    let begun = Instant::now();
    let dispatcher = Command::new(binary)
        .args(["dispatcher", "--listen", HOST, "--state", "."])
        .args(["--store", "sqlite:webfill.db"])
        .args(["--http", DASHBOARD])
        .current_dir(dir)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
    let dispatcher = Process(dispatcher);
    let begun = wait_for_tasks(begun, made, &outboxes, &arrivals)?;
    Ok(StartedDispatcher {
        cpu: dispatcher.cpu_time()?,
        dispatcher,
        _sockets: sockets,
        begun,
    })
}

/// Waits until every supervisor is welcomed and tasks have arrived.
fn wait_for_tasks(
    begun: Instant,
    made: &MadeState,
    outboxes: &[Outbox],
    arrivals: &mpsc::Receiver<ArrivedFrame>,
) -> Result<StartTimes, Failure> {
    let mut welcomed = BTreeSet::new();
    let mut welcomed_within = Duration::ZERO;
    let mut tasks_after = None;
    let mut round = 0;
    while begun.elapsed() < PATIENCE {
        if begun.elapsed() >= HELLO_EVERY * round {
            round += 1;
            for number in (0..made.held.len()).filter(|number| !welcomed.contains(number)) {
                let hello = build_hello(number, made, u64::from(round));
                let outbox = &outboxes[number / OF_ONE_THREAD];
                outbox.send(number as u32, handshake::encode_hello(&hello));
            }
        }
        let arrived = match arrivals.recv_timeout(Duration::from_millis(20)) {
            Ok(arrived) => arrived,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(error) => return Err(error.into()),
        };
        match codec::decode(&arrived.frame)? {
            DispatcherToSupervisor::Welcome { .. } => {
                welcomed.insert(arrived.socket as usize);
                welcomed_within = begun.elapsed();
            }
            DispatcherToSupervisor::Tasks { .. } if tasks_after.is_none() => {
                tasks_after = Some(begun.elapsed());
            }
            _ => {}
        }
        if let Some(tasks_after) = tasks_after
            && welcomed.len() == made.held.len()
        {
            return Ok(StartTimes {
                tasks_after,
                welcomed: welcomed.len(),
                welcomed_within,
            });
        }
    }
    let welcomed = welcomed.len();
    Err(format!("after {PATIENCE:?} {welcomed} supervisors were welcomed").into())
}

fn build_hello(supervisor: usize, made: &MadeState, session: u64) -> Hello {
    Hello {
        supervisor: supervisor_name(supervisor),
        instance: supervisor as u64,
        session,
        sent_ms: 0,
        lane: Lane::Http,
        workers: 16,
        longest_request_ms: 60_000,
        credit: Credit {
            tasks: 1_000,
            url_bytes: 1 << 20,
        },
        held: made.held[supervisor].clone(),
    }
}
