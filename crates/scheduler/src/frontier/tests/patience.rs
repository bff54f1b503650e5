//! Tests of sites in trouble: a local crawl waits two minutes for them (its patience).

use super::*;
use webfill_wire::Evidence;

use crate::patience::Patience;

fn fixture() -> Fixture {
    let config = FrontierConfig {
        patience: Some(Patience {
            ms: 120_000,
            default_delay_ms: 1_000,
        }),
        ..FrontierConfig::default()
    };
    fixture_with_config(config, |spec| spec.retry = true)
}

fn failed_task(
    task: &Leased,
    outcome: Outcome,
    status_code: Option<u16>,
    next_in_ms: u32,
) -> TaskDone {
    TaskDone {
        outcome,
        status_code,
        clock: SiteClock {
            next_in_ms,
            delay_ms: Some(1_000),
        },
        // Workers send no evidence of failures that are the page's own.
        evidence: (!matches!(status_code, Some(404 | 502))).then(|| Evidence {
            url: task.url.clone(),
            status_code,
            sign: "it fails".into(),
            no_route: false,
        }),
        ..successful_report(task)
    }
}

/// Lets each attempt end with this outcome, until nothing is left. Returns the times of the attempts, in seconds.
fn fail_until_ended(
    fixture: &mut Fixture,
    outcome: Outcome,
    status_code: Option<u16>,
    next_in_ms: u32,
) -> Vec<i64> {
    let mut at_s = Vec::new();
    for now_s in 0..1_000 {
        let now_ms = now_s * 1_000;
        fixture
            .frontier
            .tasks()
            .requeue_due_retries(now_ms)
            .unwrap();
        for site in fixture.frontier.sites().admit_due(now_ms, 1_000).unwrap() {
            let batch = fixture
                .frontier
                .tasks()
                .lease(site.id, 1, Lane::Http, now_ms)
                .unwrap();
            for task in batch.tasks {
                let done = match task.unreachable {
                    Some(outcome) => TaskDone {
                        outcome,
                        status_code: None,
                        ..successful_report(&task)
                    },
                    None => {
                        at_s.push(now_s);
                        failed_task(&task, outcome, status_code, next_in_ms)
                    }
                };
                fixture.frontier.tasks().complete(&done, now_ms).unwrap();
            }
            fixture
                .frontier
                .sites()
                .evict(site.id, &site.clock)
                .unwrap();
        }
        if fixture.status().queued == 0 {
            break;
        }
    }
    assert_eq!(fixture.status().queued, 0);
    fixture.assert_counts_consistent();
    at_s
}

#[test]
fn a_page_of_a_dead_site_has_its_tries_within_the_patience() {
    for (outcome, status, next_in_ms, expected) in [
        (Outcome::RobotsUnreachable, None, 1_000, vec![0, 5, 30, 120]),
        (Outcome::Timeout, None, 1_000, vec![0, 5, 30, 35, 60]),
        (
            Outcome::HttpError,
            Some(429),
            1_000,
            vec![0, 5, 30, 35, 60, 120],
        ),
        // A site that limits the number of requests.
        (
            Outcome::HttpError,
            Some(403),
            1_000,
            vec![0, 5, 30, 35, 60, 120],
        ),
        (Outcome::HttpError, Some(502), 1_000, vec![0, 5, 30]),
        // The name server has denied the name, so a second check is enough.
        (Outcome::DnsError, None, 1_000, vec![0, 5]),
        // Sites that demand a wait of an hour, or block for an hour.
        (Outcome::HttpError, Some(503), 3_600_000, vec![0]),
        (Outcome::RobotsUnreachable, None, 3_600_000, vec![0]),
        (Outcome::Blocked, Some(403), 1_000, vec![0]),
        // Failures that are mostly permanent, so that one attempt is enough.
        (Outcome::HttpError, Some(404), 1_000, vec![0]),
        (Outcome::TlsError, None, 1_000, vec![0]),
    ] {
        let mut fixture = fixture();
        fixture.feed(&["http://a.org/1"]);
        let at_s = fail_until_ended(&mut fixture, outcome, status, next_in_ms);
        assert_eq!(at_s, expected, "{outcome} {status:?}");
        assert_eq!(fixture.outcomes(), [(outcome, 1)]);
    }
}

