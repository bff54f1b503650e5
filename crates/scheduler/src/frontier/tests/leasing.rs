use webfill_wire::Delivery;

use super::*;

fn admit_only_site(fixture: &mut Fixture) -> SiteDue {
    let mut sites = fixture.frontier.sites().admit_due(i64::MAX, 10).unwrap();
    assert_eq!(sites.len(), 1);
    sites.remove(0)
}

#[test]
fn the_highest_priority_goes_first_and_then_the_oldest() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let mut urgent = CrawlSpec::new("app", "urgent");
    urgent.priority = 90;
    fixture.crawl = fixture.frontier.crawls().open(&urgent).unwrap();
    fixture.feed(&["http://a.org/3"]);
    let site = admit_only_site(&mut fixture);
    let urgent = Turn {
        priority: 90,
        crawl: fixture.crawl,
        lane: Lane::Http,
    };
    assert_eq!((site.queued, site.next), (3, Some(urgent)));
    let batch = fixture
        .frontier
        .tasks()
        .lease(site.id, 2, Lane::Http, 0)
        .unwrap();
    assert_eq!(urls(&batch.tasks), ["http://a.org/3", "http://a.org/1"]);
    assert_eq!(batch.left, 1);
    let batch = fixture
        .frontier
        .tasks()
        .lease(site.id, 2, Lane::Http, 0)
        .unwrap();
    assert_eq!(urls(&batch.tasks), ["http://a.org/2"]);
    assert_eq!(batch.left, 0);
    fixture.assert_counts_consistent();
}

#[test]
fn due_sites_come_by_priority_and_then_by_their_clock_and_only_once() {
    let mut fixture = fixture();
    fixture.feed(&[
        "http://a.org/",
        "http://b.org/",
        "http://c.org/",
        "http://d.org/",
    ]);
    let due_at = |name: &str| match name {
        "a.org" => 300,
        "b.org" => 100,
        "c.org" => 200,
        _ => 900,
    };
    for site in fixture.frontier.sites().admit_due(i64::MAX, 10).unwrap() {
        let clock = Clock {
            due_at_ms: due_at(&site.name),
            ..Clock::default()
        };
        fixture.frontier.sites().evict(site.id, &clock).unwrap();
    }
    let mut urgent = CrawlSpec::new("app", "urgent");
    urgent.priority = 90;
    fixture.crawl = fixture.frontier.crawls().open(&urgent).unwrap();
    fixture.feed(&["http://a.org/urgent", "http://d.org/urgent"]);

    assert_eq!(fixture.frontier.sites().next_due_ms().unwrap(), Some(100));
    let names = |sites: Vec<SiteDue>| sites.into_iter().map(|s| s.name).collect::<Vec<_>>();
    assert_eq!(
        names(fixture.frontier.sites().admit_due(500, 2).unwrap()),
        ["a.org", "b.org"]
    );
    assert_eq!(
        names(fixture.frontier.sites().admit_due(500, 2).unwrap()),
        ["c.org"]
    );
    assert_eq!(fixture.frontier.sites().next_due_ms().unwrap(), Some(900));
    assert_eq!(
        names(fixture.frontier.sites().admit_due(i64::MAX, 2).unwrap()),
        ["d.org"]
    );
    assert_eq!(fixture.frontier.sites().next_due_ms().unwrap(), None);
}

#[test]
fn a_clock_is_kept_with_its_owner() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/"]);
    let site = admit_only_site(&mut fixture);
    assert_eq!(site.clock, Clock::default());
    let clock = Clock {
        due_at_ms: 7_000,
        delay_ms: Some(2_500),
        last_start_ms: Some(4_500),
        owner: Some("vm-3".into()),
        address: Some("2001:db8::7".parse().unwrap()),
    };
    fixture
        .frontier
        .sites()
        .save_clock(site.id, &clock)
        .unwrap();
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    assert_eq!(admit_only_site(&mut fixture).clock, clock);
    assert_eq!(
        fixture
            .frontier
            .sites()
            .get(site.id)
            .unwrap()
            .unwrap()
            .clock,
        clock
    );
}

