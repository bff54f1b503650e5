//! Tests of machines that are offline, and of machines that join late.

use std::collections::BTreeSet;

use webfill_wire::{Evidence, Outcome, TaskDone};

use super::*;
use crate::dispatch::attribution::MachineFindings;
use crate::frontier::SiteHealth;

const WELL: SiteHealth = SiteHealth {
    has_answered: true,
    is_in_trouble: false,
};

/// The outcome of a task that got no answer.
fn unanswered_task(task: TaskId) -> TaskDone {
    TaskDone {
        outcome: Outcome::NetworkError,
        evidence: Some(Evidence {
            url: "http://a.example/".into(),
            status_code: None,
            sign: "no route".into(),
            no_route: true,
        }),
        ..answered_task(task)
    }
}

fn answered_task(task: TaskId) -> TaskDone {
    TaskDone {
        task,
        delivery: Delivery::new(0, 1),
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 0,
        fields: 0,
        rows: 0,
        rows_stored: 0,
        links: Vec::new(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
        evidence: None,
    }
}

/// Hands out a task of each site. Returns the tasks with their supervisors.
pub(super) fn hand_out_all(dispatch: &mut Dispatch, now_ms: i64) -> Vec<(TaskId, String)> {
    let mut handed_out = Vec::new();
    while let Some(grant) = dispatch.next_grant(now_ms) {
        let task = grant.site.0 as u64 * 100 + now_ms as u64 % 100;
        dispatch.record_grant(&grant, &batch(&[leased_task(task, 50)], 9, Some(turn(50))));
        handed_out.push((task, grant.supervisor));
    }
    handed_out
}

/// Ends a task that got no answer, and queues it again. Returns what this shows about the machine.
fn fail_task(dispatch: &mut Dispatch, task: TaskId, now_ms: i64) -> MachineFindings {
    let judgement = dispatch.record_attempt_of_machine(&unanswered_task(task), WELL, now_ms);
    let request = LastRequest::Known(SiteClock::default());
    dispatch.return_lease(task, Some(turn(50)), request, now_ms);
    judgement
}

#[test]
fn the_sites_of_a_machine_that_is_offline_go_to_another() {
    let mut dispatch = dispatch(&[("a", 100), ("b", 100)]);
    (1..=12).for_each(|id| dispatch.schedule.add(site(id, NOW, None)));
    let (of_a, of_b): (Vec<_>, Vec<_>) = hand_out_all(&mut dispatch, NOW)
        .into_iter()
        .partition(|(_, name)| name == "a");
    assert_eq!((of_a.len(), of_b.len()), (6, 6));
    for (task, _) in &of_b {
        dispatch.record_attempt_of_machine(&answered_task(*task), WELL, NOW);
        dispatch.end_lease(*task, SiteClock::default(), NOW);
    }
    for (task, _) in &of_a[..4] {
        assert_eq!(
            fail_task(&mut dispatch, *task, NOW),
            MachineFindings::default()
        );
    }
    let last = fail_task(&mut dispatch, of_a[4].0, NOW);
    assert!(last.is_excused);
    let (name, failures) = last.offline.expect("five sites that were well");
    assert_eq!((name.as_str(), failures.tasks.len()), ("a", 5));
    assert!(dispatch.fleet.offline_state("a").is_some());

    let again = hand_out_all(&mut dispatch, NOW + 1);
    assert_eq!(again.len(), 11, "all but the one that is still with a");
    assert!(again.iter().all(|(_, name)| name == "b"), "{again:?}");
    assert!(
        fail_task(&mut dispatch, of_a[5].0, NOW + 1).is_excused,
        "what was under way says nothing"
    );
}

#[test]
fn a_machine_alone_gets_several_probes_at_a_time_each_at_another_site() {
    let mut dispatch = dispatch(&[("a", 1_000)]);
    (1..=60).for_each(|id| dispatch.schedule.add(site(id, NOW, Some("a"))));
    let tasks = hand_out_all(&mut dispatch, NOW);
    let judged: Vec<MachineFindings> = tasks
        .iter()
        .map(|(task, _)| fail_task(&mut dispatch, *task, NOW))
        .collect();
    assert!(judged[4].offline.is_some());
    assert!(send_heartbeat(&mut dispatch, "a", NOW));
    assert_eq!(hand_out_all(&mut dispatch, NOW + 1), []);
    let mut probed = BTreeSet::new();
    for _ in 0..4 {
        let now_ms = dispatch.fleet.next_probe_ms().expect("a round comes");
        assert!(keep_lease_until(&mut dispatch, "a", now_ms));
        let handed_out = hand_out_all(&mut dispatch, now_ms);
        let sites: BTreeSet<u64> = handed_out.iter().map(|(task, _)| task / 100).collect();
        assert_eq!((handed_out.len(), sites.len()), (16, 16), "{handed_out:?}");
        assert_eq!(dispatch.fleet.next_probe_ms(), None, "one round at a time");
        for (task, _) in handed_out {
            fail_task(&mut dispatch, task, now_ms);
        }
        probed.extend(sites);
    }
    assert!(probed.len() >= 40, "sites are drawn from all: {probed:?}");

    let now_ms = dispatch.fleet.next_probe_ms().expect("a round comes");
    assert!(keep_lease_until(&mut dispatch, "a", now_ms));
    let (task, _) = hand_out_all(&mut dispatch, now_ms).remove(0);
    let judgement = dispatch.record_attempt_of_machine(&answered_task(task), WELL, now_ms);
    assert_eq!(judgement.opened.as_deref(), Some("a"));
    dispatch.end_lease(task, SiteClock::default(), now_ms);
    assert!(
        hand_out_all(&mut dispatch, now_ms + 1).len() >= 44,
        "those of failed probes, too"
    );
}

#[test]
fn a_probe_goes_to_a_site_that_others_reach() {
    let mut dispatch = dispatch(&[("a", 100), ("b", 100)]);
    (1..=12).for_each(|id| dispatch.schedule.add(site(id, NOW, None)));
    let all = hand_out_all(&mut dispatch, NOW);
    for (task, name) in &all {
        match name == "a" {
            true => drop(fail_task(&mut dispatch, *task, NOW)),
            false => drop(dispatch.end_lease(*task, SiteClock::default(), NOW)),
        }
    }
    assert!(dispatch.fleet.offline_state("a").is_some());
    for (task, _) in hand_out_all(&mut dispatch, NOW + 1) {
        dispatch.end_lease(task, SiteClock::default(), NOW + 1);
    }
    assert_eq!(dispatch.schedule.count_owned_by("a"), 0);
    let now_ms = dispatch.fleet.next_probe_ms().expect("a probe comes");
    for name in ["a", "b"] {
        assert!(keep_lease_until(&mut dispatch, name, now_ms));
    }
    let of_a = hand_out_all(&mut dispatch, now_ms);
    let of_a: Vec<_> = of_a.iter().filter(|(_, name)| name == "a").collect();
    assert_eq!(of_a.len(), 1);
}

/// Lets `a`, which is offline, get its next test tasks, and lets them fail. Returns the site of the first one, and the
/// time.
fn fail_probe(dispatch: &mut Dispatch, connected: &[&str]) -> (u64, i64) {
    let now_ms = dispatch.fleet.next_probe_ms().expect("a probe comes");
    for name in connected {
        assert!(keep_lease_until(dispatch, name, now_ms));
    }
    let handed_out = hand_out_all(dispatch, now_ms);
    let of_a = handed_out.iter().filter(|(_, name)| name == "a");
    let tasks: Vec<TaskId> = of_a.map(|(task, _)| *task).collect();
    for task in &tasks {
        fail_task(dispatch, *task, now_ms);
    }
    (tasks.first().expect("it is due") / 100, now_ms)
}

#[test]
fn a_site_at_which_a_probe_has_failed_goes_to_an_online_machine() {
    let mut dispatch = dispatch(&[("a", 100), ("b", 100)]);
    (1..=12).for_each(|id| dispatch.schedule.add(site(id, NOW, None)));
    for (task, name) in &hand_out_all(&mut dispatch, NOW) {
        match name == "a" {
            true => drop(fail_task(&mut dispatch, *task, NOW)),
            false => drop(dispatch.end_lease(*task, SiteClock::default(), NOW)),
        }
    }
    for (task, _) in hand_out_all(&mut dispatch, NOW + 1) {
        dispatch.end_lease(task, SiteClock::default(), NOW + 1);
    }
    let (probed, now_ms) = fail_probe(&mut dispatch, &["a", "b"]);
    let next = hand_out_all(&mut dispatch, now_ms + 1);
    let to_b = (probed * 100 + (now_ms as u64 + 1) % 100, "b".to_owned());
    assert!(next.contains(&to_b), "{probed} is not among {next:?}");
}

#[test]
fn a_machine_that_joins_gets_the_sites_at_which_probes_of_others_have_failed() {
    let mut dispatch = dispatch(&[("a", 100)]);
    (1..=8).for_each(|id| dispatch.schedule.add(site(id, NOW, Some("a"))));
    for (task, _) in hand_out_all(&mut dispatch, NOW) {
        fail_task(&mut dispatch, task, NOW);
    }
    let (_, now_ms) = fail_probe(&mut dispatch, &["a"]);
    join_supervisor(&mut dispatch, "b", 100);
    assert!(keep_lease_until(&mut dispatch, "b", now_ms));
    let next = hand_out_all(&mut dispatch, now_ms + 1);
    assert_eq!(next.len(), 8, "{next:?}");
}

#[test]
fn a_machine_that_joins_late_gets_its_share() {
    let mut dispatch = dispatch(&[("a", 1_000)]);
    (1..=40).for_each(|id| dispatch.schedule.add(site(id, NOW, Some("a"))));
    join_supervisor(&mut dispatch, "b", 1_000);
    assert_eq!(
        (
            dispatch.schedule.count_owned_by("a"),
            dispatch.schedule.count_owned_by("b")
        ),
        (40, 0)
    );
    hand_out_all(&mut dispatch, NOW);
    assert_eq!(
        (
            dispatch.schedule.count_owned_by("a"),
            dispatch.schedule.count_owned_by("b")
        ),
        (22, 18)
    );
    dispatch.remove_supervisor("b");
    assert_eq!(
        (
            dispatch.schedule.count_owned_by("a"),
            dispatch.schedule.count_owned_by("b")
        ),
        (22, 0)
    );
}
