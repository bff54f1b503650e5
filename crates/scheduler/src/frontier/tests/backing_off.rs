use super::*;
use webfill_wire::Evidence;

use crate::backoff_table::BackoffTable;
use crate::frontier::{HeldBy, HeldSitesScope};
use crate::site_state::Phase;

pub(super) fn fixture_with_backoffs(backoff: BackoffTable) -> Fixture {
    let config = FrontierConfig {
        backoff,
        ..FrontierConfig::default()
    };
    fixture_with_config(config, |_| ())
}

fn backoff_table() -> BackoffTable {
    BackoffTable {
        robots: vec![1.0, 10.0],
        ..BackoffTable::default()
    }
}

pub(super) fn unreachable_task(task: &Leased) -> TaskDone {
    TaskDone {
        outcome: Outcome::RobotsUnreachable,
        status_code: None,
        evidence: Some(Evidence {
            url: "http://a.org/robots.txt".into(),
            status_code: Some(503),
            sign: "robots.txt answered 503".into(),
            no_route: false,
        }),
        ..successful_report(task)
    }
}

pub(super) fn complete_and_check_backoff(
    fixture: &mut Fixture,
    done: &TaskDone,
    now_ms: i64,
) -> bool {
    let completion = fixture.frontier.tasks().complete(done, now_ms).unwrap();
    matches!(completion, Completion::SiteBackoffs(_))
}

fn backoff_until(fixture: &mut Fixture) -> Option<i64> {
    let report = fixture
        .frontier
        .site_states()
        .find_report("a.org")
        .unwrap()
        .unwrap();
    match report.trouble?.phase {
        Phase::BackingOff { until_ms } => Some(until_ms),
        Phase::Open | Phase::Unreachable => None,
    }
}

#[test]
fn a_backing_off_site_keeps_its_tasks_over_a_restart() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let task = fixture.lease_all_at(0).remove(0);
    assert!(complete_and_check_backoff(
        &mut fixture,
        &unreachable_task(&task),
        500
    ));
    fixture.assert_counts_consistent();
    let begun = fixture.frontier.site_states().take_begun_backoffs();
    assert_eq!(begun.len(), 1);
    assert_eq!(
        (begun[0].name.as_str(), begun[0].until_ms),
        ("a.org", Some(1_500))
    );
    assert_eq!(begun[0].evidence.status_code, Some(503));
    fixture.frontier.note_time(600).unwrap();
    fixture.frontier.commit().unwrap();

    let mut fixture = fixture.reopen(600);
    assert_eq!(backoff_until(&mut fixture), Some(1_500));
    let asked = HeldSitesScope::Crawl(fixture.crawl);
    let held = fixture
        .frontier
        .reports()
        .held_sites(asked, 10_000, 600)
        .unwrap();
    assert_eq!(
        (held[0].by, held[0].example.as_str()),
        (HeldBy::Backoff, "a.org")
    );
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due(1_499, 9)
            .unwrap()
            .is_empty()
    );
    let due = fixture.frontier.sites().admit_due(1_500, 9).unwrap();
    assert_eq!(due[0].backoff_until_ms, Some(1_500));
    let status = fixture.status();
    assert_eq!((status.done, status.queued + status.leased), (0, 2));
}

#[test]
fn a_site_that_backs_off_is_found_among_more_sites_than_one_call_checks() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    let many = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 60_000)
                INSERT INTO sites (name) SELECT n || '.example' FROM n";
    let made = fixture
        .frontier
        .run_in_transaction(|db| db.execute(many, []));
    assert_eq!(made.unwrap(), 60_000);
    fixture.feed(&["http://a.org/1", "http://b.org/1"]);
    for task in fixture.lease_all_at(0) {
        if task.url == "http://a.org/1" {
            assert!(complete_and_check_backoff(
                &mut fixture,
                &unreachable_task(&task),
                500
            ));
        }
    }
    let (found, next) = fixture
        .frontier
        .site_states()
        .list_reports(true, 0, 10)
        .unwrap();
    let names: Vec<_> = found.iter().map(|site| site.name.as_str()).collect();
    assert_eq!((names, next), (vec!["a.org"], None));
    // Each call reads a limited number of sites, so listing all takes several calls.
    let (mut names, mut after, mut steps) = (Vec::new(), Some(0), 0);
    while let Some(from) = after {
        let (found, next) = fixture
            .frontier
            .site_states()
            .list_reports(false, from, 10)
            .unwrap();
        names.extend(found.into_iter().map(|site| site.name));
        (after, steps) = (next, steps + 1);
    }
    assert_eq!((names.join(" ").as_str(), steps), ("a.org", 2));
}

