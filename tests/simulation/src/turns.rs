//! The turns of the dispatcher (the steps of its loop, each with a commit): the events of its process, a network that
//! loses messages, and deaths in the middle of a turn.

use webfill_scheduler::effects::{BackfillWrite, Client, Committed, OutgoingMessage, StoreWrite};
use webfill_scheduler::frontier::{FrontierConfig, FrontierError};
use webfill_scheduler::{Caller, Core, CoreSettings, control};
use webfill_wire::{
    DispatcherToSupervisor, RecallScope, SupervisorOutcomes, SupervisorToDispatcher,
};

use crate::event::{Event, MessageToDispatcher, Place};
use crate::names::{site_and_page_of, site_name, url};
use crate::observations::Standstill;
use crate::sabotage::Sabotage;
use crate::world::World;
use crate::{
    backoff, machines, network, operator, sabotaged, site_states, standbys::following, standstill,
    supervisors,
};

/// The request number for all requests for the dispatcher's status. Orders of the operator have other numbers.
const STATUS: u64 = u64::MAX;

/// The most deaths of the dispatcher in the middle of a turn. Without a limit, some worlds would not end: a page may
/// wait for a `Retry-After` that is longer than robots.txt is valid. If the dispatcher dies meanwhile, the task is
/// recalled, and its next delivery requests robots.txt again.
const MOST_DEATHS_IN_TURN: u64 = 1_000;

/// Whether a turn was completed.
#[derive(PartialEq, Eq)]
enum TurnOutcome {
    Done,
    Died,
}

/// Whether a message recalls all tasks of a supervisor because its machine is offline. In that case the sites did not
/// cause the failures.
fn recalls_everything(message: &OutgoingMessage) -> bool {
    matches!(message, OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Recall { scope, .. })
        if *scope == RecallScope::default())
}

fn is_hand_out(message: &OutgoingMessage) -> bool {
    matches!(
        message,
        OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Tasks { .. })
    )
}

pub(crate) fn start_dispatcher(world: &mut World) {
    if world.coordinator.is_up() {
        return;
    }
    world.machines_seen.clear();
    let terms = CoreSettings {
        default_delay_ms: world.plan.default_delay_ms as u32,
        group_bounds: world.plan.group_bounds,
        lease_ms: world.plan.lease_ms,
        window_sites: world.plan.window_sites,
    };
    if world.is_sabotaged_by(Sabotage::OwnersAreForgotten) && world.coordinator.life > 0 {
        world.coordinator.open_witness().forget_owners();
    }
    if world.is_sabotaged_by(Sabotage::LanesAreForgotten) && world.coordinator.life > 0 {
        world.coordinator.open_witness().forget_lanes();
    }
    backoff::extend_backoffs_after_restart(world);
    if world.is_sabotaged_by(Sabotage::BackoffsAreForgotten) && world.coordinator.life > 0 {
        world.coordinator.open_witness().forget_backoffs();
    }
    let mut config = FrontierConfig {
        retries: world.plan.retry_table(),
        backoff: world.plan.backoff_table(),
        ..FrontierConfig::default()
    };
    if world.is_sabotaged_by(Sabotage::BlocksEndTasks) {
        config.backoff.blocked.clear();
    }
    if let Some(dead_hosts) = &world.plan.dead_hosts {
        let limited = (String::from("limited"), dead_hosts.limits.clone());
        config.applications.extend([limited]);
    }
    world.coordinator.open(terms, config, world.now_ms);
    if world.is_sabotaged_by(Sabotage::UnreachableSitesGoByTurns) {
        world.coordinator.restore_fault_of_unreachable_turns();
    }
    world.resume(Place::Dispatcher);
    world.standstill = Standstill::default();
    for machine in 0..world.machines.len() {
        supervisors::reconnect(world, machine);
    }
    wake_dispatcher(world);
}

pub(crate) fn kill_dispatcher(world: &mut World, down_ms: u64) {
    world.trace(|_| "dispatcher dies".into());
    if world.coordinator.dispatcher.take().is_some() {
        world.schedule_in(down_ms, Event::DispatcherStarts);
    }
}

pub(crate) fn wake_dispatcher(world: &mut World) {
    // If an earlier event has replaced this one, nothing is done.
    if world.now_ms >= world.coordinator.wakes_at_ms {
        world.coordinator.wakes_at_ms = u64::MAX;
        run_turn(world, |_, _| Ok(()));
    }
}

pub(crate) fn deliver_to_dispatcher(
    world: &mut World,
    life: u32,
    peer: &Caller,
    message: MessageToDispatcher,
) {
    if life != world.coordinator.life || !world.coordinator.is_up() {
        return;
    }
    match message {
        MessageToDispatcher::Word(word) => {
            let joins = matches!(word, SupervisorToDispatcher::Hello(_));
            world.machines_seen.is_attentive = joins && world.plan.loses_egress();
            run_turn(world, |dispatcher, now_ms| {
                dispatcher.handle_supervisor_message(peer, word, now_ms)
            });
        }
        MessageToDispatcher::Outcomes(outcomes) => deliver_outcomes(world, outcomes),
    }
}

