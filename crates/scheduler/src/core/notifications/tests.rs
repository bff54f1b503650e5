mod changes;

use serde_json::{Value, json};
use tempfile::TempDir;
use webfill_api::{Action, parse_action};
use webfill_notifications::{
    Delivery, DeliveryEnd, NotificationsConfig, Permissions, ReadChanges, Standing, Verdict,
};

use crate::core::Core;
use crate::core::context::CoreSettings;
use crate::effects::{ChangesAnswer, ChangesQuestion, ChangesRequest, ChangesResult};
use crate::frontier::{Frontier, FrontierConfig};
use crate::mappings::Mappings;
use crate::watch_sources::WatchSources;

const MINUTE_MS: i64 = 60_000;

struct World {
    folder: TempDir,
    core: Core,
    /// The changes in the store, numbered from 1, each with its time; `None`: the store is away.
    store: Option<Vec<Value>>,
    /// Questions to the store that have no answer yet.
    waiting: Vec<ChangesRequest>,
    /// The notifications to deliver.
    deliveries: Vec<Delivery>,
}

fn open_core(folder: &TempDir, now_ms: i64) -> Core {
    let frontier = Frontier::open(folder.path(), FrontierConfig::default(), now_ms).unwrap();
    let settings = CoreSettings {
        default_delay_ms: 1_000,
        lease_ms: 10_000,
        window_sites: 100,
        group_bounds: None,
    };
    let mut core = Core::open(frontier, settings, Mappings::default(), now_ms).unwrap();
    core.start_watches(WatchSources::default(), now_ms).unwrap();
    let permissions = Permissions::for_fleet(NotificationsConfig::default());
    core.start_notifications(permissions, now_ms).unwrap();
    core
}

impl World {
    fn with_core(core: Core, folder: TempDir) -> World {
        World {
            folder,
            core,
            store: Some(Vec::new()),
            waiting: Vec::new(),
            deliveries: Vec::new(),
        }
    }

    /// Kills the core and starts another. Questions without an answer are lost.
    fn kill_and_restart(self, now_ms: i64) -> World {
        let World {
            folder,
            core,
            store,
            ..
        } = self;
        drop(core);
        let core = open_core(&folder, now_ms);
        World {
            store,
            ..World::with_core(core, folder)
        }
    }

    /// Sets the current extraction alerts: exactly these.
    fn set_standing_alerts(&mut self, alerts: &[Value]) {
        let standing = Standing {
            alerts: alerts.to_vec(),
            ..Standing::default()
        };
        self.core.cx.surroundings.standing = Some(standing.into());
    }

