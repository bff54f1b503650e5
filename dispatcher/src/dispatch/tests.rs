use webfill_wire::Lane;

use super::*;
use crate::frontier::{Leased, SiteRule};

mod lanes;
mod on_demand;

const NOW: i64 = 1_000_000;
const LEASE_MS: i64 = 10_000;
const LONGEST_REQUEST_MS: u64 = 60_000;

fn dispatch(supervisors: &[(&str, u64)]) -> Dispatch {
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64);
    for (name, room) in supervisors {
        join(&mut dispatch, name, *room);
    }
    dispatch
}

/// Says hello in the next session.
fn join(dispatch: &mut Dispatch, name: &str, room: u64) -> Vec<(TaskId, Lease)> {
    join_lane(dispatch, name, Lane::Http, room)
}

fn join_lane(dispatch: &mut Dispatch, name: &str, lane: Lane, room: u64) -> Vec<(TaskId, Lease)> {
    let mut session = 1;
    while dispatch.greet(&hello(name, session)) == Greeting::Outdated {
        session += 1;
    }
    let hello = Hello {
        credit: credit(room),
        lane,
        ..hello(name, session)
    };
    dispatch.join(&hello, peer(name), NOW)
}

fn hello(name: &str, session: u64) -> Hello {
    Hello {
        supervisor: name.into(),
        instance: 1,
        session,
        sent_ms: 0,
        lane: Lane::Http,
        workers: 1,
        longest_request_ms: LONGEST_REQUEST_MS,
        credit: credit(0),
        held: Vec::new(),
    }
}

fn beat(session: u64, sent_ms: u64, room: u64) -> SupervisorHeartbeat {
    SupervisorHeartbeat {
        session,
        sent_ms,
        credit: credit(room),
        received: 0,
        outcomes_sent: 0,
    }
}

/// A heartbeat of the first session, whatever has arrived.
fn hear(dispatch: &mut Dispatch, name: &str, now_ms: i64) -> bool {
    let heard = dispatch.heartbeat(&peer(name), &beat(1, 0, 100), now_ms);
    matches!(heard, HeartbeatReply::InSync { .. })
}

/// It is heard of again and again up to this time.
fn hear_until(dispatch: &mut Dispatch, name: &str, until_ms: i64) -> bool {
    let (_, over_ms) = dispatch.lease_end(&peer(name)).unwrap();
    let before = (over_ms - LEASE_MS..until_ms).step_by(LEASE_MS as usize / 2);
    before.for_each(|at_ms| assert!(hear(dispatch, name, at_ms)));
    hear(dispatch, name, until_ms)
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
        rule: SiteRule::default(),
        queued: 10,
        next: Some(turn(50)),
    }
}

fn turn(priority: u8) -> Turn {
    Turn {
        priority,
        crawl: 1,
        lane: Lane::Http,
    }
}

fn leased(task: TaskId, priority: u8) -> Leased {
    Leased {
        attrs: None,
        task,
        delivery: 1,
        crawl: 1,
        url: "http://a.example/12345".into(),
        depth: 0,
        priority,
        parent: None,
        records: Vec::new(),
        deaths: 0,
        failed_attempts: Vec::new(),
    }
}

/// Hands out one task of the next grant, and returns who got it, for which site.
fn hand_out(dispatch: &mut Dispatch, now_ms: i64) -> Option<(String, i64)> {
    let grant = dispatch.next_grant(now_ms)?;
    let task = grant.site.0 as u64 * 100 + now_ms as u64 % 100;
    dispatch.record_handed_out(&grant, &[leased(task, 50)], 9, Some(turn(50)));
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
    dispatch.credit(&peer("a"), 1, credit(3), NOW);
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
    let narrow = Hello {
        credit: narrow,
        ..hello("a", 1)
    };
    dispatch.join(&narrow, peer("a"), NOW);
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
    dispatch.credit(&peer("a"), 1, credit(1), NOW);
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("a".into(), 1)));
}

#[test]
fn the_highest_priority_is_served_first() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.add_site(site(1, 0, None));
    let urgent = SiteDue {
        next: Some(turn(90)),
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
        delay_ms: Some(15_000),
    };
    let (id, kept) = dispatch.ended(100, clock, NOW).unwrap();
    assert_eq!((id, kept.due_at_ms), (SiteId(1), NOW + 15_000));
    hear_until(&mut dispatch, "a", NOW + 14_000);
    assert!(hand_out(&mut dispatch, NOW + 14_000).is_none());
    assert!(hand_out(&mut dispatch, NOW + 15_000).is_some());
}

