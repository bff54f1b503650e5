//! A dispatcher's process: it reads the journal and applies it to its file, takes the lease, and serves.

use std::collections::VecDeque;

use webfill_scheduler::Core;
use webfill_scheduler::effects::Committed;
use webfill_scheduler::frontier::{Applied, applied, apply_commits, open_file};
use webfill_scheduler::journal::{
    AppendAnswer, JournalAnswer, JournalRequest, Member, Progress, ReadCommit, Record,
};

use crate::coordinator::EPOCH_MS;
use crate::world::{Event, Place, World};

use super::plan::StandbyPlan;
use super::sabotage::StandbySabotage;
use super::{StandbyEvent, Standbys};

/// After this long a request to the journal is made again.
pub(super) const MISSED_AFTER_MS: u64 = 250;

/// A dispatcher that was replaced starts again as a standby.
const STARTS_AGAIN_MS: u64 = 100;

/// A machine for a dispatcher.
pub(super) struct Node {
    pub(super) folder: tempfile::TempDir,
    pub(super) number: usize,
    /// How far its wall clock is ahead of the true time, and how far its process's clock is.
    pub(super) clock_ahead_ms: i64,
    pub(super) process: Option<Process>,
    pub(super) no_journal_until_ms: u64,
    pub(super) no_fleet_until_ms: u64,
}

pub(super) struct Process {
    pub(super) life: u32,
    pub(super) ahead_ms: i64,
    /// Its file, while it does not serve.
    pub(super) file: Option<rusqlite::Connection>,
    pub(super) member: Member,
    pub(super) core: Option<Box<Core>>,
    /// Effects of commits, with the record that they wait for.
    pub(super) held: VecDeque<(u64, Committed)>,
    /// What has come while too much was on its way into the journal.
    pub(super) deferred: VecDeque<StandbyEvent>,
    /// When it last committed to its file.
    pub(super) kept_ms: u64,
    pub(super) wakes_at_ms: u64,
    pub(super) hands_over: bool,
}

