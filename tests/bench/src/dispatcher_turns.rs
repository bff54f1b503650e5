//! The turns of a dispatcher's core, driven by simulated supervisors.
//!
//! The core and the frontier's file are real. Each supervisor has credit for a thousand tasks, and answers immediately.
//! Time is simulated, too: each turn advances it by 20 ms, and each site has a delay of a second. The pages have no
//! links. Sockets, the encoding of messages and the firehose are not included.

use std::path::Path;
use std::time::{Duration, Instant};

use webfill_api::CrawlSpec;
use webfill_scheduler::effects::OutgoingMessage;
use webfill_scheduler::frontier::{Candidate, Frontier, FrontierConfig};
use webfill_scheduler::{Caller, Core, CoreSettings, Mappings};
use webfill_wire::{
    Credit, DispatcherToSupervisor, Hello, Lane, Outcome, SiteClock, SupervisorHeartbeat,
    SupervisorOutcomes, SupervisorToDispatcher, Task, TaskDone,
};

use crate::core_time::time_on_core;

type Failure = Box<dyn std::error::Error>;

/// The number of sites that the tasks are spread over.
pub const SITES: u64 = 50_000;
/// The number of workers of each supervisor.
pub const WORKERS: u16 = 16;
const CREDIT: u64 = 1_000;
const TURN_MS: i64 = 20;
const DELAY_MS: u32 = 1_000;
const LEASE_MS: u64 = 30_000;

/// Opens a dispatcher's core whose state is in the folder `state`. The tasks are queued, in equal parts for each crawl.
/// If it is journalled, each commit also encodes its changes for the journal, which nobody reads.
///
/// # Errors
///
/// The frontier's files cannot be written.
pub fn open_core(state: &Path, tasks: u64, crawls: u64, journalled: bool) -> Result<Core, Failure> {
    let config = FrontierConfig {
        journalled,
        ..FrontierConfig::default()
    };
    let mut frontier = Frontier::open(state, config, 0)?;
    feed_tasks(&mut frontier, tasks, crawls)?;
    let settings = CoreSettings {
        default_delay_ms: DELAY_MS,
        lease_ms: LEASE_MS,
        window_sites: 20_000,
        group_bounds: None,
    };
    Ok(Core::open(frontier, settings, Mappings::default(), 0)?)
}

/// Feeds each crawl the same number of tasks. Neighbouring tasks are on sites that are far apart in the order of sites.
fn feed_tasks(frontier: &mut Frontier, tasks: u64, crawls: u64) -> Result<(), Failure> {
    let mut fed = 0;
    for crawl in 0..crawls {
        let mut spec = CrawlSpec::new("bench", format!("dispatch-{crawl}"));
        spec.max_depth = 0;
        let opened = frontier.crawls().open(&spec)?;
        let nths: Vec<u64> = (crawl..tasks).step_by(crawls as usize).collect();
        for some in nths.chunks(5_000) {
            let url = |nth: &u64| {
                let site = nth % SITES;
                format!("https://www.shop-{site}.com/an-article-about-{nth}")
            };
            let urls: Vec<String> = some.iter().map(url).collect();
            let seeds: Vec<Candidate<'_>> = urls.iter().map(|url| seed_candidate(url)).collect();
            frontier.tasks().feed(opened, &seeds, 0)?;
            fed += seeds.len();
            if fed >= 5_000 {
                frontier.commit()?;
                frontier.take_changes()?;
                fed = 0;
            }
        }
    }
    frontier.commit()?;
    frontier.take_changes()?;
    Ok(())
}

fn seed_candidate(url: &str) -> Candidate<'_> {
    Candidate {
        url,
        depth: 0,
        priority: None,
        parent: None,
        records: &[],
        attrs: None,
    }
}

/// The time that the dispatcher has used. The time that the benchmark takes to make the supervisors' messages is not
/// included.
#[derive(Debug, Default)]
pub struct Measured {
    pub turns: u64,
    pub core: Duration,
    pub clock: Duration,
}

