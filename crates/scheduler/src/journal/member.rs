//! A dispatcher among those of its group: it reads the journal, takes the lease, and serves until it is replaced.
//!
//! A [`Member`] decides. The caller sends its [requests](JournalRequest) to the store, passes the answers with the time,
//! and applies the commits that were read to a file. Requests and answers may be lost, late or repeated; the time is
//! that of a clock that is never set.

use super::{
    AppendAnswer, Appends, JournalFault, JournalReader, Lease, LeaseWatch, ReadCommit, Record,
    Replaced, Tenure,
};

/// The times and sizes of a group.
#[derive(Debug, Clone, Copy)]
pub struct MemberTerms {
    /// How long the lease lasts after a renewal.
    pub lease_ms: u64,
    /// A request that is not answered for this long is made again.
    pub missed_after_ms: u64,
    /// The maximum size of a record in bytes; longer commits are divided.
    pub part_bytes: usize,
    /// The next commit waits while this many bytes are on their way to the journal.
    pub pending_bytes: usize,
}

/// A request to the store. `sent_ms` comes back with the answer.
#[derive(Debug, Clone)]
pub enum JournalRequest {
    Append(Vec<Record>),
    /// Read the records behind this number, and the lease after them.
    Read {
        after: u64,
    },
    /// Take the lease if it is still as it was seen.
    Take {
        seen: Lease,
        holder: u64,
        sent_ms: u64,
    },
    Renew {
        epoch: u64,
        sent_ms: u64,
    },
    Free {
        epoch: u64,
    },
}

#[derive(Debug, Clone)]
pub enum JournalAnswer {
    /// The answer to the command that began with the record `first` and had `count` of them.
    Appended {
        first: u64,
        count: u64,
        answer: AppendAnswer,
    },
    Read {
        records: Vec<Record>,
        /// Whether the journal had no further record.
        is_end: bool,
        /// Records with lower numbers do not count.
        cut_before: u64,
        lease: Lease,
    },
    /// The new epoch; `None`: the lease has changed since this dispatcher read it.
    Taken {
        epoch: Option<u64>,
        sent_ms: u64,
    },
    Renewed {
        epoch: u64,
        is_held: bool,
        sent_ms: u64,
    },
    Freed,
}

/// The next step of the caller after an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    Nothing,
    /// Apply these commits to the file, in order.
    Apply(Vec<ReadCommit>),
    /// Apply this commit, if there is one, and serve from the file.
    Serve(Option<ReadCommit>),
    /// More is in the journal, or the tenure lasts longer: effects may leave, and commits may be added again.
    Advanced,
    /// Another dispatcher serves. The process ends, and nothing may leave it.
    Replaced,
}

#[derive(Debug)]
pub struct Member {
    instance: u64,
    terms: MemberTerms,
    reader: JournalReader,
    watch: LeaseWatch,
    tenure: Option<Tenure>,
    /// The records of the tenure, from its first attempt to begin.
    appends: Option<Appends>,
    is_serving: bool,
    /// When the read that is not answered yet was requested.
    read_sent_ms: Option<u64>,
    /// When the command under way was sent.
    command_sent_ms: u64,
    requests: Vec<JournalRequest>,
}

impl Member {
    /// Continues after the last commit that the file has applied. `instance`: the state folder.
    pub fn new(instance: u64, (number, epoch): (u64, u64), terms: MemberTerms) -> Member {
        Member {
            instance,
            terms,
            reader: JournalReader::starting_after(number, epoch),
            watch: LeaseWatch::new(instance, terms.lease_ms),
            tenure: None,
            appends: None,
            is_serving: false,
            read_sent_ms: None,
            command_sent_ms: 0,
            requests: Vec::new(),
        }
    }

    /// Takes the requests to be sent to the store.
    pub fn take_requests(&mut self) -> Vec<JournalRequest> {
        std::mem::take(&mut self.requests)
    }

    /// Called several times in each lease. Renews the lease, or requests further records.
    pub fn on_tick(&mut self, now_ms: u64) {
        if let Some(tenure) = self.tenure {
            self.requests.push(JournalRequest::Renew {
                epoch: tenure.epoch,
                sent_ms: now_ms,
            });
        }
        if !self.is_serving {
            self.request_read(now_ms);
        }
        self.resend_if_missed(now_ms);
    }

