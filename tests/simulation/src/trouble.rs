//! Applies the planned faults to the world.

use crate::faults::Fault;
use crate::fleet::Machine;
use crate::sabotage::Sabotage;
use crate::world::{Event, Place, World};

impl World {
    pub(crate) fn inject_fault(&mut self, fault: Fault) {
        match fault {
            Fault::DispatcherDies { down_ms } => self.kill_dispatcher(down_ms),
            Fault::SupervisorDies {
                supervisor,
                down_ms,
            } => {
                self.kill_supervisor(supervisor);
                self.schedule_in(down_ms, Event::SupervisorStarts(supervisor));
            }
            Fault::SupervisorLeaves {
                supervisor,
                down_ms,
            } => {
                self.machines[supervisor].away_ms = down_ms;
                self.run_supervisor(supervisor, |core, _| core.drain());
            }
            Fault::WorkerDies { supervisor, slot } => self.kill_worker(supervisor, slot, None),
            Fault::DispatcherStops { for_ms } => self.suspend(Place::Dispatcher, for_ms),
            Fault::SupervisorStops { supervisor, for_ms } => {
                self.suspend(Place::Supervisor(supervisor), for_ms);
            }
            Fault::WorkerStops {
                supervisor,
                slot,
                for_ms,
            } => self.stop_worker(supervisor, slot, for_ms),
            Fault::Offline {
                supervisor,
                up,
                down,
                for_ms,
            } => {
                let until_ms = self.now_ms + for_ms;
                let machine = &mut self.machines[supervisor];
                if up {
                    machine.cut_up_until_ms = until_ms;
                }
                if down {
                    machine.cut_down_until_ms = until_ms;
                }
            }
            Fault::Reconnects { supervisor } => self.reconnect(supervisor),
            Fault::ClockIsSet { ahead_ms } => {
                let far = self.is_sabotaged_by(Sabotage::TheClockIsSetByADay);
                self.coordinator.clock_ahead_ms = ahead_ms * if far { 24 } else { 1 };
            }
            Fault::LosesWay {
                supervisor,
                loss,
                for_ms,
            } => self.lose_egress(supervisor, loss, for_ms),
            Fault::Namesake { supervisor, for_ms } => self.add_namesake(supervisor, for_ms),
        }
    }

    fn add_namesake(&mut self, supervisor: usize, for_ms: u64) {
        let machine = self.machines.len();
        let instance = match self.is_sabotaged_by(Sabotage::NamesakesShareAHome) {
            true => supervisor,
            false => machine,
        };
        // If supervisors have different lanes in odd and even lives, the namesake begins with the other one.
        let [odd, even] = self.plan.lanes[supervisor];
        let namesake = Machine::new(&self.plan, supervisor, instance as u64, [even, odd]);
        self.machines.push(namesake);
        self.start_supervisor(machine);
        self.schedule_in(for_ms, Event::NamesakeEnds(machine));
    }
}
