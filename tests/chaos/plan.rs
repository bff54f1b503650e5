//! The kinds of faults, and plans of faults that are made from a seed.

use std::fmt;

use fastrand::Rng;

use crate::trouble::Trouble;

/// A fault. A number is its duration in milliseconds. If it can affect several processes, `PlannedFault::pick` chooses
/// one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// `kill -9` of a process of this role.
    Kill(&'static str),
    /// `kill -9` of all processes at the same time.
    KillAll,
    /// `kill -9` of a process at a certain moment of a task.
    KillAt(Point),
    /// SIGSTOP for a process of this role, and SIGCONT after this many milliseconds.
    Stop(&'static str, u64),
    /// A supervisor's connections to the dispatcher are closed, and so are new ones.
    Cut(u64),
    /// A supervisor's connections stay open, but transfer no data.
    Silence(u64),
    /// The messages of a supervisor are delayed.
    Slow(u64),
    /// Every message between a supervisor and its dispatcher arrives twice.
    Twice(u64),
    /// Messages between a supervisor and its dispatcher arrive in another order.
    Swap(u64),
    /// A second supervisor starts with the id of a running one.
    SameId(u64),
    /// A second dispatcher starts with the same state folder.
    SecondDispatcher,
    /// The wall clock of all processes is wrong by this many hours from now on.
    Clock(i8),
    /// A machine loses its route to the web, but still reaches the dispatcher, for this many milliseconds.
    LosesWay(u64),
    /// A site is in trouble for this many milliseconds.
    Site(Trouble, u64),
    /// An operator pauses the crawl, and resumes it after this many milliseconds.
    Pause(u64),
    /// An operator limits the pages of a site, and removes the limit after this many milliseconds.
    Limit(u64),
}

impl Fault {
    pub(crate) fn duration_ms(self) -> u64 {
        match self {
            Fault::Stop(_, ms) | Fault::Cut(ms) | Fault::Silence(ms) | Fault::Slow(ms) => ms,
            Fault::Twice(ms) | Fault::Swap(ms) | Fault::SameId(ms) | Fault::Site(_, ms) => ms,
            Fault::LosesWay(ms) | Fault::Pause(ms) | Fault::Limit(ms) => ms,
            Fault::SecondDispatcher => 1_500,
            Fault::Kill(_) | Fault::KillAll | Fault::KillAt(_) | Fault::Clock(_) => 0,
        }
    }
}

/// The moments of a task when processes are killed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Point {
    /// Tasks are leased in the database, but not sent to a supervisor.
    AfterLease,
    /// Pages were fetched, but are not in the store yet.
    BeforeSave,
    /// Pages are in the store, but not yet acknowledged to the dispatcher.
    BeforeAck,
    /// The dispatcher has begun to write a commit.
    DuringCommit,
}

/// A fault in a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlannedFault {
    /// The time from the previous fault to this one.
    pub(crate) wait_ms: u64,
    pub(crate) fault: Fault,
    pub(crate) pick: usize,
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "+{} ms {:?} #{}",
            self.wait_ms,
            self.fault,
            self.pick % 8
        )
    }
}

/// How a round crawls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// `webfill crawl`.
    Crawl,
    /// A dispatcher and two supervisors, connected over TCP through proxies.
    Fleet,
}

/// A plan of `count` faults of all kinds, in random order.
pub(crate) fn mixed_plan(kind: Kind, count: usize, rng: &mut Rng) -> Vec<PlannedFault> {
    let mut deal = || PlannedFault {
        wait_ms: rng.u64(300..=1_000),
        fault: draw_fault(kind, rng),
        pick: rng.usize(..1 << 16),
    };
    (0..count).map(|_| deal()).collect()
}

/// A plan that repeats one fault `count` times.
pub(crate) fn plan_of(fault: Fault, count: usize, wait_ms: u64) -> Vec<PlannedFault> {
    let planned = |pick| PlannedFault {
        wait_ms,
        fault,
        pick,
    };
    (0..count).map(planned).collect()
}

fn draw_fault(kind: Kind, rng: &mut Rng) -> Fault {
    // The durations are chosen around the lease, which is one second. Most are longer than the lease.
    let ms = rng.u64(600..=2_500);
    let hours = if rng.usize(..2) == 0 { 1 } else { -1 };
    // A pause or a limit is chosen so often that nearly every round of a fleet has some of both.
    match (kind, rng.usize(..10)) {
        (Kind::Fleet, 0) => return Fault::Pause(ms),
        (Kind::Fleet, 1) => return Fault::Limit(ms),
        _ => {}
    }
    let common = match rng.usize(..20) {
        0..3 => Some(Fault::Kill("worker")),
        3 => Some(Fault::Kill("supervisor")),
        4 => Some(Fault::Kill("dispatcher")),
        5 => Some(Fault::Stop("worker", ms)),
        6 => Some(Fault::Stop("supervisor", ms)),
        7 => Some(Fault::Stop("dispatcher", ms)),
        8 => Some(Fault::Clock(hours)),
        9 => Some(Fault::KillAt(Point::DuringCommit)),
        10 => Some(Fault::KillAt(
            [Point::AfterLease, Point::BeforeSave, Point::BeforeAck][rng.usize(..3)],
        )),
        11..15 => Some(Fault::Site(draw_trouble(rng), ms)),
        // The route is lost for longer than the dispatcher needs to notice this.
        15..17 => Some(Fault::LosesWay(2 * ms)),
        _ => None,
    };
    match (common, kind, rng.usize(..8)) {
        (Some(fault), _, _) => fault,
        (None, Kind::Crawl, 0..2) => Fault::KillAll,
        (None, Kind::Crawl, _) => Fault::Kill("crawl"),
        (None, Kind::Fleet, 0) => Fault::KillAll,
        (None, Kind::Fleet, 1) => Fault::Cut(ms),
        (None, Kind::Fleet, 2) => Fault::Silence(ms),
        (None, Kind::Fleet, 3) => Fault::Slow(ms),
        (None, Kind::Fleet, 4) => Fault::Twice(ms),
        (None, Kind::Fleet, 5) => Fault::Swap(ms),
        (None, Kind::Fleet, 6) => Fault::SameId(ms),
        (None, Kind::Fleet, _) => Fault::SecondDispatcher,
    }
}

fn draw_trouble(rng: &mut Rng) -> Trouble {
    match rng.usize(..5) {
        0 => Trouble::Blocks,
        1 => Trouble::Resets,
        kind => Trouble::Fails([403, 500, 503][kind - 2]),
    }
}

#[test]
fn the_same_seed_draws_the_same_plan() {
    let plan = |seed| mixed_plan(Kind::Fleet, 50, &mut Rng::with_seed(seed));
    assert_eq!(plan(7), plan(7));
    assert_ne!(plan(7), plan(8));
    let kinds = plan(7)
        .into_iter()
        .map(|planned| format!("{:?}", planned.fault));
    let kinds: std::collections::BTreeSet<String> = kinds.collect();
    assert!(kinds.len() > 20, "{kinds:?}");
}

#[test]
fn most_rounds_of_a_fleet_have_several_pauses_and_limits() {
    let has_several = |seed: &u64| {
        let plan = mixed_plan(Kind::Fleet, 40, &mut Rng::with_seed(*seed));
        let of = |is: fn(Fault) -> bool| plan.iter().filter(|planned| is(planned.fault)).count();
        of(|fault| matches!(fault, Fault::Pause(_))) > 1
            && of(|fault| matches!(fault, Fault::Limit(_))) > 1
    };
    let rounds = (0..100u64).filter(has_several).count();
    assert!(rounds > 80, "{rounds} of 100");
}