fn deliver_outcomes(world: &mut World, outcomes: SupervisorOutcomes) {
    let attempts = machines::note_attempts(world, &outcomes);
    let outcomes = sabotaged::sabotage_outcomes(world, outcomes);
    let witness = world.coordinator.open_witness();
    let is_stale = witness.are_all_stale(&outcomes);
    let before = witness.counters();
    let turned = run_turn(world, |dispatcher, now_ms| {
        dispatcher.handle_outcomes(outcomes, now_ms)
    });
    backoff::read_backoffs(world);
    machines::check_machine(world, attempts.filter(|_| turned == TurnOutcome::Done));
    if is_stale && turned == TurnOutcome::Done {
        let after = world.coordinator.open_witness().counters();
        // Whether outcomes have changed the counters is only checked if nothing else in the turn may change them, such
        // as leases of tasks or the end of a stopped crawl.
        let ends_others = (0..world.plan.priorities.len()).any(|n| world.plan.ends_early(n));
        let ended = before.done != after.done && !ends_others;
        if ended || before.discovered != after.discovered {
            let fault = format!("stale outcomes changed {before:?} to {after:?}");
            world.faults.push(fault);
        }
    }
}

/// Passes on a request of the client. Returns the answer; `None` if none arrives.
pub(crate) fn send_client_request(world: &mut World, frame: &[u8]) -> Option<serde_json::Value> {
    if !world.coordinator.is_up() || world.is_suspended(Place::Dispatcher) {
        return None;
    }
    let before = world.client.answer.take();
    debug_assert!(before.is_none());
    run_turn(world, |dispatcher, now_ms| {
        let client = Client::Socket(b"client".to_vec().into());
        dispatcher.handle_request(client, control::parse_request(frame, now_ms), now_ms)
    });
    world.client.answer.take()
}

/// Passes on a request of the operator. The answer may come later, or not at all.
pub(crate) fn send_operator_request(world: &mut World, number: u64, frame: &[u8]) {
    if world.has_standbys() {
        return following::send_operator_request_to_node(world, number, frame);
    }
    if world.coordinator.is_up() && !world.is_suspended(Place::Dispatcher) {
        run_turn(world, |dispatcher, now_ms| {
            let asked = control::parse_request(frame, now_ms);
            dispatcher.handle_request(Client::Http(number.into()), asked, now_ms)
        });
    }
}

