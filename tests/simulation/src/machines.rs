//! The checks while machines lose their way to the web. They use the outcomes that the dispatcher gets, its messages,
//! and its `status`:
//!
//! - a machine that fails at one healthy site after another is offline;
//! - its failures from then on, and those just before, do not end tasks;
//! - it gets only probes from time to time, one at a time if another machine is not cut off, and keeps getting them as
//!   long as there is work;
//! - it is not online again before a probe was answered.

use std::collections::BTreeSet;

use serde_json::Value;
use webfill_wire::{Outcome, SupervisorOutcomes, Task, TaskDone};

use crate::faults::is_failure;
use crate::names::site_number;
use crate::observations::{ObservedCutOff, ObservedMachine};
use crate::world::World;

/// The dispatcher must count a machine as offline if this many healthy sites fail for it within this time.
const ENOUGH_SITES: usize = 8;
const WITHIN_MS: u64 = 200_000;
/// A machine counts as offline only if none of its sites has answered for this long.
const QUIET_MS: u64 = 4_000;

/// The most probes that an offline machine gets together as one round, and the shortest time between two rounds.
const PROBES_IN_A_ROUND: usize = 16;
const PROBES_EVERY_MS: u64 = 5_000;
/// The longest time between two rounds of probes, as long as there are tasks that could be probes.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// An offline machine must have got a probe after this time, if meanwhile other machines got more than [`MANY_TASKS`]
/// tasks. Only tasks at healthy sites count, because other tasks cannot be probes.
const PROBED_AFTER_MS: u64 = 600_000;
const MANY_TASKS: usize = 30;

/// After this time, the dispatcher may count a machine as online again although no probe was answered.
const LONGEST_OFFLINE_MS: u64 = 6 * 3_600_000;

/// The attempts at tasks in a report of a supervisor. Only attempts under valid leases count.
#[derive(Default)]
pub(crate) struct Attempts {
    supervisor: String,
    has_answer: bool,
    /// Whether some failures may prove nothing about the machine, because their sites were not healthy.
    is_unclear: bool,
    /// The site and the task of each attempt without an answer.
    failed: Vec<(usize, u64)>,
}

fn is_answered(done: &TaskDone) -> bool {
    let status = done.evidence.as_ref().and_then(|seen| seen.status_code);
    done.status_code.or(status).is_some()
}

fn is_unanswered(done: &TaskDone) -> bool {
    done.evidence.is_some() && !is_answered(done) && is_failure(done.outcome.as_str())
}

/// Whether a name server has answered that the name does not exist.
fn has_no_name(done: &TaskDone) -> bool {
    let no_route = done.evidence.as_ref().is_some_and(|seen| seen.no_route);
    done.outcome == Outcome::DnsError && !no_route
}

/// Reads a machine's attempts from its outcomes, and notes that this machine is reporting. `None` in worlds where no
/// machine loses its connection to the web.
pub(crate) fn note_attempts(world: &mut World, outcomes: &SupervisorOutcomes) -> Option<Attempts> {
    if !world.plan.loses_egress() {
        return None;
    }
    let mut attempts = Attempts {
        supervisor: outcomes.supervisor.clone(),
        ..Attempts::default()
    };
    for done in &outcomes.done {
        let lease = world
            .coordinator
            .open_witness()
            .site_of(done.task, done.delivery.number);
        let Some((site, was_well)) = lease else {
            continue;
        };
        attempts.has_answer |= is_answered(done);
        if is_unanswered(done) {
            attempts.is_unclear |= !was_well || has_no_name(done);
            attempts.failed.push((site_number(&site), done.task));
        }
    }
    let answering = attempts.has_answer.then(|| attempts.supervisor.clone());
    world.machines_seen.answering = answering;
    world.machines_seen.attempting = Some(attempts.supervisor.clone());
    world.machines_seen.is_attentive = true;
    Some(attempts)
}

/// Judges how the dispatcher reacts to the report of a supervisor.
pub(crate) fn check_machine(world: &mut World, attempts: Option<Attempts>) {
    world.machines_seen.answering = None;
    world.machines_seen.attempting = None;
    world.machines_seen.is_attentive = false;
    let Some(attempts) = attempts else {
        return;
    };
    let (now_ms, name) = (world.now_ms, attempts.supervisor.clone());
    // After a restart, the dispatcher does not know for how long the machine got no answer, so the time begins now.
    let unknown = || ObservedMachine {
        answered_ms: now_ms,
        ..ObservedMachine::default()
    };
    let seen = world.machines_seen.of_names.entry(name.clone());
    let seen = seen.or_insert_with(unknown);
    let is_offline = seen.offline.is_some();
    seen.failed.retain(|(.., at_ms)| at_ms + WITHIN_MS > now_ms);
    let failed = attempts.failed.iter();
    let failed = failed.map(|(site, task)| (*site, *task, now_ms));
    if is_offline {
        let before = std::mem::take(&mut seen.failed);
        let failed = before.into_iter().chain(failed);
        return check_excused(world, &name, failed.map(|(_, task, _)| task));
    }
    if attempts.has_answer {
        seen.answered_ms = now_ms;
        seen.failed.clear();
    } else if !attempts.is_unclear {
        seen.failed.extend(failed);
    }
    let sites: BTreeSet<usize> = seen.failed.iter().map(|(site, ..)| *site).collect();
    let is_clear = sites.len() >= ENOUGH_SITES && seen.answered_ms + QUIET_MS < now_ms;
    if is_clear && !seen.was_offline {
        let fault = format!("{name} is not cut off, and fails at {sites:?} at {now_ms}");
        world.faults.push(fault);
    }
}

