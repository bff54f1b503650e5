//! Tests of sites that were chosen but had nothing to hand out.

use super::*;
use crate::frontier::NothingHandedOut;

/// Asks for grants at this time until there are none. Sites whose id is at least `empty` have nothing to hand out, and
/// other sites have one task each. Returns the granted sites in order.
fn grant_all(dispatch: &mut Dispatch, empty: i64, now_ms: i64) -> Vec<i64> {
    let mut granted = Vec::new();
    while let Some(grant) = dispatch.next_grant(now_ms) {
        assert!(granted.len() < 100, "again and again: {granted:?}");
        granted.push(grant.site.0);
        let tasks = match grant.site.0 < empty {
            true => vec![leased_task(grant.site.0 as u64 * 100, 50)],
            false => Vec::new(),
        };
        dispatch.record_grant(&grant, &batch(&tasks, 9, grant.turn));
        if tasks.is_empty() {
            dispatch.put_off(&grant, NothingHandedOut::NotFound, grant.turn, now_ms);
        }
    }
    granted
}

#[test]
fn a_site_with_nothing_to_hand_out_keeps_no_other_waiting() {
    let mut dispatch = dispatch(&[("a", 100)]);
    let urgent = SiteDue {
        next: Some(turn(90)),
        ..site(9, 0, None)
    };
    dispatch.schedule.add(urgent);
    for id in 1..=3 {
        dispatch.schedule.add(site(id, 10, None));
    }
    assert_eq!(grant_all(&mut dispatch, 9, NOW), [9, 1, 2, 3]);
    assert_eq!(dispatch.schedule.next_ready_ms(), Some(NOW + 100));
}

#[test]
fn a_site_is_set_aside_for_longer_each_time_until_it_hands_something_out() {
    let mut dispatch = dispatch(&[("a", 100)]);
    dispatch.schedule.add(site(1, 0, None));
    let mut now_ms = NOW;
    let mut waits = Vec::new();
    for _ in 0..12 {
        keep_lease_until(&mut dispatch, "a", now_ms);
        assert_eq!(grant_all(&mut dispatch, 1, now_ms), [1]);
        let next_ms = dispatch.schedule.next_ready_ms().unwrap();
        waits.push(next_ms - now_ms);
        keep_lease_until(&mut dispatch, "a", next_ms - 1);
        assert!(grant_all(&mut dispatch, 1, next_ms - 1).is_empty());
        now_ms = next_ms;
    }
    assert_eq!(waits[..4], [100, 200, 400, 800]);
    assert_eq!(waits[10..], [60_000, 60_000]);
    assert_eq!(dispatch.schedule.count_set_aside_sites(), 1);
    keep_lease_until(&mut dispatch, "a", now_ms);
    assert_eq!(grant_all(&mut dispatch, 2, now_ms), [1]);
    assert_eq!(dispatch.schedule.count_set_aside_sites(), 0);
}

type Wake<'w> = &'w dyn Fn(&mut Dispatch);

#[test]
fn any_event_at_a_site_ends_its_wait_immediately() {
    let woken = WokenSite {
        site: SiteId(1),
        turn: turn(50),
    };
    let kinds: [(&str, Wake<'_>); 4] = [
        ("a new task", &|dispatch| drop(dispatch.wake(woken))),
        ("a changed rule", &|dispatch| {
            dispatch.schedule.apply_rule(&site(1, 0, None), false);
        }),
        ("another supervisor", &|dispatch| {
            join_supervisor(dispatch, "b", 10);
        }),
        ("a lost supervisor", &|dispatch| {
            dispatch.remove_supervisor("c");
        }),
    ];
    for (what, happens) in kinds {
        let mut dispatch = dispatch(&[("a", 100), ("c", 0)]);
        dispatch.schedule.add(site(1, 0, Some("a")));
        for now_ms in [NOW, NOW + 100, NOW + 300] {
            assert_eq!(grant_all(&mut dispatch, 1, now_ms), [1], "{what}");
        }
        assert!(grant_all(&mut dispatch, 1, NOW + 301).is_empty(), "{what}");
        happens(&mut dispatch);
        assert_eq!(grant_all(&mut dispatch, 2, NOW + 301), [1], "{what}");
    }
}

#[test]
fn a_site_is_granted_again_in_the_next_turn_if_something_has_changed() {
    let other = Turn {
        crawl: 2,
        ..turn(50)
    };
    for (why, next) in [
        (NothingHandedOut::CrawlsOver, turn(50)),
        (NothingHandedOut::CrawlsHeld, turn(50)),
        (NothingHandedOut::OtherLane, other),
    ] {
        let mut dispatch = dispatch(&[("a", 100)]);
        dispatch.schedule.add(site(1, 0, None));
        let grant = dispatch.next_grant(NOW).unwrap();
        dispatch.record_grant(&grant, &batch(&[], 9, Some(next)));
        assert_eq!(dispatch.put_off(&grant, why, Some(next), NOW), None);
        assert!(dispatch.next_grant(NOW).is_none(), "{why:?}: in this turn");
        assert!(dispatch.next_grant(NOW + 1).is_some(), "{why:?}");
    }
}

/// Both sites are at one address, where one task may be leased at a time. The first one in order has nothing to hand
/// out.
#[test]
fn a_site_of_a_group_with_nothing_to_hand_out_lets_the_others_go() {
    let bounds = GroupBounds {
        delay_ms: 100,
        in_flight: 1,
        of_private: true,
    };
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64, Some(bounds));
    join_supervisor(&mut dispatch, "a", 100);
    for id in [1, 9] {
        let mut due = site(id, 10 - id, None);
        due.clock.address = Some("10.0.0.1".parse().unwrap());
        due.clock.last_start_ms = Some(NOW - 60_000);
        dispatch.schedule.add(due);
    }
    let mut granted = grant_all(&mut dispatch, 9, NOW);
    granted.extend(grant_all(&mut dispatch, 9, NOW + 20));
    assert!(granted.contains(&1), "{granted:?}");
}

#[test]
fn a_site_that_is_unreachable_takes_no_room_of_its_group() {
    let bounds = GroupBounds {
        delay_ms: 10_000,
        in_flight: 1,
        of_private: true,
    };
    let mut dispatch = Dispatch::new(0, LEASE_MS as u64, Some(bounds));
    join_supervisor(&mut dispatch, "a", 100);
    for id in 1..=3 {
        let mut due = site(id, id, None);
        due.clock.address = Some("10.0.0.1".parse().unwrap());
        due.clock.last_start_ms = Some(NOW - 60_000);
        due.is_unreachable = id < 3;
        dispatch.schedule.add(due);
    }
    for id in 1..=3 {
        let grant = dispatch.next_grant(NOW).unwrap();
        assert_eq!(grant.site, SiteId(id));
        dispatch.record_grant(&grant, &batch(&[leased_task(id as u64 * 100, 50)], 0, None));
    }
}

/// The tasks of an unreachable site end without a request, so neither its delay nor its clock holds them up.
#[test]
fn many_tasks_of_a_site_that_is_unreachable_are_handed_out_at_once() {
    let mut dispatch = dispatch(&[("a", 1_000)]);
    let unreachable = SiteDue {
        is_unreachable: true,
        ..site(1, NOW + 60_000, None)
    };
    dispatch.schedule.add(unreachable);
    let grant = dispatch.next_grant(NOW).unwrap();
    assert_eq!(grant.tasks as u32, site::MAX_LEASES);
}