    /// A world with a watch that notifies two webhooks, and a third one only about changes.
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::with_core(open_core(&folder, 0), folder);
        let hook = |host: &str, about: &str| json!({"webhook": format!("https://{host}/secret"), "about": [about]});
        let watch = json!({
            "name": "w", "urls": ["http://a.org/"], "schedule": "0 0 29 2 *",
            "notify": [hook("a.example", "runs"), hook("b.example", "runs"), hook("c.example", "changes")],
        });
        let added = world.ask(json!({"action": "watch_add", "watch": watch}), 0);
        assert_eq!(added.get("error"), None, "{added}");
        world
    }

    fn ask(&mut self, action: Value, now_ms: i64) -> Value {
        let Ok(Action::Watch(action)) = parse_action(action) else {
            panic!("it is one of watches")
        };
        let core = &mut self.core;
        let rights = &webfill_wire::keys::Rights::ALL;
        let answer = core
            .watches
            .act_on_watches(
                &mut core.cx,
                &mut core.notifications,
                action,
                rights,
                now_ms,
            )
            .unwrap();
        self.commit(now_ms);
        answer
    }

    fn show_watch(&mut self) -> Value {
        self.ask(json!({"action": "watch_show", "name": "w"}), 0)
    }

    fn commit(&mut self, now_ms: i64) {
        let committed = self.core.commit(now_ms).unwrap();
        self.deliveries.extend(committed.deliveries);
        self.waiting.extend(committed.changes_asked);
    }

    /// Runs a turn of the loop, and returns the notifications to deliver.
    fn tick(&mut self, now_ms: i64) -> Vec<Delivery> {
        self.tick_and_commit(now_ms);
        if self.answer_questions(now_ms) {
            self.tick_and_commit(now_ms);
        }
        std::mem::take(&mut self.deliveries)
    }

    fn tick_and_commit(&mut self, now_ms: i64) {
        self.core.notifications.check_at_ms = now_ms;
        self.core.on_tick(now_ms).unwrap();
        self.commit(now_ms);
    }

    /// Answers the open questions, if the store is there. Returns whether there were any.
    fn answer_questions(&mut self, now_ms: i64) -> bool {
        let Some(store) = &self.store else {
            return false;
        };
        let read = |after: u64| {
            let mut read = ReadChanges::starting_after(after);
            for (number, change) in (1..).zip(store).skip(after as usize) {
                read.add(number, change.clone());
            }
            read
        };
        let asked = std::mem::take(&mut self.waiting);
        let is_asked = !asked.is_empty();
        for asked in asked {
            let found = match asked.question {
                ChangesQuestion::Position { asked_ms } => {
                    let is_before = |change: &&Value| change["at"].as_i64() < Some(asked_ms);
                    ChangesResult::Position(store.iter().take_while(is_before).count() as u64)
                }
                ChangesQuestion::After(after) => ChangesResult::Changes(read(after)),
                ChangesQuestion::Run { after, .. } => {
                    let counts = json!({"changes": {"changed": store.len()}, "documents": 0});
                    let counts = counts.as_object().cloned().unwrap();
                    let changes = after.map(read);
                    ChangesResult::Run { counts, changes }
                }
            };
            let answer = ChangesAnswer { asked, found };
            self.core.on_changes_answered(answer, now_ms).unwrap();
        }
        self.commit(now_ms);
        is_asked
    }

    /// Begins a run that fails, and returns the notifications to deliver.
    fn fail_a_run(&mut self, number: u64, now_ms: i64) -> Vec<Delivery> {
        self.ask(json!({"action": "watch_run", "name": "w"}), now_ms);
        assert!(self.tick(now_ms).is_empty());
        let why = Some("no such file".into());
        self.core.on_feeder_ended("w", number, why).unwrap();
        let mut reported = self.tick(now_ms + 300);
        reported.extend(self.tick(now_ms + 900));
        reported
    }

    fn report_delivery_end(&mut self, id: i64, verdict: Verdict, now_ms: i64) {
        let ended = DeliveryEnd { id, verdict };
        self.core.on_delivery_ended(&ended, now_ms).unwrap();
        self.commit(now_ms);
    }
}

#[test]
fn a_delivery_interrupted_by_a_crash_is_repeated_under_its_key() {
    let mut world = World::new();
    let first = world.fail_a_run(1, 1_000);
    assert_eq!(first.len(), 2, "the third wants to know of changes only");
    assert_eq!(first[0].notification["events"][0]["event"], "run_failed");
    assert!(
        first[0].notification["subject"]
            .to_string()
            .contains("no such file")
    );
    assert!(world.tick(5_000).is_empty(), "they are under way");
    world.report_delivery_end(first[0].id, Verdict::Delivered, 6_000);
    let mut world = world.kill_and_restart(7_000);
    let again = world.tick(7_000);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0], first[1], "nothing else is reported again");
}

