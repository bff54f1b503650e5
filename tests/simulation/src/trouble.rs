//! Applies the planned faults to the world.

use crate::event::{Event, Place};
use crate::faults::Fault;
use crate::fleet::Machine;
use crate::sabotage::Sabotage;
use crate::world::World;
use crate::{lost_ways, supervisors, turns, workers};

pub(crate) fn inject_fault(world: &mut World, fault: Fault) {
    match fault {
        Fault::DispatcherDies { down_ms } => turns::kill_dispatcher(world, down_ms),
        Fault::SupervisorDies {
            supervisor,
            down_ms,
        } => {
            supervisors::kill_supervisor(world, supervisor);
            world.schedule_in(down_ms, Event::SupervisorStarts(supervisor));
        }
        Fault::SupervisorLeaves {
            supervisor,
            down_ms,
        } => {
            world.machines[supervisor].away_ms = down_ms;
            supervisors::run_supervisor(world, supervisor, |core, _| core.drain());
        }
        Fault::WorkerDies { supervisor, slot } => {
            workers::kill_worker(world, supervisor, slot, None)
        }
        Fault::DispatcherStops { for_ms } => world.suspend(Place::Dispatcher, for_ms),
        Fault::SupervisorStops { supervisor, for_ms } => {
            world.suspend(Place::Supervisor(supervisor), for_ms);
        }
        Fault::WorkerStops {
            supervisor,
            slot,
            for_ms,
        } => workers::stop_worker(world, supervisor, slot, for_ms),
        Fault::Offline {
            supervisor,
            up,
            down,
            for_ms,
        } => {
            let until_ms = world.now_ms + for_ms;
            let machine = &mut world.machines[supervisor];
            if up {
                machine.cut_up_until_ms = until_ms;
            }
            if down {
                machine.cut_down_until_ms = until_ms;
            }
        }
        Fault::Reconnects { supervisor } => supervisors::reconnect(world, supervisor),
        Fault::ClockIsSet { ahead_ms } => {
            let far = world.is_sabotaged_by(Sabotage::TheClockIsSetByADay);
            world.coordinator.clock_ahead_ms = ahead_ms * if far { 24 } else { 1 };
        }
        Fault::LosesWay {
            supervisor,
            loss,
            for_ms,
        } => lost_ways::lose_egress(world, supervisor, loss, for_ms),
        Fault::Namesake { supervisor, for_ms } => add_namesake(world, supervisor, for_ms),
    }
}

fn add_namesake(world: &mut World, supervisor: usize, for_ms: u64) {
    let machine = world.machines.len();
    let instance = match world.is_sabotaged_by(Sabotage::NamesakesShareAHome) {
        true => supervisor,
        false => machine,
    };
    // The namesake must begin with the lane that the supervisor has after an even number of starts, so the lanes are
    // exchanged.
    let [odd, even] = world.plan.lanes[supervisor];
    let namesake = Machine::new(&world.plan, supervisor, instance as u64, [even, odd]);
    world.machines.push(namesake);
    supervisors::start_supervisor(world, machine);
    world.schedule_in(for_ms, Event::NamesakeEnds(machine));
}
