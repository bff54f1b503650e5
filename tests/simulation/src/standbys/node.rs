//! The machine and the process of a dispatcher. Their events are in [`journalling`](super::journalling) and
//! [`serving`](super::serving).

use std::collections::VecDeque;

use webfill_scheduler::Core;
use webfill_scheduler::effects::Committed;
use webfill_scheduler::frontier::{Applied, apply_commits, open_file, read_applied_position};
use webfill_scheduler::journal::{
    JournalAnswer, JournalRequest, Member, Progress, ReadCommit, Record,
};

use crate::settings::EPOCH_MS;

use super::plan::StandbyPlan;
use super::{StandbyEvent, Standbys};

/// The machine of a dispatcher.
pub(super) struct Node {
    pub(super) folder: tempfile::TempDir,
    pub(super) number: usize,
    /// The difference between the machine's wall clock and the true time. A process keeps the value that it finds at
    /// its start.
    pub(super) clock_ahead_ms: i64,
    pub(super) process: Option<Process>,
    pub(super) no_journal_until_ms: u64,
    pub(super) no_fleet_until_ms: u64,
}

pub(super) struct Process {
    pub(super) life: u32,
    pub(super) ahead_ms: i64,
    /// The dispatcher's database file; `None` while it serves, because the core has then opened the file.
    pub(super) file: Option<rusqlite::Connection>,
    pub(super) member: Member,
    pub(super) core: Option<Box<Core>>,
    /// Effects of commits (such as messages) that wait until a record is in the journal, with the number of this
    /// record.
    pub(super) held: VecDeque<(u64, Committed)>,
    /// Events that wait because too many records are in transit to the journal.
    pub(super) deferred: VecDeque<StandbyEvent>,
    /// When the process last committed to its file.
    pub(super) kept_ms: u64,
    pub(super) wakes_at_ms: u64,
    pub(super) hands_over: bool,
}

impl Node {
    pub(super) fn new(number: usize) -> Node {
        // The database is in memory if possible, because the disk is not under test here.
        let memory = std::path::Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        Node {
            folder: folder.expect("a temporary folder"),
            number,
            clock_ahead_ms: 0,
            process: None,
            no_journal_until_ms: 0,
            no_fleet_until_ms: 0,
        }
    }

    pub(super) fn serves(&self) -> bool {
        let process = self.process.as_ref();
        process.is_some_and(|process| process.core.is_some())
    }

    pub(super) fn start(&mut self, life: u32, plan: &StandbyPlan, now_ms: u64) {
        let file = open_file(self.folder.path()).expect("its file opens");
        let Applied { number, epoch } = read_applied_position(&file).expect("it is a frontier");
        self.process = Some(Process {
            life,
            ahead_ms: EPOCH_MS + self.clock_ahead_ms,
            file: Some(file),
            member: Member::new(self.number as u64, (number, epoch), plan.member_terms()),
            core: None,
            held: VecDeque::new(),
            deferred: VecDeque::new(),
            kept_ms: now_ms,
            wakes_at_ms: u64::MAX,
            hands_over: false,
        });
    }
}

impl Process {
    pub(super) fn now_ms(&self, true_ms: u64) -> i64 {
        self.ahead_ms + true_ms as i64
    }

    /// Whether the journal contains all commits of the serving dispatcher, and `last` (its last record) is one of them.
    pub(super) fn is_at_end(&self, last: u64) -> bool {
        self.member.is_idle() && self.member.last_appended_number() == last
    }

    /// Applies commits from the journal to the file of a standby.
    pub(super) fn apply(&mut self, commits: &[ReadCommit]) -> Result<(), String> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        apply_commits(file, commits).map_err(|error| error.to_string())
    }

    /// Applies the remaining records of the journal to the dispatcher's file.
    pub(super) fn apply_rest(&mut self, records: Vec<Record>) -> Result<(), String> {
        let answer = JournalAnswer::Read {
            records,
            is_end: false,
            cut_before: 0,
            lease: webfill_scheduler::journal::Lease::unused(),
        };
        match self.member.handle_answer(answer, 0) {
            Ok(Progress::Apply(commits)) => self.apply(&commits),
            Ok(_) => Ok(()),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

impl Standbys {
    /// The dispatcher's process, if it is still the one of this life (the number of its start).
    pub(super) fn process(&mut self, node: usize, life: u32) -> Option<&mut Process> {
        let process = self.nodes[node].process.as_mut();
        process.filter(|process| process.life == life)
    }

    /// In some worlds, the server of the journal dies in the middle of a command. Then only the first records are
    /// added, and the command gets no answer.
    pub(super) fn cut_short(&mut self, mut request: JournalRequest) -> (JournalRequest, bool) {
        let mut is_cut_short = false;
        if let JournalRequest::Append(records) = &mut request
            && records.len() > 1
            && self.dice.once_in(self.plan.cut_short_once_in)
        {
            let most = records.len() as u64 - 1;
            records.truncate(self.dice.between(1, most) as usize);
            is_cut_short = true;
        }
        (request, is_cut_short)
    }
}
