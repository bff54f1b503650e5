use super::*;
use crate::site_state::Phase;

fn failed_task(task: &Leased, outcome: Outcome) -> TaskDone {
    TaskDone {
        outcome,
        status_code: None,
        ..successful_report(task)
    }
}

fn find_site(fixture: &mut Fixture, name: &str) -> SiteId {
    fixture
        .frontier
        .site_states()
        .find_report(name)
        .unwrap()
        .unwrap()
        .id
}

fn phase_of_site(fixture: &mut Fixture, name: &str) -> Option<Phase> {
    let report = fixture
        .frontier
        .site_states()
        .find_report(name)
        .unwrap()
        .unwrap();
    report.trouble.map(|trouble| trouble.phase)
}

#[test]
fn failures_of_an_offline_machine_are_undone_completely() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://b.org/1"]);
    let tasks = fixture.lease_all();
    let a = find_site(&mut fixture, "a.org");
    let b = find_site(&mut fixture, "b.org");
    let before = fixture.frontier.site_states().site_health(a).unwrap();
    assert_eq!(before, SiteHealth::default());
    // One task ends; the site of the other one backs off.
    let ended = fixture
        .frontier
        .tasks()
        .complete(&failed_task(&tasks[0], Outcome::Timeout), 0);
    assert!(matches!(
        ended.unwrap(),
        Completion::Counted(_) | Completion::WillRetry
    ));
    let backoff = fixture
        .frontier
        .tasks()
        .complete(&failed_task(&tasks[1], Outcome::DnsError), 0);
    assert!(matches!(backoff.unwrap(), Completion::SiteBackoffs(_)));
    assert!(
        fixture
            .frontier
            .site_states()
            .site_health(b)
            .unwrap()
            .is_in_trouble
    );
    fixture.assert_counts_consistent();

    let ids: Vec<TaskId> = tasks.iter().map(|task| task.task).collect();
    fixture
        .frontier
        .site_states()
        .undo_failures(&ids, &[(a, before), (b, before)], 100)
        .unwrap();
    fixture.assert_counts_consistent();
    assert_eq!(phase_of_site(&mut fixture, "a.org"), None);
    assert_eq!(phase_of_site(&mut fixture, "b.org"), None);
    let status = fixture.status();
    assert_eq!((status.done, status.queued), (0, 2));
    let db = Connection::open(fixture.dir.path().join(FILE_NAME)).unwrap();
    let counting = "SELECT count(*) FROM tries WHERE counts = 1";
    let tries: i64 = db.query_row(counting, [], |row| row.get(0)).unwrap();
    assert_eq!(tries, 0);
}

#[test]
fn a_site_that_was_in_trouble_before_is_probed_at_once() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let task = fixture.lease_one();
    fixture
        .frontier
        .tasks()
        .complete(&failed_task(&task, Outcome::DnsError), 0)
        .unwrap();
    let site = find_site(&mut fixture, "a.org");
    let before = fixture.frontier.site_states().site_health(site).unwrap();
    assert!(before.is_in_trouble && !before.has_answered && !before.is_healthy());
    fixture
        .frontier
        .site_states()
        .undo_failures(&[task.task], &[(site, before)], 100)
        .unwrap();
    assert_eq!(
        phase_of_site(&mut fixture, "a.org"),
        Some(Phase::BackingOff { until_ms: 100 })
    );
    assert_eq!(fixture.frontier.sites().admit_due(100, 9).unwrap().len(), 1);
}

/// The first attempt failed on a machine that was offline, and the second was answered on another machine.
#[test]
fn a_task_that_was_answered_since_is_not_queued_again() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let task = fixture.lease_one();
    let site = find_site(&mut fixture, "a.org");
    let before = fixture.frontier.site_states().site_health(site).unwrap();
    fixture
        .frontier
        .tasks()
        .complete(&successful_report(&task), 50)
        .unwrap();
    fixture
        .frontier
        .site_states()
        .undo_failures(&[task.task], &[(site, before)], 100)
        .unwrap();
    let status = fixture.status();
    assert_eq!((status.done, status.queued), (1, 0));
    fixture.assert_counts_consistent();
}
