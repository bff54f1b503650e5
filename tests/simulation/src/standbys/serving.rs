//! The serving dispatcher: its turns, and the release of their effects (such as messages).

use webfill_scheduler::effects::{Client, Committed, OutgoingMessage, SiteStatesWrite, StoreWrite};
use webfill_scheduler::frontier::{
    Applied, Frontier, FrontierConfig, FrontierError, committed_at_ms,
};
use webfill_scheduler::journal::ReadCommit;
use webfill_scheduler::{Core, CoreSettings, Mappings, control};

use crate::event::{Event, MessageToDispatcher};
use crate::names::{site_and_page_of, url};
use crate::turns;
use crate::world::World;

use super::{
    Asker, StandbyEvent, file_checks, following, journalling, node::Process,
    sabotage::StandbySabotage,
};

/// The most deaths of dispatchers in the middle of a turn. The limit makes each world end.
const MOST_DEATHS_IN_TURN: u64 = 100;

/// A dispatcher that has handed over starts again after this time.
const STARTS_AGAIN_MS: u64 = 300;

impl Process {
    /// Whether events must wait until more records have reached the journal.
    fn is_busy(&self, keeps_every_ms: u64, now_ms: u64) -> bool {
        let is_due = now_ms >= self.kept_ms + keeps_every_ms;
        self.hands_over || self.member.is_full() || (is_due && !self.member.is_idle())
    }
}

/// Opens the dispatcher's core on a file that the whole journal was applied to.
pub(super) fn start_serving(world: &mut World, node: usize, life: u32, begins: Option<ReadCommit>) {
    let true_ms = world.now_ms;
    let settings = CoreSettings {
        default_delay_ms: world.plan.default_delay_ms as u32,
        group_bounds: world.plan.group_bounds,
        lease_ms: world.plan.lease_ms,
        window_sites: world.plan.window_sites,
    };
    let config = FrontierConfig {
        retries: world.plan.retry_table(),
        backoff: world.plan.backoff_table(),
        seen_memory_bytes: 1 << 20,
        page_cache_bytes: 2 << 20,
        journalled: true,
        ..FrontierConfig::default()
    };
    let standbys = world.standbys_mut();
    let nobody_is_awaited = standbys.is_sabotaged_by(StandbySabotage::NobodyIsAwaited);
    standbys.report.takeovers += 1;
    let folder = standbys.nodes[node].folder.path().to_owned();
    let Some(process) = standbys.process(node, life) else {
        return;
    };
    let begins: Vec<ReadCommit> = begins.into_iter().collect();
    process.apply(&begins).expect("the file is healthy");
    if nobody_is_awaited && let Some(file) = &mut process.file {
        let lose = "UPDATE supervisors SET silent_ms = 1000000000";
        file.execute_batch(lose).expect("the file is healthy");
    }
    // The new dispatcher's clock must not be behind the last commit of the dispatcher before it, even if the machine's
    // clock is.
    if let Some(file) = process.file.take() {
        let committed_ms = committed_at_ms(&file).expect("the file is healthy");
        let ahead_ms = committed_ms.unwrap_or(0) - true_ms as i64;
        process.ahead_ms = process.ahead_ms.max(ahead_ms);
    }
    let now_ms = process.now_ms(true_ms);
    let opened = Frontier::open(&folder, config, now_ms)
        .and_then(|frontier| Core::open(frontier, settings, Mappings::default(), now_ms));
    process.core = Some(Box::new(opened.expect("it opens")));
    process.kept_ms = true_ms;
    world.trace(|_| format!("dispatcher {node} serves"));
    run_node_turn(world, node, |_, _| Ok(()));
}

