//! The commits of a dispatcher with a journal. Their effects, such as messages, are held back until the journal
//! contains the commit's record.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use webfill_scheduler::Core;
use webfill_scheduler::effects::Committed;
use webfill_scheduler::frontier::{Applied, FrontierError};
use webfill_scheduler::journal::{
    AppendTimes, JournalAnswer, Member, Progress, StandbysReport, Survey,
};
use webfill_service::Fault;
use webfill_service::boot_clock::boot_ms;
use webfill_service::signals::{self, SignalRequest};

use super::Process;
use super::opening::frontier_fault;
use super::standing_by::{Joined, TICK_MS};
use super::upkeep::JournalUpkeep;
use crate::journal::{JournalConnection, JournalReport};
use crate::tenure_gate::TenureGate;

/// How often the dispatcher's own file is brought up to date. Until then, commits that the file lacks are in the
/// journal.
const KEEP_EVERY_MS: u64 = 1_000;

/// The longest wait for an answer while the loop can do nothing else, so that the loop still reports that it is alive.
const WAIT_AT_MOST: Duration = Duration::from_millis(100);

pub(super) struct JournalledCommits {
    member: Member,
    upkeep: JournalUpkeep,
    connection: JournalConnection,
    gate: TenureGate,
    /// The effects of commits that are held back, each with the number of the journal record that it waits for.
    held: VecDeque<(u64, Committed)>,
    next_tick_ms: u64,
    times: AppendTimes,
    standbys: StandbysReport,
    is_hand_over_asked: bool,
    /// When the file was last brought up to date.
    kept_ms: u64,
    /// Why the journal takes no records for now; `None` if it does.
    away: Option<String>,
    /// Whether another dispatcher serves, or the journal has failed. Then no more effects are carried out.
    is_over: bool,
}

impl JournalledCommits {
    pub(super) fn new(joined: Joined, gate: TenureGate) -> JournalledCommits {
        JournalledCommits {
            member: joined.member,
            upkeep: joined.upkeep,
            connection: joined.connection,
            gate,
            held: VecDeque::new(),
            next_tick_ms: 0,
            times: AppendTimes::default(),
            standbys: StandbysReport::default(),
            is_hand_over_asked: false,
            kept_ms: boot_ms(),
            away: None,
            is_over: false,
        }
    }

    /// Renews the lease (the right to serve) while `work` runs, which may take longer than the lease lasts.
    pub(super) fn keep_lease_during<R>(&self, work: impl FnOnce() -> R) -> R {
        let epoch = self.epoch();
        let every = Duration::from_millis(TICK_MS);
        self.connection.renew_during(epoch, every, work)
    }

    /// Why the journal takes no records for now; `None` if it does.
    pub(super) fn away_reason(&self) -> Option<&str> {
        self.away.as_deref()
    }

    /// Adds the changes of a commit to the journal, and holds back its effects.
    fn journal_and_hold(&mut self, mut committed: Committed) {
        let now_ms = boot_ms();
        let mut number = self.member.last_appended_number();
        for changes in std::mem::take(&mut committed.changes) {
            number = self.member.add_commit(&changes, now_ms);
            self.upkeep.note_records(changes.len() as u64, number);
        }
        self.held.push_back((number, committed));
        self.connection.send(self.member.take_requests());
    }

    /// Takes out the next commit whose effects may be carried out.
    fn take_due_commit(&mut self) -> Option<Committed> {
        let (number, _) = self.held.front()?;
        let may_leave = !self.is_over && self.member.can_release_effects(*number, boot_ms());
        let due = may_leave.then(|| self.held.pop_front())?;
        due.map(|(_, committed)| committed)
    }

    /// Sends requests to the journal and reads its answers. Waits for an answer at most for `within`.
    fn exchange_with_journal(&mut self, within: Duration) -> Result<(), Fault> {
        let now_ms = boot_ms();
        if now_ms >= self.next_tick_ms {
            self.next_tick_ms = now_ms + TICK_MS;
            self.member.on_tick(now_ms);
            self.times
                .note_last_number(self.member.last_appended_number(), now_ms);
            self.upkeep.on_tick(
                &self.connection,
                self.member.last_appended_number(),
                true,
                now_ms,
            )?;
        }
        self.connection.send(self.member.take_requests());
        let mut wait = within;
        while let Some(report) = self.connection.next_report(wait) {
            let handled = self.handle_report(report);
            self.is_over |= handled.is_err();
            handled?;
            self.connection.send(self.member.take_requests());
            wait = Duration::ZERO;
        }
        self.gate.open_until(self.member.in_force_until_ms());
        Ok(())
    }

    fn handle_report(&mut self, report: JournalReport) -> Result<(), Fault> {
        let answer = match report {
            JournalReport::Answer(answer) => answer,
            JournalReport::Surveyed(survey) => {
                self.note_survey(&survey);
                return Ok(());
            }
            // Ignored: whether the store is away is judged only by requests to the journal.
            JournalReport::NotSurveyed(_) => return Ok(()),
            JournalReport::Away(why) => {
                if self.away.is_none() {
                    tracing::warn!(event = "journal_away", %why, "the journal takes no records for now");
                }
                self.away = Some(format!("the journal takes no records: {why}"));
                return Ok(());
            }
            JournalReport::Failed(fault) => return Err(fault),
        };
        self.away = None;
        match self.member.handle_answer(answer, boot_ms()) {
            Ok(Progress::Replaced) => Err(Fault::error(
                "another dispatcher has taken over: this one ends, and stands by when it is started again",
            )),
            Ok(_) => Ok(()),
            Err(fault) => Err(Fault::error(fault)),
        }
    }

