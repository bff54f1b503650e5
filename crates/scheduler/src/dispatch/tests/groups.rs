//! Tests of sites that share the limits of an address or a provider.

use std::net::IpAddr;

use super::*;

const PUBLIC: &str = "93.184.216.34";
const OTHER: &str = "93.184.216.35";
const PRIVATE: &str = "10.0.0.1";

/// The clock of a site after a request.
const ASKED: SiteClock = SiteClock {
    next_in_ms: 15_000,
    delay_ms: Some(15_000),
};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A dispatch with these limits, and the supervisor `a`, which accepts many tasks.
fn dispatch_with_bounds(delay_ms: u32, in_flight: u32) -> Dispatch {
    let bounds = GroupBounds {
        delay_ms,
        in_flight,
        of_private: false,
    };
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64, Some(bounds));
    join_supervisor(&mut dispatch, "a", 10_000);
    dispatch
}

/// A site that was requested recently, so that its robots.txt is known.
fn site_at(id: i64, address: &str) -> SiteDue {
    let mut due = site(id, 0, None);
    due.clock.address = Some(ip(address));
    due.clock.last_start_ms = Some(NOW - 60_000);
    due
}

/// Hands out everything that may be handed out. Returns the sites, and when their requests may start.
fn hand_out_all(dispatch: &mut Dispatch, now_ms: i64) -> Vec<(i64, i64)> {
    let mut handed_out = Vec::new();
    while let Some(grant) = dispatch.next_grant(now_ms) {
        let ids = (0..grant.tasks as u64).map(|n| grant.site.0 as u64 * 100 + n);
        let tasks: Vec<Leased> = ids.map(|id| leased_task(id, 50)).collect();
        dispatch.record_grant(&grant, &batch(&tasks, 9, Some(turn(50))));
        handed_out.push((grant.site.0, grant.start_ms));
    }
    handed_out
}

fn end_lease(dispatch: &mut Dispatch, site: i64, now_ms: i64) {
    dispatch.end_lease(site as u64 * 100, ASKED, now_ms);
}

fn sites_of(handed_out: &[(i64, i64)]) -> Vec<i64> {
    handed_out.iter().map(|(site, _)| *site).collect()
}

#[test]
fn no_more_tasks_of_a_group_are_leased_than_may_be_in_flight() {
    let mut dispatch = dispatch_with_bounds(0, 3);
    for id in 1..=5 {
        dispatch.schedule.add(site_at(id, PUBLIC));
    }
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [1, 2, 3]);
    end_lease(&mut dispatch, 2, NOW);
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [4]);
    dispatch.return_lease(100, None, LastRequest::None, NOW);
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [5]);
    for id in 3..=5 {
        end_lease(&mut dispatch, id, NOW);
    }
    assert_eq!(dispatch.schedule.groups.count_leased_tasks(), 0);
}

#[test]
fn a_site_without_delay_gets_only_what_its_group_has_room_for() {
    let mut dispatch = dispatch_with_bounds(0, 3);
    let mut fast = site_at(1, PUBLIC);
    fast.clock.delay_ms = Some(0);
    dispatch.schedule.add(fast);
    assert_eq!(dispatch.next_grant(NOW).unwrap().tasks, 3);
}

#[test]
fn the_requests_of_a_group_start_one_delay_apart() {
    let mut dispatch = dispatch_with_bounds(100, 50);
    for id in 1..=9 {
        dispatch.schedule.add(site_at(id, PUBLIC));
    }
    dispatch.schedule.add(site_at(10, OTHER));
    let first = hand_out_all(&mut dispatch, NOW);
    let expected = [(1, 0), (2, 100), (3, 200), (4, 300), (10, 0)];
    for (site, after_ms) in expected {
        assert!(first.contains(&(site, NOW + after_ms)), "{first:?}");
    }
    assert_eq!(first.len(), 5, "no longer ahead than the lookahead");
    assert_eq!(dispatch.schedule.next_ready_ms(), Some(NOW + 100));
    assert_eq!(hand_out_all(&mut dispatch, NOW + 99), []);
    assert_eq!(hand_out_all(&mut dispatch, NOW + 100), [(5, NOW + 400)]);
}

#[test]
fn a_request_for_robots_counts_as_well() {
    let mut dispatch = dispatch_with_bounds(100, 50);
    for id in 1..=3 {
        let mut new = site_at(id, PUBLIC);
        new.clock.last_start_ms = None;
        dispatch.schedule.add(new);
    }
    let starts = [(1, NOW), (2, NOW + 200)];
    assert_eq!(hand_out_all(&mut dispatch, NOW), starts);
}

