//! Changes of pages are reported once, whichever process dies, and whenever the store answers.

use webfill_changes::PageCheck;

use super::*;

fn watch_add_request(when: &str, about: &[&str]) -> Value {
    let hook = json!({"webhook": "https://a.example/x", "when": when, "about": about});
    json!({"action": "watch_add", "watch": {"name": "w", "urls": ["http://a.org/"],
           "schedule": "0 0 29 2 *", "notify": [hook]}})
}

/// A world with two changes in the store, and a watch with one recipient.
fn world_with_watch(when: &str, about: &[&str]) -> World {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::with_core(open_core(&folder, 0), folder);
    world.change_pages(2);
    world.ask(watch_add_request(when, about), 1);
    assert!(world.tick(500).is_empty());
    world
}

impl World {
    /// Changes this many pages in the store.
    fn change_pages(&mut self, pages: usize) {
        self.change_pages_at(pages, 0);
    }

    fn change_pages_at(&mut self, pages: usize, at_ms: i64) {
        let store = self.store.get_or_insert_default();
        for _ in 0..pages {
            let url = format!("http://a.org/{}", store.len() + 1);
            store.push(json!({"kind": "gone", "url": url, "at": at_ms}));
        }
        let check = PageCheck {
            app_id: "watches".into(),
            crawl_id: "w".into(),
            url: "http://a.org/".into(),
            at_ms: 0,
            verdict: webfill_changes::Verdict::Changed,
        };
        self.core.on_pages_checked(&[check], 0).unwrap();
    }

    /// Runs the watch once. Returns the lines that were reported and delivered.
    fn run_once(&mut self, number: u64, now_ms: i64) -> Vec<String> {
        let reported = self.fail_a_run(number, now_ms);
        self.deliver(reported, now_ms + 1_000)
    }

    fn deliver(&mut self, deliveries: Vec<Delivery>, now_ms: i64) -> Vec<String> {
        let mut reported = Vec::new();
        for delivery in deliveries {
            let events = delivery.notification["events"].as_array().cloned();
            for event in events.unwrap_or_default() {
                reported.push(event["line"].as_str().unwrap_or_default().to_owned());
            }
            self.report_delivery_end(delivery.id, Verdict::Delivered, now_ms);
        }
        reported
    }
}

fn gone_page_line(number: u64) -> String {
    format!("gone: http://a.org/{number}")
}

#[test]
fn a_digest_reports_each_change_since_the_subscription_once() {
    let mut world = world_with_watch("digest", &["changes"]);
    world.change_pages(2);
    assert!(world.tick(1_000).is_empty(), "the run has not ended");
    assert_eq!(
        world.run_once(1, 2_000),
        [gone_page_line(3), gone_page_line(4)]
    );
    assert_eq!(world.run_once(2, 10_000), [""; 0]);
    world.change_pages(1);
    assert_eq!(world.run_once(3, 20_000), [gone_page_line(5)]);
    let runs = world.show_watch()["runs"].clone();
    assert_eq!(runs[0]["counts"]["changes"], json!({"changed": 5}));
    assert_eq!(runs[0]["counts"]["documents"], 0);
}

#[test]
fn immediate_notifications_do_not_wait_for_the_end_of_a_run() {
    let mut world = world_with_watch("at_once", &["changes"]);
    world.change_pages(1);
    let reported = world.tick(1_000);
    assert_eq!(world.deliver(reported, 1_500), [gone_page_line(3)]);
    assert!(world.tick(2_000).is_empty());
    assert_eq!(world.run_once(1, 3_000), [""; 0]);
}

#[test]
fn a_store_that_is_away_loses_nothing_and_doubles_nothing() {
    for when in ["digest", "at_once"] {
        let mut world = world_with_watch(when, &["changes"]);
        world.change_pages(1);
        let store = world.store.take();
        assert_eq!(world.run_once(1, 1_000), [""; 0]);
        let mut world = world.kill_and_restart(5_000);
        assert!(world.tick(6_000).is_empty(), "{when}");
        world.store = store;
        let reported = world.tick(7_000);
        assert_eq!(
            world.deliver(reported, 7_500),
            [gone_page_line(3)],
            "{when}"
        );
        let mut world = world.kill_and_restart(8_000);
        assert!(world.tick(9_000).is_empty(), "{when}");
    }
}

#[test]
fn a_run_with_checks_judged_late_is_reported_without_them_and_they_follow() {
    let mut world = world_with_watch("digest", &["changes", "runs"]);
    let store = world.store.take();
    assert_eq!(world.run_once(1, 1_000), [""; 0], "it waits");
    let asked = world.waiting.clone();
    assert_eq!(asked.len(), 1);
    for asked in asked {
        let found = ChangesResult::Late;
        let answer = ChangesAnswer { asked, found };
        world.core.on_changes_answered(answer, 60_000).unwrap();
    }
    let reported = world.tick(60_000);
    let reported = world.deliver(reported, 60_500);
    assert_eq!(reported.len(), 1);
    assert!(reported[0].starts_with("run 1: failed"), "{reported:?}");
    world.store = store;
    world.change_pages(1);
    let reported = world.tick(61_000);
    assert_eq!(world.deliver(reported, 61_500), [gone_page_line(3)]);
}

