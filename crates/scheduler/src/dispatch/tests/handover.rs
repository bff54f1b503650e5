//! Tests of leases that come back, and of sites that change owners, after a lost supervisor and after a restart.

use super::*;

#[test]
fn a_supervisor_that_lost_its_leases_gives_them_back() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.schedule.add(site(1, 0, None));
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
    let holds = Hello {
        held: vec![(100, Delivery::new(0, 1))],
        ..hello("a", 2)
    };
    assert!(dispatch.join(&holds, peer("a"), NOW).is_empty());
    let lost = join_supervisor(&mut dispatch, "a", 10);
    assert_eq!(lost.len(), 1);
    let moved = dispatch.return_lease(
        lost[0].0,
        Some(turn(50)),
        LastRequest::PossiblyUntilNow,
        NOW,
    );
    let (_, clock) = moved.unwrap();
    assert_eq!(
        clock.due_at_ms,
        NOW + 15_000,
        "it may have been fetched just now"
    );
    dispatch.on_heartbeat(&peer("a"), &heartbeat(3, 0, 10), NOW + 4_000);
    let grant = dispatch.next_grant(NOW + 15_000 - LOOKAHEAD_MS);
    // The supervisor has not been heard for so long that it gets no tasks.
    assert_eq!(grant, None);
    dispatch.on_heartbeat(&peer("a"), &heartbeat(3, 0, 10), NOW + 14_700);
    let grant = dispatch.next_grant(NOW + 14_700).unwrap();
    assert_eq!(grant.last_request_ago_ms, Some(14_700));
}

#[test]
fn the_clock_in_a_returned_lease_is_kept() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.schedule.add(site(1, 0, None));
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
    let clock = SiteClock {
        next_in_ms: 4_000,
        delay_ms: Some(5_000),
    };
    let moved = dispatch.return_lease(100, Some(turn(50)), LastRequest::Known(clock), NOW);
    let kept = moved.unwrap().1;
    assert_eq!(kept.due_at_ms, NOW + 4_000);
    assert_eq!(kept.delay_ms, Some(5_000));
    assert_eq!(kept.last_start_ms, Some(NOW - 1_000));
}

#[test]
fn sites_of_a_lost_supervisor_wait_until_none_of_its_requests_can_be_under_way() {
    let mut dispatch = dispatch(&[("a", 10), ("b", 10)]);
    dispatch.schedule.add(site(1, 0, Some("a")));
    assert_eq!(hand_out_one(&mut dispatch, NOW), Some(("a".into(), 1)));
    let hand_over = NOW + LEASE_MS + LONGEST_REQUEST_MS as i64;
    assert!(keep_lease_until(&mut dispatch, "b", hand_over));
    assert!(dispatch.fleet.lost_supervisors(hand_over).is_empty());
    let later = hand_over + 2_000;
    assert_eq!(dispatch.fleet.lost_supervisors(later), ["a"]);
    let leases = dispatch.remove_supervisor("a");
    dispatch.return_lease(
        leases[0].0,
        Some(turn(50)),
        LastRequest::PossiblyUntilNow,
        later,
    );
    let later = later + 15_000;
    assert!(keep_lease_until(&mut dispatch, "b", later));
    assert_eq!(hand_out_one(&mut dispatch, later), Some(("b".into(), 1)));
}

/// A dispatch as after a restart: supervisor `a` is known, and held task 7 of site 1.
fn restarted_dispatch() -> Dispatch {
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64, None);
    let kept = SavedSupervisor {
        name: "a".into(),
        instance: 1,
        longest_request_ms: LONGEST_REQUEST_MS,
        silent_ms: 0,
    };
    let lease = HeldLease {
        task: 7,
        delivery: Delivery::new(0, 3),
        site: SiteId(1),
        priority: 50,
        crawl: 1,
    };
    let ownerless =
        dispatch.restore_leases(vec![kept], vec![site(1, 0, Some("a"))], vec![lease], NOW);
    assert!(ownerless.is_empty());
    dispatch
}

#[test]
fn after_a_restart_a_site_waits_for_its_owner_to_come_back() {
    let mut dispatch = restarted_dispatch();
    join_supervisor(&mut dispatch, "b", 10);
    dispatch.schedule.add(site(2, 0, Some("a")));
    assert!(hand_out_one(&mut dispatch, NOW).is_none());
    let holds = Hello {
        held: vec![(7, Delivery::new(0, 3))],
        credit: credit(10),
        ..hello("a", 1)
    };
    assert_eq!(dispatch.join(&holds, peer("a"), NOW), []);
    assert_eq!(hand_out_one(&mut dispatch, NOW), Some(("a".into(), 2)));
    assert_eq!(
        hand_out_one(&mut dispatch, NOW),
        None,
        "site 1 has its task out"
    );
    assert!(dispatch.end_lease(7, SiteClock::default(), NOW).is_some());
    assert_eq!(hand_out_one(&mut dispatch, NOW), Some(("a".into(), 1)));
}

#[test]
fn after_a_restart_an_owner_that_stays_away_is_lost_in_the_end() {
    let mut dispatch = restarted_dispatch();
    let later = NOW + LEASE_MS + LONGEST_REQUEST_MS as i64 + 2_000;
    assert_eq!(dispatch.fleet.lost_supervisors(later), ["a"]);
    assert_eq!(dispatch.remove_supervisor("a").len(), 1);
}

#[test]
fn a_dispatcher_that_restarts_often_still_finds_silent_supervisors_lost() {
    let mut silent_ms = 0;
    for _ in 0..1_000 {
        let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64, None);
        let kept = SavedSupervisor {
            name: "a".into(),
            instance: 1,
            longest_request_ms: LONGEST_REQUEST_MS,
            silent_ms,
        };
        dispatch.restore_leases(vec![kept], Vec::new(), Vec::new(), NOW);
        if dispatch.fleet.lost_supervisors(NOW) == ["a"] {
            return;
        }
        silent_ms = dispatch.fleet.awaited_silences(NOW + 500)[0].1;
    }
    panic!("it is never lost");
}

#[test]
fn a_lease_of_an_unknown_supervisor_comes_back_at_once() {
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64, None);
    let lease = HeldLease {
        task: 7,
        delivery: Delivery::new(0, 3),
        site: SiteId(1),
        priority: 50,
        crawl: 1,
    };
    let ownerless = dispatch.restore_leases(vec![], vec![site(1, 0, Some("a"))], vec![lease], NOW);
    assert_eq!(ownerless.len(), 1);
}
