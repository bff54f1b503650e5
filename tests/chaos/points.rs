//! Kills processes at certain moments. To bring a moment about, processes are stopped or databases are locked from
//! outside, so the tested binary needs no code for this.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use webfill_tests::Signal;
use webfill_tests::process::Process;
use webfill_tests::site::AccessLog;

use crate::crew::Crew;
use crate::plan::Point;

/// The longest wait for the moment. The moment never comes if the crawl has nothing to do.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Kills processes at this moment. Returns false if the moment did not come.
pub(crate) fn kill_at(point: Point, crew: &Crew, store: &Path, log: &AccessLog) -> bool {
    match point {
        Point::AfterLease => kill_after_lease(crew),
        Point::BeforeSave => kill_before_save(crew, store, log),
        Point::BeforeAck => kill_before_ack(crew, store),
        Point::DuringCommit => kill_during_commit(crew),
    }
}

/// Stops the supervisors until tasks are leased to them, and kills them before they read the tasks.
fn kill_after_lease(crew: &Crew) -> bool {
    let supervisors = StoppedProcesses::stop_all_of(crew, "supervisor");
    let leased = || query_number(&crew.frontier_path(), "SELECT sum(leased) FROM crawls");
    let came = wait_for(|| leased().is_some_and(|leased| leased > 0));
    came && supervisors.kill()
}

/// Blocks writes to the store until a page was fetched, and kills the workers.
fn kill_before_save(crew: &Crew, store: &Path, log: &AccessLog) -> bool {
    let Some(mut db) = open_database(store, OpenFlags::SQLITE_OPEN_READ_WRITE) else {
        return false;
    };
    let Ok(_lock) = db.transaction_with_behavior(TransactionBehavior::Immediate) else {
        return false;
    };
    let locked_at = Instant::now();
    let came = wait_for(|| {
        let visits = log.visits().pages();
        let mut since = visits
            .0
            .iter()
            .rev()
            .take_while(|visit| visit.started_at > locked_at);
        since.any(|visit| visit.ended_at.is_some())
    });
    came && kill_any(&crew.processes_of_role("worker"))
}

/// Stops the dispatcher until pages are stored, and kills the supervisors before they can report them.
fn kill_before_ack(crew: &Crew, store: &Path) -> bool {
    let dispatcher = StoppedProcesses::stop_all_of(crew, "dispatcher");
    let stored = || query_number(store, "SELECT count(*) FROM pages");
    let before = stored();
    let came = before.is_some() && wait_for(|| stored() > before);
    let killed = came && kill_any(&crew.processes_of_role("supervisor"));
    drop(dispatcher);
    killed
}

/// Kills the dispatcher as soon as its write-ahead log has changed.
fn kill_during_commit(crew: &Crew) -> bool {
    let wal = crew.frontier_path().with_extension("db-wal");
    let check = || {
        let data = std::fs::metadata(&wal).ok()?;
        Some((data.len(), data.modified().ok()?))
    };
    let dispatchers = crew.processes_of_role("dispatcher");
    let (before, deadline) = (check(), Instant::now() + PATIENCE);
    while check() == before {
        if Instant::now() > deadline {
            return false;
        }
    }
    kill_any(&dispatchers)
}

/// Stopped processes. They continue when this value is dropped.
struct StoppedProcesses(Vec<Process>);

impl StoppedProcesses {
    fn stop_all_of(crew: &Crew, role: &str) -> StoppedProcesses {
        let processes = crew.processes_of_role(role);
        for process in &processes {
            process.signal(Signal::STOP);
        }
        StoppedProcesses(processes)
    }

    fn kill(&self) -> bool {
        kill_any(&self.0)
    }
}

impl Drop for StoppedProcesses {
    fn drop(&mut self) {
        for process in &self.0 {
            process.signal(Signal::CONT);
        }
    }
}

fn kill_any(processes: &[Process]) -> bool {
    processes.iter().for_each(|one| one.signal(Signal::KILL));
    !processes.is_empty()
}

fn wait_for(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Opens a database. `None` if its file does not exist yet.
fn open_database(path: &Path, flags: OpenFlags) -> Option<Connection> {
    let db = Connection::open_with_flags(path, flags).ok()?;
    db.busy_timeout(Duration::from_millis(500)).ok()?;
    Some(db)
}

fn query_number(path: &Path, sql: &str) -> Option<i64> {
    let db = open_database(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.query_row(sql, [], |row| row.get(0)).ok()
}