/// Passes an event to a process. If the process cannot handle it yet, keeps the event.
pub(super) fn deliver_to_node(world: &mut World, event: StandbyEvent) {
    let now_ms = world.now_ms;
    let standbys = world.standbys_mut();
    let keeps_every_ms = standbys.plan.keeps_every_ms;
    let (node, life) = match event {
        StandbyEvent::Wakes { node, life }
        | StandbyEvent::FromMachine { node, life, .. }
        | StandbyEvent::FromClient { node, life, .. }
        | StandbyEvent::StatesConfirmed { node, life, .. }
        | StandbyEvent::Applied { node, life, .. } => (node, life),
        _ => return,
    };
    let Some(process) = standbys.process(node, life) else {
        return;
    };
    if process.core.is_none() {
        return;
    }
    if process.is_busy(keeps_every_ms, now_ms) || !process.deferred.is_empty() {
        process.deferred.push_back(event);
        return;
    }
    handle_at_node(world, node, event);
}

fn handle_at_node(world: &mut World, node: usize, event: StandbyEvent) {
    match event {
        StandbyEvent::Wakes { .. } => {
            let now_ms = world.now_ms;
            let process = world.standbys_mut().nodes[node].process.as_mut();
            // This event is outdated if an earlier one has replaced it.
            if process.is_some_and(|process| now_ms >= process.wakes_at_ms) {
                set_wake(world, node, u64::MAX);
                run_node_turn(world, node, |_, _| Ok(()));
            }
        }
        StandbyEvent::FromMachine { peer, message, .. } => {
            run_node_turn(world, node, |core, now_ms| match message {
                MessageToDispatcher::Word(word) => {
                    core.handle_supervisor_message(&peer, word, now_ms)
                }
                MessageToDispatcher::Outcomes(outcomes) => core.handle_outcomes(outcomes, now_ms),
            });
        }
        // An order that was answered is ignored if it arrives again, because it would undo orders that were given since
        // then.
        StandbyEvent::FromClient {
            asker: Asker::Operator(order),
            ..
        } if world.operator.is_answered(order) => {}
        StandbyEvent::FromClient { asker, frame, .. } => {
            run_node_turn(world, node, |core, now_ms| {
                let client = match asker {
                    Asker::Client(question) => {
                        Client::Socket(question.to_le_bytes().to_vec().into())
                    }
                    Asker::Operator(order) => Client::Http(order.into()),
                };
                core.handle_request(client, control::parse_request(&frame, now_ms), now_ms)
            });
        }
        StandbyEvent::StatesConfirmed { last, .. } => {
            run_node_turn(world, node, |core, _| core.on_site_states_written(last));
        }
        StandbyEvent::Applied { application, .. } => {
            let page = &application.page;
            let (site, number) = site_and_page_of(&page.url);
            let planned = &world.plan.sites[site].pages[number];
            let (resolved, follows) = world.store.apply_backfill(&application, planned.completes);
            let links = planned.links.iter().filter(|_| follows);
            let links: Vec<String> = links.map(|(site, page)| url(*site, *page)).collect();
            run_node_turn(world, node, |core, now_ms| {
                core.on_backfill_applied(&application, resolved, &links, now_ms)
            });
        }
        _ => {}
    }
}

fn set_wake(world: &mut World, node: usize, at_ms: u64) {
    if let Some(process) = &mut world.standbys_mut().nodes[node].process {
        process.wakes_at_ms = at_ms;
    }
}