#[test]
fn a_site_without_delay_has_many_tasks_out() {
    let mut dispatch = dispatch(&[("a", 1_000)]);
    let mut fast = site(1, 0, None);
    fast.clock.delay_ms = Some(0);
    dispatch.add_site(fast);
    assert_eq!(
        dispatch.next_grant(NOW).unwrap().tasks as u32,
        site::MOST_OUT
    );
}

#[test]
fn a_supervisor_that_lost_its_leases_gives_them_back() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.add_site(site(1, 0, None));
    assert!(hand_out(&mut dispatch, NOW).is_some());
    let holds = Hello {
        held: vec![(100, 1)],
        ..hello("a", 2)
    };
    assert!(dispatch.join(&holds, peer("a"), NOW).is_empty());
    let lost = join(&mut dispatch, "a", 10);
    assert_eq!(lost.len(), 1);
    let moved = dispatch.returned(
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
    dispatch.heartbeat(&peer("a"), &beat(3, 0, 10), NOW + 4_000);
    let grant = dispatch.next_grant(NOW + 15_000 - LOOKAHEAD_MS);
    // Nobody was heard for so long that there is room.
    assert_eq!(grant, None);
    dispatch.heartbeat(&peer("a"), &beat(3, 0, 10), NOW + 14_700);
    let grant = dispatch.next_grant(NOW + 14_700).unwrap();
    assert_eq!(grant.last_request_ago_ms, Some(14_700));
}

#[test]
fn what_a_worker_knows_of_a_site_that_it_gives_back_is_kept() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.add_site(site(1, 0, None));
    assert!(hand_out(&mut dispatch, NOW).is_some());
    let clock = SiteClock {
        next_in_ms: 4_000,
        delay_ms: Some(5_000),
    };
    let moved = dispatch.returned(100, Some(turn(50)), LastRequest::Known(clock), NOW);
    let kept = moved.unwrap().1;
    assert_eq!(kept.due_at_ms, NOW + 4_000);
    assert_eq!(kept.delay_ms, Some(5_000));
    assert_eq!(kept.last_start_ms, Some(NOW - 1_000));
}

#[test]
fn sites_of_a_lost_supervisor_wait_until_none_of_its_requests_can_be_under_way() {
    let mut dispatch = dispatch(&[("a", 10), ("b", 10)]);
    dispatch.add_site(site(1, 0, Some("a")));
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("a".into(), 1)));
    let hand_over = NOW + LEASE_MS + LONGEST_REQUEST_MS as i64;
    assert!(hear_until(&mut dispatch, "b", hand_over));
    assert!(dispatch.lost_supervisors(hand_over).is_empty());
    let later = hand_over + 2_000;
    assert_eq!(dispatch.lost_supervisors(later), ["a"]);
    let leases = dispatch.remove_supervisor("a");
    dispatch.returned(
        leases[0].0,
        Some(turn(50)),
        LastRequest::PossiblyUntilNow,
        later,
    );
    let later = later + 15_000;
    assert!(hear_until(&mut dispatch, "b", later));
    assert_eq!(hand_out(&mut dispatch, later), Some(("b".into(), 1)));
}

/// As after a restart: supervisor `a` was known, and held task 7 of site 1.
fn restarted() -> Dispatch {
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64);
    let kept = SavedSupervisor {
        name: "a".into(),
        instance: 1,
        longest_request_ms: LONGEST_REQUEST_MS,
        silent_ms: 0,
    };
    let lease = HeldLease {
        task: 7,
        delivery: 3,
        site: SiteId(1),
        priority: 50,
    };
    let ownerless = dispatch.restore(vec![kept], vec![site(1, 0, Some("a"))], vec![lease], NOW);
    assert!(ownerless.is_empty());
    dispatch
}

#[test]
fn after_a_restart_a_site_waits_for_its_owner_to_come_back() {
    let mut dispatch = restarted();
    join(&mut dispatch, "b", 10);
    dispatch.add_site(site(2, 0, Some("a")));
    assert!(hand_out(&mut dispatch, NOW).is_none());
    let holds = Hello {
        held: vec![(7, 3)],
        credit: credit(10),
        ..hello("a", 1)
    };
    assert_eq!(dispatch.join(&holds, peer("a"), NOW), []);
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("a".into(), 2)));
    assert_eq!(
        hand_out(&mut dispatch, NOW),
        None,
        "site 1 has its task out"
    );
    assert!(dispatch.ended(7, SiteClock::default(), NOW).is_some());
    assert_eq!(hand_out(&mut dispatch, NOW), Some(("a".into(), 1)));
}

#[test]
fn after_a_restart_a_site_whose_owner_stays_away_is_given_away_in_the_end() {
    let mut dispatch = restarted();
    let later = NOW + LEASE_MS + LONGEST_REQUEST_MS as i64 + 2_000;
    assert_eq!(dispatch.lost_supervisors(later), ["a"]);
    assert_eq!(dispatch.remove_supervisor("a").len(), 1);
}

