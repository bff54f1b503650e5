use super::*;

fn watch() -> Watch {
    let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "every 1h"});
    Watch::parse(watch).unwrap()
}

fn run(number: u64, pages: u64) -> WatchRun {
    let mut run = WatchRun::new(number, 0, 0);
    run.ended_ms = Some(1);
    run.how = Some(RunEnd::Finished);
    run.counts.insert("pages".into(), json!(pages));
    run
}

fn event_names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.name).collect()
}

#[test]
fn each_thing_is_reported_once_until_it_is_over() {
    let watch = watch();
    let facts = |runs, standing, held| Facts {
        watch: &watch,
        runs,
        standing: Some(standing),
        sites: &[],
        changes: None,
        held,
        now_ms: 5_000,
    };
    let four = [run(4, 0), run(3, 5), run(2, 5), run(1, 5)];
    let alerts = Standing {
        alerts: vec![json!({"mapping": "m", "layout_changed": "t", "fields": "name"})],
        ..Standing::default()
    };
    let nothing = Standing::default();
    let (events, reported) = Reported::default().find_news(&facts(&four, &alerts, None));
    let expected = [
        "run_ended",
        "run_ended",
        "run_ended",
        "run_ended",
        "layout_changed",
        "silent",
    ];
    assert_eq!(event_names(&events), expected);
    assert_eq!(reported.run, 4);
    let (events, same) = reported.find_news(&facts(&four, &alerts, None));
    assert_eq!((event_names(&events), &same), (vec![], &reported));
    let (events, reported) =
        reported.find_news(&facts(&four, &nothing, Some((1_000, "the disk is full"))));
    assert_eq!(event_names(&events), ["layout_alert_cleared", "silent"]);
    assert!(
        events[1].line.contains("the disk is full"),
        "{}",
        events[1].line
    );
    assert_eq!(reported.silent.len(), 2);
    let five = [run(5, 5), four[0].clone(), four[1].clone()];
    let (events, reported) = reported.find_news(&facts(&five, &nothing, None));
    assert_eq!(
        event_names(&events),
        ["run_ended", "sees_again", "sees_again"]
    );
    assert!(reported.silent.is_empty());
}

#[test]
fn a_run_that_makes_up_for_others_is_reported_as_late() {
    let watch = watch();
    let mut late = run(1, 5);
    late.missed = 3;
    let facts = Facts {
        watch: &watch,
        runs: &[late],
        standing: None,
        sites: &[],
        changes: None,
        held: None,
        now_ms: 0,
    };
    let (events, _) = Reported::default().find_news(&facts);
    assert_eq!(event_names(&events), ["run_ended", "began_late"]);
    assert!(
        events[1].line.contains("3 further due times"),
        "{}",
        events[1].line
    );
}

fn read_changes(after: u64, changes: &[Value]) -> ReadChanges {
    let mut read = ReadChanges::starting_after(after);
    for (number, change) in (after + 1..).zip(changes) {
        read.add(number, change.clone());
    }
    read
}

fn reported_changes(reported: &Reported, read: &ReadChanges) -> (Vec<String>, Reported) {
    let watch = watch();
    let (events, reported) = reported.find_news(&Facts {
        watch: &watch,
        runs: &[],
        standing: None,
        sites: &[],
        changes: Some(read),
        held: None,
        now_ms: 0,
    });
    (
        events.into_iter().map(|event| event.line).collect(),
        reported,
    )
}

#[test]
fn a_change_is_reported_once_and_only_after_the_reported_position() {
    let change = json!({"kind": "gone", "url": "http://a.org/"});
    let changes = [change.clone(), change];
    let asked = Reported {
        changes_to: Some(7),
        ..Reported::default()
    };
    let (lines, reported) = reported_changes(&asked, &read_changes(7, &changes));
    assert_eq!(lines, ["gone: http://a.org/", "gone: http://a.org/"]);
    assert_eq!(reported.changes_to, Some(9));
    for reported in [reported, Reported::default()] {
        let (lines, same) = reported_changes(&reported, &read_changes(7, &changes));
        assert_eq!((lines, &same), (vec![], &reported));
    }
}

