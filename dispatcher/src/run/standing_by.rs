//! A dispatcher of a group before it serves: it applies the journal to its file, and waits until it may take the lease.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use webfill_scheduler::frontier;
use webfill_scheduler::journal::{Member, MemberTerms, Progress, ReadCommit};
use webfill_service::boot_clock::boot_ms;
use webfill_service::service_manager::ServiceManager;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{Fault, say};

use super::journalled::JournalledCommits;
use super::opening::frontier_fault;
use crate::clock::SteadyClock;
use crate::config::{DispatcherSetup, JournalSetup};
use crate::health::Health;
use crate::journal::{JournalConnection, JournalReport};
use crate::tenure_gate::TenureGate;

/// How long the lease of the dispatcher that serves lasts after a renewal.
const LEASE_MS: u64 = 5_000;

/// How often the lease is renewed, and the journal read.
pub(super) const TICK_MS: u64 = 1_000;

/// After this long, a request that is not answered is made again.
const MISSED_AFTER_MS: u64 = 2_000;

/// The most bytes of a record. A document of MongoDB may have 16 MB.
const PART_BYTES: usize = 8 << 20;

/// The loop takes no more events while this many bytes are on their way to the journal.
const PENDING_BYTES: usize = 16 << 20;

/// The longest wait for an answer, so that signals are noticed.
const WAIT_AT_MOST: Duration = Duration::from_millis(250);

/// A dispatcher that may serve now.
pub(super) struct Joined {
    pub(super) member: Member,
    pub(super) connection: JournalConnection,
    /// The time of the last commit in the file, by the clock of the dispatcher that made it.
    pub(super) committed_ms: Option<i64>,
    pub(super) kept_bytes: u64,
}

/// What a dispatcher serves with.
pub(super) struct Turn {
    pub(super) clock: SteadyClock,
    /// Until when it may write to the store.
    pub(super) gate: TenureGate,
    /// `None`: this is the only dispatcher.
    pub(super) journalled: Option<JournalledCommits>,
}

/// Waits for this dispatcher's turn to serve, if there may be others. `None`: it was asked to end.
pub(super) fn await_turn(
    setup: &DispatcherSetup,
    wake: impl Fn(()) + Send + Sync + 'static,
    health: &Health,
    service_manager: &mut ServiceManager,
) -> Result<Option<Turn>, Fault> {
    let Some(journal) = &setup.journal else {
        return Ok(Some(Turn {
            clock: SteadyClock::start(),
            gate: TenureGate::always_open(),
            journalled: None,
        }));
    };
    let joined = stand_by(journal, &setup.state, wake, health, service_manager)?;
    Ok(joined.map(|joined| {
        let gate = TenureGate::closed();
        // A takeover continues the former dispatcher's time, if its clock is ahead.
        let clock = joined.committed_ms;
        Turn {
            clock: clock.map_or_else(SteadyClock::start, SteadyClock::start_after),
            gate: gate.clone(),
            journalled: Some(JournalledCommits::new(joined, gate)),
        }
    }))
}

struct StandingBy<'a> {
    member: Member,
    connection: JournalConnection,
    file: Connection,
    /// Whether the file has contents that never were in the journal.
    is_foreign: bool,
    state: &'a Path,
    /// What was last reported.
    reported: String,
}

/// Applies the journal until this dispatcher may serve. `None`: it was asked to end.
fn stand_by(
    setup: &JournalSetup,
    state: &Path,
    wake: impl Fn(()) + Send + Sync + 'static,
    health: &Health,
    service_manager: &mut ServiceManager,
) -> Result<Option<Joined>, Fault> {
    let connection = JournalConnection::start(&setup.store, wake)?;
    let mut standing = StandingBy::open(setup, state, connection)?;
    let mut next_tick_ms = 0;
    service_manager.notify_ready();
    while signals::requested() == SignalRequest::Nothing {
        let now_ms = boot_ms();
        if now_ms >= next_tick_ms {
            next_tick_ms = now_ms + TICK_MS;
            standing.member.on_tick(now_ms);
        }
        standing.connection.send(standing.member.take_requests());
        let left = Duration::from_millis(next_tick_ms.saturating_sub(now_ms));
        let report = standing.connection.next_report(left.min(WAIT_AT_MOST));
        if let Some(report) = report
            && standing.handle_report(report)?
        {
            return standing.join(setup.kept_bytes).map(Some);
        }
        let status = standing.status();
        health.note_turn(Some(&status));
        service_manager.notify_alive(|| status.clone());
        standing.report_change(&status);
    }
    Ok(None)
}

