mod awaited;
mod closing;
mod feeding;
mod lanes;
mod mappings;
mod metrics;
mod reopening;
mod restored;
mod states;
mod turns;

use serde_json::{Value, json};
use tempfile::TempDir;
use webfill_wire::{
    Credit, DispatcherToSupervisor, Hello, Lane, Outcome, ReturnCause, SiteClock,
    SupervisorHeartbeat, SupervisorOutcomes, SupervisorToDispatcher, Task, TaskDone, TaskReturned,
};

use super::*;
use crate::caller::Caller;
use crate::control;
use crate::core::context::CoreSettings;
use crate::effects::{Audited, StoreWrite};
use crate::frontier::{Frontier, FrontierConfig};
use crate::mappings::Mappings;

const NOW_MS: i64 = 1_700_000_000_000;

/// A core with a clock that the test sets, and perhaps a supervisor that the test plays.
struct Fixture {
    dir: TempDir,
    core: Option<Core>,
    now_ms: i64,
    asked: u64,
    /// The messages that have left since the test last took them, in order.
    outgoing: Vec<OutgoingMessage>,
    /// The store writes since the test last took them.
    store_writes: Vec<StoreWrite>,
    /// The entries for the audit log since the test last took them.
    audited: Vec<Audited>,
    sent_outcomes: u64,
    /// The wire version of the session with the supervisor.
    version: u8,
}

fn open_core(dir: &TempDir, now_ms: i64) -> Core {
    open_core_with(dir, now_ms, FrontierConfig::default())
}

fn open_core_with(dir: &TempDir, now_ms: i64, config: FrontierConfig) -> Core {
    let settings = CoreSettings {
        default_delay_ms: 0,
        group_bounds: None,
        lease_ms: 10_000,
        window_sites: 1_000,
    };
    let frontier = Frontier::open(dir.path(), config, now_ms).unwrap();
    Core::open(frontier, settings, Mappings::default(), now_ms).unwrap()
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    Fixture {
        core: Some(open_core(&dir, NOW_MS)),
        dir,
        now_ms: NOW_MS,
        asked: 0,
        outgoing: Vec::new(),
        store_writes: Vec::new(),
        audited: Vec::new(),
        sent_outcomes: 0,
        version: webfill_wire::codec::WIRE_VERSION,
    }
}

fn request_with(change: Value) -> Value {
    let mut request = json!({"url": "http://a.org/", "appid": "app", "crawlid": "c1"});
    for (key, value) in change.as_object().unwrap() {
        request[key] = value.clone();
    }
    request
}

fn action(name: &str) -> Value {
    json!({"action": name, "appid": "app", "crawlid": "c1", "uuid": "u1"})
}

/// `n` requests for one crawl, each for a different site.
fn requests(crawl: &str, n: usize) -> Value {
    let one = |n| request_with(json!({"crawlid": crawl, "url": format!("http://{crawl}{n}.org/")}));
    (0..n).map(one).collect()
}

impl Fixture {
    fn core(&mut self) -> &mut Core {
        self.core.as_mut().unwrap()
    }

    /// Runs one turn of the loop.
    fn run_turn(&mut self) {
        let now_ms = self.now_ms;
        let core = self.core();
        core.on_tick(now_ms).unwrap();
        core.hand_out(now_ms).unwrap();
        let committed = core.commit(now_ms).unwrap();
        self.outgoing.extend(committed.outgoing);
        self.store_writes.extend(committed.store_writes);
        self.audited.extend(committed.audited);
    }

    /// Sends a request. Returns the answer, if there is one after a turn of the loop.
    fn ask(&mut self, question: &Value) -> Option<Value> {
        self.asked += 1;
        let (number, now_ms) = (self.asked, self.now_ms);
        let asked = control::parse_request(question.to_string().as_bytes(), now_ms);
        self.core()
            .handle_request(Client::Http(number.into()), asked, now_ms)
            .unwrap();
        // A long list is fed in pieces.
        while self.core().advance_feeds(now_ms).unwrap() {}
        self.run_turn();
        self.action_answer(number)
    }

    fn action_answer(&mut self, number: u64) -> Option<Value> {
        self.outgoing.iter().find_map(|message| match message {
            OutgoingMessage::ToClient(Client::Http(to), answer) if to.number == number => {
                Some(answer.clone())
            }
            _ => None,
        })
    }

    fn ask_and_expect_success(&mut self, question: &Value) -> Value {
        let answer = self.ask(question).expect("the answer does not wait");
        assert_eq!(answer.get("error"), None, "{question}");
        answer
    }

