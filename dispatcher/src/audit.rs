//! The audit log: who has fed or changed what, and which requests were refused. The core reports these actions. They
//! are written after the commit and before the answers are sent, so every answered action is in the log even if the
//! process is killed immediately after.
//!
//! Feeds are frequent, so all feeds of one sender within a second are summed up in one line, which is rewritten during
//! that second ([`AuditFile`]). Repeated refusals are summed up likewise. Every other action has a line of its own,
//! which is synced. Requests that only read are not logged.

use serde_json::json;
use webfill_scheduler::effects::Audited;
use webfill_scheduler::requester::Channel;
use webfill_service::log::audit::AuditFile;
use webfill_store::iso_time;

/// The most bytes of lines that are kept in memory because they could not be written yet. Further lines are only
/// counted.
const MOST_UNWRITTEN_BYTES: usize = 1 << 20;

/// The most sums (lines that stand for several actions) in one second. Further actions get lines of their own.
const MOST_SUMS: usize = 1_000;

/// The log as the dispatcher's loop writes it.
pub(crate) struct AuditLog {
    file: AuditFile,
    /// The second whose actions are being summed up.
    second: i64,
    sums: Vec<(Audited, u64)>,
    /// Complete lines that could not be written yet.
    unwritten: String,
    /// How many lines were dropped because `unwritten` was full.
    lost: u64,
    /// When the first and the last of these lines were dropped.
    lost_ms: (i64, i64),
    is_failing: bool,
}

impl AuditLog {
    pub(crate) fn new(file: AuditFile) -> AuditLog {
        AuditLog {
            file,
            second: 0,
            sums: Vec::new(),
            unwritten: String::new(),
            lost: 0,
            lost_ms: (0, 0),
            is_failing: false,
        }
    }

    /// Writes the actions of one turn of the loop. A fault of the log stops nothing: lines that cannot be written are
    /// kept for a while and retried, and the number of dropped lines becomes a line of its own.
    pub(crate) fn write(&mut self, turn: Vec<Audited>) {
        let Some(first) = turn.first() else {
            if self.is_failing {
                self.write_lines(false);
            }
            return;
        };
        let second = first.at_ms.div_euclid(1_000);
        if second != self.second && !self.is_failing {
            self.begin_second(second);
        }
        let mut sync = false;
        for audited in turn {
            if audited.is_summed() && self.add_to_sums(&audited) {
                continue;
            }
            sync |= !audited.is_summed();
            self.add_line(&audited.format_line(1), audited.at_ms);
        }
        self.write_lines(sync);
    }

    fn begin_second(&mut self, second: i64) {
        match self.file.finish_open_lines() {
            Ok(()) => self.sums.clear(),
            // The sums stay open, and the next second tries again.
            Err(error) => self.note_failure(&error),
        }
        self.second = second;
    }

    /// Adds an action to the sums of this second. Returns false if there are too many sums.
    fn add_to_sums(&mut self, audited: &Audited) -> bool {
        let mut sums = self.sums.iter_mut();
        if let Some((sum, times)) = sums.find(|(sum, _)| sum.can_share_line(audited)) {
            sum.audited.add(&audited.audited);
            *times += 1;
            return true;
        }
        let has_room = self.sums.len() < MOST_SUMS;
        if has_room {
            self.sums.push((audited.clone(), 1));
        }
        has_room
    }

    fn add_line(&mut self, line: &str, at_ms: i64) {
        if self.unwritten.len() + line.len() <= MOST_UNWRITTEN_BYTES {
            self.unwritten += line;
            return;
        }
        if self.lost == 0 {
            self.lost_ms.0 = at_ms;
        }
        self.lost_ms.1 = at_ms;
        self.lost += 1;
    }

    fn write_lines(&mut self, sync: bool) {
        let mut lines = self.unwritten.clone();
        if self.lost > 0 {
            let (since, last) = self.lost_ms;
            let entry = json!({
                "timestamp": iso_time(last), "action": "audit_lost", "by": Channel::Socket.as_str(),
                "lines": self.lost, "since": iso_time(since),
            });
            lines += &format!("{entry}\n");
        }
        let sums = self.sums.iter();
        let open: String = sums.map(|(sum, times)| sum.format_line(*times)).collect();
        match self.file.write(lines.as_bytes(), open.as_bytes(), sync) {
            Ok(()) => {
                self.unwritten.clear();
                self.lost = 0;
                self.is_failing = false;
            }
            Err(error) => self.note_failure(&error),
        }
    }

    fn note_failure(&mut self, error: &std::io::Error) {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::error!(
                event = "audit_not_written",
                %error,
                "cannot write the audit log, retrying"
            );
        }
    }
}

#[cfg(test)]
mod tests;
