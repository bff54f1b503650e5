use super::*;

const NOW: i64 = 1_000_000;
const LONGEST_REQUEST_MS: u64 = 60_000;

fn dispatch(supervisors: &[(&str, u64)]) -> Dispatch {
    // Started long ago: no former owner is awaited any more.
    let mut dispatch = Dispatch::new(15_000, LONGEST_REQUEST_MS, 0);
    for (name, room) in supervisors {
        join(&mut dispatch, name, *room);
    }
    dispatch
}

fn join(dispatch: &mut Dispatch, name: &str, room: u64) -> Vec<(TaskId, Lease)> {
    dispatch.hello(name, peer(name), credit(room), &[], NOW)
}

fn peer(name: &str) -> Peer {
    name.as_bytes().to_vec()
}

fn credit(tasks: u64) -> Credit {
    Credit {
        tasks,
        url_bytes: 1_000_000,
    }
}

fn site(id: i64, due_at_ms: i64, owner: Option<&str>) -> SiteDue {
    SiteDue {
        id: SiteId(id),
        name: format!("site-{id}.example"),
        clock: Clock {
            due_at_ms,
            delay_ms: Some(15_000),
            last_start_ms: None,
            owner: owner.map(str::to_owned),
        },
        queued: 10,
        top_priority: 50,
    }
}

/// Hands out one task of the next grant, and returns who got it, for which site.
fn hand_out(dispatch: &mut Dispatch, now_ms: i64) -> Option<(String, i64)> {
    let grant = dispatch.next_grant(now_ms)?;
    let task = grant.site.0 as u64 * 100 + now_ms as u64 % 100;
    dispatch.handed_out(&grant, &[(task, 1, 20)], 9, 50);
    Some((grant.supervisor, grant.site.0))
}

#[test]
fn new_sites_go_to_the_supervisors_in_turn() {
    let mut dispatch = dispatch(&[("a", 10), ("b", 10), ("c", 10)]);
    for id in 1..=6 {
        dispatch.add_site(site(id, 0, None));
    }
    let mut got: Vec<String> = std::iter::from_fn(|| hand_out(&mut dispatch, NOW))
        .map(|(supervisor, _)| supervisor)
        .collect();
    got.sort();
    assert_eq!(got, ["a", "a", "b", "b", "c", "c"]);
}

#[test]
fn a_known_site_goes_to_its_owner() {
    let mut dispatch = dispatch(&[("a", 10), ("b", 10)]);
    for id in 1..=4 {
        dispatch.add_site(site(id, 0, Some("b")));
    }
    while let Some((supervisor, _)) = hand_out(&mut dispatch, NOW) {
        assert_eq!(supervisor, "b");
    }
    assert_eq!(dispatch.leases_out(), 4);
}

#[test]
fn a_site_that_waits_for_its_delay_occupies_no_place() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.add_site(site(1, NOW + 10_000, None));
    assert!(dispatch.next_grant(NOW).is_none());
    assert_eq!(dispatch.next_ready_ms(), Some(NOW + 10_000 - LOOKAHEAD_MS));
    let grant = dispatch.next_grant(NOW + 10_000 - LOOKAHEAD_MS).unwrap();
    assert_eq!(i64::from(grant.wait_ms), LOOKAHEAD_MS);
    assert_eq!(grant.tasks, 1, "one at a time, at this pace");
}

#[test]
fn no_more_is_out_than_was_asked_for() {
    let mut dispatch = dispatch(&[("a", 2)]);
    for id in 1..=5 {
        dispatch.add_site(site(id, 0, None));
    }
    assert!(hand_out(&mut dispatch, NOW).is_some());
    assert!(hand_out(&mut dispatch, NOW).is_some());
    assert!(hand_out(&mut dispatch, NOW).is_none());
    dispatch.credit(&peer("a"), credit(3), NOW);
    assert!(hand_out(&mut dispatch, NOW).is_some());
    assert!(hand_out(&mut dispatch, NOW).is_none());
}

#[test]
fn url_bytes_are_credit_too() {
    let mut dispatch = dispatch(&[]);
    let narrow = Credit {
        tasks: 100,
        url_bytes: 30,
    };
    dispatch.hello("a", peer("a"), narrow, &[], NOW);
    for id in 1..=5 {
        dispatch.add_site(site(id, 0, None));
    }
    let handed_out = std::iter::from_fn(|| hand_out(&mut dispatch, NOW)).count();
    assert_eq!(handed_out, 2, "two URLs of 20 bytes reach a limit of 30");
}