    /// Requests further records, unless the last read may still be answered.
    fn request_read(&mut self, now_ms: u64) {
        let missed_after_ms = self.terms.missed_after_ms;
        let is_awaited = |sent_ms: u64| now_ms < sent_ms + missed_after_ms;
        if !self.read_sent_ms.is_some_and(is_awaited) {
            self.read_sent_ms = Some(now_ms);
            let after = self.reader.last_number();
            self.requests.push(JournalRequest::Read { after });
        }
    }

    /// Sends the command under way again, if it has not been answered for too long.
    pub fn resend_if_missed(&mut self, now_ms: u64) {
        if now_ms < self.command_sent_ms + self.terms.missed_after_ms {
            return;
        }
        let under_way = self.appends.as_ref().and_then(Appends::command_under_way);
        if let Some(records) = under_way {
            self.command_sent_ms = now_ms;
            self.requests.push(JournalRequest::Append(records));
        }
    }

    /// Sends the records that wait, unless some are on their way.
    fn send_next_command(&mut self, now_ms: u64) {
        let next = self.appends.as_mut().and_then(Appends::begin_next_command);
        if let Some(records) = next {
            self.command_sent_ms = now_ms;
            self.requests.push(JournalRequest::Append(records));
        }
    }

    pub fn handle_answer(
        &mut self,
        answer: JournalAnswer,
        now_ms: u64,
    ) -> Result<Progress, JournalFault> {
        match answer {
            JournalAnswer::Read {
                records,
                is_end,
                cut_before,
                lease,
            } => self.on_read((records, cut_before), is_end, lease, now_ms),
            JournalAnswer::Taken { epoch, sent_ms } => {
                self.on_lease_taken(epoch, sent_ms, now_ms);
                Ok(Progress::Nothing)
            }
            JournalAnswer::Renewed {
                epoch,
                is_held,
                sent_ms,
            } => Ok(self.on_renewed(epoch, is_held, sent_ms)),
            JournalAnswer::Appended {
                first,
                count,
                answer,
            } => self.on_appended((first, count), answer, now_ms),
            JournalAnswer::Freed => Ok(Progress::Nothing),
        }
    }

    fn on_read(
        &mut self,
        (records, cut_before): (Vec<Record>, u64),
        is_end: bool,
        lease: Lease,
        now_ms: u64,
    ) -> Result<Progress, JournalFault> {
        self.read_sent_ms = None;
        if self.is_serving {
            return Ok(Progress::Nothing);
        }
        self.reader.check_cut(&records, cut_before)?;
        let mut commits = Vec::new();
        for record in records {
            commits.extend(self.reader.add_record(record)?);
        }
        self.watch.note_lease(lease, now_ms);
        if !is_end {
            self.request_read(now_ms);
        } else if let Some(tenure) = self.tenure {
            self.begin_tenure(tenure, now_ms);
        } else if let Some(seen) = self.watch.lease_to_take(now_ms) {
            self.requests.push(JournalRequest::Take {
                seen,
                holder: self.instance,
                sent_ms: now_ms,
            });
        }
        Ok(match commits.is_empty() {
            true => Progress::Nothing,
            false => Progress::Apply(commits),
        })
    }

    /// If the lease was taken, reads again: the former dispatcher may have added records since the last read.
    fn on_lease_taken(&mut self, epoch: Option<u64>, sent_ms: u64, now_ms: u64) {
        if let (Some(epoch), None) = (epoch, self.tenure) {
            self.tenure = Some(Tenure::begin(epoch, self.terms.lease_ms, sent_ms));
            self.request_read(now_ms);
        }
    }

    /// Adds the record that begins the tenure, behind the last one that was read.
    fn begin_tenure(&mut self, tenure: Tenure, now_ms: u64) {
        if self.appends.is_some() {
            return;
        }
        let last = self.reader.last_number();
        let MemberTerms {
            part_bytes,
            pending_bytes,
            ..
        } = self.terms;
        let mut appends = Appends::new(tenure.epoch, last, part_bytes, pending_bytes);
        appends.add_tenure_begin();
        self.appends = Some(appends);
        self.send_next_command(now_ms);
    }

