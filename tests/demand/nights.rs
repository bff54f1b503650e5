//! Tests ten nights of a regulator's website, watched by a fleet. The reports are correct although the dispatcher is
//! killed each night. `tests/crawls/nights.rs` kills all processes of a watch on one machine.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::receiver::Receiver;
use webfill_tests::regulator::{
    BLOCKED_NIGHT, BULLETIN, Change, Changes, NIGHTS, Notifications, Regulator,
};

use crate::fleet::{Fleet, wait_for};

const SETTINGS: [(&str, &str); 3] = [
    ("NOTIFICATIONS_ALLOW_PRIVATE_WEBHOOKS", "true"),
    ("DOCUMENTS_READ", "true"),
    ("BACKOFF_BLOCKED", "600,600,600"),
];

fn ask(fleet: &Fleet, action: Value) -> Value {
    fleet.client().ask(&action)
}

fn add_watch(fleet: &Fleet, seeds: &[String], receivers: [&Receiver; 2]) {
    let hook = |receiver: &Receiver, when: &str| json!({"webhook": receiver.url(), "when": when, "about": ["changes"]});
    let [digest, at_once] = receivers;
    let watch = json!({
        "name": "regulator", "urls": seeds, "schedule": "0 0 29 2 *",
        "notify": [hook(digest, "digest"), hook(at_once, "at_once")],
        "crawl": {"follow": "all", "sitemaps": true, "patience": "1s", "deny_extensions": []},
    });
    let added = ask(fleet, json!({"action": "watch_add", "watch": watch}));
    assert_eq!(added["name"], "regulator", "{added}");
}

/// The changes that a receiver has got since the last call.
fn take_changes(receiver: &Receiver, notifications: &mut Notifications) -> Vec<Change> {
    let lines = receiver.all_delivered().into_iter();
    let lines: Vec<String> = lines.map(|posted| posted.json().to_string()).collect();
    notifications.take_changes(&lines.join("\n"))
}

/// Whether a run has ended, its changes are counted, and all of its notifications are delivered.
fn is_over(fleet: &Fleet, number: u32) -> bool {
    let shown = ask(fleet, json!({"action": "watch_show", "name": "regulator"}));
    let run = &shown["runs"][0];
    run["run"] == number
        && run["counts"]["changes"].is_object()
        && shown["notifications"]["waiting"] == 0
}

#[test]
fn a_fleet_reports_the_changes_of_each_of_ten_nights_though_its_dispatcher_dies() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut fleet = Fleet::start_with(&SETTINGS);
    let receivers = [Receiver::start(), Receiver::start()];
    let mut notifications = [Notifications::default(), Notifications::default()];
    let mut regulator = Regulator::new(&fleet.web);
    add_watch(&fleet, &regulator.seeds(), receivers.each_ref());
    for number in 1..=NIGHTS {
        let expected = regulator.start_next_night();
        if number == BLOCKED_NIGHT + 1 {
            fleet.run(&["site", BULLETIN, "--wake"]).expect_code(0);
        }
        let begun = ask(&fleet, json!({"action": "watch_run", "name": "regulator"}));
        assert_eq!(begun.get("error"), None, "{begun}");
        // The dispatcher is killed at a random moment of the run.
        std::thread::sleep(Duration::from_millis(random.u64(300..3_000)));
        fleet.kill_dispatcher();
        fleet.start_dispatcher();
        wait_for(&format!("night {number} is over"), || {
            is_over(&fleet, number).then_some(())
        });
        // If a night was reported twice, the second report would be taken for one of the next night.
        for (receiver, notifications) in receivers.iter().zip(&mut notifications) {
            let mut reported = Changes::new();
            wait_for(&format!("night {number} is reported"), || {
                for change in take_changes(receiver, notifications) {
                    assert!(
                        reported.insert(change.clone()),
                        "reported twice: {change:?}"
                    );
                }
                (reported.len() >= expected.len()).then_some(())
            });
            assert_eq!(reported, expected, "night {number}");
        }
    }
}
