//! A dispatcher that does not serve yet. It applies the journal of the serving dispatcher to its own file, and waits
//! until it may take the lease (the right to serve). If records that it needs were removed from the journal, it starts
//! again from a snapshot.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use webfill_scheduler::frontier::{self, Applied};
use webfill_scheduler::journal::{Member, MemberTerms, Progress, ReadCommit, Snapshot, Survey};
use webfill_service::boot_clock::boot_ms;
use webfill_service::service_manager::ServiceManager;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{Fault, say};

use super::journalled::JournalledCommits;
use super::opening::frontier_fault;
use super::upkeep::JournalUpkeep;
use crate::clock::SteadyClock;
use crate::config::{DispatcherSetup, JournalSetup};
use crate::health::Health;
use crate::journal::{JournalConnection, JournalReport};
use crate::snapshots::{SnapshotEnd, SnapshotThread};
use crate::tenure_gate::TenureGate;

/// How long the lease of the dispatcher that serves lasts after a renewal.
const LEASE_MS: u64 = 5_000;

/// How often the lease is renewed, and the journal read.
pub(super) const TICK_MS: u64 = 500;

/// A request that is not answered within this time is made again.
const MISSED_AFTER_MS: u64 = 2_000;

/// The index of seen URLs is extended each time after this many new tasks. That takes about as long as a tick.
const INDEX_EVERY: u64 = 200_000;

/// The maximum size of a record in bytes. A document of MongoDB may have 16 MB.
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
    pub(super) upkeep: JournalUpkeep,
}

/// Everything that a dispatcher needs to begin serving.
pub(super) struct Turn {
    pub(super) clock: SteadyClock,
    /// Until when the dispatcher may write to the store.
    pub(super) gate: TenureGate,
    /// The commits on their way to the journal; `None` if this is the only dispatcher.
    pub(super) journalled: Option<JournalledCommits>,
}

/// Waits until this dispatcher may serve, if there may be others. Returns `None` if it was asked to end.
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
        // After a takeover, time must not go back if the clock of the former dispatcher was ahead.
        let clock = joined.committed_ms;
        Turn {
            clock: clock.map_or_else(SteadyClock::start, SteadyClock::start_after),
            gate: gate.clone(),
            journalled: Some(JournalledCommits::new(joined, gate)),
        }
    }))
}

/// What a dispatcher that stands by is doing.
enum Phase {
    /// The dispatcher does not know yet whether there is a journal.
    Looking,
    /// The dispatcher reads records, and takes the lease when it may.
    Reading,
    /// The dispatcher waits until another one has begun a journal.
    Waiting,
    /// Records that the dispatcher needs are no longer in the journal, so it waits for a snapshot.
    Missing,
    Receiving(Snapshot, SnapshotThread),
}

struct StandingBy<'a> {
    setup: &'a JournalSetup,
    member: Member,
    connection: JournalConnection,
    upkeep: JournalUpkeep,
    /// The dispatcher's own file; `None` only while a snapshot replaces it.
    file: Option<Connection>,
    /// Whether the file has contents that were never in the journal.
    is_foreign: bool,
    state: &'a Path,
    phase: Phase,
    /// The last task whose URL is in the index of seen URLs.
    indexed_task: u64,
    /// The number of the last record that the journal is known to have.
    journal_end: u64,
    /// The status that was last reported.
    reported: String,
}

/// Applies the journal to the file until this dispatcher may serve. Returns `None` if it was asked to end.
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
    while signals::received_request() == SignalRequest::Nothing {
        let now_ms = boot_ms();
        if now_ms >= next_tick_ms {
            next_tick_ms = now_ms + TICK_MS;
            standing.on_tick(now_ms)?;
        }
        let requests = standing.member.take_requests();
        standing.connection.send(requests);
        let left = Duration::from_millis(next_tick_ms.saturating_sub(now_ms));
        let report = standing.connection.next_report(left.min(WAIT_AT_MOST));
        if let Some(report) = report
            && standing.handle_report(report)?
        {
            return standing.into_joined().map(Some);
        }
        let status = standing.status();
        health.note_turn(Some(&status));
        service_manager.notify_alive(|| status.clone());
        standing.report_change(&status);
    }
    Ok(None)
}

/// Makes a member of the group that continues after this record.
fn member_after(setup: &JournalSetup, applied: Applied) -> Member {
    let terms = MemberTerms {
        lease_ms: LEASE_MS,
        missed_after_ms: MISSED_AFTER_MS,
        part_bytes: PART_BYTES,
        pending_bytes: PENDING_BYTES,
    };
    Member::new(setup.instance, (applied.number, applied.epoch), terms)
}

