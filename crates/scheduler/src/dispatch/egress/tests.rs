use super::*;

const NOW: i64 = 1_000_000;
const SECOND: i64 = 1_000;

const NO_ROUTE: ReachResult = ReachResult::Silence { no_route: true };
const SILENCE: ReachResult = ReachResult::Silence { no_route: false };

fn site_health(was_well: bool) -> SiteHealth {
    SiteHealth {
        has_answered: was_well,
        is_in_trouble: false,
    }
}

fn attempt(site: i64, reach: ReachResult, was_well: bool, at_ms: i64) -> ReachAttempt<'static> {
    ReachAttempt {
        task: site as TaskId,
        site: SiteId(site),
        reach,
        before: site_health(was_well),
        evidence: None,
        at_ms,
    }
}

fn record_attempt(
    egress: &mut Egress,
    site: i64,
    reach: ReachResult,
    was_well: bool,
    at_ms: i64,
) -> Option<EgressChange> {
    egress.record_attempt(&attempt(site, reach, was_well, at_ms), Tally::default())
}

/// The connection of a machine. These sites answered over this connection some time ago.
fn egress_with_answers(sites: std::ops::Range<i64>) -> Egress {
    let mut egress = Egress::default();
    for site in sites {
        record_attempt(
            &mut egress,
            site,
            ReachResult::Answered,
            false,
            NOW - 10 * SECOND,
        );
    }
    egress
}

#[test]
fn healthy_sites_that_fail_one_after_another_show_a_fault_of_the_machine() {
    let mut egress = egress_with_answers(0..20);
    for site in 0..4 {
        assert_eq!(record_attempt(&mut egress, site, SILENCE, true, NOW), None);
    }
    let Some(EgressChange::Offline(failures)) = record_attempt(&mut egress, 4, SILENCE, true, NOW)
    else {
        panic!("five sites at once");
    };
    assert_eq!(failures.tasks, [0, 1, 2, 3, 4]);
    let sites: Vec<_> = (0..5)
        .map(|site| (SiteId(site), site_health(true)))
        .collect();
    assert_eq!(failures.sites, sites);
    assert_eq!(
        egress.offline_state().map(|found| found.since_ms),
        Some(NOW)
    );
}

#[test]
fn an_answer_in_between_shows_that_the_sites_are_at_fault() {
    let mut egress = egress_with_answers(0..20);
    for site in 0..20 {
        assert_eq!(record_attempt(&mut egress, site, SILENCE, true, NOW), None);
        if site % 4 == 3 {
            assert_eq!(
                record_attempt(&mut egress, 100, ReachResult::Answered, false, NOW),
                None
            );
        }
    }
    // If another site has answered a moment ago, the failures are not the machine's fault.
    let mut egress = egress_with_answers(0..20);
    record_attempt(&mut egress, 100, ReachResult::Answered, false, NOW);
    for site in 0..20 {
        assert_eq!(
            record_attempt(&mut egress, site, SILENCE, true, NOW + QUIET_MS - 1),
            None
        );
    }
}

#[test]
fn a_tail_of_dead_sites_is_not_the_machines_fault() {
    let mut egress = egress_with_answers(0..20);
    for site in 100..1_000 {
        let reach = match site % 10 {
            0 => ReachResult::NoSuchName,
            1..5 => NO_ROUTE,
            _ => SILENCE,
        };
        let at_ms = NOW + site * SECOND;
        assert_eq!(
            record_attempt(&mut egress, site, reach, false, at_ms),
            None,
            "{site}"
        );
    }
}

#[test]
fn a_machine_without_a_route_is_noticed_at_its_first_sites() {
    let mut egress = Egress::default();
    let found =
        (0..10).find(|site| record_attempt(&mut egress, *site, NO_ROUTE, false, NOW).is_some());
    assert_eq!(found, Some(4));
    // A machine that has reached the web before is given more time, because its name servers may be dead.
    let mut egress = egress_with_answers(0..1);
    let found =
        (0..30).find(|site| record_attempt(&mut egress, *site, NO_ROUTE, false, NOW).is_some());
    assert_eq!(found, Some(19));
}

#[test]
fn a_machine_is_compared_with_the_others() {
    let tally = |sites, failed| Tally { sites, failed };
    assert!(tally(8, 8).fails_significantly_more(tally(100, 5)));
    assert!(
        !tally(7, 7).fails_significantly_more(tally(100, 5)),
        "too few to say"
    );
    assert!(
        !tally(8, 8).fails_significantly_more(tally(7, 0)),
        "too few to compare with"
    );
    assert!(
        !tally(20, 20).fails_significantly_more(tally(100, 50)),
        "where half of the sites are dead"
    );
    assert!(tally(30, 30).fails_significantly_more(tally(100, 50)));
    assert!(
        !tally(64, 60).fails_significantly_more(tally(100, 90)),
        "the others fail, too"
    );
    assert!(
        !tally(64, 20).fails_significantly_more(tally(100, 5)),
        "most of its sites answer"
    );
}

