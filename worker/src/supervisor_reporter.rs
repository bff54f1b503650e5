//! Sends a worker's reports to its supervisor.

use webfill_wire::counts::{self, WorkerCounts, WorkerTotals};
use webfill_wire::socket::{Outbox, SocketName};
use webfill_wire::{Delivery, TaskDone, TaskReturned, WorkerToSupervisor, codec, links};

/// Sends a worker's reports to its supervisor.
#[derive(Clone)]
pub struct SupervisorReporter {
    outbox: Outbox,
    socket: SocketName,
    worker_index: u16,
    incarnation: u32,
}

impl SupervisorReporter {
    /// Creates a reporter that sends through the socket of this name, as the worker with this index and incarnation.
    pub fn new(
        outbox: Outbox,
        socket: SocketName,
        (worker_index, incarnation): (u16, u32),
    ) -> Self {
        SupervisorReporter {
            outbox,
            socket,
            worker_index,
            incarnation,
        }
    }

    pub fn report_ready(&self) {
        self.send(WorkerToSupervisor {
            ready: true,
            ..self.empty_message()
        });
    }

    pub fn send_heartbeat(&self) {
        self.send(self.empty_message());
    }

    /// Reports the counts since the start, and whether the store is unreachable.
    pub fn report_counts(&self, (totals, is_store_away): (WorkerTotals, bool)) {
        let frame = counts::encode(&WorkerCounts {
            worker_index: self.worker_index,
            incarnation: self.incarnation,
            totals,
            is_store_away,
        });
        self.outbox.send(self.socket, frame);
    }

    /// Reports outcomes, in as many messages as needed to keep each below the socket's limit.
    pub fn report_done(&self, done: Vec<TaskDone>) {
        for done in links::split_for_messages(done) {
            self.send(WorkerToSupervisor {
                done,
                ..self.empty_message()
            });
        }
    }

    pub fn report_returned(&self, returned: Vec<TaskReturned>) {
        if !returned.is_empty() {
            self.send(WorkerToSupervisor {
                returned,
                ..self.empty_message()
            });
        }
    }

    /// Reports that a task waits because the lookup of a host name takes long.
    pub fn report_waiting(&self, task: (u64, Delivery)) {
        self.send(WorkerToSupervisor {
            waiting: vec![task],
            ..self.empty_message()
        });
    }

    /// Confirms to the supervisor that no recalled task can start any more.
    pub fn confirm_recall(&self, recall: u64) {
        self.send(WorkerToSupervisor {
            recalled: vec![recall],
            ..self.empty_message()
        });
    }

    fn empty_message(&self) -> WorkerToSupervisor {
        WorkerToSupervisor {
            worker_index: self.worker_index,
            incarnation: self.incarnation,
            done: Vec::new(),
            returned: Vec::new(),
            recalled: Vec::new(),
            waiting: Vec::new(),
            ready: false,
        }
    }

    fn send(&self, message: WorkerToSupervisor) {
        self.outbox.send(self.socket, codec::encode(&message));
    }
}