#[test]
fn present_and_future_tasks_of_a_dead_site_end() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://a.org/3"]);
    fail_until_ended(&mut fixture, Outcome::RobotsUnreachable, None, 1_000);
    fixture.feed(&["http://a.org/4"]);
    let tried = fail_until_ended(&mut fixture, Outcome::RobotsUnreachable, None, 1_000);
    assert!(tried.is_empty(), "{tried:?}");
    assert_eq!(fixture.outcomes(), [(Outcome::RobotsUnreachable, 4)]);

    // The next command tries the site again.
    fixture
        .frontier
        .site_states()
        .renew_patience(1_000)
        .unwrap();
    fixture.feed(&["http://a.org/5"]);
    let tried = fail_until_ended(&mut fixture, Outcome::RobotsUnreachable, None, 1_000);
    assert_eq!(tried, [1, 26, 121]);
}

/// As long as only one page of a site that answers 429 was tried, the other pages may be fine.
#[test]
fn a_page_refused_permanently_does_not_end_pages_found_later() {
    let refused = (Outcome::HttpError, Some(429));
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    fail_until_ended(&mut fixture, refused.0, refused.1, 1_000);
    fixture.feed(&["http://a.org/2"]);
    let tried = fail_until_ended(&mut fixture, Outcome::Ok, Some(200), 1_000);
    assert_eq!(tried, [0]);
    let outcomes = [(Outcome::Ok, 1), (Outcome::HttpError, 1)];
    assert_eq!(fixture.outcomes(), outcomes);

    // Several pages have failed, and none was answered.
    fixture.feed(&["http://a.org/3", "http://a.org/4"]);
    fail_until_ended(&mut fixture, refused.0, refused.1, 1_000);
    fixture.feed(&["http://a.org/5"]);
    let tried = fail_until_ended(&mut fixture, Outcome::Ok, Some(200), 1_000);
    assert!(tried.is_empty(), "{tried:?}");
}

/// The site has two hosts. One of them is dead.
#[test]
fn a_dead_host_ends_no_pages_of_another_host_of_its_site() {
    for outcome in [
        Outcome::DnsError,
        Outcome::NetworkError,
        Outcome::RobotsUnreachable,
    ] {
        let mut fixture = fixture();
        for number in 0..6 {
            fixture.feed(&[&format!("http://gone.a.org/{number}")]);
        }
        fixture.feed(&["http://www.a.org/1", "http://www.a.org/2"]);
        let mut has_answered = false;
        for now_s in 0..3_000 {
            let now_ms = now_s * 1_000;
            fixture
                .frontier
                .tasks()
                .requeue_due_retries(now_ms)
                .unwrap();
            for site in fixture.frontier.sites().admit_due(now_ms, 10).unwrap() {
                let batch = fixture
                    .frontier
                    .tasks()
                    .lease(site.id, 1, Lane::Http, now_ms)
                    .unwrap();
                for task in batch.tasks {
                    assert!(task.unreachable.is_none() || task.url.contains("gone"));
                    let done = match task.url.contains("gone") {
                        true => {
                            failed_task(&task, task.unreachable.unwrap_or(outcome), None, 1_000)
                        }
                        false => successful_report(&task),
                    };
                    has_answered |= done.outcome == Outcome::Ok;
                    fixture.frontier.tasks().complete(&done, now_ms).unwrap();
                }
                let mut clock = site.clock.clone();
                clock.delay_ms = has_answered.then_some(1_000);
                fixture.frontier.sites().evict(site.id, &clock).unwrap();
            }
        }
        assert_eq!(fixture.outcomes()[0], (Outcome::Ok, 2), "{outcome}");
    }
}

#[test]
fn a_blocking_site_still_backs_off_in_the_next_command() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    fail_until_ended(&mut fixture, Outcome::Blocked, Some(403), 1_000);
    for (now_ms, tries) in [(60_000, 0), (3_600_000, 1)] {
        fixture
            .frontier
            .site_states()
            .renew_patience(now_ms)
            .unwrap();
        fixture.feed(&[&format!("http://a.org/{now_ms}")]);
        let mut tried = 0;
        for site in fixture.frontier.sites().admit_due(now_ms, 10).unwrap() {
            let batch = fixture
                .frontier
                .tasks()
                .lease(site.id, 9, Lane::Http, now_ms)
                .unwrap();
            for task in batch.tasks {
                tried += usize::from(task.unreachable.is_none());
                let done = failed_task(&task, Outcome::Blocked, None, 1_000);
                fixture.frontier.tasks().complete(&done, now_ms).unwrap();
            }
            fixture
                .frontier
                .sites()
                .evict(site.id, &site.clock)
                .unwrap();
        }
        assert_eq!(tried, tries, "{now_ms}");
    }
}
