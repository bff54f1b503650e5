//! The events between a dispatcher and the journal: a dispatcher reads the journal, applies it to its file, and takes
//! the lease.

use webfill_scheduler::journal::{
    AppendAnswer, JournalAnswer, JournalFault, JournalRequest, Progress,
};

use crate::event::{Event, Place};
use crate::world::World;

use super::{
    StandbyEvent, file_checks, plan::MISSED_AFTER_MS, sabotage::StandbySabotage, serving, snapshots,
};

/// A dispatcher that was replaced starts again as a standby after this time.
const STARTS_AGAIN_MS: u64 = 100;

pub(crate) fn begin_standbys(world: &mut World) {
    let clocks = world.standbys_mut().plan.clocks_ahead_ms.clone();
    for (node, ahead_ms) in clocks.into_iter().enumerate() {
        world.standbys_mut().nodes[node].clock_ahead_ms = ahead_ms;
        world.schedule_in(node as u64 * 5, Event::Standby(StandbyEvent::Starts(node)));
    }
    let plan = &world.standbys_mut().plan;
    let snapshots = snapshots::snapshot_faults(plan);
    let faults: Vec<_> = plan.faults.iter().copied().chain(snapshots).collect();
    for (at_ms, fault) in faults {
        world.schedule_at(at_ms, Event::Standby(StandbyEvent::Fault(fault)));
    }
    file_checks::begin_reference(world);
}

pub(super) fn start_node(world: &mut World, node: usize) {
    let now_ms = world.now_ms;
    world.resume(Place::Node(node));
    let standbys = world.standbys_mut();
    if standbys.nodes[node].process.is_some() {
        return;
    }
    standbys.lives += 1;
    let life = standbys.lives;
    standbys.nodes[node].start(life, &standbys.plan, now_ms);
    let ticks = StandbyEvent::Ticks { node, life };
    world.schedule_in(1, Event::Standby(ticks));
}

/// Ends the process of a dispatcher between two events. The requests that it has already sent to the journal still
/// arrive.
pub(super) fn kill_node(world: &mut World, node: usize, down_ms: u64) {
    world.trace(|_| format!("dispatcher {node} dies"));
    if world.standbys_mut().nodes[node].process.take().is_some() {
        world.schedule_in(down_ms, Event::Standby(StandbyEvent::Starts(node)));
    }
}

/// Makes a dispatcher renew the lease or read the journal.
pub(super) fn tick_node(world: &mut World, node: usize, life: u32) {
    let now_ms = world.now_ms;
    let standbys = world.standbys_mut();
    let tick_ms = standbys.plan.tick_ms;
    let Some(process) = standbys.process(node, life) else {
        return;
    };
    process.member.on_tick(now_ms);
    world.schedule_in(tick_ms, Event::Standby(StandbyEvent::Ticks { node, life }));
    send_requests(world, node);
}

/// Sends a dispatcher's requests to the journal.
pub(super) fn send_requests(world: &mut World, node: usize) {
    let now_ms = world.now_ms;
    let Some(process) = &mut world.standbys_mut().nodes[node].process else {
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
            world.schedule_in(MISSED_AFTER_MS, Event::Standby(missed));
        }
        if let Some(takes_ms) = draw_journal_delay(world, node) {
            let event = StandbyEvent::JournalGets {
                node,
                life,
                request,
                wall_ms,
            };
            world.schedule_in(takes_ms, Event::Standby(event));
        }
    }
}

/// The time that a message between a dispatcher and the journal takes; `None` if it is lost.
fn draw_journal_delay(world: &mut World, node: usize) -> Option<u64> {
    let now_ms = world.now_ms;
    let standbys = world.standbys_mut();
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

/// Carries out a request at the journal. The answer may be lost.
pub(super) fn execute_at_journal(
    world: &mut World,
    node: usize,
    life: u32,
    (request, wall_ms): (JournalRequest, i64),
) {
    let now_ms = world.now_ms;
    let standbys = world.standbys_mut();
    if standbys.journal.away_until_ms > now_ms {
        return;
    }
    let (request, is_cut_short) = standbys.cut_short(request);
    let (answer, added) = standbys.journal.execute(request, wall_ms);
    for record in added {
        file_checks::apply_to_reference(world, record);
    }
    match draw_journal_delay(world, node) {
        Some(takes_ms) if !is_cut_short => {
            let event = StandbyEvent::JournalSays { node, life, answer };
            world.schedule_in(takes_ms, Event::Standby(event));
        }
        _ => world.standbys_mut().report.lost_answers += 1,
    }
}

pub(super) fn handle_journal_answer(
    world: &mut World,
    node: usize,
    life: u32,
    answer: JournalAnswer,
) {
    for answer in sabotage_answer(world, node, life, answer) {
        handle_one_answer(world, node, life, answer);
    }
}

fn handle_one_answer(world: &mut World, node: usize, life: u32, answer: JournalAnswer) {
    let now_ms = world.now_ms;
    let Some(process) = world.standbys_mut().process(node, life) else {
        return;
    };
    let progress = match process.member.handle_answer(answer, now_ms) {
        Ok(progress) => progress,
        Err(fault) => return handle_reading_fault(world, node, &fault),
    };
    match progress {
        Progress::Nothing => {}
        Progress::Apply(commits) => {
            file_checks::judge_commits(world, node, &commits);
            let Some(process) = world.standbys_mut().process(node, life) else {
                return;
            };
            if let Err(why) = process.apply(&commits) {
                return note_unreadable(world, node, &why);
            }
        }
        Progress::Serve(commit) => serving::start_serving(world, node, life, commit),
        Progress::Advanced => serving::continue_serving(world, node),
        Progress::Replaced => {
            world.standbys_mut().report.ghosts += 1;
            return kill_node(world, node, STARTS_AGAIN_MS);
        }
    }
    send_requests(world, node);
}

fn handle_reading_fault(world: &mut World, node: usize, fault: &JournalFault) {
    let has_snapshot = world.standbys_mut().journal.snapshot.is_some();
    match fault.needs_snapshot() && has_snapshot {
        true => snapshots::begin_with_snapshot(world, node),
        false => note_unreadable(world, node, &fault.to_string()),
    }
}

fn note_unreadable(world: &mut World, node: usize, why: &str) {
    let fault = format!("dispatcher {node} cannot apply the journal: {why}");
    world.faults.push(fault);
}

/// In a world with a sabotage, the answers that a dispatcher gets in place of this answer. Otherwise only this answer.
fn sabotage_answer(
    world: &mut World,
    node: usize,
    life: u32,
    answer: JournalAnswer,
) -> Vec<JournalAnswer> {
    let now_ms = world.now_ms;
    let standbys = world.standbys_mut();
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

/// Informs the dispatcher that its command to the journal has not been answered for some time.
pub(super) fn note_missing_answer(
    world: &mut World,
    node: usize,
    life: u32,
    (first, count): (u64, u64),
) {
    let now_ms = world.now_ms;
    let standbys = world.standbys_mut();
    let counts = standbys.is_sabotaged_by(StandbySabotage::LostAnswersCountAsDone);
    let Some(process) = standbys.process(node, life) else {
        return;
    };
    if counts && process.core.is_some() && process.member.last_appended_number() < first {
        let answer = AppendAnswer::Added;
        let added = JournalAnswer::Appended {
            first,
            count,
            answer,
        };
        return handle_one_answer(world, node, life, added);
    }
    process.member.resend_if_missed(now_ms);
    send_requests(world, node);
}