/// Runs the core's turns until this many tasks are closed.
///
/// # Errors
///
/// The core fails, or does not hand out all tasks.
pub fn close_tasks(core: &mut Core, tasks: u64, supervisors: usize) -> Result<Measured, Failure> {
    let mut supervisors: Vec<Supervisor> = (0..supervisors).map(Supervisor::new).collect();
    let mut measured = Measured::default();
    let mut closed = 0;
    let mut now_ms = 0;
    let mut arrived: Vec<Arrival> = supervisors.iter().map(Supervisor::hello).collect();
    while closed < tasks {
        if measured.turns > tasks {
            return Err(format!("{closed} of {tasks} tasks are closed and no more").into());
        }
        let (begun, begun_on_core) = (Instant::now(), time_on_core()?);
        for arrival in arrived {
            match arrival {
                Arrival::Word(number, word) => {
                    let peer = (number as u16).to_be_bytes().to_vec();
                    core.handle_supervisor_message(&Caller::with_this_version(peer), word, now_ms)?;
                }
                Arrival::Outcomes(outcomes) => {
                    closed += outcomes.done.len() as u64;
                    core.handle_outcomes(outcomes, now_ms)?;
                }
            }
        }
        core.on_tick(now_ms)?;
        core.hand_out(now_ms)?;
        let committed = core.commit(now_ms)?;
        measured.core += time_on_core()? - begun_on_core;
        measured.clock += begun.elapsed();
        measured.turns += 1;
        now_ms += TURN_MS;
        for message in committed.outgoing {
            if let OutgoingMessage::ToSupervisor(to, message) = message
                && let DispatcherToSupervisor::Tasks { number, tasks, .. } = message
            {
                let peer = u16::from_be_bytes(to.peer.as_slice().try_into()?);
                let supervisor = &mut supervisors[usize::from(peer)];
                supervisor.received = number;
                supervisor.held.extend(tasks);
            }
        }
        let answers = supervisors.iter_mut();
        arrived = answers
            .flat_map(|supervisor| supervisor.answer(now_ms))
            .collect();
    }
    Ok(measured)
}

enum Arrival {
    Word(usize, SupervisorToDispatcher),
    Outcomes(SupervisorOutcomes),
}

struct Supervisor {
    number: usize,
    credit: Credit,
    outcomes_sent: u64,
    received: u64,
    held: Vec<Task>,
}

impl Supervisor {
    fn new(number: usize) -> Supervisor {
        let credit = Credit {
            tasks: CREDIT,
            url_bytes: CREDIT * 1_000,
        };
        Supervisor {
            number,
            credit,
            outcomes_sent: 0,
            received: 0,
            held: Vec::new(),
        }
    }

    fn name(&self) -> String {
        format!("v{}", self.number)
    }

    fn hello(&self) -> Arrival {
        let hello = SupervisorToDispatcher::Hello(Hello {
            supervisor: self.name(),
            instance: self.number as u64,
            session: 1,
            sent_ms: 0,
            lane: Lane::Http,
            workers: WORKERS,
            longest_request_ms: 30_000,
            credit: self.credit,
            held: Vec::new(),
        });
        Arrival::Word(self.number, hello)
    }

    /// Answers for a supervisor: all of its tasks are done, so it can take as many again. From time to time, it also
    /// sends a heartbeat.
    fn answer(&mut self, now_ms: i64) -> Vec<Arrival> {
        let mut answers = Vec::new();
        let tasks = std::mem::take(&mut self.held);
        for some in tasks.chunks(100) {
            self.outcomes_sent += 1;
            answers.push(Arrival::Outcomes(SupervisorOutcomes {
                supervisor: self.name(),
                session: 1,
                number: self.outcomes_sent,
                done: some.iter().map(done_task).collect(),
                returned: Vec::new(),
                recalled: Vec::new(),
            }));
        }
        self.credit.tasks += tasks.len() as u64;
        self.credit.url_bytes += tasks.iter().map(|task| task.url.len() as u64).sum::<u64>();
        let (session, credit) = (1, self.credit);
        let word = match now_ms % 5_000 < TURN_MS {
            true => SupervisorToDispatcher::Heartbeat(SupervisorHeartbeat {
                session,
                sent_ms: now_ms as u64,
                wall_ms: now_ms,
                credit,
                received: self.received,
                outcomes_sent: self.outcomes_sent,
            }),
            false => SupervisorToDispatcher::Credit { session, credit },
        };
        answers.push(Arrival::Word(self.number, word));
        answers
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
