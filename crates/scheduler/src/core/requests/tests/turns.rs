//! A turn of the loop is limited in time. Work that it leaves is done in the next turns.

use super::*;
use crate::core::turn::TurnDeadline;

#[test]
fn tasks_left_at_the_end_of_a_turn_are_handed_out_in_the_next() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&requests("c", 5));
    fixture.core().cx.surroundings.turn_end = TurnDeadline::from_check(|| true);
    fixture.join_supervisor();
    let mut handed_out = vec![fixture.take_tasks().len()];
    for _ in 0..5 {
        let now_ms = fixture.now_ms;
        assert!(handed_out.len() == 5 || fixture.core().next_tick_ms() <= now_ms);
        fixture.run_turn();
        handed_out.push(fixture.take_tasks().len());
    }
    assert_eq!(handed_out, [1, 1, 1, 1, 1, 0]);
}

#[test]
fn crawls_stopped_together_are_closed_turn_by_turn() {
    let mut fixture = fixture();
    for nth in 0..3 {
        let crawl = format!("c{nth}");
        fixture.ask_and_expect_success(&request_with(json!({"crawlid": crawl})));
        fixture.core().cx.surroundings.turn_end = TurnDeadline::from_check(|| true);
    }
    let stops: Vec<Option<Value>> = (0..3)
        .map(|nth| {
            let crawl = format!("c{nth}");
            fixture.ask(&json!({"action": "stop", "appid": "app", "crawlid": crawl}))
        })
        .collect();
    for _ in 0..3 {
        fixture.run_turn();
    }
    let answered = fixture.outgoing.iter().filter(|message| {
        matches!(message, OutgoingMessage::ToClient(_, answer) if answer["total_purged"] == 1)
    });
    assert_eq!(answered.count(), 3, "{stops:?}");
}

/// For two seconds, reports on a large crawl have the same counts of its sites, whatever is fed meanwhile.
#[test]
fn counts_over_many_sites_are_reported_again_for_a_moment() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&requests("c", 1_001));
    let about = json!({"action": "info", "appid": "app", "crawlid": "c"});
    let reported = fixture.ask_and_expect_success(&about);
    assert_eq!(reported["total_domains"], 1_001, "{reported}");
    fixture.ask_and_expect_success(&request_with(
        json!({"crawlid": "c", "url": "http://further.org/"}),
    ));
    let reported = fixture.ask_and_expect_success(&about);
    let counts = |reported: &Value| {
        (
            reported["total_pending"].clone(),
            reported["total_domains"].clone(),
        )
    };
    assert_eq!(
        counts(&reported),
        (json!(1_002), json!(1_001)),
        "{reported}"
    );
    fixture.now_ms += 2_000;
    let reported = fixture.ask_and_expect_success(&about);
    assert_eq!(
        counts(&reported),
        (json!(1_002), json!(1_002)),
        "{reported}"
    );
}

#[test]
fn asking_about_many_large_crawls_in_turn_checks_few_sites_of_most() {
    let mut fixture = fixture();
    let checked = |reported: &Value| {
        let waits = reported["waits"].as_array().unwrap().iter();
        waits.filter_map(|wait| wait["sites"].as_u64()).sum::<u64>()
    };
    let mut checks = Vec::new();
    for nth in 0..12 {
        let crawl = format!("c{nth}x");
        fixture.ask_and_expect_success(&requests(&crawl, 1_001));
        let reported = fixture
            .ask_and_expect_success(&json!({"action": "info", "appid": "app", "crawlid": crawl}));
        checks.push(checked(&reported));
    }
    assert_eq!(checks[..10], [1_001; 10], "{checks:?}");
    assert_eq!(checks[10..], [500; 2], "{checks:?}");
}