#[test]
fn a_backoff_that_is_over_stays_over_if_the_clock_is_set_back() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/1"]);
    let task = fixture.lease_all_at(0).remove(0);
    assert!(complete_and_check_backoff(
        &mut fixture,
        &unreachable_task(&task),
        500
    ));
    fixture.frontier.note_time(2_000).unwrap();
    fixture.frontier.commit().unwrap();

    let mut fixture = fixture.reopen(600);
    assert_eq!(
        backoff_until(&mut fixture),
        Some(600),
        "and the probe is next"
    );
}

#[test]
fn after_the_last_backoff_queued_tasks_end_as_unreachable_and_later_ones_wait() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let mut now_ms = 0;
    for until_ms in [1_000, 11_000] {
        let task = fixture.lease_all_at(now_ms).remove(0);
        assert!(complete_and_check_backoff(
            &mut fixture,
            &unreachable_task(&task),
            now_ms
        ));
        assert_eq!(backoff_until(&mut fixture), Some(until_ms));
        for left in fixture.frontier.tasks().leases().unwrap() {
            let back =
                fixture
                    .frontier
                    .tasks()
                    .return_task(left.task, left.delivery, false, now_ms);
            assert!(matches!(back.unwrap(), ReturnResult::Requeued(_)));
        }
        now_ms = until_ms;
    }
    let mut last = fixture.lease_all_at(now_ms);
    let probe = last.remove(0);
    for left in last {
        fixture
            .frontier
            .tasks()
            .return_task(left.task, left.delivery, false, now_ms)
            .unwrap();
    }
    assert!(probe.unreachable.is_none());
    assert!(
        !complete_and_check_backoff(&mut fixture, &unreachable_task(&probe), now_ms),
        "given up"
    );
    fixture.feed(&["http://a.org/3"]);
    let ended = fixture.lease_all_at(now_ms);
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0].unreachable, Some(Outcome::RobotsUnreachable));
    let done = TaskDone {
        evidence: None,
        ..unreachable_task(&ended[0])
    };
    fixture.complete_task_at(&done, now_ms);
    assert_eq!(fixture.outcomes(), [(Outcome::RobotsUnreachable, 2)]);
    assert!(
        fixture.lease_all_at(now_ms).is_empty(),
        "it backs off for the new"
    );
    assert_eq!(backoff_until(&mut fixture), Some(now_ms + 10_000));
    fixture.assert_counts_consistent();
}

#[test]
fn an_answer_after_a_backoff_opens_the_site() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let mut tasks = fixture.lease_all_at(0);
    let other = tasks.pop().unwrap();
    let task = tasks.pop().unwrap_or_else(|| other.clone());
    assert!(complete_and_check_backoff(
        &mut fixture,
        &unreachable_task(&task),
        0
    ));
    let probe = fixture.lease_all_at(1_000).remove(0);
    fixture.complete_task_at(&successful_report(&probe), 1_000);
    assert_eq!(backoff_until(&mut fixture), None);
    let site = fixture
        .frontier
        .site_states()
        .find_report("a.org")
        .unwrap()
        .unwrap();
    assert_eq!(site.trouble, None);
}

