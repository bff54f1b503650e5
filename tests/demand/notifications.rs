//! Tests the notifications of a fleet's watches. They are delivered whatever process dies, and never beyond what the
//! settings allow.

use serde_json::{Value, json};
use webfill_tests::receiver::{Posted, Receiver};
use webfill_tests::site::page;

use crate::fleet::{Fleet, wait_for};

const SITE: &str = "people.example";

const PRIVATE: (&str, &str) = ("NOTIFICATIONS_ALLOW_PRIVATE_WEBHOOKS", "true");

/// A watch of one page that never runs by itself.
fn watch_of_page(fleet: &Fleet, notify: Value) -> Value {
    let site = fleet.web.site(SITE);
    site.serve("/ada", page("Ada").field("name", "Ada Byron"));
    json!({"name": "people", "urls": [format!("http://{SITE}/ada")], "schedule": "0 0 29 2 *",
           "notify": notify})
}

fn ask(fleet: &Fleet, action: Value) -> Value {
    fleet.client().ask(&action)
}

fn add_watch(fleet: &Fleet, notify: Value) -> Value {
    ask(
        fleet,
        json!({"action": "watch_add", "watch": watch_of_page(fleet, notify)}),
    )
}

fn run_watch(fleet: &Fleet) {
    let begun = || ask(fleet, json!({"action": "watch_run", "name": "people"}));
    wait_for("a run begins", || {
        (begun()["error"] == Value::Null).then_some(())
    });
}

fn show_watch(fleet: &Fleet) -> Value {
    ask(fleet, json!({"action": "watch_show", "name": "people"}))
}

fn webhook_target(receiver: &Receiver) -> Value {
    json!({"webhook": receiver.url(), "when": "at_once", "about": ["runs", "silence"]})
}

fn idempotency_key(posted: &Posted) -> String {
    posted.header("idempotency-key").to_owned()
}

#[test]
fn a_notification_is_repeated_under_its_key_until_it_is_taken() {
    let fleet = Fleet::start_with(&[PRIVATE]);
    let receiver = Receiver::start();
    receiver.set_answers(&[500, 302]);
    let added = add_watch(&fleet, json!([webhook_target(&receiver)]));
    assert_eq!(added["name"], "people", "{added}");
    run_watch(&fleet);
    let delivered = receiver.wait_for_delivered(1).remove(0);
    assert_eq!(delivered.events(), ["run_ended"]);
    let notification = delivered.json();
    assert_eq!(notification["watch"], "people");
    assert_eq!(notification["key"], *idempotency_key(&delivered));
    assert_eq!(
        notification["events"][0]["detail"]["counts"]["pages"], 1,
        "{notification}"
    );
    let posted = receiver.all_posted();
    assert_eq!(posted.len(), 3, "a redirect is not followed");
    assert!(
        posted
            .iter()
            .all(|one| idempotency_key(one) == idempotency_key(&posted[0]))
    );
    assert!(posted.iter().all(|one| one.body == posted[0].body));
    wait_for("it is settled", || {
        let last = show_watch(&fleet)["notifications"]["last"][0].clone();
        (last["state"] == "delivered" && last["tries"] == 3).then_some(())
    });
}

#[test]
fn a_killed_dispatcher_loses_no_notification() {
    let mut fleet = Fleet::start_with(&[PRIVATE]);
    let receiver = Receiver::start();
    receiver.set_dead(true);
    add_watch(&fleet, json!([webhook_target(&receiver)]));
    run_watch(&fleet);
    wait_for("it is tried", || receiver.all_posted().pop());
    let first = receiver.all_posted().remove(0);
    fleet.kill_dispatcher();
    receiver.set_dead(false);
    fleet.start_dispatcher();
    let delivered = receiver.wait_for_delivered(1);
    assert_eq!(idempotency_key(&delivered[0]), idempotency_key(&first));
    assert_eq!(delivered[0].json(), first.json());
    // A dispatcher that is killed before the delivery is recorded would deliver again under the same key, so the test
    // waits for this record.
    wait_for("the delivery is noted", || {
        (show_watch(&fleet)["notifications"]["waiting"] == 0).then_some(())
    });
    fleet.kill_dispatcher();
    fleet.start_dispatcher();
    // Reports are delivered in order. If the first one were repeated, it would arrive before the report of this new
    // run.
    run_watch(&fleet);
    let delivered = receiver.wait_for_delivered(2);
    assert_eq!(delivered.len(), 2, "a run is reported once");
    assert_ne!(idempotency_key(&delivered[1]), idempotency_key(&first));
}