impl<'a> StandingBy<'a> {
    fn open(
        setup: &'a JournalSetup,
        state: &'a Path,
        connection: JournalConnection,
    ) -> Result<StandingBy<'a>, Fault> {
        let file = frontier::open_file(state).map_err(frontier_fault)?;
        let fault = |error| file_fault(state, &error);
        let applied = frontier::read_applied_position(&file).map_err(fault)?;
        let is_foreign = applied.number == 0 && !frontier::is_unused(&file).map_err(fault)?;
        // If the file has contents, the journal's first record gets the number 2. So no dispatcher takes this journal
        // for one that begins with an empty file.
        let number = match is_foreign {
            true => 1,
            false => applied.number,
        };
        Ok(StandingBy {
            setup,
            member: member_after(setup, Applied { number, ..applied }),
            connection,
            upkeep: JournalUpkeep::new(setup, state),
            file: Some(file),
            is_foreign,
            state,
            phase: Phase::Looking,
            indexed_task: 0,
            journal_end: 0,
            reported: String::new(),
        })
    }

    fn on_tick(&mut self, now_ms: u64) -> Result<(), Fault> {
        match &self.phase {
            Phase::Reading => {
                self.member.on_tick(now_ms);
                self.extend_seen_index()?;
            }
            Phase::Receiving(_, thread) => {
                if let Some(end) = thread.take_end() {
                    self.end_receiving(end)?;
                }
            }
            Phase::Looking | Phase::Waiting | Phase::Missing => {}
        }
        let read = self.member.last_read_number();
        self.upkeep.on_tick(&self.connection, read, false, now_ms)
    }

    /// Handles a report of the journal's thread. Returns whether this dispatcher may serve.
    fn handle_report(&mut self, report: JournalReport) -> Result<bool, Fault> {
        let answer = match report {
            JournalReport::Answer(answer) => answer,
            JournalReport::Surveyed(survey) => {
                self.upkeep.apply_survey(&self.connection, &survey);
                return self.choose_phase_by_survey(&survey).map(|()| false);
            }
            JournalReport::NotSurveyed(_) if !matches!(self.phase, Phase::Looking) => {
                return Ok(false);
            }
            JournalReport::Away(why) | JournalReport::NotSurveyed(why) => {
                self.report_change(&format!("cannot reach the journal: {why}"));
                return Ok(false);
            }
            JournalReport::Failed(fault) => return Err(fault),
        };
        let progress = self.member.handle_answer(answer, boot_ms());
        // The next records are requested before these are applied, so that they arrive in the meantime.
        self.connection.send(self.member.take_requests());
        match progress {
            Err(fault) if fault.needs_snapshot() && !self.is_foreign => {
                // An answer may have been sent before a snapshot that is being received, or that was received since.
                if matches!(self.phase, Phase::Reading) {
                    self.phase = Phase::Missing;
                }
                Ok(false)
            }
            Err(fault) => Err(self.other_origin_fault(&fault.to_string())),
            Ok(Progress::Apply(_)) if self.is_foreign => {
                Err(self.other_origin_fault("it has contents that are not in the journal"))
            }
            Ok(Progress::Apply(commits)) => self.apply_commits(&commits).map(|()| false),
            Ok(Progress::Serve(commit)) => {
                let commit: Vec<ReadCommit> = commit.into_iter().collect();
                self.apply_commits(&commit).map(|()| true)
            }
            Ok(Progress::Nothing | Progress::Advanced | Progress::Replaced) => Ok(false),
        }
    }

    /// Decides by the state of the group whether to read the journal, to wait, or to receive a snapshot.
    fn choose_phase_by_survey(&mut self, survey: &Survey) -> Result<(), Fault> {
        self.journal_end = survey.extent.map_or(0, |extent| extent.last);
        if matches!(self.phase, Phase::Reading | Phase::Receiving(..)) {
            return Ok(());
        }
        let read = self.member.last_read_number();
        let snapshot = survey.snapshot.filter(|snapshot| snapshot.number > read);
        let is_missing = survey.extent.is_some_and(|extent| extent.first > read + 1);
        self.phase = match snapshot {
            _ if self.setup.only_stands_by && survey.extent.is_none() => Phase::Waiting,
            _ if self.is_foreign => Phase::Reading,
            None if is_missing => Phase::Missing,
            Some(snapshot) if is_missing || read == 0 => {
                let thread = SnapshotThread::start_receiving(self.setup, self.state, snapshot)?;
                Phase::Receiving(snapshot, thread)
            }
            _ => Phase::Reading,
        };
        Ok(())
    }

    /// Continues from a snapshot, which has been received.
    fn end_receiving(&mut self, end: Result<SnapshotEnd, Fault>) -> Result<(), Fault> {
        self.phase = Phase::Looking;
        match end {
            Ok(SnapshotEnd::Received(snapshot, applied)) => {
                self.replace_file_with_snapshot(&snapshot, applied)
            }
            Ok(SnapshotEnd::Superseded | SnapshotEnd::Made(_)) => Ok(()),
            Err(error) => {
                self.report_change(&format!("cannot receive a snapshot: {error}"));
                Ok(())
            }
        }
    }

    /// Replaces the file with a snapshot, if the snapshot is of the same fleet.
    fn replace_file_with_snapshot(
        &mut self,
        snapshot: &Path,
        applied: Applied,
    ) -> Result<(), Fault> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let fault = |error| file_fault(self.state, &error);
        if !frontier::is_continued_by(&file, snapshot).map_err(fault)? {
            return Err(self.other_origin_fault("the snapshot in the store is of another fleet"));
        }
        file.close().map_err(|(_, error)| fault(error))?;
        let installed = frontier::install_snapshot(self.state, snapshot);
        installed.map_err(|error| {
            let state = self.state.display();
            Fault::fatal(format!("cannot put the snapshot into {state}: {error}"))
        })?;
        self.file = Some(frontier::open_file(self.state).map_err(frontier_fault)?);
        self.member = member_after(self.setup, applied);
        self.indexed_task = 0;
        self.phase = Phase::Reading;
        tracing::info!(
            event = "snapshot_received",
            record = applied.number,
            "the dispatcher begins with a snapshot of another one's file"
        );
        say!("begins with the snapshot of record {}", applied.number);
        Ok(())
    }

    fn apply_commits(&mut self, commits: &[ReadCommit]) -> Result<(), Fault> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let applied = frontier::apply_commits(file, commits);
        applied.map_err(|error| file_fault(self.state, &error))?;
        for commit in commits {
            let bytes = commit.changes.len() as u64;
            self.upkeep.note_records(bytes, commit.number);
        }
        Ok(())
    }

    /// Extends the index of seen URLs from time to time, so that a takeover need not read all tasks.
    fn extend_seen_index(&mut self) -> Result<(), Fault> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let fault = |error| file_fault(self.state, &error);
        let last = frontier::last_task_id(file).map_err(fault)?;
        if last < self.indexed_task + INDEX_EVERY || self.member.epoch().is_some() {
            return Ok(());
        }
        let (memory, dropped) = (self.setup.seen_memory_bytes, &self.setup.dropped_parameters);
        let extended = frontier::extend_seen_index(file, self.state, memory, dropped);
        self.indexed_task = extended.map_err(fault)?;
        Ok(())
    }

    fn other_origin_fault(&self, why: &str) -> Fault {
        Fault::usage(format!(
            "{} does not continue the journal of the dispatchers: {why}; start with an empty state folder, which gets \
             a copy of the file of the dispatcher that serves",
            self.state.display()
        ))
    }

    fn status(&self) -> String {
        let read = self.member.last_read_number();
        match &self.phase {
            Phase::Looking => String::from("stands by: reads the state of the journal"),
            Phase::Waiting => {
                String::from("stands by: no dispatcher has begun a journal in the store yet")
            }
            Phase::Missing => format!(
                "stands by: waits for a snapshot, because the records behind {read} are no longer in the journal"
            ),
            Phase::Receiving(snapshot, thread) => format!(
                "stands by: receives the snapshot of record {}, {} of {} MiB",
                snapshot.number,
                thread.moved_bytes() >> 20,
                snapshot.bytes >> 20
            ),
            Phase::Reading if self.member.epoch().is_some() => {
                format!("takes over: record {read} of the journal is applied")
            }
            Phase::Reading => {
                let behind = self.journal_end.saturating_sub(read);
                format!("stands by: record {read} of the journal is applied, {behind} are not")
            }
        }
    }

    /// Reports the status, unless only its numbers have changed.
    fn report_change(&mut self, status: &str) {
        let words: String = status.chars().filter(|c| !c.is_ascii_digit()).collect();
        if self.reported != words {
            tracing::info!(event = "standby", status, "the dispatcher does not serve");
            say!("{status}");
            self.reported = words;
        }
    }

    fn into_joined(self) -> Result<Joined, Fault> {
        let fault = |error| file_fault(self.state, &error);
        let mut committed_ms = None;
        if let Some(file) = &self.file {
            frontier::unmark_copy(file).map_err(fault)?;
            committed_ms = frontier::committed_at_ms(file).map_err(fault)?;
        }
        Ok(Joined {
            member: self.member,
            connection: self.connection,
            committed_ms,
            upkeep: self.upkeep,
        })
    }
}

fn file_fault(state: &Path, error: &rusqlite::Error) -> Fault {
    Fault::fatal(format!(
        "cannot apply the journal to the dispatcher's file in {}: {error}",
        state.display()
    ))
}