#[test]
fn a_target_that_is_not_reached_is_an_alert_delivered_by_the_others() {
    let mut world = World::new();
    let first = world.fail_a_run(1, 1_000);
    world.report_delivery_end(first[1].id, Verdict::Delivered, 2_000);
    let failed = || Verdict::Failed("it answers 500".into());
    world.report_delivery_end(first[0].id, failed(), 2_000);
    assert!(world.tick(2_500).is_empty(), "it waits a second");
    let again = world.tick(3_100);
    assert_eq!(again[0].key, first[0].key);
    world.report_delivery_end(again[0].id, failed(), 10 * MINUTE_MS);
    let reported = world.tick(12 * MINUTE_MS);
    let names: Vec<&Value> = reported
        .iter()
        .map(|one| &one.notification["events"][0]["event"])
        .collect();
    assert_eq!(
        names
            .iter()
            .filter(|name| **name == "notifications_undelivered")
            .count(),
        2,
        "{names:?}"
    );
    assert_eq!(
        names.iter().filter(|name| **name == "run_failed").count(),
        1,
        "it is tried again"
    );
    let rows = world.core.notifications.undelivered_rows();
    assert_eq!(rows[0]["target"], "webhook https://a.example/***");
    let run = reported
        .iter()
        .find(|one| one.key == first[0].key)
        .unwrap()
        .id;
    world.report_delivery_end(run, Verdict::Delivered, 13 * MINUTE_MS);
    assert!(world.core.notifications.undelivered_rows().is_empty());
    assert_eq!(
        world.show_watch()["notifications"]["undelivered"],
        json!([])
    );
}

#[test]
fn a_removed_watch_reports_nothing_more() {
    let mut world = World::new();
    let first = world.fail_a_run(1, 1_000);
    world.ask(json!({"action": "watch_remove", "name": "w"}), 2_000);
    world.report_delivery_end(first[0].id, Verdict::Failed("x".into()), 3_000);
    assert!(world.tick(60 * MINUTE_MS).is_empty());
    assert!(world.core.notifications.undelivered_rows().is_empty());
}

#[test]
fn alerts_that_are_not_read_yet_are_not_taken_for_cleared() {
    let mut world = World::new();
    let hook = json!({"webhook": "https://d.example/x", "when": "at_once", "about": ["health"]});
    let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "0 0 29 2 *",
                       "notify": [hook]});
    world.ask(json!({"action": "watch_add", "watch": watch}), 0);
    let alert = json!({"mapping": "m", "layout_changed": "t", "fields": "name",
                       "crawls": ["watches/w"]});
    world.set_standing_alerts(std::slice::from_ref(&alert));
    let reported = world.tick(1_000);
    assert_eq!(
        reported[0].notification["events"][0]["event"],
        "layout_changed"
    );
    world.report_delivery_end(reported[0].id, Verdict::Delivered, 2_500);
    let mut world = world.kill_and_restart(3_000);
    assert!(world.tick(5_000).is_empty(), "nothing is known yet");
    world.set_standing_alerts(&[alert]);
    assert!(world.tick(7_000).is_empty(), "it stands as before");
    world.set_standing_alerts(&[]);
    let reported = world.tick(9_000);
    assert_eq!(
        reported[0].notification["events"][0]["event"],
        "layout_alert_cleared"
    );
}

#[test]
fn a_target_that_was_corrected_gets_nothing_more_and_is_no_alert() {
    let mut world = World::new();
    let first = world.fail_a_run(1, 1_000);
    for one in &first {
        world.report_delivery_end(one.id, Verdict::Failed("it answers 500".into()), 2_000);
    }
    let hook = |host: &str| json!({"webhook": format!("https://{host}/secret"), "about": ["runs"]});
    let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "0 0 29 2 *",
                       "notify": [hook("b.example"), hook("d.example")]});
    world.ask(json!({"action": "watch_add", "watch": watch}), 3_000);
    let mut reported = Vec::new();
    for minute in 1..30 {
        for one in world.tick(minute * MINUTE_MS) {
            let target = one.target.without_secrets();
            assert!(!target.contains("a.example"), "it was taken out");
            if target.contains("d.example") {
                world.report_delivery_end(one.id, Verdict::Delivered, minute * MINUTE_MS);
                reported.push(one.notification["events"][0]["event"].clone());
            }
        }
        let rows = world.core.notifications.undelivered_rows();
        assert!(rows.len() <= 1, "{rows:?}");
    }
    assert_eq!(
        reported,
        ["notifications_undelivered"],
        "once, of b.example alone"
    );
}