/// Runs `work` as one turn of a dispatcher's loop. The dispatcher may die before or after it has sent its record.
fn run_node_turn(
    world: &mut World,
    node: usize,
    work: impl FnOnce(&mut Core, i64) -> Result<(), FrontierError>,
) {
    let true_ms = world.now_ms;
    let deaths_in_turn = world.plan.deaths_in_turn;
    let standbys = world.standbys_mut();
    let once_in = match standbys.deaths_in_turn < MOST_DEATHS_IN_TURN {
        true => deaths_in_turn,
        false => 0,
    };
    let dies_early = standbys.dice.once_in(once_in);
    let dies_late = standbys.dice.once_in(once_in);
    let down_ms = standbys.dice.log_uniform(20, 60_000);
    let is_early = standbys.is_sabotaged_by(StandbySabotage::FilesAreAhead);
    let Some(process) = standbys.nodes[node].process.as_mut() else {
        return;
    };
    let now_ms = process.now_ms(true_ms);
    let Some(core) = &mut process.core else {
        return;
    };
    let worked = work(core, now_ms)
        .and_then(|()| core.on_tick(now_ms))
        .and_then(|()| core.hand_out(now_ms))
        .and_then(|()| core.commit(now_ms));
    let committed = worked.expect("the database is healthy");
    if dies_early {
        standbys.deaths_in_turn += 1;
        return journalling::kill_node(world, node, down_ms);
    }
    let mut number = process.member.last_appended_number();
    for changes in &committed.changes {
        number = process.member.add_commit(changes, true_ms);
    }
    process.held.push_back((number, committed));
    if is_early {
        let epoch = process.member.epoch().unwrap_or(0);
        commit_to_file(core, Applied { number, epoch });
    }
    journalling::send_requests(world, node);
    if dies_late {
        world.standbys_mut().deaths_in_turn += 1;
        return journalling::kill_node(world, node, down_ms);
    }
    release_effects(world, node);
    schedule_nodes_wake(world, node);
}

fn schedule_nodes_wake(world: &mut World, node: usize) {
    let true_ms = world.now_ms;
    let Some(process) = &mut world.standbys_mut().nodes[node].process else {
        return;
    };
    let Some(core) = &process.core else {
        return;
    };
    let tick_ms = core.next_tick_ms();
    let next_ms = core.next_ready_ms().unwrap_or(tick_ms).min(tick_ms);
    let at_ms = (next_ms - process.ahead_ms).max(true_ms as i64 + 1) as u64;
    if at_ms < process.wakes_at_ms {
        process.wakes_at_ms = at_ms;
        let life = process.life;
        world.schedule_at(at_ms, Event::Standby(StandbyEvent::Wakes { node, life }));
    }
}

/// Continues after records were added: releases effects, brings the file up to date, and handles deferred events.
pub(super) fn continue_serving(world: &mut World, node: usize) {
    release_effects(world, node);
    commit_file_if_due(world, node);
    loop {
        let now_ms = world.now_ms;
        let standbys = world.standbys_mut();
        let keeps_every_ms = standbys.plan.keeps_every_ms;
        let Some(process) = &mut standbys.nodes[node].process else {
            return;
        };
        if process.is_busy(keeps_every_ms, now_ms) {
            break;
        }
        let Some(event) = process.deferred.pop_front() else {
            break;
        };
        handle_at_node(world, node, event);
    }
    journalling::send_requests(world, node);
}

/// Commits to the dispatcher's file if this is due and the journal contains everything that is in the file.
fn commit_file_if_due(world: &mut World, node: usize) {
    let now_ms = world.now_ms;
    let standbys = world.standbys_mut();
    let keeps_every_ms = standbys.plan.keeps_every_ms;
    let Some(process) = &mut standbys.nodes[node].process else {
        return;
    };
    let (Some(core), Some(epoch)) = (&mut process.core, process.member.epoch()) else {
        return;
    };
    if !process.member.is_idle() {
        return;
    }
    if process.hands_over || now_ms >= process.kept_ms + keeps_every_ms {
        let number = process.member.last_appended_number();
        commit_to_file(core, Applied { number, epoch });
        process.kept_ms = now_ms;
    }
    if process.hands_over && process.held.is_empty() {
        process.member.hand_over();
        journalling::send_requests(world, node);
        journalling::kill_node(world, node, STARTS_AGAIN_MS);
    }
}

pub(super) fn begin_hand_over(world: &mut World, node: usize) {
    if let Some(process) = &mut world.standbys_mut().nodes[node].process {
        process.hands_over = true;
        commit_file_if_due(world, node);
    }
}

