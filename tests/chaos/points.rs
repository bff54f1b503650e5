//! Deaths at named points. The points are made from outside, by stopping processes and holding
//! locks of databases, so that the binary under test needs nothing for it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use webfill_tests::Signal;
use webfill_tests::process::Process;
use webfill_tests::site::AccessLog;

use crate::crew::Crew;
use crate::plan::Point;

/// A point that does not come by then, does not come: the crawl may have nothing to do.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Kills somebody at this point. False if it did not come to it.
pub(crate) fn kill_at(point: Point, crew: &Crew, store: &Path, log: &AccessLog) -> bool {
    match point {
        Point::AfterLease => after_lease(crew),
        Point::BeforeSave => before_save(crew, store, log),
        Point::BeforeAck => before_ack(crew, store),
        Point::DuringCommit => during_commit(crew),
    }
}

/// Supervisors stand still until something is leased to them, and die before they look at it.
fn after_lease(crew: &Crew) -> bool {
    let supervisors = Stopped::all_of(crew, "supervisor");
    let leased = || number(&crew.frontier(), "SELECT sum(leased) FROM crawls");
    let came = comes_true(|| leased().is_some_and(|leased| leased > 0));
    came && supervisors.kill()
}

/// The store takes no writes until a page was fetched, and the workers die with it.
fn before_save(crew: &Crew, store: &Path, log: &AccessLog) -> bool {
    let Some(mut db) = open(store, OpenFlags::SQLITE_OPEN_READ_WRITE) else {
        return false;
    };
    let Ok(_lock) = db.transaction_with_behavior(TransactionBehavior::Immediate) else {
        return false;
    };
    let locked_at = Instant::now();
    let came = comes_true(|| {
        let visits = log.visits().pages();
        let mut since = visits
            .0
            .iter()
            .rev()
            .take_while(|visit| visit.started_at > locked_at);
        since.any(|visit| visit.ended_at.is_some())
    });
    came && kill(&crew.of_role("worker"))
}

/// The dispatcher stands still until something is stored, and the supervisors die before they can
/// tell it.
fn before_ack(crew: &Crew, store: &Path) -> bool {
    let dispatcher = Stopped::all_of(crew, "dispatcher");
    let stored = || number(store, "SELECT count(*) FROM pages");
    let before = stored();
    let came = before.is_some() && comes_true(|| stored() > before);
    let killed = came && kill(&crew.of_role("supervisor"));
    drop(dispatcher);
    killed
}

/// The dispatcher dies at the first sign of a write to its log.
fn during_commit(crew: &Crew) -> bool {
    let wal = crew.frontier().with_extension("db-wal");
    let look = || {
        let data = std::fs::metadata(&wal).ok()?;
        Some((data.len(), data.modified().ok()?))
    };
    let dispatchers = crew.of_role("dispatcher");
    let (before, deadline) = (look(), Instant::now() + PATIENCE);
    while look() == before {
        if Instant::now() > deadline {
            return false;
        }
    }
    kill(&dispatchers)
}

/// Processes that stand still until this value goes.
struct Stopped(Vec<Process>);

impl Stopped {
    fn all_of(crew: &Crew, role: &str) -> Stopped {
        let processes = crew.of_role(role);
        for process in &processes {
            process.signal(Signal::STOP);
        }
        Stopped(processes)
    }

    fn kill(&self) -> bool {
        kill(&self.0)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for process in &self.0 {
            process.signal(Signal::CONT);
        }
    }
}

fn kill(processes: &[Process]) -> bool {
    processes.iter().for_each(|one| one.signal(Signal::KILL));
    !processes.is_empty()
}

fn comes_true(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// `None` where there is no such file (yet).
fn open(path: &Path, flags: OpenFlags) -> Option<Connection> {
    let db = Connection::open_with_flags(path, flags).ok()?;
    db.busy_timeout(Duration::from_millis(500)).ok()?;
    Some(db)
}

fn number(path: &Path, sql: &str) -> Option<i64> {
    let db = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.query_row(sql, [], |row| row.get(0)).ok()
}
