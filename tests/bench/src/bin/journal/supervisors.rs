//! Simulated supervisors that fetch nothing. They immediately report each task as done.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use webfill_wire::socket::{Outbox, Pattern, SocketSpec, Sockets};
use webfill_wire::{
    Credit, DispatcherToSupervisor, Hello, Lane, Outcome, SiteClock, SupervisorHeartbeat,
    SupervisorOutcomes, SupervisorToDispatcher, Task, TaskDone, codec, handshake,
};

use crate::Failure;
use crate::dispatcher::{DELAY_MS, HOST};

const SUPERVISORS: u32 = 4;
const CREDIT: u64 = 1_000;
const SESSION: u64 = 1;
const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(600);

/// Closes tasks until the dispatcher has confirmed this many of them.
pub fn close_tasks(wanted: u64) -> Result<(), Failure> {
    let tasks = (0..SUPERVISORS)
        .map(|number| SocketSpec::connect(number, Pattern::Dealer, format!("tcp://{HOST}:5555")));
    let outcomes = (0..SUPERVISORS).map(|number| {
        let name = SUPERVISORS + number;
        SocketSpec::connect(name, Pattern::Push, format!("tcp://{HOST}:5556"))
    });
    let (heard, arrivals) = mpsc::channel();
    let sockets = Sockets::start(tasks.chain(outcomes).collect(), move |arrived| {
        let _ = heard.send(arrived);
    })?;
    let begun = Instant::now();
    let mut all: Vec<Supervisor> = (0..SUPERVISORS)
        .map(|number| Supervisor::new(number, sockets.outbox(), begun))
        .collect();
    all.iter().for_each(Supervisor::say_hello);
    let mut next_heartbeat = begun + HEARTBEAT_EVERY;
    while all.iter().map(|one| one.confirmed).sum::<u64>() < wanted {
        if begun.elapsed() > PATIENCE {
            return Err(format!("{wanted} tasks were not closed within {PATIENCE:?}").into());
        }
        match arrivals.recv_timeout(Duration::from_millis(20)) {
            Ok(arrived) => {
                let message = codec::decode(&arrived.frame)?;
                all[arrived.socket as usize].handle_message(message);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
        if Instant::now() >= next_heartbeat {
            // At the end no message arrives for some time, and heartbeats are sent more often to get the last
            // confirmation.
            next_heartbeat = Instant::now() + HEARTBEAT_EVERY / 10;
            all.iter().for_each(Supervisor::send_heartbeat);
        }
    }
    Ok(())
}

struct Supervisor {
    number: u32,
    outbox: Outbox,
    begun: Instant,
    credit: Credit,
    received: u64,
    outcomes_sent: u64,
    /// The number of closed tasks after each message of outcomes, from the first message on.
    closed: Vec<u64>,
    /// The number of tasks that the dispatcher has confirmed as closed.
    confirmed: u64,
}

impl Supervisor {
    fn new(number: u32, outbox: Outbox, begun: Instant) -> Supervisor {
        Supervisor {
            number,
            outbox,
            begun,
            credit: Credit {
                tasks: CREDIT,
                url_bytes: CREDIT * 1_000,
            },
            received: 0,
            outcomes_sent: 0,
            closed: Vec::new(),
            confirmed: 0,
        }
    }

    fn name(&self) -> String {
        format!("bench-{}", self.number)
    }

    fn sent_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    fn say_hello(&self) {
        let hello = Hello {
            supervisor: self.name(),
            instance: u64::from(self.number),
            session: SESSION,
            sent_ms: self.sent_ms(),
            lane: Lane::Http,
            workers: 16,
            longest_request_ms: 1_000,
            credit: self.credit,
            held: Vec::new(),
        };
        self.outbox
            .send(self.number, handshake::encode_hello(&hello));
    }

    fn send(&self, message: &SupervisorToDispatcher) {
        self.outbox.send(self.number, codec::encode(message));
    }

    fn send_heartbeat(&self) {
        self.send(&SupervisorToDispatcher::Heartbeat(SupervisorHeartbeat {
            session: SESSION,
            sent_ms: self.sent_ms(),
            wall_ms: 0,
            credit: self.credit,
            received: self.received,
            outcomes_sent: self.outcomes_sent,
        }));
    }

    fn handle_message(&mut self, message: DispatcherToSupervisor) {
        match message {
            DispatcherToSupervisor::Tasks { number, tasks, .. } => {
                self.received = number;
                self.close(&tasks);
            }
            DispatcherToSupervisor::Heartbeat { outcomes_heard, .. } => {
                let confirmed = self.closed.iter().take(outcomes_heard as usize);
                self.confirmed = confirmed.sum();
            }
            _ => {}
        }
    }

    fn close(&mut self, tasks: &[Task]) {
        for some in tasks.chunks(100) {
            self.outcomes_sent += 1;
            self.closed.push(some.len() as u64);
            let outcomes = SupervisorOutcomes {
                supervisor: self.name(),
                session: SESSION,
                number: self.outcomes_sent,
                done: some.iter().map(done_task).collect(),
                returned: Vec::new(),
                recalled: Vec::new(),
            };
            let socket = SUPERVISORS + self.number;
            self.outbox.send(socket, codec::encode(&outcomes));
        }
        self.credit.tasks += tasks.len() as u64;
        self.credit.url_bytes += tasks.iter().map(|task| task.url.len() as u64).sum::<u64>();
        self.send(&SupervisorToDispatcher::Credit {
            session: SESSION,
            credit: self.credit,
        });
    }
}

fn done_task(task: &Task) -> TaskDone {
    TaskDone {
        task: task.task,
        delivery: task.delivery,
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 11_000,
        fields: 0,
        rows: 0,
        rows_stored: 0,
        links: Vec::new(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock {
            next_in_ms: DELAY_MS,
            delay_ms: Some(DELAY_MS),
        },
        evidence: None,
    }
}
