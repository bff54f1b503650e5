//! The events of supervisors, and their messages: the real cores produce the messages, and the simulated network
//! delivers them.

use webfill_scheduler::Caller;
use webfill_supervisor::supervisor::{OutgoingMessage, Supervisor};
use webfill_wire::{DispatcherToSupervisor, WorkerToSupervisor};

use crate::fleet::MessageToDispatcher;
use crate::world::{Event, Place, World};

impl World {
    pub(crate) fn start_supervisor(&mut self, machine: usize) {
        if self.machines[machine].core.is_some() {
            return;
        }
        self.resume(Place::Supervisor(machine));
        self.connections += 1;
        let connection = self.connections;
        self.machines[machine].start(connection);
        let life = self.machines[machine].life;
        for slot in 0..self.plan.workers {
            self.start_worker(machine, life, slot, None);
        }
        self.run_supervisor(machine, |core, boot_ms| core.send_if_due(boot_ms, 0));
    }

    /// Kills a supervisor, and its workers with it.
    pub(crate) fn kill_supervisor(&mut self, machine: usize) {
        for slot in 0..self.plan.workers {
            self.end_worker(machine, slot);
        }
        self.machines[machine].core = None;
    }

    pub(crate) fn run_due_supervisor(&mut self, machine: usize) {
        // The event may be outdated, because an earlier one has replaced it.
        if self.now_ms >= self.machines[machine].speaks_at_ms {
            self.machines[machine].speaks_at_ms = u64::MAX;
            self.run_supervisor(machine, |core, boot_ms| core.send_if_due(boot_ms, 0));
        }
    }

    /// Replaces the machine's connection by a new one.
    pub(crate) fn reconnect(&mut self, machine: usize) {
        self.connections += 1;
        self.machines[machine].connection = self.connections;
        let unsent = std::mem::take(&mut self.machines[machine].unsent);
        for message in unsent {
            self.send_to_dispatcher(machine, message);
        }
    }

    pub(crate) fn deliver_to_supervisor(
        &mut self,
        machine: usize,
        connection: u64,
        message: DispatcherToSupervisor,
    ) {
        if self.machines[machine].connection == connection {
            self.note_heard_from_dispatcher(machine);
            self.run_supervisor(machine, |core, boot_ms| {
                core.handle_dispatcher_message(message, boot_ms);
            });
        }
    }

    pub(crate) fn deliver_from_worker(
        &mut self,
        machine: usize,
        life: u32,
        message: WorkerToSupervisor,
    ) {
        if self.machines[machine].life == life {
            self.machines[machine].track_name_waits(&message);
            self.run_supervisor(machine, |core, _| core.handle_worker_message(message));
        }
    }

    /// Lets the supervisor act, and sends its messages.
    pub(crate) fn run_supervisor(
        &mut self,
        machine: usize,
        work: impl FnOnce(&mut Supervisor, u64),
    ) {
        let boot_ms = self.machines[machine].boot_ms(self.now_ms);
        let Some(core) = &mut self.machines[machine].core else {
            return;
        };
        work(core, boot_ms);
        core.send_report();
        let letters = core.take_outgoing();
        let (held, speaks_ms) = (core.held_leases() as u64, core.next_send_ms());
        let waiting = self.machines[machine].waiting.len() as u64;
        if held > self.plan.queue + waiting {
            let name = self.machines[machine].name().to_owned();
            self.faults.push(format!("{name} holds {held} tasks"));
        }
        for letter in letters {
            self.deliver(machine, letter);
        }
        let speaks_at_ms = self.machines[machine].since_start_ms(speaks_ms.max(boot_ms + 1));
        if speaks_at_ms < self.machines[machine].speaks_at_ms {
            self.machines[machine].speaks_at_ms = speaks_at_ms;
            self.schedule_at(speaks_at_ms, Event::SupervisorSpeaks(machine));
        }
        if self.machines[machine].has_drained() {
            self.stop_drained_supervisor(machine);
        }
    }

    fn stop_drained_supervisor(&mut self, machine: usize) {
        let Some(mut core) = self.machines[machine].core.take() else {
            return;
        };
        core.send_goodbye();
        for letter in core.take_outgoing() {
            self.deliver(machine, letter);
        }
        let away_ms = self.machines[machine].away_ms;
        self.schedule_in(away_ms, Event::SupervisorStarts(machine));
    }

    fn deliver(&mut self, machine: usize, letter: OutgoingMessage) {
        let message = match letter {
            OutgoingMessage::ToWorker(slot, message) => {
                return self.send_to_worker(machine, slot, message);
            }
            OutgoingMessage::ToDispatcherNow(_)
                if !self.has_standbys() && !self.coordinator.is_up() =>
            {
                return;
            }
            OutgoingMessage::ToDispatcher(word) | OutgoingMessage::ToDispatcherNow(word) => {
                MessageToDispatcher::Word(word)
            }
            OutgoingMessage::Outcomes(outcomes) => {
                MessageToDispatcher::Outcomes((*outcomes).clone())
            }
        };
        if self.has_standbys() {
            self.send_to_followed_node(machine, message);
        } else if self.coordinator.is_up() {
            self.send_to_dispatcher(machine, message);
        } else {
            self.machines[machine].unsent.push(message);
        }
    }

    fn send_to_dispatcher(&mut self, machine: usize, message: MessageToDispatcher) {
        let sender = &self.machines[machine];
        let peer = Caller {
            peer: sender.connection.to_le_bytes().to_vec(),
            version: sender.version(),
        };
        let way = match message {
            MessageToDispatcher::Word(_) => 0,
            MessageToDispatcher::Outcomes(_) => 1,
        };
        let life = self.coordinator.life;
        for at_ms in self.draw_arrivals(machine, way, sender.cut_up_until_ms) {
            let (peer, message) = (peer.clone(), message.clone());
            self.schedule_at(
                at_ms,
                Event::ToDispatcher {
                    life,
                    peer,
                    message,
                },
            );
        }
    }

    /// When a message that is sent now arrives: never, once, or twice.
    pub(crate) fn draw_arrivals(
        &mut self,
        machine: usize,
        way: usize,
        cut_until_ms: u64,
    ) -> Vec<u64> {
        let network = self.plan.network.clone();
        if cut_until_ms > self.now_ms || self.dice.once_in(network.loss_once_in) {
            return Vec::new();
        }
        let times = 1 + usize::from(self.dice.once_in(network.twice_once_in));
        let mut arrivals = Vec::with_capacity(times);
        for _ in 0..times {
            let latest_ms = match self.dice.once_in(network.late_once_in) {
                true => network.latest_ms.max(5),
                false => 5,
            };
            let mut at_ms = self.now_ms + self.dice.between(1, latest_ms);
            let last_ms = &mut self.machines[machine].last_arrival_ms[way];
            if !network.reorders {
                at_ms = at_ms.max(*last_ms);
                *last_ms = at_ms;
            }
            arrivals.push(at_ms);
        }
        arrivals
    }
}