#[test]
fn an_owner_without_room_does_not_hold_up_other_sites() {
    let mut dispatch = dispatch(&[("a", 0), ("b", 10)]);
    dispatch.add_site(site(1, 0, Some("a")));
    dispatch.add_site(site(2, 0, Some("b")));
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("b".into(), 2)));
    assert_eq!(hand_out(&mut dispatch, NOW), None);
    dispatch.credit(&peer("a"), credit(1), NOW);
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("a".into(), 1)));
}

#[test]
fn the_highest_priority_is_served_first() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.add_site(site(1, 0, None));
    let urgent = SiteDue {
        top_priority: 90,
        ..site(2, NOW, None)
    };
    dispatch.add_site(urgent);
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("a".into(), 2)));
}

#[test]
fn the_next_task_comes_when_the_last_one_has_ended() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.add_site(site(1, 0, None));
    assert!(hand_out(&mut dispatch, NOW).is_some());
    assert!(hand_out(&mut dispatch, NOW).is_none());
    let clock = SiteClock {
        next_in_ms: 15_000,
        delay_ms: 15_000,
    };
    let (id, kept) = dispatch.ended(100, clock, NOW).unwrap();
    assert_eq!((id, kept.due_at_ms), (SiteId(1), NOW + 15_000));
    dispatch.heard(&peer("a"), NOW + 14_000);
    assert!(hand_out(&mut dispatch, NOW + 14_000).is_none());
    assert!(hand_out(&mut dispatch, NOW + 15_000).is_some());
}

#[test]
fn a_site_without_delay_has_many_tasks_out() {
    let mut dispatch = dispatch(&[("a", 1_000)]);
    let mut fast = site(1, 0, None);
    fast.clock.delay_ms = Some(0);
    dispatch.add_site(fast);
    assert_eq!(dispatch.next_grant(NOW).unwrap().tasks as u32, MOST_OUT);
}

#[test]
fn a_supervisor_that_lost_its_leases_gives_them_back() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.add_site(site(1, 0, None));
    assert!(hand_out(&mut dispatch, NOW).is_some());
    let lost = join(&mut dispatch, "a", 10);
    assert_eq!(lost.len(), 1);
    let (_, clock) = dispatch.returned(lost[0].0, true, true, NOW).unwrap();
    assert_eq!(
        clock.due_at_ms,
        NOW + 15_000,
        "it may have been fetched just now"
    );
    let again = dispatch.hello("a", peer("a"), credit(10), &[(100, 1)], NOW);
    assert!(again.is_empty());
}

#[test]
fn sites_of_a_lost_supervisor_wait_until_none_of_its_requests_can_be_under_way() {
    let mut dispatch = dispatch(&[("a", 10), ("b", 10)]);
    dispatch.add_site(site(1, 0, Some("a")));
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("a".into(), 1)));
    let hand_over = NOW + LEASE_MS + LONGEST_REQUEST_MS as i64;
    assert!(dispatch.heard(&peer("b"), hand_over));
    assert!(
        dispatch
            .lost_supervisors(hand_over, LONGEST_REQUEST_MS)
            .is_empty()
    );
    let lost = dispatch.lost_supervisors(hand_over + 1, LONGEST_REQUEST_MS);
    assert_eq!(lost, ["a"]);
    let leases = dispatch.remove_supervisor("a");
    dispatch.returned(leases[0].0, true, true, hand_over + 1);
    let later = hand_over + 20_000;
    assert!(dispatch.heard(&peer("b"), later));
    assert_eq!(hand_out(&mut dispatch, later), Some(("b".into(), 1)));
}

#[test]
fn after_a_restart_a_site_waits_for_its_owner_to_come_back() {
    let mut dispatch = Dispatch::new(15_000, LONGEST_REQUEST_MS, NOW);
    join(&mut dispatch, "b", 10);
    dispatch.add_site(site(1, 0, Some("a")));
    assert!(hand_out(&mut dispatch, NOW).is_none());
    join(&mut dispatch, "a", 10);
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("a".into(), 1)));
}

#[test]
fn a_site_leaves_the_window_when_nothing_of_it_is_left() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.add_site(site(1, 0, None));
    let grant = dispatch.next_grant(NOW).unwrap();
    dispatch.handed_out(&grant, &[(7, 1, 20)], 0, 50);
    assert!(dispatch.take_idle().is_empty());
    dispatch.ended(7, SiteClock::default(), NOW);
    assert_eq!(dispatch.take_idle().len(), 1);
    assert_eq!(dispatch.sites_in_window(), 0);
}

#[test]
fn an_unknown_peer_is_asked_for_its_name() {
    let mut dispatch = dispatch(&[("a", 10)]);
    assert!(dispatch.heard(&peer("a"), NOW));
    assert!(!dispatch.heard(&peer("stranger"), NOW));
    assert!(dispatch.goodbye(&peer("a")).is_empty());
    assert!(!dispatch.heard(&peer("a"), NOW));
}
