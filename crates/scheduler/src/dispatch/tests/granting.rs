//! Tests of granting: which supervisor gets a site's tasks, when, and how many.

use super::*;

#[test]
fn new_sites_go_to_the_supervisors_in_turn() {
    let mut dispatch = dispatch(&[("a", 10), ("b", 10), ("c", 10)]);
    for id in 1..=6 {
        dispatch.schedule.add(site(id, 0, None));
    }
    let mut got: Vec<String> = std::iter::from_fn(|| hand_out_one(&mut dispatch, NOW))
        .map(|(supervisor, _)| supervisor)
        .collect();
    got.sort();
    assert_eq!(got, ["a", "a", "b", "b", "c", "c"]);
}

#[test]
fn a_known_site_goes_to_its_owner() {
    let mut dispatch = dispatch(&[("a", 10), ("b", 10)]);
    for id in 1..=4 {
        dispatch.schedule.add(site(id, 0, Some("b")));
    }
    while let Some((supervisor, _)) = hand_out_one(&mut dispatch, NOW) {
        assert_eq!(supervisor, "b");
    }
    assert_eq!(dispatch.leases.count(), 4);
}

#[test]
fn a_site_that_waits_for_its_delay_uses_no_credit() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.schedule.add(site(1, NOW + 10_000, None));
    assert!(dispatch.next_grant(NOW).is_none());
    assert_eq!(
        dispatch.schedule.next_ready_ms(),
        Some(NOW + 10_000 - LOOKAHEAD_MS)
    );
    let grant = dispatch.next_grant(NOW + 10_000 - LOOKAHEAD_MS).unwrap();
    assert_eq!(i64::from(grant.wait_ms), LOOKAHEAD_MS);
    assert_eq!(grant.tasks, 1, "one at a time, at this pace");
}

#[test]
fn no_more_tasks_are_leased_than_the_credit_allows() {
    let mut dispatch = dispatch(&[("a", 2)]);
    for id in 1..=5 {
        dispatch.schedule.add(site(id, 0, None));
    }
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
    assert!(hand_out_one(&mut dispatch, NOW).is_none());
    dispatch.on_credit(&peer("a"), 1, credit(3), NOW);
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
    assert!(hand_out_one(&mut dispatch, NOW).is_none());
}

#[test]
fn url_bytes_are_credit_too() {
    let mut dispatch = dispatch(&[]);
    let narrow = Credit {
        tasks: 100,
        url_bytes: 30,
    };
    let narrow = Hello {
        credit: narrow,
        ..hello("a", 1)
    };
    dispatch.join(&narrow, peer("a"), NOW);
    for id in 1..=5 {
        dispatch.schedule.add(site(id, 0, None));
    }
    let handed_out = std::iter::from_fn(|| hand_out_one(&mut dispatch, NOW)).count();
    assert_eq!(handed_out, 2, "two URLs of 20 bytes reach a limit of 30");
}

#[test]
fn an_owner_without_credit_does_not_delay_other_sites() {
    let mut dispatch = dispatch(&[("a", 0), ("b", 10)]);
    dispatch.schedule.add(site(1, 0, Some("a")));
    dispatch.schedule.add(site(2, 0, Some("b")));
    assert_eq!(hand_out_one(&mut dispatch, NOW), Some(("b".into(), 2)));
    assert_eq!(hand_out_one(&mut dispatch, NOW), None);
    dispatch.on_credit(&peer("a"), 1, credit(1), NOW);
    assert_eq!(hand_out_one(&mut dispatch, NOW), Some(("a".into(), 1)));
}

#[test]
fn the_highest_priority_is_served_first() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.schedule.add(site(1, 0, None));
    let urgent = SiteDue {
        next: Some(turn(90)),
        ..site(2, NOW, None)
    };
    dispatch.schedule.add(urgent);
    assert_eq!(hand_out_one(&mut dispatch, NOW), Some(("a".into(), 2)));
}

#[test]
fn the_next_task_comes_when_the_last_one_has_ended() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.schedule.add(site(1, 0, None));
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
    assert!(hand_out_one(&mut dispatch, NOW).is_none());
    let clock = SiteClock {
        next_in_ms: 15_000,
        delay_ms: Some(15_000),
    };
    let (id, kept) = dispatch.end_lease(100, clock, NOW).unwrap();
    assert_eq!((id, kept.due_at_ms), (SiteId(1), NOW + 15_000));
    keep_lease_until(&mut dispatch, "a", NOW + 14_000);
    assert!(hand_out_one(&mut dispatch, NOW + 14_000).is_none());
    assert!(hand_out_one(&mut dispatch, NOW + 15_000).is_some());
}

#[test]
fn a_site_without_delay_has_many_leases() {
    let mut dispatch = dispatch(&[("a", 1_000)]);
    let mut fast = site(1, 0, None);
    fast.clock.delay_ms = Some(0);
    dispatch.schedule.add(fast);
    assert_eq!(
        dispatch.next_grant(NOW).unwrap().tasks as u32,
        site::MAX_LEASES
    );
}