/// Checks that none of these tasks has ended with a failure. Tasks of ended crawls are not checked, because an ended
/// crawl retries nothing.
fn check_excused(world: &mut World, machine: &str, tasks: impl Iterator<Item = u64>) {
    for task in tasks {
        let ended = world.coordinator.open_witness().outcome_of(task);
        if let Some((crawl, outcome)) = ended
            && is_failure(&outcome)
            && !world.plan.has_stop_of(crawl as usize - 1)
        {
            let fault = format!("{machine} is offline, and task {task} ended as {outcome}");
            world.faults.push(fault);
        }
    }
}

/// Notes which machines the dispatcher reports as offline. This report precedes any other message.
pub(crate) fn note_status(world: &mut World, status: &Value) {
    let supervisors = status["supervisors"].as_array();
    let supervisors = supervisors.expect("a status has supervisors").iter();
    let offline = supervisors
        .clone()
        .filter(|reported| reported["egress"] == "offline");
    let offline: BTreeSet<&str> = offline
        .filter_map(|reported| reported["id"].as_str())
        .collect();
    for name in &offline {
        let seen = world.machines_seen.of_names.entry((*name).to_owned());
        let seen = seen.or_default();
        if seen.offline.is_none() {
            // A machine that has just joined may be offline because of its earlier attempts. It may get a probe
            // immediately.
            let is_new = world.machines_seen.attempting.as_deref() == Some(name);
            let passed_ms = if is_new { 0 } else { PROBES_EVERY_MS };
            seen.was_offline = true;
            seen.offline = Some(ObservedCutOff {
                since_ms: world.now_ms,
                probed_ms: world.now_ms.saturating_sub(passed_ms),
                probes: Vec::new(),
                tasks_of_others: 0,
            });
            world.machines_seen.outages += 1;
            world.backoff.may_be_over = true;
        }
    }
    // Machines that have not come back yet are not in the report. But a failure of such a machine also ends backoffs.
    if supervisors.clone().count() < world.plan.supervisors {
        world.backoff.may_be_over |= world.plan.loses_egress();
    }
    let is_connected = |name: &str| supervisors.clone().any(|reported| reported["id"] == name);
    world
        .machines_seen
        .of_names
        .retain(|name, _| is_connected(name));
    for (name, seen) in &mut world.machines_seen.of_names {
        if offline.contains(name.as_str()) {
            continue;
        }
        if let Some(before) = seen.offline.take()
            && world.machines_seen.answering.as_ref() != Some(name)
            && world.now_ms - before.since_ms < LONGEST_OFFLINE_MS
        {
            let fault = format!("{name} is open without an answer at {}", world.now_ms);
            world.faults.push(fault);
        }
    }
}

pub(crate) fn is_offline(world: &World, name: &str) -> bool {
    let seen = world.machines_seen.of_names.get(name);
    seen.is_some_and(|seen| seen.offline.is_some())
}

/// Checks the tasks that the dispatcher sends to a supervisor: an offline machine gets only probes, and not too many or
/// too few.
pub(crate) fn check_tasks(world: &mut World, name: &str, tasks: &[Task]) {
    let now_ms = world.now_ms;
    let patience_ms = PROBED_AFTER_MS + 2 * (world.plan.lease_ms + world.plan.longest_request_ms);
    let lanes: Vec<_> = world.plan.lanes.iter().flatten().collect();
    let is_one_lane = lanes.windows(2).all(|pair| pair[0] == pair[1]);
    let machines = &world.machines_seen.of_names;
    let is_open =
        |(other, seen): (&String, &ObservedMachine)| other != name && seen.offline.is_none();
    let most = match is_one_lane && machines.iter().any(is_open) {
        true => 1,
        false => PROBES_IN_A_ROUND,
    };
    let witness = world.coordinator.open_witness();
    for (other, seen) in &mut world.machines_seen.of_names {
        let Some(offline) = &mut seen.offline else {
            continue;
        };
        let waited_ms = now_ms - offline.probed_ms;
        if other == name {
            // A round of probes continues until one of its probes has ended.
            let goes_on = offline.probes.iter().all(|probe| witness.is_leased(*probe));
            if !goes_on || waited_ms >= PROBES_EVERY_MS {
                offline.probes.retain(|probe| witness.is_leased(*probe));
            }
            let begins = !goes_on || offline.probes.is_empty();
            let is_too_soon = begins && waited_ms < PROBES_EVERY_MS;
            let leases = tasks
                .iter()
                .map(|task| (task.task as i64, task.delivery.number));
            offline.probes.extend(leases);
            if offline.probes.len() > most || is_too_soon {
                let fault = format!(
                    "{name} is offline, and gets {} tasks after {waited_ms} ms at {now_ms}",
                    tasks.len()
                );
                world.faults.push(fault);
            }
            offline.probed_ms = now_ms;
            offline.tasks_of_others = 0;
            continue;
        }
        if is_one_lane && waited_ms > LONGEST_PAUSE_MS + world.plan.longest_request_ms {
            let is_well = |task: &&Task| {
                let site = witness.site_of(task.task, task.delivery.number);
                site.is_some_and(|(_, is_well)| is_well)
            };
            offline.tasks_of_others += tasks.iter().filter(is_well).count();
        }
        let mut probes = offline.probes.iter();
        if offline.tasks_of_others > MANY_TASKS
            && waited_ms > patience_ms
            && !probes.any(|probe| witness.is_leased(*probe))
        {
            let fault = format!("{other} is not tried again at {now_ms}");
            world.faults.push(fault);
        }
    }
}