/// Runs `work` as one turn of the dispatcher's loop. The dispatcher may die before or after the commit.
fn run_turn(
    world: &mut World,
    work: impl FnOnce(&mut Core, i64) -> Result<(), FrontierError>,
) -> TurnOutcome {
    let now_ms = world.coordinator.ahead_ms() + world.now_ms as i64;
    let hurried = world.is_sabotaged_by(Sabotage::AnswersDoNotWaitForLeases);
    let deaths_in_turn = match world.coordinator.deaths_in_turn < MOST_DEATHS_IN_TURN {
        true => world.plan.deaths_in_turn,
        false => 0,
    };
    let dies_early = world.dice.once_in(deaths_in_turn);
    let dies_late = world.dice.once_in(deaths_in_turn);
    let hands_out = sabotaged::may_hand_out(world, world.coordinator.turns);
    let Some(dispatcher) = &mut world.coordinator.dispatcher else {
        return TurnOutcome::Died;
    };
    if hurried {
        // Ends the waits for all supervisors that were silent for at least a second, instead of waiting for their
        // leases.
        dispatcher.expire_recalls(now_ms + world.plan.lease_ms as i64);
    }
    let mut worked = work(dispatcher, now_ms).and_then(|()| dispatcher.on_tick(now_ms));
    if hands_out {
        worked = worked.and_then(|()| dispatcher.hand_out(now_ms));
    }
    if world.machines_seen.needs_report() {
        let asked = control::parse_request(br#"{"action": "status"}"#, now_ms);
        worked = worked
            .and_then(|()| dispatcher.handle_request(Client::Http(STATUS.into()), asked, now_ms));
    }
    worked.expect("the database is healthy");
    let mut committed = Committed::default();
    if !dies_early {
        committed = dispatcher.commit(now_ms).expect("the database is healthy");
        world.backoff.note_commit(world.now_ms);
    }
    if dies_early || dies_late {
        world.coordinator.deaths_in_turn += 1;
        world.backoff.may_be_over |= world.plan.loses_egress();
        let down_ms = world.dice.log_uniform(20, 60_000);
        kill_dispatcher(world, down_ms);
        return TurnOutcome::Died;
    }
    schedule_wake(world);
    for write in committed.store_writes {
        match write {
            StoreWrite::Backfill(application) => schedule_application(world, application),
            StoreWrite::SiteStates(states) => site_states::write_site_states(world, states),
            // These writes to the store have no effect in simulated worlds, because the simulated workers mark no page
            // as similar to a block.
            StoreWrite::Crawl(_) | StoreWrite::Page(_) | StoreWrite::TakeBack(_) => {}
        }
    }
    note_statuses(world, &committed.outgoing);
    standstill::check_standstill(world, committed.outgoing.iter().any(is_hand_out));
    // A machine may count as offline even though it has a connection, if all of its hosts are dead.
    world.backoff.may_be_over |= committed.outgoing.iter().any(recalls_everything);
    for message in committed.outgoing {
        match message {
            OutgoingMessage::ToSupervisor(peer, message) => {
                send_to_supervisor(world, &peer, message)
            }
            OutgoingMessage::ToClient(Client::Http(asker), answer) => {
                if asker.number != STATUS {
                    operator::handle_operator_answer(world, asker.number as usize, &answer);
                }
            }
            OutgoingMessage::ToClient(_, answer) => world.client.answer = Some(answer),
            OutgoingMessage::FinishedPage(_) | OutgoingMessage::Notification { .. } => {}
        }
    }
    world.coordinator.turns += 1;
    let between = world.plan.turns_between_checks;
    if world.coordinator.turns.is_multiple_of(between) {
        check_conservation(world);
    }
    TurnOutcome::Done
}

/// Notes the reported status of the machines before anything else, because the checks of other messages use it.
fn note_statuses(world: &mut World, messages: &[OutgoingMessage]) {
    for message in messages {
        if let OutgoingMessage::ToClient(Client::Http(asker), status) = message
            && asker.number == STATUS
        {
            machines::note_status(world, status);
        }
    }
}

/// Makes the store apply a page to another record after some time.
fn schedule_application(world: &mut World, application: BackfillWrite) {
    let applied = Event::Applied {
        life: world.coordinator.life,
        application: Box::new(application),
    };
    let takes_ms = world.dice.between(1, 200);
    world.schedule_in(takes_ms, applied);
}

/// Reports to the dispatcher that a page was applied to a record. Does nothing if this dispatcher has died meanwhile.
pub(crate) fn confirm_application(world: &mut World, life: u32, application: &BackfillWrite) {
    if life != world.coordinator.life || !world.coordinator.is_up() {
        return;
    }
    let page = &application.page;
    let (site, number) = site_and_page_of(&page.url);
    let planned = &world.plan.sites[site].pages[number];
    let (resolved, follows) = world.store.apply_backfill(application, planned.completes);
    let links = planned.links.iter().filter(|_| follows);
    let links: Vec<String> = links.map(|(site, page)| url(*site, *page)).collect();
    run_turn(world, |dispatcher, now_ms| {
        dispatcher.on_backfill_applied(application, resolved, &links, now_ms)
    });
}

/// Reports to the dispatcher that the store has states of sites. Does nothing if this dispatcher has died meanwhile.
pub(crate) fn confirm_site_states(world: &mut World, life: u32, last: i64) {
    if life == world.coordinator.life && world.coordinator.is_up() {
        run_turn(world, |dispatcher, _| {
            dispatcher.on_site_states_written(last)
        });
    }
}

pub(crate) fn check_conservation(world: &mut World) {
    site_states::check_site_states(world);
    let sites = world.plan.sites.iter().enumerate();
    let blocking = sites.filter(|(_, site)| site.blocks.is_some());
    let blocking: Vec<String> = blocking.map(|(number, _)| site_name(number)).collect();
    let found = world.coordinator.open_witness().find_faults(&blocking);
    world.faults.extend(found);
}

/// Schedules the dispatcher's next turn for the time when it has something to do.
fn schedule_wake(world: &mut World) {
    let Some(dispatcher) = &world.coordinator.dispatcher else {
        return;
    };
    let tick_ms = dispatcher.next_tick_ms();
    let next_ms = dispatcher.next_ready_ms().unwrap_or(tick_ms).min(tick_ms);
    let at_ms = (next_ms - world.coordinator.ahead_ms()).max(world.now_ms as i64 + 1) as u64;
    if at_ms < world.coordinator.wakes_at_ms {
        world.coordinator.wakes_at_ms = at_ms;
        world.schedule_at(at_ms, Event::DispatcherWakes);
    }
}

pub(crate) fn send_to_supervisor(
    world: &mut World,
    peer: &Caller,
    message: DispatcherToSupervisor,
) {
    let connection = u64::from_le_bytes(peer.peer.as_slice().try_into().expect("a peer of ours"));
    let machines = world.machines.iter();
    let Some(machine) = machines
        .enumerate()
        .find(|(_, machine)| machine.connection == connection && machine.core.is_some())
        .map(|(number, _)| number)
    else {
        return;
    };
    if let DispatcherToSupervisor::Tasks { tasks, .. } = &message {
        let name = world.machines[machine].name().to_owned();
        machines::check_tasks(world, &name, tasks);
    }
    let cut_until_ms = world.machines[machine].cut_down_until_ms;
    for at_ms in network::draw_arrivals(world, machine, 2, cut_until_ms) {
        let message = message.clone();
        world.schedule_at(
            at_ms,
            Event::ToSupervisor {
                machine,
                connection,
                message,
            },
        );
    }
}