    fn ask_and_expect_refusal(&mut self, question: &Value) -> String {
        let answer = self.ask(question).expect("the answer does not wait");
        let path = answer["error"]["path"].as_str();
        path.unwrap_or_else(|| panic!("{question} was accepted: {answer}"))
            .to_owned()
    }

    fn take_notifications(&mut self) -> Vec<Value> {
        let outgoing = std::mem::take(&mut self.outgoing);
        let notifications = outgoing.into_iter().filter_map(|message| match message {
            OutgoingMessage::Notification {
                app_id,
                notification,
            } => {
                assert_eq!(app_id, "app");
                Some(notification)
            }
            _ => None,
        });
        notifications.collect()
    }

    fn handle_message(&mut self, message: SupervisorToDispatcher) {
        let caller = Caller {
            peer: b"s".to_vec(),
            version: self.version,
        };
        let now_ms = self.now_ms;
        self.core()
            .handle_supervisor_message(&caller, message, now_ms)
            .unwrap();
        self.run_turn();
    }

    fn join_supervisor(&mut self) {
        self.join_supervisor_as(Lane::Http, 1);
    }

    fn join_supervisor_as(&mut self, lane: Lane, session: u64) {
        let credit = Credit {
            tasks: 1_000,
            url_bytes: 1 << 20,
        };
        self.handle_message(SupervisorToDispatcher::Hello(Hello {
            supervisor: "s".into(),
            instance: 1,
            session,
            sent_ms: 1,
            lane,
            workers: 1,
            longest_request_ms: 1_000,
            credit,
            held: Vec::new(),
        }));
    }

    /// Sends a heartbeat that confirms this many messages. Returns whether the lease was renewed.
    fn send_heartbeat(&mut self, received: u64) -> bool {
        let before = self.outgoing.len();
        self.handle_message(SupervisorToDispatcher::Heartbeat(SupervisorHeartbeat {
            // The supervisor's clock is a minute ahead.
            wall_ms: self.now_ms + 60_000,
            session: 1,
            sent_ms: 2,
            credit: Credit::default(),
            received,
            outcomes_sent: 0,
        }));
        self.outgoing[before..].iter().any(|message| {
            matches!(
                message,
                OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Heartbeat { .. })
            )
        })
    }

    /// Grants credit for this many tasks in total.
    fn grant_credit(&mut self, tasks: u64) {
        let credit = Credit {
            tasks,
            url_bytes: 1 << 40,
        };
        self.handle_message(SupervisorToDispatcher::Credit { session: 1, credit });
    }

    /// The tasks that were handed out since the test last took them.
    fn take_tasks(&mut self) -> Vec<Task> {
        let outgoing = std::mem::take(&mut self.outgoing);
        let tasks = outgoing.into_iter().filter_map(|message| match message {
            OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Tasks { tasks, .. }) => {
                Some(tasks)
            }
            _ => None,
        });
        tasks.flatten().collect()
    }

    /// The numbers of the recalls that were sent, for the test to confirm.
    fn sent_recalls(&self) -> Vec<u64> {
        let recalls = self.outgoing.iter().filter_map(|message| match message {
            OutgoingMessage::ToSupervisor(_, DispatcherToSupervisor::Recall { recall, .. }) => {
                Some(*recall)
            }
            _ => None,
        });
        recalls.collect()
    }

    fn report_outcomes(&mut self, change: impl FnOnce(&mut SupervisorOutcomes)) {
        self.sent_outcomes += 1;
        let mut outcomes = SupervisorOutcomes {
            supervisor: "s".into(),
            session: 1,
            number: self.sent_outcomes,
            done: Vec::new(),
            returned: Vec::new(),
            recalled: Vec::new(),
        };
        change(&mut outcomes);
        let now_ms = self.now_ms;
        self.core().handle_outcomes(outcomes, now_ms).unwrap();
        self.run_turn();
    }

    fn restart(&mut self) {
        self.core = None;
        self.core = Some(open_core(&self.dir, self.now_ms));
        self.run_turn();
    }
}

fn done_task(task: &Task, links: &[&str]) -> TaskDone {
    TaskDone {
        task: task.task,
        delivery: task.delivery,
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 10,
        fields: 0,
        rows: 0,
        rows_stored: 0,
        links: links.iter().map(|link| link.to_string()).collect(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
        evidence: None,
    }
}

fn unstarted_task(task: &Task) -> TaskReturned {
    TaskReturned {
        task: task.task,
        delivery: task.delivery,
        cause: ReturnCause::Unstarted,
        clock: None,
        address: None,
    }
}