#[test]
fn probes_come_less_and_less_often_until_one_is_answered() {
    let mut egress = egress_with_answers(0..20);
    (0..5).for_each(|site| drop(record_attempt(&mut egress, site, SILENCE, true, NOW)));
    let mut now_ms = NOW;
    let mut waits = Vec::new();
    for round in 10..16 {
        let due_ms = egress.probe_at_ms().expect("no probe is under way");
        waits.push((due_ms - now_ms) / SECOND);
        assert_eq!(egress.free_probes(3, due_ms - 1), Some(0));
        now_ms = due_ms;
        let tasks = [0, 1, 2].map(|n| 10 * round + n);
        for (room, task) in [3, 2, 1].into_iter().zip(tasks) {
            assert_eq!(egress.free_probes(3, now_ms), Some(room));
            egress.on_handed_out(task);
        }
        assert_eq!(egress.probe_at_ms(), None, "one round at a time");
        assert_eq!(egress.free_probes(3, now_ms), Some(0));
        // Answers to requests from before the machine went offline do not count.
        assert_eq!(
            record_attempt(&mut egress, 7, ReachResult::Answered, false, now_ms),
            None
        );
        for task in tasks {
            let failed = record_attempt(&mut egress, task as i64, SILENCE, true, now_ms);
            assert!(matches!(failed, Some(EgressChange::StillOffline { .. })));
            assert_eq!(egress.free_probes(3, now_ms), Some(0));
        }
    }
    assert_eq!(waits, [5, 5, 10, 20, 40, 60]);
    egress.on_handed_out(60);
    assert_eq!(
        record_attempt(&mut egress, 60, ReachResult::Answered, false, now_ms),
        Some(EgressChange::Opened)
    );
    assert_eq!(egress.offline_state(), None);
    assert_eq!(egress.probe_at_ms(), None);
}

#[test]
fn a_probe_that_shows_nothing_is_followed_by_another() {
    let mut egress = egress_with_answers(0..20);
    (0..5).for_each(|site| drop(record_attempt(&mut egress, site, SILENCE, true, NOW)));
    egress.on_handed_out(50);
    egress.on_lease_end(50, NOW + SECOND);
    assert_eq!(egress.probe_at_ms(), Some(NOW + SECOND + FIRST_PROBE_MS));
}

#[test]
fn a_site_is_excused_only_once_for_a_fault_of_the_machine() {
    let mut egress = egress_with_answers(0..20);
    (0..5).for_each(|site| drop(record_attempt(&mut egress, site, SILENCE, true, NOW)));
    egress.on_handed_out(60);
    record_attempt(&mut egress, 60, ReachResult::Answered, false, NOW);
    let later_ms = NOW + 60 * SECOND;
    for site in 0..5 {
        assert_eq!(
            record_attempt(&mut egress, site, SILENCE, true, later_ms),
            None
        );
    }
    // Sites that have answered since then count as evidence again.
    let mut egress = egress_with_answers(0..20);
    (0..5).for_each(|site| drop(record_attempt(&mut egress, site, SILENCE, true, NOW)));
    egress.on_handed_out(60);
    record_attempt(&mut egress, 60, ReachResult::Answered, false, NOW);
    (0..5).for_each(|site| {
        drop(record_attempt(
            &mut egress,
            site,
            ReachResult::Answered,
            false,
            NOW,
        ))
    });
    let found =
        (0..5).find(|site| record_attempt(&mut egress, *site, SILENCE, true, later_ms).is_some());
    assert_eq!(found, Some(4));
}

#[test]
fn when_all_probes_fail_for_hours_the_sites_may_be_dead_after_all() {
    let mut egress = egress_with_answers(0..20);
    (0..5).for_each(|site| drop(record_attempt(&mut egress, site, SILENCE, true, NOW)));
    egress.on_handed_out(50);
    let late_ms = NOW + LONGEST_OFFLINE_MS + 1;
    assert_eq!(
        record_attempt(&mut egress, 50, SILENCE, true, late_ms),
        Some(EgressChange::Opened)
    );
}

#[test]
fn a_machine_that_is_offline_names_the_evidence_of_its_last_probe() {
    let mut egress = egress_with_answers(0..20);
    for site in 0..5 {
        record_attempt(&mut egress, site, SILENCE, true, NOW);
    }
    let sign_after_probe = |egress: &mut Egress, task: TaskId, sign: &str| {
        let evidence = Evidence {
            url: String::new(),
            status_code: None,
            sign: sign.to_owned(),
            no_route: true,
        };
        egress.on_handed_out(task);
        egress.record_attempt(
            &ReachAttempt {
                task,
                evidence: Some(&evidence),
                ..attempt(200, NO_ROUTE, true, NOW + 2 * SECOND)
            },
            Tally::default(),
        );
        egress.offline_state().map(|offline| offline.sign.clone())
    };
    for sign in ["no answer in time", "network is unreachable"] {
        assert_eq!(
            sign_after_probe(&mut egress, 100, sign).as_deref(),
            Some(sign)
        );
    }
}
