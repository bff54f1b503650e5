//! Tests of higher priorities, of a full memory (window) and of rules of sites.

use super::*;

fn woken_site(site: i64, priority: u8) -> WokenSite {
    WokenSite {
        site: SiteId(site),
        turn: turn(priority),
    }
}

#[test]
fn leases_in_the_way_of_a_higher_priority_are_recalled() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.schedule.add(site(1, 0, None));
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
    assert_eq!(dispatch.wake(woken_site(1, 50)), None, "not higher");
    let (owner, scope) = dispatch.wake(woken_site(1, 90)).expect("it is in the way");
    assert_eq!((&*owner, scope.below), ("a", Some(90)));
    assert_eq!(scope.site.as_deref(), Some("site-1.example"));
    assert_eq!(
        dispatch.wake(woken_site(1, 90)),
        None,
        "that was said already"
    );
    assert_eq!(
        dispatch
            .wake(woken_site(1, 95))
            .map(|(_, scope)| scope.below),
        Some(Some(95))
    );

    let (task, _) = dispatch
        .leases
        .leases_of_supervisor("a")
        .next()
        .expect("it is out");
    dispatch.return_lease(task, Some(turn(50)), LastRequest::None, NOW);
    let grant = dispatch.next_grant(NOW).expect("its turn");
    assert_eq!(grant.site, SiteId(1));
}

#[test]
fn a_fast_site_leases_a_higher_priority_beside_its_other_tasks() {
    let mut dispatch = dispatch(&[("a", 100)]);
    let mut fast = site(1, 0, None);
    fast.clock.delay_ms = Some(0);
    dispatch.schedule.add(fast);
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
    assert_eq!(dispatch.wake(woken_site(1, 90)), None);
    assert!(hand_out_one(&mut dispatch, NOW).is_some());
}

#[test]
fn a_small_part_of_the_credit_is_kept_for_higher_priorities() {
    let mut dispatch = dispatch(&[("a", 32)]);
    for id in 1..=40 {
        dispatch.schedule.add(site(id, 0, Some("a")));
    }
    let ordinary = std::iter::from_fn(|| hand_out_one(&mut dispatch, NOW)).count();
    assert_eq!(ordinary, 30);
    dispatch.wake(woken_site(40, 90));
    dispatch.wake(woken_site(39, 90));
    dispatch.wake(woken_site(38, 90));
    let mut urgent = Vec::new();
    while let Some(grant) = dispatch.next_grant(NOW) {
        let task = leased_task(1_000 + grant.site.0 as u64, 90);
        dispatch.record_grant(&grant, &batch(&[task], 9, Some(turn(90))));
        urgent.push(grant.site.0);
    }
    assert_eq!(urgent.len(), 2, "the reserve is used up: {urgent:?}");
    assert!(urgent.iter().all(|site| (38..=40).contains(site)));
}

#[test]
fn a_full_window_evicts_sites_that_are_not_due_for_long() {
    let mut dispatch = dispatch(&[("a", 10)]);
    for id in 1..=4 {
        dispatch.schedule.add(site(id, NOW + 10_000 * id, None));
    }
    let mut of_another = site(5, NOW + 900_000, None);
    of_another.next = Some(Turn {
        crawl: 2,
        ..turn(50)
    });
    dispatch.schedule.add(of_another);
    dispatch.schedule.add(site(6, NOW + 500, None));
    let far = dispatch.schedule.evict_distant(3, 1, NOW);
    let ids: Vec<i64> = far.iter().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [4, 3, 2], "a crawl with few sites keeps them");
    assert_eq!(
        dispatch.schedule.evict_distant(9, 1, NOW).len(),
        2,
        "until there are no others"
    );
    assert_eq!(
        dispatch.schedule.count_sites_in_window(),
        1,
        "what is due soon stays"
    );
    assert_eq!(
        (
            dispatch.schedule.count_admitted_for(1),
            dispatch.schedule.count_admitted_for(2)
        ),
        (1, 0)
    );
}

#[test]
fn a_rule_applies_immediately_to_a_site_in_memory() {
    let mut dispatch = dispatch(&[("a", 10)]);
    let mut known = site(1, NOW + 10_000, Some("a"));
    known.clock.last_start_ms = Some(NOW - 5_000);
    dispatch.schedule.add(known.clone());
    known.rule.delay_ms = Some(1_000);
    dispatch.schedule.apply_rule(&known, false);
    let grant = dispatch.next_grant(NOW).expect("a shorter delay");
    assert_eq!((grant.delay_ms, grant.wait_ms), (Some(1_000), 0));
    assert_eq!(
        grant.last_request_ago_ms,
        Some(5_000),
        "the worker keeps what robots.txt says"
    );
    dispatch.record_grant(&grant, &batch(&[leased_task(7, 50)], 9, Some(turn(50))));
    dispatch.return_lease(7, Some(turn(50)), LastRequest::None, NOW);

    known.rule.block_until_ms = Some(NOW + 60_000);
    dispatch.schedule.apply_rule(&known, false);
    assert!(dispatch.next_grant(NOW + 59_000).is_none());
    assert_eq!(
        dispatch.schedule.next_ready_ms(),
        Some(NOW + 60_000 - LOOKAHEAD_MS)
    );
    known.rule.block_until_ms = None;
    dispatch.schedule.apply_rule(&known, false);
    assert!(dispatch.next_grant(NOW).is_some());
}

#[test]
fn a_block_or_a_limit_leaves_the_pace_of_a_site_as_it_is() {
    // A shorter and a longer delay than the default.
    for delay_ms in [3_000, 60_000] {
        let mut dispatch = dispatch(&[("a", 10)]);
        let due_at_ms = NOW + i64::from(delay_ms);
        let mut known = site(1, due_at_ms, Some("a"));
        known.clock.delay_ms = Some(delay_ms);
        known.clock.last_start_ms = Some(NOW);
        dispatch.schedule.add(known.clone());
        let blocked = Some(NOW + 1_000);
        for (block_until_ms, pages_left) in [(blocked, None), (None, Some(5)), (None, None)] {
            known.rule.block_until_ms = block_until_ms;
            known.rule.pages_left = pages_left;
            dispatch.schedule.apply_rule(&known, false);
        }
        assert_eq!(
            dispatch.schedule.next_ready_ms(),
            Some(due_at_ms - LOOKAHEAD_MS)
        );
    }
}

/// Also tests a site whose delay was never known, because its robots.txt could not be fetched.
#[test]
fn forgetting_a_sites_delay_makes_it_due_at_its_stored_time() {
    for delay_ms in [None, Some(15_000)] {
        let mut dispatch = dispatch(&[("a", 10)]);
        let mut stored = site(1, NOW + 60_000, Some("a"));
        stored.clock.delay_ms = delay_ms;
        dispatch.schedule.add(stored.clone());
        stored.clock.due_at_ms = NOW;
        dispatch.schedule.apply_rule(&stored, false);
        assert!(dispatch.next_grant(NOW).is_none(), "{delay_ms:?}");
        stored.clock.delay_ms = None;
        dispatch.schedule.apply_rule(&stored, true);
        assert!(dispatch.next_grant(NOW).is_some(), "{delay_ms:?}");
    }
}
