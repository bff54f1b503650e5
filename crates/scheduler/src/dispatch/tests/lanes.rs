//! Tests with supervisors with browsers and without.

use super::*;

fn browser_turn(priority: u8) -> Turn {
    Turn {
        priority,
        crawl: 2,
        lane: Lane::Browser,
    }
}

/// A site whose next task needs a browser.
fn browser_site(id: i64, owner: Option<&str>) -> SiteDue {
    SiteDue {
        next: Some(browser_turn(50)),
        ..site(id, 0, owner)
    }
}

fn dispatch_with_both_lanes(http: u64, browser: u64) -> Dispatch {
    let mut dispatch = dispatch(&[("h", http)]);
    join_supervisor_in_lane(&mut dispatch, "b", Lane::Browser, browser);
    dispatch
}

/// Hands out the next task. Returns its supervisor and site. `next` is the crawl that is next at the site, with its
/// priority and lane.
fn hand_out_with_next(dispatch: &mut Dispatch, task: TaskId, next: Turn) -> Option<(String, i64)> {
    let grant = dispatch.next_grant(NOW)?;
    dispatch.record_grant(&grant, &batch(&[leased_task(task, 50)], 9, Some(next)));
    Some((grant.supervisor, grant.site.0))
}

fn end_lease(dispatch: &mut Dispatch, task: TaskId) {
    dispatch.end_lease(task, SiteClock::default(), NOW);
}

#[test]
fn new_sites_go_to_their_lanes() {
    let mut dispatch = dispatch_with_both_lanes(9, 9);
    for id in [1, 3] {
        dispatch.schedule.add(site(id, 0, None));
        dispatch.schedule.add(browser_site(id + 1, None));
    }
    let mut given: Vec<(String, i64)> =
        std::iter::from_fn(|| hand_out_one(&mut dispatch, NOW)).collect();
    given.sort();
    let expected = [("b", 2), ("b", 4), ("h", 1), ("h", 3)];
    assert_eq!(given, expected.map(|(name, site)| (name.to_owned(), site)));
}

#[test]
fn a_grant_names_the_lane_of_its_supervisor() {
    let mut dispatch = dispatch_with_both_lanes(9, 9);
    dispatch.schedule.add(browser_site(1, None));
    assert_eq!(dispatch.next_grant(NOW).unwrap().lane, Lane::Browser);
    dispatch.schedule.add(site(2, 0, None));
    assert_eq!(dispatch.next_grant(NOW).unwrap().lane, Lane::Http);
}

#[test]
fn a_site_stays_with_an_owner_that_has_browsers_without_needing_them() {
    let mut dispatch = dispatch_with_both_lanes(9, 9);
    dispatch.schedule.add(site(1, 0, Some("b")));
    assert_eq!(
        hand_out_with_next(&mut dispatch, 1, turn(50)),
        Some(("b".into(), 1))
    );
}

#[test]
fn supervisors_with_browsers_get_all_new_sites_if_there_are_no_others() {
    let mut dispatch = dispatch(&[]);
    join_supervisor_in_lane(&mut dispatch, "b", Lane::Browser, 9);
    dispatch.schedule.add(site(1, 0, None));
    assert_eq!(
        hand_out_with_next(&mut dispatch, 1, turn(50)),
        Some(("b".into(), 1))
    );
    join_supervisor(&mut dispatch, "h", 9);
    dispatch.schedule.add(site(2, 0, None));
    assert_eq!(
        hand_out_with_next(&mut dispatch, 2, turn(50)),
        Some(("h".into(), 2))
    );
}

#[test]
fn sites_that_waited_for_a_lane_go_to_the_other_when_the_first_is_gone() {
    let mut dispatch = dispatch_with_both_lanes(0, 9);
    dispatch.schedule.add(site(1, 0, None));
    assert_eq!(dispatch.next_grant(NOW), None, "those without are full");
    dispatch.remove_supervisor("h");
    assert_eq!(
        hand_out_with_next(&mut dispatch, 1, turn(50)),
        Some(("b".into(), 1))
    );
}

#[test]
fn a_site_changes_its_owner_when_none_of_its_tasks_is_leased() {
    let mut dispatch = dispatch_with_both_lanes(9, 9);
    let mut fast = site(1, 0, Some("h"));
    fast.clock.delay_ms = Some(0);
    fast.clock.last_start_ms = Some(NOW - 5_000);
    dispatch.schedule.add(fast);
    for task in [1, 2] {
        let next = if task == 1 {
            turn(50)
        } else {
            browser_turn(50)
        };
        assert_eq!(
            hand_out_with_next(&mut dispatch, task, next),
            Some(("h".into(), 1))
        );
    }
    assert_eq!(dispatch.next_grant(NOW), None, "two are out");
    end_lease(&mut dispatch, 1);
    dispatch.wake(WokenSite {
        site: SiteId(1),
        turn: turn(50),
    });
    assert_eq!(dispatch.next_grant(NOW), None, "one is out");
    end_lease(&mut dispatch, 2);
    let grant = dispatch.next_grant(NOW).expect("nothing is out");
    assert_eq!(grant.supervisor, "b");
    assert_eq!(
        grant.last_request_ago_ms,
        Some(5_000),
        "it may not know of the last request"
    );
    let clock = grant.new_owner.expect("to be kept with the leases");
    assert_eq!(clock.owner.as_deref(), Some("b"));
}

