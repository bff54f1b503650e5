//! Checks that the journal is correct, that only the right dispatcher sends messages, and that all files are equal.

use webfill_scheduler::frontier::{apply_commits, open_file, shared_rows};
use webfill_scheduler::journal::{Content, JournalReader, ReadCommit, Record};

use crate::turns;
use crate::world::World;

use super::{Reference, Standbys, StandbysReport};

/// The tables are checked whenever this many records were added to the journal.
const RECORDS_BETWEEN_CHECKS: u64 = 64;

pub(super) fn begin_reference(world: &mut World) {
    let file = open_file(world.coordinator.folder()).expect("its file opens");
    world.standbys_mut().reference = Some(Reference {
        file,
        reader: JournalReader::starting_after(0, 0),
        is_unfinished: false,
    });
}

/// Applies a record that was added to the journal to the reference file, and checks it.
pub(super) fn apply_to_reference(world: &mut World, record: Record) {
    let standbys = world.standbys_mut();
    standbys.report.records += 1;
    standbys.report.record_bytes += record.bytes() as u64;
    let Some(reference) = &mut standbys.reference else {
        return;
    };
    let begins = record.content == Content::Begins;
    standbys.report.unfinished += u64::from(begins && reference.is_unfinished);
    reference.is_unfinished =
        matches!(record.content, Content::Changes { is_last, .. } if !is_last);
    let read = reference.reader.add_record(record);
    let applied = read.map_err(|fault| fault.to_string()).and_then(|commit| {
        let applied = commit.map(|commit| apply_commits(&mut reference.file, &[commit]));
        applied.transpose().map_err(|error| error.to_string())
    });
    let is_check_due = standbys
        .report
        .records
        .is_multiple_of(RECORDS_BETWEEN_CHECKS);
    if let Err(why) = applied {
        world
            .faults
            .push(format!("the journal does not add up: {why}"));
    } else if is_check_due {
        turns::check_conservation(world);
    }
}

/// Checks that a dispatcher sends nothing when another one has the lease.
pub(super) fn judge_speaker(world: &mut World, node: usize, epoch: u64) {
    let now_ms = world.now_ms;
    let lease = world.standbys_mut().journal.lease;
    if lease.epoch != epoch {
        let fault = format!(
            "dispatcher {node} speaks in epoch {epoch} at {now_ms}, and the lease is in epoch {}",
            lease.epoch
        );
        world.faults.push(fault);
    }
}

/// Checks that a dispatcher applies the records that were added, and not those that a former dispatcher has added under
/// numbers that were cut.
pub(super) fn judge_commits(world: &mut World, node: usize, commits: &[ReadCommit]) {
    let journal = &world.standbys_mut().journal;
    let is_other = |commit: &&ReadCommit| !journal.is_of_epoch(commit.number, commit.epoch);
    if let Some(ReadCommit { number, epoch, .. }) = commits.iter().find(is_other) {
        let fault =
            format!("dispatcher {node} applies record {number} of epoch {epoch}, which was cut");
        world.faults.push(fault);
    }
}

/// Checks at the end that all files have the same content, as far as each of them has applied the journal.
pub(crate) fn check_files(world: &mut World) {
    let Some(mut standbys) = world.standbys.take() else {
        return;
    };
    let Standbys {
        nodes,
        journal,
        reference,
        plan,
        ..
    } = &mut *standbys;
    for (number, node) in nodes.iter_mut().enumerate() {
        let Some(process) = &mut node.process else {
            continue;
        };
        if process.core.is_some() && !process.is_at_end(journal.last_number()) {
            // Either some commits of this dispatcher are not in the journal yet, or it has not noticed that it was
            // replaced.
            continue;
        }
        let rows = match &mut process.core {
            Some(core) => core.frontier().run_in_transaction(shared_rows).ok(),
            None => {
                if let Some(snapshot) = &journal.snapshot {
                    let instance = node.number as u64;
                    process.replace_file(snapshot, node.folder.path(), (instance, &*plan));
                }
                let rest = journal.records_after(process.member.last_read_number());
                if let Err(why) = process.apply_rest(rest) {
                    let fault = format!("dispatcher {number} cannot apply: {why}");
                    world.faults.push(fault);
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
            world
                .faults
                .push(format!("file {number} differs: {differ}"));
        }
    }
    world.standbys = Some(standbys);
}

pub(crate) fn standbys_report(world: &mut World) -> StandbysReport {
    let (ms, tasks) = (
        world.now_ms,
        world.coordinator.open_witness().counters().done as u64,
    );
    let report = world.standbys_mut().report;
    StandbysReport {
        ms,
        tasks,
        ..report
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
