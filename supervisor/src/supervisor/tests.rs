use webfill_wire::Lane;
use webfill_wire::{
    CrawlSettings, Delivery, DispatcherToSupervisor, Feature, Follow, Outcome, RecallScope,
    SiteClock, Task, TaskDone, WorkerToSupervisor,
};

use super::*;

const NOW_MS: u64 = 1_000;

/// A supervisor with two workers in its first session. The workers in `ready` have reported that they take tasks.
fn welcomed_supervisor(ready: &[u16]) -> Supervisor {
    let mut supervisor = Supervisor::new(Terms {
        id: "s".into(),
        instance: 1,
        workers: 2,
        lane: Lane::Http,
        longest_request_ms: 1_000,
        limit: Credit {
            tasks: 100,
            url_bytes: 10_000,
        },
    });
    for worker_index in 0..2 {
        supervisor.note_worker_start(worker_index, 1, None);
    }
    supervisor.send_if_due(NOW_MS, 0);
    supervisor.handle_dispatcher_message(
        DispatcherToSupervisor::Welcome {
            session: NOW_MS,
            heard_ms: NOW_MS,
            lease_ms: 10_000,
            mappings: "a".into(),
        },
        NOW_MS,
    );
    supervisor.handle_dispatcher_message(
        DispatcherToSupervisor::Mappings {
            session: NOW_MS,
            version: "a".into(),
            sources: Vec::new(),
        },
        NOW_MS,
    );
    for index in ready {
        supervisor.handle_worker_message(WorkerToSupervisor {
            ready: true,
            ..empty_message(*index)
        });
    }
    supervisor.take_outgoing();
    supervisor
}

fn empty_message(worker_index: u16) -> WorkerToSupervisor {
    WorkerToSupervisor {
        worker_index,
        incarnation: 1,
        done: Vec::new(),
        returned: Vec::new(),
        recalled: Vec::new(),
        waiting: Vec::new(),
        ready: false,
    }
}

fn task(id: u64, crawl: u32) -> Task {
    Task {
        task: id,
        delivery: Delivery::new(0, 1),
        crawl,
        url: "http://a.org/".into(),
        site: format!("site-{id}.org"),
        depth: 0,
        wait_ms: 0,
        last_request_ago_ms: None,
        parent: None,
        attrs: None,
        records: Vec::new(),
        priority: 50,
        delay_ms: None,
        failed_attempts: Vec::new(),
        unreachable: None,
        address_bounds: webfill_wire::AddressBounds::None,
    }
}

fn done_task(task: u64, links: Vec<String>) -> TaskDone {
    TaskDone {
        task,
        delivery: Delivery::new(0, 1),
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 0,
        fields: 0,
        rows: 0,
        rows_stored: 0,
        links,
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
        evidence: None,
    }
}

fn deliver_tasks(supervisor: &mut Supervisor, number: u64, tasks: Vec<Task>) {
    let message = DispatcherToSupervisor::Tasks {
        session: NOW_MS,
        number,
        crawls: Vec::new(),
        tasks,
    };
    supervisor.handle_dispatcher_message(message, NOW_MS);
}

fn recall(supervisor: &mut Supervisor, number: u64, crawl: u32) {
    let message = DispatcherToSupervisor::Recall {
        session: NOW_MS,
        number,
        recall: 77,
        scope: RecallScope {
            crawl: Some(crawl),
            ..RecallScope::default()
        },
    };
    supervisor.handle_dispatcher_message(message, NOW_MS);
}

/// Sends the supervisor's next report to the dispatcher. Returns the tasks that it gives back, and the recalls that it
/// settles.
fn send_and_read_report(supervisor: &mut Supervisor) -> (Vec<u64>, Vec<u64>) {
    supervisor.send_report();
    let (mut returned, mut recalled) = (Vec::new(), Vec::new());
    for message in supervisor.take_outgoing() {
        if let OutgoingMessage::Outcomes(outcomes) = message {
            returned.extend(outcomes.returned.iter().map(|returned| returned.task));
            recalled.extend(&outcomes.recalled);
        }
    }
    returned.sort_unstable();
    (returned, recalled)
}