#[test]
fn an_outcome_counts_once() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/"]);
    let task = fixture.lease_one();
    let mut wrong = successful_report(&task);
    wrong.links = to_strings(&["/a"]);
    let Delivery { epoch, number } = task.delivery;
    // The second delivery (hand-out) was made by a copy of this frontier that was started at another time.
    for delivery in [
        Delivery::new(epoch, number + 1),
        Delivery::new(epoch + 1, number),
    ] {
        wrong.delivery = delivery;
        let completion = fixture.frontier.tasks().complete(&wrong, 0).unwrap();
        assert_eq!(completion, Completion::Stale);
    }
    let unknown = TaskDone {
        task: u64::MAX,
        ..successful_report(&task)
    };
    assert_eq!(
        fixture.frontier.tasks().complete(&unknown, 0).unwrap(),
        Completion::Stale
    );
    fixture.complete_with_links(&task, &[]);
    assert_eq!(
        fixture
            .frontier
            .tasks()
            .complete(&successful_report(&task), 0)
            .unwrap(),
        Completion::Stale
    );
    assert_eq!(fixture.outcomes(), [(Outcome::Ok, 1)]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_task_that_comes_back_is_handed_out_again_under_another_lease() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/"]);
    let first = fixture.lease_one();
    let back = |fixture: &mut Fixture, task: &Leased, blamed| {
        fixture
            .frontier
            .tasks()
            .return_task(task.task, task.delivery, blamed, 0)
            .unwrap()
    };
    let turn = Turn {
        priority: 50,
        crawl: fixture.crawl,
        lane: Lane::Http,
    };
    assert_eq!(
        back(&mut fixture, &first, false),
        ReturnResult::Requeued(turn)
    );
    assert_eq!(back(&mut fixture, &first, false), ReturnResult::Stale);
    let second = fixture.lease_one();
    assert_eq!(
        (second.task, second.delivery.number, second.deaths),
        (first.task, 2, 0)
    );
    assert_eq!(
        fixture
            .frontier
            .tasks()
            .complete(&successful_report(&first), 0)
            .unwrap(),
        Completion::Stale
    );
    fixture.complete_with_links(&second, &[]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_task_ends_when_it_has_killed_three_workers() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/"]);
    for death in 1..=3 {
        let task = fixture.lease_one();
        assert_eq!(task.deaths, death - 1);
        let back = fixture
            .frontier
            .tasks()
            .return_task(task.task, task.delivery, true, 0)
            .unwrap();
        let expected = if death == 3 {
            ReturnResult::Quarantined
        } else {
            ReturnResult::Requeued(Turn {
                priority: 50,
                crawl: fixture.crawl,
                lane: Lane::Http,
            })
        };
        assert_eq!(back, expected);
        fixture.assert_counts_consistent();
    }
    assert_eq!(fixture.outcomes(), [(Outcome::Crashed, 1)]);
    assert!(fixture.lease_all().is_empty());
    let crashed = fixture.frontier.tasks().list_crashed_since(0).unwrap();
    let crashed: Vec<_> = crashed
        .iter()
        .map(|(task, delivery, at_ms)| (*task, delivery.number, *at_ms))
        .collect();
    assert_eq!(crashed, [(1, 3, 0)]);
    assert_eq!(fixture.frontier.tasks().list_crashed_since(1).unwrap(), []);
}

#[test]
fn queued_tasks_of_an_expired_crawl_end_instead_of_being_leased() {
    let mut fixture = fixture_with_spec(|spec| spec.expires_at_ms = Some(1_000));
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let site = admit_only_site(&mut fixture);
    let held = fixture
        .frontier
        .tasks()
        .lease(site.id, 1, Lane::Http, 999)
        .unwrap()
        .tasks
        .remove(0);
    let batch = fixture
        .frontier
        .tasks()
        .lease(site.id, 1, Lane::Http, 1_000)
        .unwrap();
    assert_eq!(batch, LeaseBatch::default());
    assert_eq!(fixture.outcomes(), [(Outcome::Expired, 1)]);
    // Tasks that were handed out before the stop still count, but their links are not followed.
    let tally = fixture.complete_task_at(
        &TaskDone {
            links: to_strings(&["/3"]),
            ..successful_report(&held)
        },
        2_000,
    );
    assert_eq!(tally.links.unwanted, 1);
    fixture.assert_counts_consistent();
}

#[test]
fn a_stopped_crawl_ends_step_by_step_and_may_be_opened_again() {
    let mut fixture = fixture();
    let urls: Vec<String> = (0..50)
        .map(|n| format!("http://s{}.org/{n}", n % 7))
        .collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    fixture.feed(&urls);
    assert!(
        !fixture
            .frontier
            .crawls()
            .end_queued_tasks(fixture.crawl, 0)
            .unwrap(),
        "it is not over"
    );
    fixture.frontier.crawls().stop(fixture.crawl).unwrap();
    while fixture
        .frontier
        .crawls()
        .end_queued_tasks(fixture.crawl, 0)
        .unwrap()
    {}
    assert_eq!(fixture.outcomes(), [(Outcome::Stopped, 50)]);
    assert_eq!(fixture.frontier.sites().next_due_ms().unwrap(), None);
    fixture.assert_counts_consistent();
    let mut fixture = fixture.reopen(0);
    assert_eq!(fixture.feed(&["http://s0.org/new"]).accepted, 1);
    assert_eq!(fixture.lease_all().len(), 1);
}

#[test]
fn hostile_counts_are_added_without_a_panic() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    for task in fixture.lease_all() {
        let report = TaskDone {
            body_bytes: u64::MAX,
            fields: u32::MAX,
            ..successful_report(&task)
        };
        fixture.complete_task(&report);
    }
    assert_eq!(fixture.status().bytes, i64::MAX as u64);
    fixture.assert_counts_consistent();
}