#[test]
fn an_undeliverable_notification_is_itself_an_alert() {
    let files = tempfile::tempdir().unwrap();
    let folder = files.path().display().to_string();
    let settings = [
        PRIVATE,
        ("NOTIFICATIONS_UNDELIVERED_AFTER", "2"),
        ("NOTIFICATIONS_FILES_DIR", &folder),
    ];
    let fleet = Fleet::start_with(&settings);
    let receiver = Receiver::start();
    receiver.set_dead(true);
    let added = add_watch(
        &fleet,
        json!([webhook_target(&receiver), {"file": "out.jsonl"}]),
    );
    assert_eq!(added["name"], "people", "{added}");
    run_watch(&fleet);
    let reported = |event: &str| {
        wait_for(event, || {
            let text = std::fs::read_to_string(files.path().join("out.jsonl")).unwrap_or_default();
            text.contains(event).then_some(())
        });
    };
    reported("notifications_undelivered");
    let status = ask(&fleet, json!({"action": "status"}));
    assert_eq!(status["undelivered"][0]["watch"], "people", "{status}");
    assert!(!status.to_string().contains("/hook"), "it may be a secret");
    let shown = show_watch(&fleet);
    assert_eq!(
        shown["notifications"]["undelivered"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(!shown.to_string().contains("/hook"), "{shown}");
    receiver.set_dead(false);
    reported("notifications_delivered_again");
    let status = ask(&fleet, json!({"action": "status"}));
    assert_eq!(status["undelivered"], Value::Null, "{status}");
}

#[test]
fn the_firehose_publishes_a_watch_and_each_change() {
    let fleet = Fleet::start();
    let firehose = fleet.subscribe_firehose("outbound.");
    let about = json!(["runs", "changes"]);
    add_watch(
        &fleet,
        json!([{"firehose": true, "when": "at_once", "about": about}]),
    );
    let reported = |event: &str| {
        let is_it = |reported: &Value| reported["event"] == event;
        firehose.wait_for(|message| {
            let events = message["events"].as_array();
            message["action"] == "watch_notification"
                && events.is_some_and(|all| all.iter().any(is_it))
        })
    };
    run_watch(&fleet);
    let notification = reported("run_ended");
    assert_eq!(
        (
            &notification["appid"],
            &notification["crawlid"],
            &notification["watch"]
        ),
        (&json!("watches"), &json!("people"), &json!("people")),
        "{notification}"
    );
    assert!(notification["key"].is_string(), "{notification}");

    let site = fleet.web.site(SITE);
    site.serve("/ada", page("Ada").field("name", "Ada Lovelace"));
    run_watch(&fleet);
    let changed = firehose.wait_for(|message| message["action"] == "page_changed");
    assert_eq!(changed["url"], format!("http://{SITE}/ada"), "{changed}");
    assert_eq!(changed["kind"], "changed");
    assert_eq!(changed["old"]["name"], "Ada Byron");
    assert_eq!(changed["new"]["name"], "Ada Lovelace");
    let notification = reported("change");
    assert!(
        notification.to_string().contains("Ada Lovelace"),
        "{notification}"
    );
}

/// A fleet whose mapping reads numbers from the page of its watch.
fn fleet_of_numbers() -> Fleet {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let number = |name: &str| {
        let css = json!({"type": "css", "parameters": {"selector": format!("#{name}")}});
        let number = json!({"type": "number", "parameters": {"decimal": "."}});
        json!({"name": name, "processors": [css, number]})
    };
    let fields = ["id", "code", "price", "zero", "share"].map(number);
    let host = json!({"type": "host", "pattern": SITE});
    let mapping = json!({"name": "numbers", "url_patterns": [host], "fields": fields});
    fleet.work.write_json("mappings/profile.json", &mapping);
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    fleet
}

#[test]
fn no_number_loses_a_digit_on_its_way_to_firehose_changes_and_notifications() {
    const TEXTS: [[&str; 5]; 2] = [
        [
            "9007199254740993",
            "12345678901234567890123",
            "1.10",
            "-0",
            "0.1234567890123456789",
        ],
        [
            "9007199254740995",
            "12345678901234567890125",
            "1.30",
            "-0.5",
            "0.1234567890123456788",
        ],
    ];
    let expected = [
        json!({"id": 9007199254740993_u64, "code": "12345678901234567890123", "price": 1.1, "zero": 0,
               "share": "0.1234567890123456789"}),
        json!({"id": 9007199254740995_u64, "code": "12345678901234567890125", "price": 1.3, "zero": -0.5,
               "share": "0.1234567890123456788"}),
    ];
    let fleet = fleet_of_numbers();
    let firehose = fleet.subscribe_firehose("");
    let notify = json!([{"firehose": true, "when": "at_once", "about": ["runs", "changes"]}]);
    add_watch(&fleet, notify);
    let reported = |event: &str| {
        let is_it = |reported: &Value| reported["event"] == event;
        firehose.wait_for(|message| {
            let events = message["events"].as_array();
            events.is_some_and(|all| all.iter().any(is_it))
        })
    };
    for (texts, expected) in TEXTS.iter().zip(&expected) {
        let [id, code, price, zero, share] = texts;
        let html = format!(
            "<p id=id>{id}<p id=code>{code}<p id=price>{price}<p id=zero>{zero}<p id=share>{share}"
        );
        fleet.web.site(SITE).serve("/ada", page("Ada").html(&html));
        run_watch(&fleet);
        let result = firehose.wait_for(|message| message["status_code"] == 200);
        assert_eq!(result["fields"], *expected, "{result}");
        if texts == &TEXTS[0] {
            // The next run counts as a new check only after the changes of this run were judged.
            reported("run_ended");
        }
    }
    let changed = firehose.wait_for(|message| message["kind"] == "changed");
    assert_eq!(
        (&changed["old"], &changed["new"]),
        (&expected[0], &expected[1])
    );
    let notification = reported("change").to_string();
    for digits in TEXTS
        .iter()
        .flat_map(|texts| [texts[0], texts[1], texts[4]])
    {
        assert!(notification.contains(digits), "{digits}: {notification}");
    }
    let stored = fleet.work.stored().query_texts("SELECT fields FROM pages");
    let stored: Value = serde_json::from_str(&stored[0]).unwrap();
    assert_eq!(stored, expected[1]);
}

#[test]
fn a_command_runs_with_the_arguments_that_are_allowed_and_no_others() {
    let fleet = Fleet::start_with_config_file(
        "[notifications]\ncommands = [\"/bin/true\", [\"/usr/bin/tee\", \"-a\", \"notified\"]]\n",
    );
    for (argv, allowed) in [
        (json!(["/usr/bin/tee", "-a", "notified"]), true),
        (json!(["/bin/true"]), true),
        (json!(["/usr/bin/tee", "-a", "/etc/passwd"]), false),
        (json!(["/usr/bin/tee"]), false),
        (json!(["/usr/bin/tee", "-a", "notified", "more"]), false),
        (json!(["/bin/true", "x"]), false),
    ] {
        let answer = add_watch(&fleet, json!([{"command": argv}]));
        match allowed {
            true => assert_eq!(answer["name"], "people", "{argv}: {answer}"),
            false => assert_eq!(
                answer["error"]["path"], "$.watch.notify[0].command",
                "{argv}"
            ),
        }
    }
}

#[test]
fn nothing_of_the_machine_is_used_that_is_not_allowed() {
    let fleet = Fleet::start();
    for (notify, key) in [
        (json!({"file": "/tmp/out.jsonl"}), "file"),
        (json!({"command": ["/bin/true"]}), "command"),
        (json!({"mail": "a@b.example"}), "mail"),
        (
            json!({"webhook": "https://a.example/", "secret_file": "/etc/passwd"}),
            "secret_file",
        ),
    ] {
        let refused = add_watch(&fleet, json!([notify]));
        let path = format!("$.watch.notify[0].{key}");
        assert_eq!(refused["error"]["path"], path, "{refused}");
    }
    let receiver = Receiver::start();
    for url in [
        receiver.url().as_str(),
        "http://0x7f.1:9/",
        "http://169.254.169.254/latest",
        "https://[::ffff:10.0.0.1]/x",
    ] {
        let refused = add_watch(&fleet, json!([{"webhook": url, "about": ["runs"]}]));
        let error = &refused["error"];
        assert_eq!(error["path"], "$.watch.notify[0].webhook", "{refused}");
        let why = error["message"].as_str().unwrap_or_default();
        assert!(why.contains("allow_private_webhooks"), "{refused}");
    }
    // The address of a host name is checked only at the delivery, so adding the watch is allowed.
    let named = json!({"webhook": "http://localhost:9/", "about": ["runs"]});
    let added = add_watch(&fleet, json!([named]));
    assert_eq!(added["name"], "people", "{added}");
    run_watch(&fleet);
    wait_for("it is refused", || {
        let why = show_watch(&fleet)["notifications"]["last"][0]["why"].clone();
        let why = why.as_str().unwrap_or_default().to_owned();
        why.contains("is a private address").then_some(())
    });
    assert!(receiver.all_posted().is_empty());
}