/// A task that is handed out and called back does not count as tried.
#[test]
fn the_page_that_was_requested_least_goes_first_after_a_backoff() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    let give_back = |fixture: &mut Fixture, task: &Leased| {
        let back = fixture
            .frontier
            .tasks()
            .return_task(task.task, task.delivery, false, 0);
        assert!(matches!(back.unwrap(), ReturnResult::Requeued(_)));
    };
    fixture.feed(&["http://a.org/called-back"]);
    for _ in 0..5 {
        let task = fixture.lease_one();
        give_back(&mut fixture, &task);
    }
    fixture.feed(&["http://a.org/fails"]);
    let tasks = fixture.lease_all_at(0);
    give_back(&mut fixture, &tasks[0]);
    assert!(complete_and_check_backoff(
        &mut fixture,
        &unreachable_task(&tasks[1]),
        0
    ));
    let probes = fixture.lease_all_at(1_000);
    assert_eq!(urls(&probes), ["http://a.org/called-back"]);
}

#[test]
fn a_crawl_waits_until_its_first_task_can_be_handed_out() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/1", "http://b.org/1"]);
    let tasks = fixture.lease_all_at(0);
    for task in &tasks {
        assert!(complete_and_check_backoff(
            &mut fixture,
            &unreachable_task(task),
            0
        ));
    }
    let crawl = fixture.crawl;
    assert_eq!(
        fixture
            .frontier
            .site_states()
            .first_handout_after(crawl, 999)
            .unwrap(),
        Some(1_000)
    );
    assert_eq!(
        fixture
            .frontier
            .site_states()
            .first_handout_after(crawl, 1_000)
            .unwrap(),
        None
    );
    let (count, first) = fixture
        .frontier
        .site_states()
        .list_backing_off(1, 999)
        .unwrap();
    assert_eq!((count, first.len()), (2, 1));
    fixture
        .frontier
        .site_states()
        .end_backoff("a.org", 5)
        .unwrap();
    assert_eq!(
        fixture
            .frontier
            .site_states()
            .first_handout_after(crawl, 999)
            .unwrap(),
        None
    );
    let due = fixture.frontier.sites().admit_due(5, 9).unwrap();
    assert!(due.iter().any(|site| site.name == "a.org"));
}

#[test]
fn tasks_of_a_site_that_was_unreachable_are_requested_again_when_a_person_wants_them() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/1"]);
    for (now_ms, is_last) in [(0, false), (1_000, false), (11_000, true)] {
        let task = fixture.lease_all_at(now_ms).remove(0);
        assert_eq!(
            complete_and_check_backoff(&mut fixture, &unreachable_task(&task), now_ms),
            !is_last
        );
    }
    assert_eq!(fixture.outcomes(), [(Outcome::RobotsUnreachable, 1)]);
    let wanted = EndedTasks {
        crawl: fixture.crawl,
        outcomes: vec![Outcome::RobotsUnreachable],
        status_codes: None,
        site: Some("a.org".into()),
    };
    let mut walk = fixture.frontier.reopening().begin_walk(wanted).unwrap();
    let tally = fixture
        .frontier
        .reopening()
        .requeue_slice(&mut walk, 12_000)
        .unwrap();
    assert_eq!((tally.requeued, walk.is_over()), (1, true));
    let task = fixture.lease_all_at(12_000).remove(0);
    assert_eq!(task.unreachable, None);
    assert!(
        complete_and_check_backoff(&mut fixture, &unreachable_task(&task), 12_000),
        "from the first backoff on"
    );
    fixture.assert_counts_consistent();
}

/// The notes about sites whose states are to be saved: the number of each, and the site's phase.
fn unsaved_phases(fixture: &mut Fixture) -> Vec<(i64, Phase)> {
    let unsaved = fixture.frontier.site_states().list_unsaved(0, 9).unwrap();
    let phase = |one: UnsavedState| {
        assert_eq!(one.report.name, "a.org");
        let trouble = one.report.trouble;
        (
            one.number,
            trouble.map_or(Phase::Open, |trouble| trouble.phase),
        )
    };
    unsaved.into_iter().map(phase).collect()
}