#[test]
fn a_site_that_awaits_a_new_owner_stays_for_a_higher_priority() {
    let mut dispatch = dispatch_with_both_lanes(9, 9);
    let mut fast = site(1, 0, Some("h"));
    fast.clock.delay_ms = Some(0);
    dispatch.schedule.add(fast);
    hand_out_with_next(&mut dispatch, 1, browser_turn(50));
    assert_eq!(dispatch.next_grant(NOW), None);
    dispatch.wake(WokenSite {
        site: SiteId(1),
        turn: turn(90),
    });
    assert_eq!(
        hand_out_with_next(&mut dispatch, 2, browser_turn(50)),
        Some(("h".into(), 1))
    );
    assert_eq!(dispatch.next_grant(NOW), None);
}

#[test]
fn leases_without_browsers_are_recalled_for_a_higher_priority_that_needs_one() {
    let mut dispatch = dispatch_with_both_lanes(9, 9);
    let mut fast = site(1, 0, Some("h"));
    fast.clock.delay_ms = Some(0);
    dispatch.schedule.add(fast);
    hand_out_with_next(&mut dispatch, 1, turn(50));
    let site = SiteId(1);
    let same = browser_turn(50);
    assert_eq!(dispatch.wake(WokenSite { site, turn: same }), None);
    let turn = browser_turn(90);
    let (owner, scope) = dispatch.wake(WokenSite { site, turn }).expect("in its way");
    assert_eq!((&*owner, scope.below), ("h", Some(90)));
    assert_eq!(dispatch.next_grant(NOW), None);
    dispatch.return_lease(1, Some(self::turn(50)), LastRequest::None, NOW);
    assert_eq!(
        hand_out_with_next(&mut dispatch, 2, browser_turn(90)),
        Some(("b".into(), 1))
    );
}

#[test]
fn a_lane_without_credit_does_not_delay_the_other() {
    for (http, browser, site_of_other) in [(9, 0, 3), (0, 9, 2)] {
        let mut dispatch = dispatch_with_both_lanes(http, browser);
        let mut urgent = browser_site(2, None);
        urgent.next = Some(browser_turn(90));
        dispatch.schedule.add(urgent);
        let mut plain = site(3, 0, None);
        plain.next = Some(turn(if http == 0 { 95 } else { 50 }));
        dispatch.schedule.add(plain);
        let given = hand_out_with_next(&mut dispatch, 1, turn(50)).map(|(_, site)| site);
        assert_eq!(given, Some(site_of_other));
        assert_eq!(dispatch.next_grant(NOW), None);
    }
}

#[test]
fn sites_that_wait_for_a_lane_get_its_credit_by_priority() {
    let mut dispatch = dispatch_with_both_lanes(9, 0);
    for (id, priority) in [(1, 50), (2, 70), (3, 60)] {
        dispatch.schedule.add(SiteDue {
            next: Some(browser_turn(priority)),
            ..site(id, 0, None)
        });
    }
    assert_eq!(dispatch.next_grant(NOW), None);
    dispatch.on_credit(&peer("b"), 1, credit(2), NOW);
    let given: Vec<i64> = (1..=3)
        .filter_map(|task| hand_out_with_next(&mut dispatch, task, turn(50)))
        .map(|(_, site)| site)
        .collect();
    assert_eq!(given, [2, 3]);
}

#[test]
fn sites_that_wait_for_a_browser_leave_half_of_the_window_to_others() {
    let mut dispatch = dispatch_with_both_lanes(9, 0);
    for (id, priority) in [(1, 50), (2, 70), (3, 60)] {
        dispatch.schedule.add(SiteDue {
            next: Some(browser_turn(priority)),
            ..site(id, 0, None)
        });
    }
    dispatch.schedule.add(site(4, 0, None));
    while hand_out_with_next(&mut dispatch, 4, turn(50)).is_some() {}
    let surplus = dispatch.evict_surplus_waiting(1, NOW);
    let left: Vec<i64> = surplus.iter().map(|(site, _)| site.0).collect();
    assert_eq!(left, [1, 3], "the last first");
    assert!(surplus.iter().all(|(_, clock)| clock.due_at_ms > NOW));
    assert_eq!(dispatch.schedule.count_sites_in_window(), 2);
    dispatch.on_credit(&peer("b"), 1, credit(1), NOW);
    assert_eq!(
        hand_out_with_next(&mut dispatch, 1, turn(50)),
        Some(("b".into(), 2))
    );
}

#[test]
fn a_supervisor_that_comes_back_without_browsers_keeps_only_sites_that_need_none() {
    let mut dispatch = dispatch_with_both_lanes(9, 9);
    dispatch.schedule.add(browser_site(1, None));
    assert_eq!(
        hand_out_with_next(&mut dispatch, 1, browser_turn(50)),
        Some(("b".into(), 1))
    );
    end_lease(&mut dispatch, 1);
    dispatch.schedule.add(site(2, 0, Some("b")));
    join_supervisor_in_lane(&mut dispatch, "b", Lane::Http, 9);
    join_supervisor_in_lane(&mut dispatch, "c", Lane::Browser, 9);
    let mut given: Vec<(String, i64)> = (2..=3)
        .filter_map(|task| hand_out_with_next(&mut dispatch, task, turn(50)))
        .collect();
    given.sort();
    assert_eq!(given, [("b".into(), 2), ("c".into(), 1)]);
}

#[test]
fn without_any_browser_the_grant_goes_to_the_owner() {
    let mut dispatch = dispatch(&[("h", 9)]);
    dispatch.schedule.add(browser_site(1, Some("h")));
    let grant = dispatch.next_grant(NOW).expect("the crawl is to be held");
    assert_eq!((&*grant.supervisor, grant.lane), ("h", Lane::Http));
}
