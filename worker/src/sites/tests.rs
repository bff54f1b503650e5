use webfill_wire::Delivery;

use super::*;
use crate::politeness::Answer;

fn task(id: u64, site: &str, priority: u8) -> Task {
    Task {
        task: id,
        delivery: Delivery::new(0, 1),
        crawl: 1,
        url: format!("http://{site}/{id}"),
        site: site.into(),
        depth: 0,
        wait_ms: 0,
        last_request_ago_ms: None,
        parent: None,
        attrs: None,
        records: Vec::new(),
        priority,
        delay_ms: None,
        failed_attempts: Vec::new(),
        unreachable: None,
        address_bounds: webfill_wire::AddressBounds::None,
    }
}

#[test]
fn the_highest_priority_of_a_site_goes_first_and_then_the_oldest() {
    let mut sites = Sites::default();
    for (id, priority) in [(1, 50), (2, 90), (3, 50), (4, 90)] {
        sites.add(task(id, "a.org", priority), Duration::ZERO, Now::read());
    }
    let order: Vec<u64> = std::iter::from_fn(|| sites.next_task("a.org"))
        .map(|task| task.task)
        .collect();
    assert_eq!(order, [2, 4, 1, 3]);
}

#[test]
fn the_crawls_of_queued_tasks_are_known() {
    let mut sites = Sites::default();
    for (id, crawl) in [(1, 7), (2, 8), (3, 7)] {
        let task = Task {
            crawl,
            ..task(id, "a.org", 50)
        };
        sites.add(task, Duration::ZERO, Now::read());
    }
    assert_eq!(sites.queued_crawls(), HashSet::from([7, 8]));
    sites.next_task("a.org");
    sites.next_task("a.org");
    assert_eq!(sites.queued_crawls(), HashSet::from([7]));
}

#[test]
fn only_tasks_in_the_scope_are_taken_out_of_the_queues() {
    let mut sites = Sites::default();
    for (id, site, priority) in [(1, "a.org", 50), (2, "a.org", 90), (3, "b.org", 50)] {
        sites.add(task(id, site, priority), Duration::ZERO, Now::read());
    }
    let scope = RecallScope {
        site: Some("a.org".into()),
        below: Some(90),
        ..RecallScope::default()
    };
    let taken: Vec<u64> = sites
        .take_queued(&scope)
        .iter()
        .map(|task| task.task)
        .collect();
    assert_eq!(taken, [1]);
    assert_eq!(sites.next_task("a.org").map(|task| task.task), Some(2));
    assert_eq!(sites.next_task("b.org").map(|task| task.task), Some(3));
}

const PACE: Pace = Pace {
    delay: Duration::from_secs(5),
    longest_wait: Duration::from_secs(1_000),
    is_adaptive: true,
};

fn answered_request(now: Now, answer: Answer) -> Answered {
    Answered {
        started: now,
        at: now.instant,
        answer,
        page: None,
    }
}

#[test]
fn only_a_refusal_that_cost_a_request_holds_the_next_task_back() {
    let (mut sites, now) = (Sites::default(), Now::read());
    let delay = PACE.delay;
    sites.add(task(1, "a.org", 50), delay, now);
    sites.note_robots_answer("a.org", answered_request(now, Answer::NoRules), PACE);
    let next = |was_requested| sites.next_start_after_refusal("a.org", was_requested);
    assert_eq!(next(false), None);
    assert_eq!(next(true), Some(now.instant + delay));
}

#[test]
fn a_forgotten_back_off_leaves_the_delay() {
    let (mut sites, now) = (Sites::default(), Now::read());
    let delay = PACE.delay;
    sites.add(task(1, "a.org", 50), delay, now);
    let retry_after = Some(Duration::from_secs(500));
    let busy = answered_request(now, Answer::Overloaded { retry_after });
    sites.note_page_answer("a.org", busy, PACE);
    let now = now.instant;
    assert!(sites.next_start("a.org", Turn::Page(delay)) >= Some(now + Duration::from_secs(500)));
    sites.forget_back_off("a.org");
    assert_eq!(
        sites.next_start("a.org", Turn::Page(delay)),
        Some(now + delay)
    );
}

