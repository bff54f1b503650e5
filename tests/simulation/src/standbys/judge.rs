//! The checks of the journal, of who speaks, and that all files are equal.

use webfill_scheduler::frontier::{apply_commits, open_file, shared_rows};
use webfill_scheduler::journal::{Content, JournalReader, Record};

use crate::world::World;

use super::{Standbys, StandbysReport};

/// The tables are checked whenever this many records were added.
const RECORDS_BETWEEN_CHECKS: u64 = 64;

/// The file that applies the journal as it is written: it stands where the one file of the other worlds is.
pub(super) struct Reference {
    file: rusqlite::Connection,
    reader: JournalReader,
    /// Whether the last record was a part of a commit, with more to come.
    is_unfinished: bool,
}

impl World {
    pub(super) fn begin_reference(&mut self) {
        let file = open_file(self.coordinator.folder()).expect("its file opens");
        self.standbys_mut().reference = Some(Reference {
            file,
            reader: JournalReader::after(0, 0),
            is_unfinished: false,
        });
    }

    /// Notes a record that was added to the journal.
    pub(super) fn apply_to_reference(&mut self, record: Record) {
        let standbys = self.standbys_mut();
        standbys.report.records += 1;
        standbys.report.record_bytes += record.bytes() as u64;
        let Some(reference) = &mut standbys.reference else {
            return;
        };
        let begins = record.content == Content::Begins;
        standbys.report.unfinished += u64::from(begins && reference.is_unfinished);
        reference.is_unfinished =
            matches!(record.content, Content::Changes { is_last, .. } if !is_last);
        let read = reference.reader.take(record);
        let applied = read.map_err(|fault| fault.to_string()).and_then(|commit| {
            let applied = commit.map(|commit| apply_commits(&mut reference.file, &[commit]));
            applied.transpose().map_err(|error| error.to_string())
        });
        let is_check_due = standbys
            .report
            .records
            .is_multiple_of(RECORDS_BETWEEN_CHECKS);
        if let Err(why) = applied {
            self.faults
                .push(format!("the journal does not add up: {why}"));
        } else if is_check_due {
            self.check_conservation();
        }
    }

    /// Judges that nothing leaves a dispatcher once another one has the lease.
    pub(super) fn judge_speaker(&mut self, node: usize, epoch: u64) {
        let now_ms = self.now_ms;
        let lease = self.standbys_mut().journal.lease;
        if lease.epoch != epoch {
            let fault = format!(
                "dispatcher {node} speaks in epoch {epoch} at {now_ms}, and the lease is in epoch {}",
                lease.epoch
            );
            self.faults.push(fault);
        }
    }

    /// Judges at the end that all files are equal, each as far as it has applied the journal.
    pub(crate) fn check_files(&mut self) {
        let Some(mut standbys) = self.standbys.take() else {
            return;
        };
        let Standbys {
            nodes,
            journal,
            reference,
            ..
        } = &mut *standbys;
        for (number, node) in nodes.iter_mut().enumerate() {
            let Some(process) = &mut node.process else {
                continue;
            };
            if process.core.is_some() && !process.is_at_end(journal.last()) {
                // Some of its commits are not in the journal yet, or it does not know that it was replaced.
                continue;
            }
            let rows = match &mut process.core {
                Some(core) => core.frontier().run_in_transaction(shared_rows).ok(),
                None => {
                    let rest = journal.records_after(process.member.last_read());
                    if let Err(why) = process.apply_rest(rest) {
                        let fault = format!("dispatcher {number} cannot apply: {why}");
                        self.faults.push(fault);
                    }
                    process
                        .file
                        .as_ref()
                        .and_then(|file| shared_rows(file).ok())
                }
            };
            let expected = reference
                .as_ref()
                .and_then(|reference| shared_rows(&reference.file).ok());
            if rows != expected {
                let differ = first_difference(&rows, &expected);
                self.faults.push(format!("file {number} differs: {differ}"));
            }
        }
        self.standbys = Some(standbys);
    }

    pub(crate) fn standbys_report(&mut self) -> StandbysReport {
        let (ms, tasks) = (
            self.now_ms,
            self.coordinator.open_witness().counters().done as u64,
        );
        let report = self.standbys_mut().report;
        StandbysReport {
            ms,
            tasks,
            ..report
        }
    }
}

fn first_difference(rows: &Option<Vec<String>>, expected: &Option<Vec<String>>) -> String {
    let (Some(rows), Some(expected)) = (rows, expected) else {
        return String::from("it cannot be read");
    };
    let mut differing = rows
        .iter()
        .zip(expected)
        .filter(|(one, other)| one != other);
    match differing.next() {
        Some((one, other)) => format!("{one} instead of {other}"),
        None => format!("{} rows instead of {}", rows.len(), expected.len()),
    }
}
