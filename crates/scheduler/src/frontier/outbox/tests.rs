use super::*;

fn outbox() -> Connection {
    let db = Connection::open_in_memory().unwrap();
    crate::frontier::schema::create_tables_for_tests(&db);
    db
}

fn target(name: &str) -> NotificationTarget {
    NotificationTarget::File(name.into())
}

fn key(name: &str) -> TargetKey {
    ("w".into(), target_json(&target(name)))
}

fn enqueue_notification(db: &Connection, name: &str, number: i64) {
    let notification = json!({"subject": format!("notification {number}")});
    enqueue(db, "w", &target(name), &notification, number).unwrap();
}

fn due_subjects(db: &Connection, now_ms: i64) -> Vec<String> {
    let due = list_due(db, now_ms, 10, |_| false).unwrap();
    let subject = |delivery: &Delivery| {
        delivery.notification["subject"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    due.iter().map(|(_, delivery)| subject(delivery)).collect()
}

#[test]
fn each_target_gets_one_notification_at_a_time_and_a_failure_delays_all_of_them() {
    let db = outbox();
    for number in 1..=3 {
        enqueue_notification(&db, "a", number);
    }
    enqueue_notification(&db, "b", 4);
    assert_eq!(due_subjects(&db, 10), ["notification 1", "notification 4"]);
    let first = list_due(&db, 10, 1, |_| false).unwrap().remove(0).1;
    let failed = Verdict::Failed("it answers 500".into());
    record_attempt(&db, (first.id, &key("a")), &failed, (10, 1_010)).unwrap();
    assert_eq!(due_subjects(&db, 11), ["notification 4"]);
    assert_eq!(next_due_ms(&db).unwrap(), Some(4));
    enqueue_notification(&db, "a", 5);
    assert_eq!(
        due_subjects(&db, 11),
        ["notification 4"],
        "a new one waits as well"
    );
    db.execute("DELETE FROM notifications WHERE made_ms = 5", ())
        .unwrap();
    assert_eq!(
        due_subjects(&db, 1_010),
        ["notification 1", "notification 4"],
        "in their order"
    );
    make_all_due(&db, 20).unwrap();
    assert_eq!(
        due_subjects(&db, 20),
        ["notification 1", "notification 4"],
        "at a start all is tried"
    );
    let again = list_due(&db, 20, 1, |key| key.1.contains("\"b\""))
        .unwrap()
        .remove(0)
        .1;
    assert_eq!(again.key, first.key, "the same key at each try");
    record_attempt(&db, (again.id, &key("a")), &Verdict::Delivered, (21, 0)).unwrap();
    assert_eq!(due_subjects(&db, 30), ["notification 2", "notification 4"]);
    let (waiting, shown) = load_watch_notifications(&db, "w", 10).unwrap();
    assert_eq!(waiting, 3);
    assert_eq!(shown[3]["state"], "delivered");
    assert_eq!(shown[3]["tries"], 2);
    let second = again.id + 1;
    for _ in 0..TRIES_IN_ORDER {
        record_attempt(&db, (second, &key("a")), &failed, (30, 30)).unwrap();
    }
    assert_eq!(
        due_subjects(&db, 30),
        ["notification 3", "notification 4"],
        "it may be the notification"
    );
}

#[test]
fn notifications_for_a_removed_target_are_not_delivered() {
    let db = outbox();
    enqueue_notification(&db, "a", 1);
    enqueue_notification(&db, "b", 2);
    drop_removed_targets(&db, "w", &[key("b").1].into(), 3).unwrap();
    assert_eq!(due_subjects(&db, 10), ["notification 2"]);
    let (_, shown) = load_watch_notifications(&db, "w", 10).unwrap();
    assert_eq!(shown[1]["why"], WITHDRAWN);
}

#[test]
fn bodies_are_limited_and_kept_only_while_their_notifications_wait() {
    let db = outbox();
    let huge = json!({"subject": "x", "text": "x".repeat(1 << 20)});
    let mut dropped = 0;
    for number in 0..40 {
        dropped += enqueue(&db, "w", &target("a"), &huge, number)
            .unwrap()
            .len();
    }
    let bodies = || {
        let sql = "SELECT count(*), ifnull(sum(length(body)), 0) FROM notification_bodies";
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as usize, row.get::<_, i64>(1)?));
        db.query_row(sql, (), read).unwrap()
    };
    assert_eq!(bodies().0, 40 - dropped);
    assert!(dropped > 0 && bodies().1 <= MOST_BYTES);
    for one in list_due(&db, 100, 1, |_| false).unwrap() {
        record_attempt(&db, (one.1.id, &one.0), &Verdict::Delivered, (100, 0)).unwrap();
    }
    assert_eq!(bodies().0, 39 - dropped);
    delete_watch_notifications(&db, "w").unwrap();
    assert_eq!(bodies().0, 0);
}

#[test]
fn the_outbox_is_bounded_and_forgets_what_is_old() {
    let db = outbox();
    for number in 0..MOST_WAITING + 5 {
        enqueue_notification(&db, "a", number);
    }
    let (waiting, _) = load_watch_notifications(&db, "w", 1).unwrap();
    assert_eq!(waiting, MOST_WAITING as u64);
    assert_eq!(
        due_subjects(&db, i64::MAX),
        ["notification 5"],
        "the oldest are dropped"
    );
    let dropped = drop_expired(&db, DROPPED_AFTER_MS + 10).unwrap();
    assert_eq!(dropped.len(), 5);
    assert_eq!(due_subjects(&db, i64::MAX), ["notification 10"]);
    let (_, kept) = load_watch_notifications(&db, "w", 10_000).unwrap();
    assert_eq!(kept.len(), 1_000, "shown at most");
    drop_expired(&db, DROPPED_AFTER_MS + KEPT_MS + 5_000).unwrap();
    drop_expired(&db, DROPPED_AFTER_MS + 2 * KEPT_MS + 9_000).unwrap();
    assert_eq!(load_watch_notifications(&db, "w", 10).unwrap(), (0, vec![]));
}

#[test]
fn reported_events_and_alerts_are_kept() {
    let db = outbox();
    assert_eq!(
        load_reported(&db, "w", NotificationTime::Digest).unwrap(),
        None
    );
    let seven = Reported {
        run: 7,
        ..Reported::default()
    };
    save_reported(&db, "w", NotificationTime::Digest, &seven).unwrap();
    assert_eq!(
        load_reported(&db, "w", NotificationTime::Digest).unwrap(),
        Some(seven)
    );
    assert_eq!(
        load_reported(&db, "w", NotificationTime::AtOnce).unwrap(),
        None
    );
    enqueue_notification(&db, "a", 5);
    assert_eq!(list_overdue(&db, 4).unwrap(), []);
    let late = list_overdue(&db, 5).unwrap().remove(0);
    assert_eq!(late.target, key("a"));
    save_undelivered(&db, &late).unwrap();
    assert_eq!(list_undelivered(&db).unwrap(), [late]);
    delete_undelivered(&db, &key("a")).unwrap();
    assert_eq!(list_undelivered(&db).unwrap(), []);
    delete_watch_notifications(&db, "w").unwrap();
    assert_eq!(next_due_ms(&db).unwrap(), None);
}