#[test]
fn no_more_is_read_than_a_notification_holds_and_at_least_one() {
    let change = |bytes: usize| json!({"kind": "new", "url": "u", "difference": "x".repeat(bytes)});
    let large = [change(2 * MOST_CHANGES_BYTES), change(1), change(1)];
    let first = read_changes(0, &large);
    assert_eq!(
        (first.changes.len(), first.last, first.is_full),
        (1, 1, true)
    );
    let rest = read_changes(1, &large[1..]);
    assert_eq!((rest.changes.len(), rest.last, rest.is_full), (2, 3, false));
    let between = [change(1), large[0].clone(), change(1)];
    assert_eq!(read_changes(0, &between).last, 1, "none is passed over");
    let many = vec![change(1); MOST_CHANGES + 1];
    assert_eq!(read_changes(0, &many).changes.len(), MOST_CHANGES);
    assert!(!read_changes(0, &many[1..]).is_full && read_changes(0, &many).is_full);
}

#[test]
fn a_change_is_reported_with_its_fields_or_with_its_words() {
    let line = |change: Value| change_event(&change).line;
    let fields = json!({"kind": "changed", "url": "u", "mapping": "m", "old": {"price": 10, "by": null},
                        "new": {"price": 12, "by": "Ada\nKing"}, "difference": "x"});
    assert_eq!(
        line(fields),
        "changed: u\nby: nothing -> Ada King\nprice: 10 -> 12"
    );
    let new = json!({"kind": "new", "url": "u", "mapping": "m", "old": null, "new": {"price": 12}});
    assert_eq!(line(new), "new: u\nprice: 12");
    let long = json!({"kind": "changed", "url": "u", "mapping": "m", "old": {"text": "a ".repeat(200)},
                      "new": {"text": "b"}, "difference": "~ text: words"});
    assert_eq!(line(long), "changed: u\n~ text: words");
    let text =
        json!({"kind": "changed", "url": "u", "mapping": null, "difference": "~ a\n".repeat(20)});
    assert_eq!(line(text).lines().count(), 1 + MOST_CHANGED + 1);
}

#[test]
fn the_state_of_the_previous_release_is_read() {
    let kept = r#"{"run": 7, "changes": 0, "alerts": {}, "silent": {}}"#;
    let reported: Reported = serde_json::from_str(kept).unwrap();
    assert_eq!((reported.run, reported.changes_to), (7, None));
}

#[test]
fn a_serving_alternative_is_reported_once_until_it_is_over() {
    let watch = watch();
    let news = |reported: &Reported, standing: &Standing| {
        reported.find_news(&Facts {
            watch: &watch,
            runs: &[],
            standing: Some(standing),
            sites: &[],
            changes: None,
            held: None,
            now_ms: 0,
        })
    };
    let serves = |field: &str, at: &str| {
        json!({"mapping": "m", "field": field, "alternative_serves": at, "crawls": ["others/secret"],
               "detail": "its first chain yields nothing any more; its alternative 2 serves"})
    };
    let one = Standing {
        warnings: vec![serves("name", "t")],
        ..Standing::default()
    };
    let (events, reported) = news(&Reported::default(), &one);
    assert_eq!(event_names(&events), ["alternative_serves"]);
    assert_eq!(
        events[0].line,
        "field name of mapping m: its first chain yields nothing any more; its alternative 2 serves"
    );
    assert!(!events[0].detail.to_string().contains("others/secret"));
    assert!(reported.matches(&one) && !Reported::default().matches(&one));
    assert_eq!(event_names(&news(&reported, &one).0), [""; 0]);
    let two = Standing {
        warnings: vec![serves("name", "later"), serves("price", "t")],
        ..Standing::default()
    };
    let (events, reported) = news(&reported, &two);
    assert_eq!(event_names(&events), ["alternative_serves"; 2]);
    let (events, reported) = news(&reported, &one);
    assert_eq!(
        event_names(&events),
        ["alternative_serves", "alternative_cleared"]
    );
    let (events, reported) = news(&reported, &Standing::default());
    assert_eq!(event_names(&events), ["alternative_cleared"]);
    assert_eq!(reported, Reported::default());
}