#[test]
fn a_recall_is_confirmed_when_all_workers_have_confirmed_it() {
    let mut supervisor = welcomed_supervisor(&[0, 1]);
    deliver_tasks(&mut supervisor, 1, (1..=20).map(|id| task(id, 1)).collect());
    supervisor.take_outgoing();
    recall(&mut supervisor, 2, 1);
    let reported_workers = supervisor.outgoing.iter().filter(|message| {
        matches!(
            message,
            OutgoingMessage::ToWorker(_, SupervisorToWorker::Recall { recall: 77, .. })
        )
    });
    assert_eq!(reported_workers.count(), 2);
    assert_eq!(send_and_read_report(&mut supervisor), (vec![], vec![]));
    let confirms = |worker_index| WorkerToSupervisor {
        recalled: vec![77],
        ..empty_message(worker_index)
    };
    supervisor.handle_worker_message(confirms(0));
    assert_eq!(
        send_and_read_report(&mut supervisor),
        (vec![], vec![]),
        "the other one may start it"
    );
    supervisor.handle_worker_message(confirms(1));
    assert_eq!(send_and_read_report(&mut supervisor), (vec![], vec![77]));
}

#[test]
fn waiting_tasks_are_given_back_with_the_confirmation_of_their_recall() {
    let mut supervisor = welcomed_supervisor(&[]);
    deliver_tasks(&mut supervisor, 1, vec![task(1, 1), task(2, 2), task(3, 1)]);
    recall(&mut supervisor, 2, 1);
    assert_eq!(
        send_and_read_report(&mut supervisor),
        (vec![1, 3], vec![77])
    );
    assert_eq!(supervisor.held_leases(), 1, "of another crawl");
    recall(&mut supervisor, 2, 2);
    assert_eq!(
        send_and_read_report(&mut supervisor),
        (vec![], vec![]),
        "heard twice"
    );
}

#[test]
fn tasks_that_a_recall_has_overtaken_are_given_back() {
    let mut supervisor = welcomed_supervisor(&[0, 1]);
    recall(&mut supervisor, 2, 1);
    deliver_tasks(&mut supervisor, 1, vec![task(1, 1)]);
    assert_eq!(send_and_read_report(&mut supervisor).0, [1]);
    deliver_tasks(&mut supervisor, 3, vec![task(2, 1)]);
    assert!(
        send_and_read_report(&mut supervisor).0.is_empty(),
        "it was sent after the recall"
    );
}

#[test]
fn the_death_of_a_worker_confirms_its_recalls() {
    let mut supervisor = welcomed_supervisor(&[0, 1]);
    recall(&mut supervisor, 1, 1);
    supervisor.handle_worker_message(WorkerToSupervisor {
        recalled: vec![77],
        ..empty_message(1)
    });
    assert!(send_and_read_report(&mut supervisor).1.is_empty());
    supervisor.note_worker_death(0);
    assert_eq!(send_and_read_report(&mut supervisor).1, [77]);
}

#[test]
fn crawls_are_forgotten_except_those_of_waiting_tasks() {
    let mut supervisor = welcomed_supervisor(&[]);
    let settings = |key| CrawlSettings {
        key,
        app_id: "app".into(),
        crawl_id: key.to_string(),
        max_depth: 0,
        follow: Follow::All,
        lane: Lane::Http,
        useragent: None,
        attrs: None,
        headers: false,
        body: false,
        features: vec![Feature::Changes],
    };
    let message = DispatcherToSupervisor::Tasks {
        session: NOW_MS,
        number: 1,
        crawls: vec![settings(1), settings(2)],
        tasks: vec![task(1, 2)],
    };
    supervisor.handle_dispatcher_message(message, NOW_MS);
    let of_another = DispatcherToSupervisor::ForgetCrawls { session: 7 };
    supervisor.handle_dispatcher_message(of_another, NOW_MS);
    assert_eq!(supervisor.crawls.len(), 2);
    let forget = DispatcherToSupervisor::ForgetCrawls { session: NOW_MS };
    supervisor.handle_dispatcher_message(forget, NOW_MS);
    assert_eq!(supervisor.crawls.keys().collect::<Vec<_>>(), [&2]);
    for worker_index in 0..2 {
        supervisor.handle_worker_message(WorkerToSupervisor {
            ready: true,
            ..empty_message(worker_index)
        });
    }
    let reported = supervisor
        .take_outgoing()
        .into_iter()
        .filter_map(|message| match message {
            OutgoingMessage::ToWorker(_, SupervisorToWorker::Crawl(crawl)) => {
                Some((crawl.key, crawl.features))
            }
            _ => None,
        });
    let of_the_crawl = (2, vec![Feature::Changes]);
    assert_eq!(
        reported.collect::<Vec<_>>(),
        [of_the_crawl],
        "with its task"
    );
}

