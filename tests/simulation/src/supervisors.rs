//! The events of supervisors, and their messages: the real cores produce the messages, and the simulated network
//! delivers them.

use webfill_scheduler::Caller;
use webfill_supervisor::supervisor::{OutgoingMessage, Supervisor};
use webfill_wire::{DispatcherToSupervisor, WorkerToSupervisor};

use crate::event::{Event, MessageToDispatcher, Place};
use crate::network;
use crate::standbys::following;
use crate::workers;
use crate::world::World;

pub(crate) fn start_supervisor(world: &mut World, machine: usize) {
    if world.machines[machine].core.is_some() {
        return;
    }
    world.resume(Place::Supervisor(machine));
    world.connections += 1;
    let connection = world.connections;
    world.machines[machine].start(connection);
    let life = world.machines[machine].life;
    for slot in 0..world.plan.workers {
        workers::start_worker(world, machine, life, slot, None);
    }
    run_supervisor(world, machine, |core, boot_ms| core.send_if_due(boot_ms, 0));
}

/// Kills a supervisor together with its workers.
pub(crate) fn kill_supervisor(world: &mut World, machine: usize) {
    for slot in 0..world.plan.workers {
        workers::end_worker(world, machine, slot);
    }
    world.machines[machine].core = None;
}

pub(crate) fn run_due_supervisor(world: &mut World, machine: usize) {
    // If an earlier event has replaced this one, nothing is done.
    if world.now_ms >= world.machines[machine].speaks_at_ms {
        world.machines[machine].speaks_at_ms = u64::MAX;
        run_supervisor(world, machine, |core, boot_ms| core.send_if_due(boot_ms, 0));
    }
}

/// Replaces the machine's connection by a new one.
pub(crate) fn reconnect(world: &mut World, machine: usize) {
    world.connections += 1;
    world.machines[machine].connection = world.connections;
    let unsent = std::mem::take(&mut world.machines[machine].unsent);
    for message in unsent {
        send_to_dispatcher(world, machine, message);
    }
}

pub(crate) fn deliver_to_supervisor(
    world: &mut World,
    machine: usize,
    connection: u64,
    message: DispatcherToSupervisor,
) {
    if world.machines[machine].connection == connection {
        following::note_heard_from_dispatcher(world, machine);
        run_supervisor(world, machine, |core, boot_ms| {
            core.handle_dispatcher_message(message, boot_ms);
        });
    }
}

pub(crate) fn deliver_from_worker(
    world: &mut World,
    machine: usize,
    life: u32,
    message: WorkerToSupervisor,
) {
    if world.machines[machine].life == life {
        world.machines[machine].track_name_waits(&message);
        run_supervisor(world, machine, |core, _| {
            core.handle_worker_message(message)
        });
    }
}

/// Runs `work` in the supervisor, and sends the messages that result.
pub(crate) fn run_supervisor(
    world: &mut World,
    machine: usize,
    work: impl FnOnce(&mut Supervisor, u64),
) {
    let boot_ms = world.machines[machine].boot_ms(world.now_ms);
    let Some(core) = &mut world.machines[machine].core else {
        return;
    };
    work(core, boot_ms);
    core.send_report();
    let letters = core.take_outgoing();
    let (held, speaks_ms) = (core.held_leases() as u64, core.next_send_ms());
    let waiting = world.machines[machine].waiting.len() as u64;
    if held > world.plan.queue + waiting {
        let name = world.machines[machine].name().to_owned();
        world.faults.push(format!("{name} holds {held} tasks"));
    }
    for letter in letters {
        deliver(world, machine, letter);
    }
    let speaks_at_ms = world.machines[machine].since_start_ms(speaks_ms.max(boot_ms + 1));
    if speaks_at_ms < world.machines[machine].speaks_at_ms {
        world.machines[machine].speaks_at_ms = speaks_at_ms;
        world.schedule_at(speaks_at_ms, Event::SupervisorSpeaks(machine));
    }
    let boot_ms = world.machines[machine].boot_ms(world.now_ms);
    if world.machines[machine].has_drained(boot_ms) {
        stop_drained_supervisor(world, machine);
    }
}

fn stop_drained_supervisor(world: &mut World, machine: usize) {
    let Some(mut core) = world.machines[machine].core.take() else {
        return;
    };
    core.send_goodbye();
    for letter in core.take_outgoing() {
        deliver(world, machine, letter);
    }
    let away_ms = world.machines[machine].away_ms;
    world.schedule_in(away_ms, Event::SupervisorStarts(machine));
}

fn deliver(world: &mut World, machine: usize, letter: OutgoingMessage) {
    let message = match letter {
        OutgoingMessage::ToWorker(slot, message) => {
            return workers::send_to_worker(world, machine, slot, message);
        }
        OutgoingMessage::ToDispatcherNow(_)
            if !world.has_standbys() && !world.coordinator.is_up() =>
        {
            return;
        }
        OutgoingMessage::ToDispatcher(word) | OutgoingMessage::ToDispatcherNow(word) => {
            MessageToDispatcher::Word(word)
        }
        OutgoingMessage::Outcomes(outcomes) => MessageToDispatcher::Outcomes((*outcomes).clone()),
    };
    if world.has_standbys() {
        following::send_to_followed_node(world, machine, message);
    } else if world.coordinator.is_up() {
        send_to_dispatcher(world, machine, message);
    } else {
        world.machines[machine].unsent.push(message);
    }
}

fn send_to_dispatcher(world: &mut World, machine: usize, message: MessageToDispatcher) {
    let sender = &world.machines[machine];
    let peer = Caller {
        peer: sender.connection.to_le_bytes().to_vec(),
        version: sender.version(),
    };
    let way = match message {
        MessageToDispatcher::Word(_) => 0,
        MessageToDispatcher::Outcomes(_) => 1,
    };
    let life = world.coordinator.life;
    let cut_until_ms = sender.cut_up_until_ms;
    for at_ms in network::draw_arrivals(world, machine, way, cut_until_ms) {
        let (peer, message) = (peer.clone(), message.clone());
        world.schedule_at(
            at_ms,
            Event::ToDispatcher {
                life,
                peer,
                message,
            },
        );
    }
}