    fn note_survey(&mut self, survey: &Survey) {
        self.upkeep.apply_survey(&self.connection, survey);
        let epoch = self.epoch();
        self.is_hand_over_asked |= survey.hand_over_asked == epoch;
        let own = self.upkeep.instance();
        self.standbys = StandbysReport {
            record: self.member.last_appended_number(),
            epoch,
            standbys: self.times.standbys(survey, own, boot_ms()),
        };
    }

    /// The dispatchers that stand by, as they were last reported.
    pub(super) fn standbys(&self) -> &StandbysReport {
        &self.standbys
    }

    /// Whether an operator has asked this dispatcher to hand over.
    pub(super) fn is_hand_over_asked(&self) -> bool {
        self.is_hand_over_asked
    }

    pub(super) fn epoch(&self) -> u64 {
        self.member.epoch().unwrap_or_default()
    }

    /// Whether the loop must wait: too many records are on their way to the journal, or the file must be brought up to
    /// date.
    fn is_busy(&self) -> bool {
        self.member.is_full() || (self.is_file_update_due() && !self.member.is_idle())
    }

    fn is_file_update_due(&self) -> bool {
        boot_ms() >= self.kept_ms + KEEP_EVERY_MS
    }

    /// Brings the dispatcher's file up to date, if all commits are in the journal.
    fn update_file(&mut self, core: &mut Core) -> Result<(), FrontierError> {
        if self.is_over || !self.member.is_idle() {
            return Ok(());
        }
        self.kept_ms = boot_ms();
        core.frontier().make_durable(Applied {
            number: self.member.last_appended_number(),
            epoch: self.epoch(),
        })
    }

    /// Gives up the lease (the right to serve), so that the next dispatcher need not wait until it expires.
    pub(super) fn hand_over(mut self, until: Instant) {
        if self.is_over || !self.member.is_idle() {
            return;
        }
        self.member.hand_over();
        self.connection.send(self.member.take_requests());
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            match self.connection.next_report(left) {
                Some(JournalReport::Answer(JournalAnswer::Freed)) => {
                    return;
                }
                Some(JournalReport::Failed(_)) | None => return,
                Some(_) => {}
            }
        }
    }
}

impl Process {
    /// Carries out the effects of a commit. With a journal, they wait until the journal has the commit's record.
    pub(super) fn finish_commit(&mut self, committed: Committed, now_ms: i64) -> Result<(), Fault> {
        let Some(journalled) = &mut self.journalled else {
            return self.carry_out(committed, now_ms);
        };
        journalled.journal_and_hold(committed);
        self.release_held_effects(Duration::ZERO)
    }

    /// Carries out the held-back effects whose records are in the journal.
    fn release_held_effects(&mut self, within: Duration) -> Result<(), Fault> {
        if let Some(journalled) = &mut self.journalled {
            journalled.exchange_with_journal(within)?;
            if journalled.is_file_update_due() {
                journalled
                    .update_file(&mut self.core)
                    .map_err(frontier_fault)?;
            }
        }
        let now_ms = self.clock.now_ms();
        while let Some(due) = self
            .journalled
            .as_mut()
            .and_then(JournalledCommits::take_due_commit)
        {
            self.carry_out(due, now_ms)?;
        }
        Ok(())
    }

    /// Whether an operator has asked this dispatcher to hand over.
    pub(super) fn is_hand_over_asked(&self) -> bool {
        let journalled = self.journalled.as_ref();
        journalled.is_some_and(JournalledCommits::is_hand_over_asked)
    }

    /// The dispatchers that stand by; `None` if there is no journal.
    pub(super) fn standbys(&self) -> Option<StandbysReport> {
        let journalled = self.journalled.as_ref()?;
        Some(journalled.standbys().clone())
    }

    /// Waits while too many records are on their way to the journal.
    pub(super) fn await_journal(&mut self) -> Result<(), Fault> {
        let is_busy = |process: &Process| {
            let journalled = process.journalled.as_ref();
            journalled.is_some_and(JournalledCommits::is_busy)
        };
        while is_busy(self) && signals::received_request() != SignalRequest::Stop {
            self.release_held_effects(WAIT_AT_MOST)?;
            self.note_turn(self.clock.now_ms());
        }
        Ok(())
    }

    /// Carries out the last commits of an ending dispatcher, and brings its file up to date.
    pub(super) fn finish_last_commit(
        &mut self,
        mut last: Committed,
        until: Instant,
    ) -> Result<(), Fault> {
        let Some(journalled) = &mut self.journalled else {
            self.send_committed(&mut last);
            return Ok(());
        };
        if journalled.is_over {
            return Ok(());
        }
        journalled.journal_and_hold(last);
        while let Some(journalled) = &mut self.journalled {
            if journalled.held.is_empty() || Instant::now() >= until {
                return journalled
                    .update_file(&mut self.core)
                    .map_err(frontier_fault);
            }
            journalled.exchange_with_journal(WAIT_AT_MOST)?;
            while let Some(mut due) = self
                .journalled
                .as_mut()
                .and_then(JournalledCommits::take_due_commit)
            {
                self.send_committed(&mut due);
            }
        }
        Ok(())
    }
}