#[test]
fn no_more_tasks_are_asked_for_while_much_is_unacknowledged() {
    let mut supervisor = welcomed_supervisor(&[0, 1]);
    deliver_tasks(&mut supervisor, 1, (1..=9).map(|id| task(id, 1)).collect());
    let asked = |supervisor: &mut Supervisor| {
        supervisor.send_report();
        let is_credit = |message: &OutgoingMessage| match message {
            OutgoingMessage::ToDispatcher(SupervisorToDispatcher::Credit { credit, .. }) => {
                Some(credit.tasks)
            }
            _ => None,
        };
        supervisor.take_outgoing().iter().find_map(is_credit)
    };
    let mut credits = Vec::new();
    for task in 1..=6 {
        supervisor.handle_worker_message(WorkerToSupervisor {
            done: vec![done_task(task, vec!["x".repeat(16 << 20)])],
            ..empty_message(0)
        });
        credits.push(asked(&mut supervisor));
    }
    let (some, none) = (Option::is_some, Option::is_none);
    assert!(
        credits[..4].iter().all(some) && credits[5..].iter().all(none),
        "{credits:?}"
    );
    let heard = DispatcherToSupervisor::Heartbeat {
        session: NOW_MS,
        heard_ms: NOW_MS,
        outcomes_heard: 6,
    };
    supervisor.handle_dispatcher_message(heard, NOW_MS);
    assert_eq!(asked(&mut supervisor), Some(106));
}

/// A supervisor that drains and has sent the outcome of its only task.
fn drained_supervisor_with_outcome() -> Supervisor {
    let mut supervisor = welcomed_supervisor(&[0, 1]);
    deliver_tasks(&mut supervisor, 1, vec![task(1, 0)]);
    supervisor.drain();
    assert!(!supervisor.is_drained(NOW_MS), "it is fetched");
    for worker_index in 0..2 {
        supervisor.handle_worker_message(WorkerToSupervisor {
            done: vec![done_task(1, Vec::new())],
            ..empty_message(worker_index)
        });
    }
    supervisor.send_report();
    supervisor.take_outgoing();
    assert_eq!(supervisor.held_leases(), 0);
    supervisor
}

#[test]
fn a_supervisor_has_drained_when_its_last_outcomes_are_acknowledged() {
    let mut supervisor = drained_supervisor_with_outcome();
    assert!(!supervisor.is_drained(NOW_MS));
    let mut beats = 0;
    for now_ms in NOW_MS..NOW_MS + 500 {
        supervisor.send_if_due(now_ms, 0);
        beats += supervisor.take_outgoing().len();
    }
    assert!(beats >= 5, "{beats}: it asks soon, and again");
    supervisor.handle_dispatcher_message(
        DispatcherToSupervisor::Heartbeat {
            session: NOW_MS,
            heard_ms: NOW_MS,
            outcomes_heard: 1,
        },
        NOW_MS,
    );
    assert!(supervisor.is_drained(NOW_MS));
    assert_eq!(supervisor.unacknowledged_pages(), 0);
}

#[test]
fn a_drained_supervisor_without_a_dispatcher_ends_at_some_time() {
    let mut supervisor = drained_supervisor_with_outcome();
    let until_ms = NOW_MS + LAST_ACKNOWLEDGEMENT_MS;
    assert!(!supervisor.is_drained(NOW_MS));
    assert!(!supervisor.is_drained(until_ms - 1));
    assert!(supervisor.is_drained(until_ms));
    assert_eq!(supervisor.unacknowledged_pages(), 1);
}

#[test]
fn tasks_that_arrive_during_a_drain_do_not_delay_its_end() {
    let mut supervisor = welcomed_supervisor(&[]);
    let credit = supervisor.reported_credit;
    supervisor.drain();
    deliver_tasks(&mut supervisor, 1, vec![task(1, 0)]);
    supervisor.handle_worker_message(WorkerToSupervisor {
        ready: true,
        ..empty_message(0)
    });
    supervisor.return_waiting(&RecallScope::default());
    assert!(supervisor.is_drained(NOW_MS));
    assert_eq!(supervisor.reported_credit, credit);
}