/// Adds a site with one task, and notes this answer to the site's only request.
fn handle_site_with_answer(sites: &mut Sites, name: &str, answer: Answer, now: Now) {
    sites.add(task(1, name, 50), PACE.delay, now);
    sites.next_task(name);
    sites.note_robots_answer(name, answered_request(now, answer), PACE);
    assert_eq!(sites.next_task(name), None);
}

#[test]
fn dead_sites_met_in_a_row_are_forgotten() {
    let (mut sites, mut now) = (Sites::default(), Now::read());
    let mut most = 0;
    for number in 0..200_000 {
        handle_site_with_answer(&mut sites, &format!("s{number}.org"), Answer::Silent, now);
        now.instant += Duration::from_millis(100);
        if number % 20 == 0 {
            sites.take_moved_clocks("one", now);
            most = most.max(sites.sites.len());
        }
    }
    // There are ten sites a second. Each is remembered for its wait of five seconds, and for the minute when its
    // failure counts.
    assert!(most <= 700, "{most} sites at once");
    assert!(sites.idle.len() <= 700);
}

#[test]
fn however_fast_dead_sites_are_met_few_are_remembered() {
    let (mut sites, mut now) = (Sites::default(), Now::read());
    let mut most = 0;
    for number in 0..200_000 {
        handle_site_with_answer(&mut sites, &format!("s{number}.org"), Answer::Silent, now);
        now.instant += Duration::from_millis(1);
        if number % 2_000 == 0 {
            sites.take_moved_clocks("one", now);
            most = most.max(sites.sites.len());
        }
    }
    // MOST_IDLE sites are remembered for a minute. Of all other sites, a thousand a second, those of the last seven
    // seconds are remembered: five seconds of waiting, and up to two until the next check.
    assert!(most <= MOST_IDLE + 7_001, "{most} sites at once");
}

#[test]
fn failures_count_until_the_site_is_forgotten() {
    let (mut sites, mut now) = (Sites::default(), Now::read());
    for wait_s in [5, 10, 20, 40, 40] {
        handle_site_with_answer(&mut sites, "a.org", Answer::Silent, now);
        let wait = Duration::from_secs(wait_s);
        let next = sites.next_start("a.org", Turn::Robots);
        assert_eq!(next, Some(now.instant + wait));
        now.instant += wait + Duration::from_secs(50);
        sites.take_moved_clocks("one", now);
    }
    now.instant += Duration::from_secs(10);
    sites.take_moved_clocks("one", now);
    assert!(sites.sites.is_empty());
}

#[test]
fn a_wall_clock_that_was_set_and_set_back_makes_nobody_wait_longer() {
    let (mut sites, now) = (Sites::default(), Now::read());
    handle_site_with_answer(&mut sites, "a.org", Answer::Silent, now);
    let hour_ms = 3_600_000;
    let ahead = Now {
        wall_ms: now.wall_ms + hour_ms,
        ..now
    };
    let entry = sites.take_moved_clocks("one", ahead).remove(0);
    let mut other = Sites::default();
    other.begin_visit("a.org", Duration::from_secs(5));
    other.take_shared_clock(&entry, now);
    let next = other
        .next_start("a.org", Turn::Robots)
        .map(|next| now.time_until(next));
    assert_eq!(next, Some(Duration::from_secs(5)));
}

#[test]
fn a_clock_is_listed_once_after_it_has_moved_and_again_if_it_was_not_written() {
    let (mut sites, now) = (Sites::default(), Now::read());
    handle_site_with_answer(&mut sites, "a.org", Answer::Served, now);
    let moved = sites.take_moved_clocks("one", now);
    assert_eq!(moved.len(), 1);
    assert_eq!(sites.take_moved_clocks("one", now), []);
    sites.mark_clocks_unsaved(moved.clone());
    assert_eq!(sites.take_moved_clocks("one", now), moved);
}