/// Releases the effects of commits (such as messages) whose records are in the journal, while the dispatcher holds the
/// lease.
pub(super) fn release_effects(world: &mut World, node: usize) {
    loop {
        let now_ms = world.now_ms;
        let standbys = world.standbys_mut();
        let early = standbys.is_sabotaged_by(StandbySabotage::EffectsPrecedeTheRecord);
        let endless = standbys.is_sabotaged_by(StandbySabotage::TenuresDoNotEnd);
        let Some(process) = &mut standbys.nodes[node].process else {
            return;
        };
        let member = &process.member;
        let is_in_force = endless || member.can_release_effects(0, now_ms);
        let is_due =
            |(number, _): &(u64, Committed)| early || *number <= member.last_appended_number();
        if !is_in_force {
            return;
        }
        if !process.held.front().is_some_and(is_due) {
            return;
        }
        let Some((_, committed)) = process.held.pop_front() else {
            return;
        };
        send_effects(world, node, committed);
    }
}

fn send_effects(world: &mut World, node: usize, committed: Committed) {
    let Some(process) = &world.standbys_mut().nodes[node].process else {
        return;
    };
    let life = process.life;
    let epoch = process.member.epoch().unwrap_or(0);
    let speaks = !committed.outgoing.is_empty() || !committed.store_writes.is_empty();
    if speaks {
        file_checks::judge_speaker(world, node, epoch);
    }
    for write in committed.store_writes {
        match write {
            StoreWrite::Backfill(application) => {
                let application = Box::new(application);
                let applied = StandbyEvent::Applied {
                    node,
                    life,
                    application,
                };
                let takes_ms = world.standbys_mut().dice.between(1, 200);
                world.schedule_in(takes_ms, Event::Standby(applied));
            }
            StoreWrite::SiteStates(write) => {
                let write = Box::new(write);
                let gets = StandbyEvent::StoreGets {
                    node,
                    life,
                    epoch,
                    write,
                };
                let takes_ms = world.site_states.draw_delay_ms();
                world.schedule_in(takes_ms, Event::Standby(gets));
            }
            // These writes to the store have no effect in simulated worlds.
            StoreWrite::Crawl(_) | StoreWrite::Page(_) | StoreWrite::TakeBack(_) => {}
        }
    }
    for message in committed.outgoing {
        match message {
            OutgoingMessage::ToSupervisor(peer, message) => {
                if following::reaches_fleet(world, node) {
                    turns::send_to_supervisor(world, &peer, message);
                }
            }
            OutgoingMessage::ToClient(client, answer) => {
                if following::reaches_fleet(world, node) {
                    following::handle_node_answer(world, &client, answer);
                }
            }
            OutgoingMessage::FinishedPage(_) | OutgoingMessage::Notification { .. } => {}
        }
    }
}

/// Stores states of sites, if the dispatcher that wrote them still has the lease. The store checks this by the epoch
/// (the number of the lease) in the same transaction.
pub(super) fn store_states_of(
    world: &mut World,
    node: usize,
    (life, epoch): (u32, u64),
    write: SiteStatesWrite,
) {
    let standbys = world.standbys_mut();
    let is_fenced = !standbys.is_sabotaged_by(StandbySabotage::LateWritesCount);
    if is_fenced && standbys.journal.lease.epoch != epoch {
        return;
    }
    let last = write.last;
    let confirms_ms = standbys.dice.between(1, 20);
    world.site_states.apply(write);
    let confirmed = StandbyEvent::StatesConfirmed { node, life, last };
    world.schedule_in(confirms_ms, Event::Standby(confirmed));
}

/// Commits the core's changes to the dispatcher's own file.
fn commit_to_file(core: &mut Core, position: Applied) {
    let kept = core.frontier().make_durable(position);
    kept.expect("the database is healthy");
}