    fn on_renewed(&mut self, epoch: u64, is_held: bool, sent_ms: u64) -> Progress {
        match &mut self.tenure {
            Some(tenure) if tenure.epoch == epoch => {
                if !is_held {
                    return self.step_down();
                }
                tenure.on_renewed(sent_ms);
                Progress::Advanced
            }
            _ => Progress::Nothing,
        }
    }

    /// Ends the service of this dispatcher, or its attempt to begin one.
    fn step_down(&mut self) -> Progress {
        if self.is_serving {
            return Progress::Replaced;
        }
        self.tenure = None;
        self.appends = None;
        Progress::Nothing
    }

    fn on_appended(
        &mut self,
        command: (u64, u64),
        answer: AppendAnswer,
        now_ms: u64,
    ) -> Result<Progress, JournalFault> {
        let (Some(appends), Some(tenure)) = (&mut self.appends, self.tenure) else {
            return Ok(Progress::Nothing);
        };
        match appends.on_answer(command, answer) {
            Err(Replaced { by_epoch }) if self.is_serving || by_epoch > tenure.epoch => {
                Ok(self.step_down())
            }
            // The former dispatcher has added a record meanwhile, which must be read first.
            Err(_) => {
                self.appends = None;
                self.request_read(now_ms);
                Ok(Progress::Nothing)
            }
            Ok(()) if self.is_serving => {
                self.send_next_command(now_ms);
                Ok(Progress::Advanced)
            }
            Ok(()) if appends.is_idle() => {
                let begins = Record::epoch_start(appends.last_appended_number(), tenure.epoch);
                self.is_serving = true;
                Ok(Progress::Serve(self.reader.add_record(begins)?))
            }
            Ok(()) => Ok(Progress::Nothing),
        }
    }

    /// Adds the changes of a commit. Returns the number of the record that must be in the journal before any effect of
    /// the commit leaves.
    pub fn add_commit(&mut self, changes: &[u8], now_ms: u64) -> u64 {
        let number = match &mut self.appends {
            Some(appends) => appends.add(changes),
            None => 0,
        };
        self.send_next_command(now_ms);
        number
    }

    /// Whether effects that wait for this record may leave now.
    pub fn can_release_effects(&self, number: u64, now_ms: u64) -> bool {
        let is_in_force = self.tenure.is_some_and(|tenure| tenure.is_in_force(now_ms));
        is_in_force && number <= self.last_appended_number()
    }

    /// Until when effects may leave, if there is no further renewal.
    pub fn in_force_until_ms(&self) -> u64 {
        self.tenure.map_or(0, |tenure| tenure.until_ms())
    }

    /// The number of the last record that is known to be in the journal.
    pub fn last_appended_number(&self) -> u64 {
        self.appends
            .as_ref()
            .map_or(0, Appends::last_appended_number)
    }

    /// Whether every commit is in the journal.
    pub fn is_idle(&self) -> bool {
        self.appends.as_ref().is_none_or(Appends::is_idle)
    }

    /// Whether the next commit must wait, because too much is on its way.
    pub fn is_full(&self) -> bool {
        self.appends.as_ref().is_some_and(Appends::is_full)
    }

    pub fn is_serving(&self) -> bool {
        self.is_serving
    }

    /// The epoch of the tenure; `None`: another dispatcher has the lease, or nobody.
    pub fn epoch(&self) -> Option<u64> {
        self.tenure.map(|tenure| tenure.epoch)
    }

    /// The number of the last record that was read.
    pub fn last_read_number(&self) -> u64 {
        self.reader.last_number()
    }

    /// Gives the lease up, so that another dispatcher takes it at once. Everything must be in the journal, and nothing
    /// may be added any more.
    pub fn hand_over(&mut self) {
        if let Some(epoch) = self.epoch() {
            self.requests.push(JournalRequest::Free { epoch });
        }
    }
}
