//! Appends records to the journal, for the dispatcher that serves.
//!
//! One command is under way at a time; records that are made meanwhile share the next one. The store adds the records
//! of a command in order and stops at the first number that is taken, so the journal never has a gap. A command whose
//! answer is lost is sent again, with the same records under the same numbers: those that were added before are found
//! under this dispatcher's own epoch.

use std::collections::VecDeque;

use super::{AppendAnswer, Content, Record};

/// Another dispatcher serves: it has added a record under the number of ours. The process must end, and nothing may
/// leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    pub by_epoch: u64,
}

/// The maximum size of a part of a commit, and of the records that are not in the journal yet.
#[derive(Debug, Clone, Copy)]
struct Limits {
    part_bytes: usize,
    bytes: usize,
}

/// The records of one tenure, the time when one dispatcher holds the lease.
#[derive(Debug)]
pub struct Appends {
    epoch: u64,
    limits: Limits,
    /// The number of the last record that is known to be in the journal.
    appended: u64,
    /// The records that are not yet known to be in the journal.
    waiting: VecDeque<Record>,
    waiting_bytes: usize,
    /// How many of the waiting records are in the command under way.
    under_way: usize,
}

impl Appends {
    /// Begins after the record with this number. A commit is divided into parts of `part_bytes`.
    /// [`is_full`](Appends::is_full) holds while at least `bytes` are not yet known to be in the journal.
    pub fn new(epoch: u64, appended: u64, part_bytes: usize, bytes: usize) -> Appends {
        Appends {
            epoch,
            limits: Limits { part_bytes, bytes },
            appended,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            under_way: 0,
        }
    }

    /// Adds a commit. Returns the number that must be in the journal before any effect of the commit.
    pub fn add(&mut self, changes: &[u8]) -> u64 {
        if changes.is_empty() {
            // This commit adds nothing. But its effects may report earlier changes, which may not be in the journal yet.
            return self.last_number();
        }
        let mut parts = changes.chunks(self.limits.part_bytes).peekable();
        while let Some(part) = parts.next() {
            let content = Content::Changes {
                part: part.to_owned(),
                is_last: parts.peek().is_none(),
            };
            self.push(content);
        }
        self.last_number()
    }

    /// Adds the record that begins a tenure.
    pub fn add_tenure_begin(&mut self) -> u64 {
        self.push(Content::Begins);
        self.last_number()
    }

    fn push(&mut self, content: Content) {
        let record = Record {
            number: self.last_number() + 1,
            epoch: self.epoch,
            content,
        };
        self.waiting_bytes += record.bytes();
        self.waiting.push_back(record);
    }

    fn last_number(&self) -> u64 {
        self.appended + self.waiting.len() as u64
    }

    /// The number of the last record that is known to be in the journal.
    pub fn last_appended_number(&self) -> u64 {
        self.appended
    }

    /// Whether everything is in the journal.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the next commit must wait, because too many bytes are not in the journal yet.
    pub fn is_full(&self) -> bool {
        self.waiting_bytes >= self.limits.bytes
    }

    /// Takes the records of the next command to the store, unless a command is under way.
    pub fn begin_next_command(&mut self) -> Option<Vec<Record>> {
        if self.under_way > 0 || self.waiting.is_empty() {
            return None;
        }
        self.under_way = self.waiting.len();
        self.command_under_way()
    }

    /// The records of the command under way, to be sent again if its answer does not come.
    pub fn command_under_way(&self) -> Option<Vec<Record>> {
        let records = self.waiting.iter().take(self.under_way);
        (self.under_way > 0).then(|| records.cloned().collect())
    }

    /// Takes the answer to a command that began with the record `first` and had `count` of them. Answers may come
    /// late or twice.
    pub fn on_answer(
        &mut self,
        (first, count): (u64, u64),
        answer: AppendAnswer,
    ) -> Result<(), Replaced> {
        let added = match answer {
            AppendAnswer::Added => first + count - 1,
            AppendAnswer::Taken { number, epoch } if epoch == self.epoch => number,
            AppendAnswer::Taken { epoch, .. } => return Err(Replaced { by_epoch: epoch }),
        };
        while self.appended < added
            && let Some(record) = self.waiting.pop_front()
        {
            self.appended = record.number;
            self.waiting_bytes -= record.bytes();
            self.under_way = self.under_way.saturating_sub(1);
        }
        // If a part of the command was already in the journal, the rest was not added.
        if matches!(answer, AppendAnswer::Taken { .. }) {
            self.under_way = 0;
        }
        Ok(())
    }
}