impl<'a> StandingBy<'a> {
    fn open(
        setup: &JournalSetup,
        state: &'a Path,
        connection: JournalConnection,
    ) -> Result<StandingBy<'a>, Fault> {
        let file = frontier::open_file(state).map_err(frontier_fault)?;
        let fault = |error| file_fault(state, &error);
        let applied = frontier::applied(&file).map_err(fault)?;
        let is_foreign = applied.number == 0 && !frontier::is_unused(&file).map_err(fault)?;
        // The records of a file with contents begin at 2. So nobody can take the journal for one that begins with an
        // empty file.
        let number = match is_foreign {
            true => 1,
            false => applied.number,
        };
        let terms = MemberTerms {
            lease_ms: LEASE_MS,
            missed_after_ms: MISSED_AFTER_MS,
            part_bytes: PART_BYTES,
            pending_bytes: PENDING_BYTES,
        };
        Ok(StandingBy {
            member: Member::new(setup.instance, (number, applied.epoch), terms),
            connection,
            file,
            is_foreign,
            state,
            reported: String::new(),
        })
    }

    /// Returns whether this dispatcher may serve.
    fn handle_report(&mut self, report: JournalReport) -> Result<bool, Fault> {
        let answer = match report {
            JournalReport::Answer(answer) => answer,
            JournalReport::Away(why) => {
                self.report_change(&format!("cannot reach the journal: {why}"));
                return Ok(false);
            }
            JournalReport::Failed(fault) => return Err(fault),
        };
        let progress = self.member.handle_answer(answer, boot_ms());
        match progress.map_err(|fault| self.other_origin(&fault.to_string()))? {
            Progress::Apply(_) if self.is_foreign => {
                Err(self.other_origin("it has contents that are not in the journal"))
            }
            Progress::Apply(commits) => self.apply(&commits).map(|()| false),
            Progress::Serve(commit) => {
                let commit: Vec<ReadCommit> = commit.into_iter().collect();
                self.apply(&commit).map(|()| true)
            }
            Progress::Nothing | Progress::Advanced | Progress::Replaced => Ok(false),
        }
    }

    fn apply(&mut self, commits: &[ReadCommit]) -> Result<(), Fault> {
        let applied = frontier::apply_commits(&mut self.file, commits);
        applied.map_err(|error| file_fault(self.state, &error))
    }

    fn other_origin(&self, why: &str) -> Fault {
        Fault::usage(format!(
            "{} does not continue the journal of the dispatchers: {why}; make a copy of the folder of the dispatcher \
             that serves (`webfill backup`), and start with that",
            self.state.display()
        ))
    }

    fn status(&self) -> String {
        let read = self.member.last_read();
        match self.member.epoch() {
            Some(_) => format!("takes over: record {read} of the journal is applied"),
            None => format!("stands by: record {read} of the journal is applied"),
        }
    }

    /// Reports what has changed except for numbers, which always change.
    fn report_change(&mut self, status: &str) {
        let words: String = status.chars().filter(|c| !c.is_ascii_digit()).collect();
        if self.reported != words {
            tracing::info!(event = "standby", status, "the dispatcher does not serve");
            say!("{status}");
            self.reported = words;
        }
    }

    fn join(self, kept_bytes: u64) -> Result<Joined, Fault> {
        let fault = |error| file_fault(self.state, &error);
        frontier::forget_copy(&self.file).map_err(fault)?;
        let committed_ms = frontier::committed_at_ms(&self.file).map_err(fault)?;
        Ok(Joined {
            member: self.member,
            connection: self.connection,
            committed_ms,
            kept_bytes,
        })
    }
}

fn file_fault(state: &Path, error: &rusqlite::Error) -> Fault {
    Fault::fatal(format!(
        "cannot apply the journal to the dispatcher's file in {}: {error}",
        state.display()
    ))
}