impl Node {
    pub(super) fn new(number: usize) -> Node {
        // In memory, if there is such a folder, because the disk is not under test here.
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

    fn begin(&mut self, life: u32, plan: &StandbyPlan, now_ms: u64) {
        let file = open_file(self.folder.path()).expect("its file opens");
        let Applied { number, epoch } = applied(&file).expect("it is a frontier");
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

    /// Whether all commits of a serving dispatcher are in the journal, and no others behind them.
    pub(super) fn is_at_end(&self, last: u64) -> bool {
        self.member.is_idle() && self.member.appended() == last
    }

    /// Applies commits to the file of a standby.
    pub(super) fn apply(&mut self, commits: &[ReadCommit]) -> Result<(), String> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        apply_commits(file, commits).map_err(|error| error.to_string())
    }

    /// Applies the rest of the journal.
    pub(super) fn apply_rest(&mut self, records: Vec<Record>) -> Result<(), String> {
        let answer = JournalAnswer::Read {
            records,
            is_end: false,
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
    /// The process of this life, if it is still there.
    pub(super) fn process(&mut self, node: usize, life: u32) -> Option<&mut Process> {
        let process = self.nodes[node].process.as_mut();
        process.filter(|process| process.life == life)
    }

    /// In some worlds, the journal's primary dies in the middle of a command: only its first records are added, and
    /// nobody answers.
    fn cut_short(&mut self, mut request: JournalRequest) -> (JournalRequest, bool) {
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

impl World {
    pub(crate) fn begin_standbys(&mut self) {
        let clocks = self.standbys_mut().plan.clocks_ahead_ms.clone();
        for (node, ahead_ms) in clocks.into_iter().enumerate() {
            self.standbys_mut().nodes[node].clock_ahead_ms = ahead_ms;
            self.schedule_in(node as u64 * 5, Event::Standby(StandbyEvent::Starts(node)));
        }
        for (at_ms, fault) in self.standbys_mut().plan.faults.clone() {
            self.schedule_at(at_ms, Event::Standby(StandbyEvent::Fault(fault)));
        }
        self.begin_reference();
    }

    pub(super) fn start_node(&mut self, node: usize) {
        let now_ms = self.now_ms;
        self.resume(Place::Node(node));
        let standbys = self.standbys_mut();
        if standbys.nodes[node].process.is_some() {
            return;
        }
        standbys.lives += 1;
        let life = standbys.lives;
        standbys.nodes[node].begin(life, &standbys.plan, now_ms);
        let ticks = StandbyEvent::Ticks { node, life };
        self.schedule_in(1, Event::Standby(ticks));
    }

    /// Ends a dispatcher's process between two events. What is on its way to the journal still arrives.
    pub(super) fn kill_node(&mut self, node: usize, down_ms: u64) {
        self.trace(|_| format!("dispatcher {node} dies"));
        if self.standbys_mut().nodes[node].process.take().is_some() {
            self.schedule_in(down_ms, Event::Standby(StandbyEvent::Starts(node)));
        }
    }

    /// Lets a dispatcher renew the lease, or read the journal.
    pub(super) fn tick_node(&mut self, node: usize, life: u32) {
        let now_ms = self.now_ms;
        let standbys = self.standbys_mut();
        let tick_ms = standbys.plan.tick_ms;
        let Some(process) = standbys.process(node, life) else {
            return;
        };
        process.member.on_tick(now_ms);
        self.schedule_in(tick_ms, Event::Standby(StandbyEvent::Ticks { node, life }));
        self.send_requests(node);
    }

    /// Sends what a dispatcher asks the journal.
    pub(super) fn send_requests(&mut self, node: usize) {
        let now_ms = self.now_ms;
        let Some(process) = &mut self.standbys_mut().nodes[node].process else {
            return;
        };
        let (life, wall_ms) = (process.life, process.now_ms(now_ms));
        for request in process.member.take_requests() {
            if let JournalRequest::Append(records) = &request {
                let missed = StandbyEvent::AnswerIsMissed {
                    node,
                    life,
                    first: records[0].number,
                    count: records.len() as u64,
                };
                self.schedule_in(MISSED_AFTER_MS, Event::Standby(missed));
            }
            if let Some(takes_ms) = self.draw_journal_delay(node) {
                let event = StandbyEvent::JournalGets {
                    node,
                    life,
                    request,
                    wall_ms,
                };
                self.schedule_in(takes_ms, Event::Standby(event));
            }
        }
    }

    /// How long a message between a dispatcher and the journal takes; `None`: it is lost.
    fn draw_journal_delay(&mut self, node: usize) -> Option<u64> {
        let now_ms = self.now_ms;
        let standbys = self.standbys_mut();
        let plan = &standbys.plan;
        let dice = &mut standbys.dice;
        if standbys.nodes[node].no_journal_until_ms > now_ms || dice.once_in(plan.lost_once_in) {
            return None;
        }
        Some(match dice.once_in(plan.late_once_in) {
            true => dice.between(1, 2 * plan.lease_ms),
            false => dice.between(1, plan.way_ms),
        })
    }

    /// Carries out a request. Its answer may be lost.
    pub(super) fn execute_at_journal(
        &mut self,
        node: usize,
        life: u32,
        (request, wall_ms): (JournalRequest, i64),
    ) {
        let now_ms = self.now_ms;
        let standbys = self.standbys_mut();
        if standbys.journal.away_until_ms > now_ms {
            return;
        }
        let (request, is_cut_short) = standbys.cut_short(request);
        let (answer, added) = standbys.journal.execute(request, wall_ms);
        for record in added {
            self.apply_to_reference(record);
        }
        match self.draw_journal_delay(node) {
            Some(takes_ms) if !is_cut_short => {
                let event = StandbyEvent::JournalSays { node, life, answer };
                self.schedule_in(takes_ms, Event::Standby(event));
            }
            _ => self.standbys_mut().report.lost_answers += 1,
        }
    }

    pub(super) fn handle_journal_answer(&mut self, node: usize, life: u32, answer: JournalAnswer) {
        for answer in self.sabotage_answer(node, life, answer) {
            self.handle_one_answer(node, life, answer);
        }
    }

    fn handle_one_answer(&mut self, node: usize, life: u32, answer: JournalAnswer) {
        let now_ms = self.now_ms;
        let Some(process) = self.standbys_mut().process(node, life) else {
            return;
        };
        let progress = match process.member.handle_answer(answer, now_ms) {
            Ok(progress) => progress,
            Err(fault) => return self.note_unreadable(node, &fault.to_string()),
        };
        match progress {
            Progress::Nothing => {}
            Progress::Apply(commits) => {
                if let Err(why) = process.apply(&commits) {
                    return self.note_unreadable(node, &why);
                }
            }
            Progress::Serve(commit) => self.serve(node, life, commit),
            Progress::Advanced => self.continue_serving(node),
            Progress::Replaced => {
                self.standbys_mut().report.ghosts += 1;
                return self.kill_node(node, STARTS_AGAIN_MS);
            }
        }
        self.send_requests(node);
    }

    fn note_unreadable(&mut self, node: usize, why: &str) {
        let fault = format!("dispatcher {node} cannot apply the journal: {why}");
        self.faults.push(fault);
    }

    /// What a dispatcher takes an answer for: usually the answer.
    fn sabotage_answer(
        &mut self,
        node: usize,
        life: u32,
        answer: JournalAnswer,
    ) -> Vec<JournalAnswer> {
        let now_ms = self.now_ms;
        let standbys = self.standbys_mut();
        let (sabotage, lasts_ms) = (standbys.sabotage, standbys.plan.lease_ms as i64);
        let renewed_wall_ms = standbys.journal.renewed_wall_ms;
        let Some(process) = standbys.process(node, life) else {
            return Vec::new();
        };
        let (is_serving, wall_ms) = (process.core.is_some(), process.now_ms(now_ms));
        let epoch = process.member.epoch();
        let Some(sabotage) = sabotage else {
            return vec![answer];
        };
        sabotage.change_answer(
            answer,
            |mut lease| {
                lease.is_free |= wall_ms > renewed_wall_ms + lasts_ms;
                lease
            },
            (is_serving, epoch, now_ms),
        )
    }

    /// Notes that a command was not answered for some time.
    pub(super) fn miss_answer(&mut self, node: usize, life: u32, (first, count): (u64, u64)) {
        let now_ms = self.now_ms;
        let standbys = self.standbys_mut();
        let counts = standbys.is_sabotaged_by(StandbySabotage::LostAnswersCountAsDone);
        let Some(process) = standbys.process(node, life) else {
            return;
        };
        if counts && process.core.is_some() && process.member.appended() < first {
            let answer = AppendAnswer::Added;
            let added = JournalAnswer::Appended {
                first,
                count,
                answer,
            };
            return self.handle_one_answer(node, life, added);
        }
        process.member.resend_if_missed(now_ms);
        self.send_requests(node);
    }
}