#[test]
fn an_alert_ends_when_its_target_is_removed() {
    let mut world = World::new();
    for one in world.fail_a_run(1, 1_000) {
        world.report_delivery_end(one.id, Verdict::Failed("it answers 500".into()), 2_000);
    }
    world.tick(12 * MINUTE_MS);
    assert_eq!(world.core.notifications.undelivered_rows().len(), 2);
    let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "0 0 29 2 *",
                       "notify": [{"webhook": "https://b.example/secret", "about": ["runs"]}]});
    world.ask(
        json!({"action": "watch_add", "watch": watch}),
        13 * MINUTE_MS,
    );
    let rows = world.core.notifications.undelivered_rows();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["target"], "webhook https://b.example/***");
}

#[test]
fn old_notifications_are_tried_once_more_after_a_start() {
    let mut world = World::new();
    let first = world.fail_a_run(1, 1_000);
    let week_ms = 7 * 24 * 60 * MINUTE_MS;
    let mut world = world.kill_and_restart(week_ms);
    let again = world.tick(week_ms);
    assert_eq!(again, first);
    assert!(
        world.core.notifications.undelivered_rows().is_empty(),
        "nobody has tried yet"
    );
    let failed = || Verdict::Failed("it answers 500".into());
    again
        .iter()
        .for_each(|one| world.report_delivery_end(one.id, failed(), week_ms + 1_000));
    world.tick(week_ms + 61 * MINUTE_MS);
    world.tick(week_ms + 61 * MINUTE_MS + 2_000);
    assert_eq!(world.core.notifications.undelivered_rows().len(), 2);
    assert_eq!(
        world.show_watch()["notifications"]["waiting"],
        4,
        "the notification to the others"
    );
}

#[test]
fn a_later_subscriber_gets_no_earlier_events() {
    let mut world = World::new();
    world.fail_a_run(1, 1_000);
    let alert = json!({"mapping": "m", "layout_changed": "t", "fields": "name",
                       "crawls": ["watches/w", "others/secret"]});
    world.set_standing_alerts(std::slice::from_ref(&alert));
    let watch = |when: &str| {
        let hook = json!({"webhook": "https://d.example/x", "when": when,
                          "about": ["health", "runs"]});
        json!({"action": "watch_add", "watch": {"name": "w", "urls": ["http://a.org/"],
               "schedule": "0 0 29 2 *", "notify": [hook]}})
    };
    world.ask(watch("at_once"), 2_000);
    assert!(world.tick(3_000).is_empty());
    world.ask(watch("digest"), 4_000);
    let mut other = alert;
    other["mapping"] = "n".into();
    world.set_standing_alerts(&[other]);
    world.ask(watch("at_once"), 5_000);
    assert!(world.tick(6_000).is_empty(), "also who has asked before");
    world.set_standing_alerts(&[]);
    let reported = world.tick(7_000);
    assert!(
        !reported[0]
            .notification
            .to_string()
            .contains("others/secret")
    );
}

#[test]
fn a_run_that_does_not_begin_is_reported_after_ten_minutes_and_once() {
    let mut world = World::new();
    world.core.cx.surroundings.low_disk = Some("the disk is full".into());
    let hook =
        json!({"webhook": "https://d.example/secret", "when": "at_once", "about": ["silence"]});
    let watch = json!({"name": "hourly", "urls": ["http://a.org/"], "schedule": "every 1h", "notify": [hook]});
    world.ask(json!({"action": "watch_add", "watch": watch}), 0);
    assert!(world.tick(9 * MINUTE_MS).is_empty());
    let reported = world.tick(11 * MINUTE_MS).remove(0);
    let event = &reported.notification["events"][0];
    assert_eq!(event["detail"]["silence"], "not_started", "{event}");
    let line = event["line"].as_str().unwrap();
    assert!(line.contains("the disk is full"), "{line}");
    world.report_delivery_end(reported.id, Verdict::Delivered, 11 * MINUTE_MS);
    assert!(world.tick(12 * MINUTE_MS).is_empty(), "it is reported once");
}
