//! Tests of the sessions of supervisors: hello, heartbeat, goodbye.

use super::*;

#[test]
fn a_name_belongs_to_its_instance_as_long_as_that_may_be_alive() {
    let mut dispatch = dispatch(&[("a", 10)]);
    let elsewhere = Hello {
        instance: 2,
        ..hello("a", 9)
    };
    assert_eq!(
        dispatch.fleet.check_hello(&elsewhere),
        HelloVerdict::NameTaken
    );
    assert_eq!(
        dispatch.fleet.check_hello(&hello("a", 1)),
        HelloVerdict::Outdated
    );
    assert_eq!(
        dispatch.fleet.check_hello(&hello("a", 2)),
        HelloVerdict::Joins
    );
    dispatch.remove_supervisor("a");
    assert_eq!(dispatch.fleet.check_hello(&elsewhere), HelloVerdict::Joins);
}

#[test]
fn lost_messages_are_noticed_in_both_directions() {
    let patience_ms = 3 * LEASE_MS / 10;
    for (received, outcomes_sent) in [(0, 0), (1, 1)] {
        let mut dispatch = dispatch(&[("a", 10)]);
        let (_, session, number) = dispatch.fleet.next_message_address("a").unwrap();
        assert_eq!((session, number), (1, 1));
        let beat = SupervisorHeartbeat {
            received,
            outcomes_sent,
            ..heartbeat(1, 0, 10)
        };
        let mut in_step = |at_ms| {
            let heard = dispatch.on_heartbeat(&peer("a"), &beat, NOW + at_ms);
            heard != HeartbeatReply::OutOfSync
        };
        assert!(in_step(1_000), "it is noted");
        assert!(in_step(1_000 + patience_ms), "it may be on its way");
        assert!(!in_step(1_001 + patience_ms));
    }
}

#[test]
fn only_a_new_session_renews_a_lease_that_has_run_out() {
    let mut dispatch = dispatch(&[("a", 10)]);
    let over_ms = NOW + LEASE_MS + 1_000;
    assert_eq!(dispatch.fleet.lease_ends(), [("a".into(), over_ms)]);
    assert!(send_heartbeat(&mut dispatch, "a", over_ms - 1));
    let over_ms = over_ms - 1 + LEASE_MS + 1_000;
    assert!(!send_heartbeat(&mut dispatch, "a", over_ms));
    assert!(
        !send_heartbeat(&mut dispatch, "a", over_ms + 1),
        "not even then"
    );
    assert_eq!(dispatch.fleet.lease_ends(), [("a".into(), over_ms)]);
    dispatch.join(&hello("a", 2), peer("a"), over_ms + 2);
    assert_eq!(
        dispatch.fleet.lease_end(&peer("a")),
        Some(("a", over_ms + 2 + LEASE_MS + 1_000))
    );
}

#[test]
fn an_unknown_session_is_asked_to_say_hello() {
    let mut dispatch = dispatch(&[("a", 10)]);
    assert!(send_heartbeat(&mut dispatch, "a", NOW));
    assert!(!send_heartbeat(&mut dispatch, "stranger", NOW));
    assert_eq!(
        dispatch.on_heartbeat(&peer("a"), &heartbeat(7, 0, 1), NOW),
        HeartbeatReply::OutOfSync
    );
}

#[test]
fn a_supervisor_has_left_when_its_last_outcomes_have_arrived() {
    let mut dispatch = dispatch(&[("a", 10)]);
    dispatch.fleet.begin_leaving(&peer("a"), 1, 2, NOW);
    dispatch.fleet.record_outcomes("a", 1, 2, 3);
    assert!(
        dispatch.fleet.departed_supervisors(NOW).is_empty(),
        "one is missing"
    );
    dispatch.fleet.record_outcomes("a", 1, 1, 4);
    assert_eq!(dispatch.fleet.departed_supervisors(NOW), ["a"]);
    dispatch.remove_supervisor("a");
    assert!(!send_heartbeat(&mut dispatch, "a", NOW));
}