#[test]
fn a_dispatcher_that_dies_again_and_again_gives_sites_away_all_the_same() {
    let mut silent_ms = 0;
    for _ in 0..1_000 {
        let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64);
        let kept = SavedSupervisor {
            name: "a".into(),
            instance: 1,
            longest_request_ms: LONGEST_REQUEST_MS,
            silent_ms,
        };
        dispatch.restore(vec![kept], Vec::new(), Vec::new(), NOW);
        if dispatch.lost_supervisors(NOW) == ["a"] {
            return;
        }
        silent_ms = dispatch.silences(NOW + 500)[0].1;
    }
    panic!("it is never lost");
}

#[test]
fn a_lease_whose_holder_is_unknown_comes_back_at_once() {
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64);
    let lease = HeldLease {
        task: 7,
        delivery: 3,
        site: SiteId(1),
        priority: 50,
    };
    let ownerless = dispatch.restore(vec![], vec![site(1, 0, Some("a"))], vec![lease], NOW);
    assert_eq!(ownerless.len(), 1);
}

#[test]
fn a_name_belongs_to_its_home_as_long_as_its_owner_may_be_alive() {
    let mut dispatch = dispatch(&[("a", 10)]);
    let elsewhere = Hello {
        instance: 2,
        ..hello("a", 9)
    };
    assert_eq!(dispatch.greet(&elsewhere), Greeting::NameTaken);
    assert_eq!(dispatch.greet(&hello("a", 1)), Greeting::Outdated);
    assert_eq!(dispatch.greet(&hello("a", 2)), Greeting::Joins);
    dispatch.remove_supervisor("a");
    assert_eq!(dispatch.greet(&elsewhere), Greeting::Joins);
}

#[test]
fn lost_messages_are_noticed_on_both_ways() {
    let patience_ms = 3 * LEASE_MS / 10;
    for (received, outcomes_sent) in [(0, 0), (1, 1)] {
        let mut dispatch = dispatch(&[("a", 10)]);
        let (_, session, number) = dispatch.address("a").unwrap();
        assert_eq!((session, number), (1, 1));
        let beat = SupervisorHeartbeat {
            received,
            outcomes_sent,
            ..beat(1, 0, 10)
        };
        let mut in_step = |at_ms| {
            let heard = dispatch.heartbeat(&peer("a"), &beat, NOW + at_ms);
            heard != HeartbeatReply::OutOfSync
        };
        assert!(in_step(1_000), "it is noted");
        assert!(in_step(1_000 + patience_ms), "it may be on its way");
        assert!(!in_step(1_001 + patience_ms));
    }
}

#[test]
fn a_lease_that_has_run_out_is_renewed_by_a_new_session_alone() {
    let mut dispatch = dispatch(&[("a", 10)]);
    let over_ms = NOW + LEASE_MS + 1_000;
    assert_eq!(dispatch.lease_ends(), [("a".into(), over_ms)]);
    assert!(hear(&mut dispatch, "a", over_ms - 1));
    let over_ms = over_ms - 1 + LEASE_MS + 1_000;
    assert!(!hear(&mut dispatch, "a", over_ms));
    assert!(!hear(&mut dispatch, "a", over_ms + 1), "not even then");
    assert_eq!(dispatch.lease_ends(), [("a".into(), over_ms)]);
    dispatch.join(&hello("a", 2), peer("a"), over_ms + 2);
    assert_eq!(
        dispatch.lease_end(&peer("a")),
        Some(("a", over_ms + 2 + LEASE_MS + 1_000))
    );
}

#[test]
fn an_unknown_session_is_asked_to_say_hello() {
    let mut dispatch = dispatch(&[("a", 10)]);
    assert!(hear(&mut dispatch, "a", NOW));
    assert!(!hear(&mut dispatch, "stranger", NOW));
    assert_eq!(
        dispatch.heartbeat(&peer("a"), &beat(7, 0, 1), NOW),
        HeartbeatReply::OutOfSync
    );
}

#[test]
fn who_says_goodbye_is_gone_when_the_last_outcomes_are_in() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.goodbye(&peer("a"), 1, 2, NOW);
    dispatch.note_outcomes("a", 1, 2);
    assert!(dispatch.left_supervisors(NOW).is_empty(), "one is missing");
    dispatch.note_outcomes("a", 1, 1);
    assert_eq!(dispatch.left_supervisors(NOW), ["a"]);
    dispatch.remove_supervisor("a");
    assert!(!hear(&mut dispatch, "a", NOW));
}
