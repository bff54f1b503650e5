//! The course of a world: passes each event to the process that it affects. A stopped process gets its events when it
//! continues.

use crate::event::Event;
use crate::world::World;
use crate::{
    lost_ways, operator, site_states, standbys::following, standbys::journalling,
    standbys::node_events, supervisors, trouble, turns, workers,
};

/// Runs the next event. Returns false if the crawls are finished or no event is left.
pub(crate) fn run_next_event(world: &mut World) -> bool {
    let Some(event) = world.take_next_event() else {
        return false;
    };
    if let Some(until_ms) = world.suspended_until_ms(event.place()) {
        world.schedule_at(until_ms, event);
        return true;
    }
    world.trace(|_| format!("{event:?}"));
    handle_event(world, event);
    !world.client.is_finished()
}

fn handle_event(world: &mut World, event: Event) {
    match event {
        Event::DispatcherWakes => turns::wake_dispatcher(world),
        Event::DispatcherStarts if world.has_standbys() => journalling::begin_standbys(world),
        Event::DispatcherStarts => turns::start_dispatcher(world),
        Event::Standby(event) => node_events::handle_standby_event(world, event),
        Event::ToDispatcher {
            life,
            peer,
            message,
        } => turns::deliver_to_dispatcher(world, life, &peer, message),
        Event::ToSupervisor {
            machine,
            connection,
            message,
        } => supervisors::deliver_to_supervisor(world, machine, connection, message),
        Event::SupervisorStarts(machine) => supervisors::start_supervisor(world, machine),
        Event::SupervisorSpeaks(machine) => supervisors::run_due_supervisor(world, machine),
        Event::FromWorker {
            machine,
            life,
            message,
        } => supervisors::deliver_from_worker(world, machine, life, message),
        Event::WorkerMissed {
            machine,
            life,
            slot,
            blamed,
        } => workers::report_worker_death(world, machine, life, slot, blamed),
        Event::WorkerStarts {
            machine,
            life,
            slot,
            blamed,
        } => workers::start_worker(world, machine, life, slot, blamed),
        Event::WorkerHangs {
            machine,
            slot,
            incarnation,
        } => workers::kill_if_still_hanging(world, machine, slot, incarnation),
        Event::ToWorker {
            machine,
            slot,
            incarnation,
            message,
        } => workers::deliver_to_worker(world, machine, slot, incarnation, message),
        Event::WorkerReady {
            machine,
            slot,
            incarnation,
        } => workers::report_worker_ready(world, machine, slot, incarnation),
        Event::Turn {
            machine,
            slot,
            incarnation,
            site,
        } => workers::advance_runner(world, machine, slot, incarnation, site),
        Event::Answered {
            machine,
            slot,
            incarnation,
            site,
        } => workers::deliver_answer(world, machine, slot, incarnation, site),
        Event::Saved {
            machine,
            slot,
            incarnation,
            finished,
        } => workers::save_page(world, machine, slot, incarnation, &finished),
        Event::ClocksKept {
            machine,
            slot,
            incarnation,
        } => workers::write_clocks_if_alive(world, machine, slot, incarnation),
        Event::WorkerWaits {
            machine,
            slot,
            incarnation,
            site,
        } => lost_ways::report_waiting(world, machine, slot, incarnation, site),
        Event::SiteStatesStored { life, write } => {
            site_states::store_site_states(world, life, *write)
        }
        Event::SiteStatesConfirmed { life, last } => turns::confirm_site_states(world, life, last),
        Event::Applied { life, application } => {
            turns::confirm_application(world, life, &application)
        }
        Event::Fault(fault) => trouble::inject_fault(world, fault),
        Event::NamesakeEnds(machine) => supervisors::kill_supervisor(world, machine),
        Event::ClientAsks => run_client(world),
        Event::OperatorActs(order) => give_order(world, order),
    }
}

/// Lets the client do its next action.
fn run_client(world: &mut World) {
    let acts_at_ms = world.client.next_action_ms();
    if acts_at_ms > world.now_ms {
        return world.schedule_at(acts_at_ms, Event::ClientAsks);
    }
    let request = world.client.next_request();
    if world.has_standbys() {
        let next_ms =
            following::send_client_request_to_node(world, &request).max(client_interval_ms(world));
        return world.schedule_in(next_ms, Event::ClientAsks);
    }
    let request = request.to_string();
    match turns::send_client_request(world, request.as_bytes()) {
        Some(answer) => world.client.handle_answer(&answer),
        None => world.trace(|_| "the client gets no answer".into()),
    }
    world.schedule_in(client_interval_ms(world), Event::ClientAsks);
}

fn client_interval_ms(world: &World) -> u64 {
    match world.client.ended {
        true => (world.plan.estimate_ms / 200).clamp(100, 600_000),
        false => 50,
    }
}

/// Makes the operator give the order with this number.
fn give_order(world: &mut World, number: usize) {
    if let Some(request) = operator::give_order(world, number) {
        turns::send_operator_request(world, number as u64, request.as_bytes());
    }
}