#[test]
fn a_changed_state_is_unsaved_until_the_store_has_it() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/1"]);
    assert_eq!(unsaved_phases(&mut fixture), []);
    let task = fixture.lease_all_at(0).remove(0);
    assert!(complete_and_check_backoff(
        &mut fixture,
        &unreachable_task(&task),
        0
    ));
    let backing_off = |until_ms| Phase::BackingOff { until_ms };
    assert_eq!(unsaved_phases(&mut fixture), [(1, backing_off(1_000))]);

    // The state changes again while the store writes.
    fixture
        .frontier
        .site_states()
        .end_backoff("a.org", 500)
        .unwrap();
    fixture
        .frontier
        .site_states()
        .delete_notes_up_to(1)
        .unwrap();
    assert_eq!(unsaved_phases(&mut fixture), [(2, backing_off(500))]);
    fixture
        .frontier
        .site_states()
        .delete_notes_up_to(2)
        .unwrap();
    assert_eq!(unsaved_phases(&mut fixture), []);

    let task = fixture.lease_all_at(500).remove(0);
    fixture
        .frontier
        .tasks()
        .complete(&successful_report(&task), 600)
        .unwrap();
    assert_eq!(unsaved_phases(&mut fixture), [(3, Phase::Open)]);
    fixture.frontier.note_time(700).unwrap();
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(700);
    assert_eq!(
        unsaved_phases(&mut fixture),
        [(3, Phase::Open)],
        "over a restart"
    );
}

#[test]
fn all_states_are_saved_again_after_a_start() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/1"]);
    let task = fixture.lease_all_at(0).remove(0);
    assert!(complete_and_check_backoff(
        &mut fixture,
        &unreachable_task(&task),
        0
    ));
    fixture
        .frontier
        .site_states()
        .delete_notes_up_to(1)
        .unwrap();
    fixture.frontier.note_time(100).unwrap();
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(100);
    let until_ms = 1_000;
    assert_eq!(
        unsaved_phases(&mut fixture),
        [(2, Phase::BackingOff { until_ms })]
    );
}

/// Pages served before a site blocked are queued again, and a restart in between loses none of them.
#[test]
fn doubtful_pages_are_remembered_across_a_restart() {
    let mut fixture = fixture();
    let urls = ["/1", "/2", "/3", "/4"].map(|path| format!("http://soft.example{path}"));
    fixture.feed(&urls.each_ref().map(String::as_str));
    let tasks = fixture.lease_all();
    let nothing = |task: &Leased| TaskDone {
        fields: 0,
        ..successful_report(task)
    };
    fixture.complete_task(&nothing(&tasks[0]));
    // The good page clears the doubts about the pages before it.
    fixture.complete_task(&successful_report(&tasks[1]));
    fixture.complete_task(&nothing(&tasks[2]));
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    let blocked = TaskDone {
        outcome: Outcome::Blocked,
        status_code: Some(403),
        ..nothing(&tasks[3])
    };
    let blocked = TaskDone {
        evidence: Some(Evidence {
            url: tasks[3].url.clone(),
            status_code: Some(403),
            sign: "a challenge".into(),
            no_route: false,
        }),
        ..blocked
    };
    let ended = fixture.frontier.tasks().complete(&blocked, 0).unwrap();
    assert!(matches!(ended, Completion::SiteBackoffs(_)), "{ended:?}");
    assert_eq!(
        fixture.frontier.site_states().take_suspects(),
        [tasks[2].task]
    );
    fixture
        .frontier
        .reopening()
        .requeue(&[tasks[2].task], 0)
        .unwrap();
    assert_eq!(fixture.outcomes(), [(Outcome::Ok, 2)]);
    fixture.assert_counts_consistent();
}

/// The page is fetched again before the store was asked to remove its values, so its new values are kept.
#[test]
fn a_page_that_is_fetched_again_is_not_taken_back_later() {
    let mut fixture = fixture();
    fixture.feed(&["http://soft.example/1"]);
    let task = fixture.lease_all().remove(0);
    fixture.complete_task(&successful_report(&task));
    retraction::request_retraction(&mut fixture.frontier.0.cx, task.task).unwrap();
    fixture
        .frontier
        .reopening()
        .requeue(&[task.task], 0)
        .unwrap();
    assert_eq!(
        fixture.frontier.records().take_new_retractions().unwrap(),
        []
    );
    let again = fixture.lease_all().remove(0);
    fixture.complete_task(&successful_report(&again));
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    assert_eq!(
        fixture
            .frontier
            .records()
            .load_pending_retractions()
            .unwrap(),
        []
    );
}