#[test]
fn sites_of_one_provider_share_bounds_from_the_first_request_on() {
    let mut dispatch = dispatch_with_bounds(0, 1);
    for (id, name) in [(1, "a.github.io"), (2, "b.github.io"), (3, "c.example")] {
        dispatch.schedule.add(SiteDue {
            name: name.into(),
            ..site(id, 0, None)
        });
    }
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [1, 3]);
    let bounds = [1, 3].map(|id| dispatch.schedule.address_bounds(SiteId(id), 1));
    assert_eq!(bounds, [AddressBounds::None, AddressBounds::OfPublic(None)]);
}

#[test]
fn a_site_joins_its_group_when_its_address_is_known() {
    let mut dispatch = dispatch_with_bounds(0, 1);
    dispatch.schedule.add(site(1, 0, None));
    dispatch.schedule.add(site_at(2, PUBLIC));
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [1, 2]);
    dispatch.note_address(100, ip(PUBLIC));
    let (_, clock) = dispatch
        .return_lease(100, Some(turn(50)), LastRequest::None, NOW)
        .unwrap();
    assert_eq!(clock.address, Some(ip(PUBLIC)));
    assert_eq!(hand_out_all(&mut dispatch, NOW), []);
    end_lease(&mut dispatch, 2, NOW);
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [1]);
    let counted = AddressBounds::OfPublic(Some(ip(PUBLIC)));
    assert_eq!(dispatch.schedule.address_bounds(SiteId(1), 2), counted);
    assert_eq!(
        dispatch.schedule.address_bounds(SiteId(1), 6),
        AddressBounds::None,
        "it was counted for several addresses already"
    );
}

#[test]
fn a_lease_counts_for_the_group_that_it_was_given_in() {
    let mut dispatch = dispatch_with_bounds(0, 2);
    let mut fast = site_at(1, PUBLIC);
    fast.clock.delay_ms = Some(0);
    dispatch.schedule.add(fast);
    assert_eq!(hand_out_all(&mut dispatch, NOW).len(), 1, "two tasks");
    dispatch.note_address(101, ip(OTHER));
    dispatch.return_lease(101, Some(turn(50)), LastRequest::None, NOW);
    dispatch.schedule.add(site_at(2, PUBLIC));
    dispatch.schedule.add(site_at(3, PUBLIC));
    let handed_out = sites_of(&hand_out_all(&mut dispatch, NOW));
    assert!(handed_out.contains(&2), "one place is left: {handed_out:?}");
    assert!(!handed_out.contains(&3), "{handed_out:?}");
}

#[test]
fn private_addresses_are_bounded_only_on_request() {
    let mut dispatch = dispatch_with_bounds(0, 1);
    for id in 1..=4 {
        dispatch.schedule.add(site_at(id, PRIVATE));
    }
    assert_eq!(hand_out_all(&mut dispatch, NOW).len(), 4);
    let bounds = GroupBounds {
        delay_ms: 0,
        in_flight: 1,
        of_private: true,
    };
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64, Some(bounds));
    join_supervisor(&mut dispatch, "a", 10_000);
    for id in 1..=4 {
        dispatch.schedule.add(site_at(id, PRIVATE));
    }
    assert_eq!(hand_out_all(&mut dispatch, NOW).len(), 1);
}

#[test]
fn an_address_in_a_url_is_known_without_a_worker() {
    let mut dispatch = dispatch_with_bounds(0, 1);
    for (id, name) in [(1, "93.184.216.34"), (2, "[2606:4700::1]")] {
        dispatch.schedule.add(SiteDue {
            name: name.into(),
            ..site(id, 0, None)
        });
    }
    dispatch.schedule.add(site_at(3, PUBLIC));
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [1, 2]);
}

#[test]
fn the_highest_priority_is_called_first() {
    let mut dispatch = dispatch_with_bounds(0, 1);
    for id in 1..=3 {
        dispatch.schedule.add(site_at(id, PUBLIC));
    }
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [1]);
    let woken = WokenSite {
        site: SiteId(3),
        turn: turn(90),
    };
    assert!(dispatch.wake(woken).is_none());
    assert_eq!(hand_out_all(&mut dispatch, NOW), []);
    end_lease(&mut dispatch, 1, NOW);
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [3]);
}