#[test]
fn a_dispatcher_that_dies_before_it_has_reported_reports_after_its_start() {
    let mut world = world_with_watch("digest", &["changes", "runs"]);
    world.change_pages(1);
    let store = world.store.take();
    assert_eq!(world.run_once(1, 1_000), [""; 0]);
    world.store = store;
    // The core has counted the findings of the run, and dies before the next check.
    assert!(world.answer_questions(3_000));
    let mut world = world.kill_and_restart(4_000);
    let reported = world.tick(5_000);
    let reported = world.deliver(reported, 5_500);
    assert!(reported[0].starts_with("run 1: failed"), "{reported:?}");
    assert_eq!(reported[1], gone_page_line(3), "{reported:?}");
    assert_eq!(reported.len(), 2);
}

#[test]
fn a_later_subscriber_gets_no_earlier_changes() {
    let mut world = world_with_watch("digest", &["runs"]);
    world.change_pages(1);
    assert_eq!(world.run_once(1, 1_000).len(), 1);
    world.ask(watch_add_request("digest", &["changes"]), 5_000);
    assert!(world.tick(6_000).is_empty());
    assert_eq!(world.run_once(2, 10_000), [""; 0]);
    world.change_pages(1);
    assert_eq!(world.run_once(3, 20_000), [gone_page_line(4)]);
    // The recipient unsubscribes from changes for a while; changes of that time are not reported.
    world.ask(watch_add_request("digest", &["runs"]), 30_000);
    world.change_pages(1);
    world.tick(31_000);
    world.ask(watch_add_request("digest", &["changes"]), 32_000);
    world.tick(33_000);
    assert_eq!(world.run_once(4, 40_000), [""; 0]);
}

#[test]
fn more_changes_than_a_notification_holds_come_in_several() {
    let expected: Vec<String> = (3..=1_002).map(gone_page_line).collect();
    for when in ["digest", "at_once"] {
        let mut world = world_with_watch(when, &["changes"]);
        world.change_pages(1_000);
        let mut reported = match when {
            "digest" => world.run_once(1, 1_000),
            _ => Vec::new(),
        };
        for second in 3..10 {
            let notifications = world.tick(second * 1_000);
            reported.extend(world.deliver(notifications, second * 1_000 + 500));
        }
        assert_eq!(reported, expected, "{when}");
    }
}

#[test]
fn a_page_that_changes_between_question_and_answer_is_reported_soon() {
    let mut world = world_with_watch("at_once", &["changes"]);
    world.change_pages(1);
    world.tick_and_commit(1_000);
    world.change_pages(1);
    assert!(world.answer_questions(1_100));
    world.change_pages(1);
    let mut reported = Vec::new();
    for second in 2..5 {
        let notifications = world.tick(second * 1_000);
        reported.extend(world.deliver(notifications, second * 1_000 + 500));
    }
    assert_eq!(
        reported,
        [gone_page_line(3), gone_page_line(4), gone_page_line(5)]
    );
}

#[test]
fn changes_while_the_store_is_away_are_reported_to_a_subscriber() {
    for when in ["digest", "at_once"] {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::with_core(open_core(&folder, 0), folder);
        world.change_pages_at(2, 500);
        let store = world.store.take();
        world.ask(watch_add_request(when, &["changes"]), 1_000);
        assert!(world.tick(2_000).is_empty());
        // The time of the subscription is known even after a crash.
        let mut world = world.kill_and_restart(3_000);
        assert!(world.tick(3_000).is_empty());
        world.store = store;
        world.change_pages_at(1, 2_500);
        let mut reported = world.tick(4_000);
        reported.extend(world.tick(4_500));
        let mut lines = world.deliver(reported, 5_000);
        lines.extend(world.run_once(1, 6_000));
        assert_eq!(lines, [gone_page_line(3)], "{when}");
    }
}

#[test]
fn the_rest_of_a_digest_is_reported_after_a_crash() {
    let mut world = world_with_watch("digest", &["changes"]);
    world.change_pages(1_000);
    let first = world.fail_a_run(1, 1_000);
    // Further notifications of the digest are made only once the first one is on its way.
    let mut reported = world.deliver(first, 2_000);
    assert!(reported.len() < 1_000, "{}", reported.len());
    let mut world = world.kill_and_restart(3_000);
    for second in 4..12 {
        let notifications = world.tick(second * 1_000);
        reported.extend(world.deliver(notifications, second * 1_000 + 500));
    }
    let expected: Vec<String> = (3..=1_002).map(gone_page_line).collect();
    assert_eq!(reported, expected);
}