#[test]
fn a_site_that_may_not_be_handed_out_any_more_blocks_nobody() {
    let mut dispatch = dispatch_with_bounds(0, 1);
    for id in 1..=4 {
        dispatch.schedule.add(site_at(id, PUBLIC));
    }
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [1]);
    let blocked = SiteDue {
        rule: SiteRule {
            block_until_ms: Some(NOW + 60_000),
            ..SiteRule::default()
        },
        ..site_at(2, PUBLIC)
    };
    dispatch.schedule.apply_rule(&blocked, false);
    end_lease(&mut dispatch, 1, NOW);
    // The group calls site 3, but the site turns out to have nothing to hand out.
    let grant = dispatch.next_grant(NOW).unwrap();
    assert_eq!(grant.site, SiteId(3));
    dispatch.record_grant(&grant, &batch(&[], 0, None));
    assert_eq!(dispatch.next_grant(NOW), None);
    let again_ms = dispatch.schedule.next_ready_ms().unwrap();
    assert!(again_ms > NOW && again_ms < NOW + 1_000);
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, again_ms)), [4]);
}

#[test]
fn an_owner_without_credit_does_not_stop_its_group() {
    let mut dispatch = dispatch_with_bounds(0, 1);
    join_supervisor(&mut dispatch, "poor", 0);
    for (id, owner) in [(1, "a"), (2, "poor"), (3, "a")] {
        let mut due = site_at(id, PUBLIC);
        due.clock.owner = Some(owner.into());
        dispatch.schedule.add(due);
    }
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, NOW)), [1]);
    end_lease(&mut dispatch, 1, NOW);
    assert_eq!(hand_out_all(&mut dispatch, NOW), []);
    let again_ms = dispatch.schedule.next_ready_ms().unwrap();
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, again_ms)), [3]);
    end_lease(&mut dispatch, 3, again_ms);
    dispatch.on_credit(&peer("poor"), 1, credit(5), again_ms);
    assert_eq!(sites_of(&hand_out_all(&mut dispatch, again_ms)), [2]);
}

#[test]
fn of_a_group_of_many_sites_one_is_called_for_each_start() {
    let mut dispatch = dispatch_with_bounds(100, 8);
    for id in 1..=5_000 {
        dispatch.schedule.add(site_at(id, PUBLIC));
    }
    assert_eq!(hand_out_all(&mut dispatch, NOW).len(), 4);
    assert_eq!(dispatch.schedule.groups.count_waiting_sites(), 4_996);
    for start in 1..=4 {
        let at_ms = dispatch.schedule.next_ready_ms().unwrap();
        assert_eq!(at_ms, NOW + start * 100);
        assert_eq!(
            dispatch
                .schedule
                .next_ready_site(&Default::default(), None, at_ms),
            Some(SiteId(4 + start))
        );
        assert_eq!(
            dispatch.schedule.groups.count_waiting_sites(),
            4_996 - start as usize
        );
        assert_eq!(hand_out_all(&mut dispatch, at_ms).len(), 1);
    }
    assert_eq!(
        dispatch.schedule.next_ready_ms(),
        None,
        "eight are in flight"
    );
}

#[test]
fn a_group_of_many_sites_does_not_fill_the_window() {
    let mut dispatch = dispatch_with_bounds(100, 8);
    for id in 1..=200 {
        dispatch.schedule.add(site_at(id, PUBLIC));
    }
    let handed_out = hand_out_all(&mut dispatch, NOW).len();
    let left = dispatch.evict_surplus_waiting(100, NOW);
    assert_eq!(left.len(), 100 - handed_out);
    assert_eq!(dispatch.schedule.count_sites_in_window(), 100 + handed_out);
    for (_, clock) in &left {
        assert!(clock.due_at_ms >= NOW + 10_000, "{clock:?}");
    }
    assert_eq!(
        dispatch.evict_surplus_waiting(10, NOW).len(),
        36,
        "a few are kept"
    );
    assert!(dispatch.schedule.next_ready_ms().is_some());
}

#[test]
fn leases_count_for_their_groups_after_a_restart() {
    let mut dispatch = dispatch_with_bounds(0, 1);
    let held = HeldLease {
        task: 100,
        delivery: Delivery::new(0, 1),
        site: SiteId(1),
        priority: 50,
        crawl: 1,
    };
    let mut due = site_at(1, PUBLIC);
    due.clock.owner = Some("a".into());
    dispatch.restore_leases(Vec::new(), vec![due], vec![held], NOW);
    dispatch.schedule.add(site_at(2, PUBLIC));
    assert_eq!(hand_out_all(&mut dispatch, NOW), []);
    end_lease(&mut dispatch, 1, NOW);
    assert_eq!(hand_out_all(&mut dispatch, NOW).len(), 1);
}
