use std::time::Duration;

use webfill_wire::Delivery;

use super::*;
use crate::politeness::Answer;

#[derive(Default)]
struct Bench {
    politeness: PolitenessConfig,
    sites: RefCell<Sites>,
    robots: RefCell<RobotsFiles>,
}

impl Bench {
    fn knowledge(&self) -> Knowledge<'_> {
        Knowledge {
            politeness: &self.politeness,
            sites: &self.sites,
            robots: &self.robots,
        }
    }

    fn begin(&self, looks_up_twice: bool, now: Now) -> PermissionCheck {
        let task = task();
        let url = Url::parse(&task.url).unwrap();
        let mut sites = self.sites.borrow_mut();
        sites.add(task.clone(), Duration::ZERO, now);
        drop(sites);
        PermissionCheck::begin(&task, &url, looks_up_twice, self.knowledge(), now)
    }
}

fn task() -> Task {
    Task {
        task: 1,
        delivery: Delivery::new(0, 1),
        crawl: 1,
        url: String::from("http://a.org/page"),
        site: String::from("a.org"),
        depth: 0,
        wait_ms: 0,
        last_request_ago_ms: None,
        parent: None,
        attrs: None,
        records: Vec::new(),
        priority: 50,
        delay_ms: None,
        failed_attempts: Vec::new(),
        unreachable: None,
        address_bounds: webfill_wire::AddressBounds::None,
    }
}

fn response(status: u16, body: &str, now: Now) -> RobotsResponse {
    RobotsResponse {
        outcome: Outcome::Ok,
        status: Some(status),
        body: body.as_bytes().to_vec(),
        redirect: None,
        error: None,
        no_route: false,
        answered_at: now.instant,
        answer: Answer::Served,
    }
}

#[test]
fn robots_txt_is_looked_up_then_fetched_and_then_remembered() {
    let (bench, now) = (Bench::default(), Now::read());
    let mut check = bench.begin(false, now);
    assert_eq!(check.next_step(), look_up_step());
    check.note_cache_entry(None, bench.knowledge(), now);
    assert_eq!(check.next_step(), await_turn_step("a.org"));
    check.note_turn(bench.knowledge(), now);
    let url = Url::parse("http://a.org/robots.txt").unwrap();
    assert_eq!(check.next_step(), Step::Request(url));
    let file = "User-agent: *\nCrawl-delay: 3\n";
    check.note_response(Ok(response(200, file, now)), bench.knowledge(), now);
    let delay = Duration::from_secs(3);
    let turn = Turn::PageAfterRobots(delay);
    let allowed = Permission::Allowed { delay, turn };
    assert_eq!(check.next_step(), Step::Decided(allowed));
    assert_eq!(check.take_fetched().len(), 1);
    let turn = Turn::Page(delay);
    let again = Step::Decided(Permission::Allowed { delay, turn });
    assert_eq!(bench.begin(false, now).next_step(), again);
}

#[test]
fn with_a_shared_clock_the_cache_is_checked_again_at_the_turn() {
    let (bench, now) = (Bench::default(), Now::read());
    let mut check = bench.begin(true, now);
    check.note_cache_entry(None, bench.knowledge(), now);
    check.note_turn(bench.knowledge(), now);
    assert_eq!(check.next_step(), look_up_step());
    let entry = RobotsEntry {
        origin: String::from("http://a.org"),
        status: Some(200),
        body: b"User-agent: *\nDisallow: /\n".to_vec(),
        fetched_at_ms: now.wall_ms,
        expires_at_ms: now.wall_ms + 1_000,
    };
    check.note_cache_entry(Some(&entry), bench.knowledge(), now);
    let refused = Permission::Refused {
        outcome: Outcome::Disallowed,
        evidence: None,
    };
    assert_eq!(check.next_step(), Step::Decided(refused));
    assert!(check.take_fetched().is_empty());
}

#[test]
fn a_failed_fetch_refuses_the_page_and_a_denied_one_gives_the_task_back() {
    let (bench, now) = (Bench::default(), Now::read());
    let mut denied = bench.begin(false, now);
    denied.note_cache_entry(None, bench.knowledge(), now);
    denied.note_turn(bench.knowledge(), now);
    denied.note_response(Err(Denied::NotStarted), bench.knowledge(), now);
    assert_eq!(denied.next_step(), Step::Decided(Permission::NotAsked));
    let mut failed = bench.begin(false, now);
    failed.note_cache_entry(None, bench.knowledge(), now);
    failed.note_turn(bench.knowledge(), now);
    failed.note_response(Ok(response(500, "", now)), bench.knowledge(), now);
    assert_eq!(outcome_of(&failed), Some(Outcome::RobotsUnreachable));
}

fn await_turn_step(site: &str) -> Step {
    Step::AwaitTurn(site.to_owned())
}

fn look_up_step() -> Step {
    Step::LookUp(String::from("http://a.org"))
}

/// The outcome of the task, if its request for robots.txt failed.
fn outcome_of(check: &PermissionCheck) -> Option<Outcome> {
    match check.next_step() {
        Step::Decided(Permission::Refused {
            outcome,
            evidence: Some(_),
        }) => Some(outcome),
        _ => None,
    }
}

#[test]
fn each_failure_is_a_request_that_waits_longer_than_the_one_before() {
    let (mut bench, mut now) = (Bench::default(), Now::read());
    bench.politeness.delay = 0.0;
    for wait_s in [1, 2, 4] {
        let mut check = bench.begin(false, now);
        check.note_cache_entry(None, bench.knowledge(), now);
        assert_eq!(
            check.next_step(),
            await_turn_step("a.org"),
            "nothing is remembered"
        );
        check.note_turn(bench.knowledge(), now);
        check.note_response(Ok(response(500, "", now)), bench.knowledge(), now);
        assert_eq!(outcome_of(&check), Some(Outcome::RobotsUnreachable));
        let next = bench.sites.borrow().next_start("a.org", Turn::Robots);
        let wait = Duration::from_secs(wait_s);
        assert_eq!(next, Some(now.instant + wait));
        now = now_plus(now, wait);
    }
}

fn now_plus(now: Now, by: Duration) -> Now {
    Now {
        instant: now.instant + by,
        wall_ms: now.wall_ms + by.as_millis() as i64,
    }
}

#[test]
fn the_last_good_file_applies_while_a_new_one_cannot_be_fetched() {
    let (bench, now) = (Bench::default(), Now::read());
    let mut first = bench.begin(false, now);
    first.note_cache_entry(None, bench.knowledge(), now);
    first.note_turn(bench.knowledge(), now);
    first.note_response(Ok(response(200, "", now)), bench.knowledge(), now);
    let expired = now_plus(now, Duration::from_secs(3_600));
    let mut second = bench.begin(false, expired);
    second.note_cache_entry(None, bench.knowledge(), expired);
    second.note_turn(bench.knowledge(), expired);
    second.note_response(Ok(response(503, "", expired)), bench.knowledge(), expired);
    let is_allowed = |check: &PermissionCheck| {
        matches!(check.next_step(), Step::Decided(Permission::Allowed { .. }))
    };
    assert!(is_allowed(&second));
    assert!(second.take_fetched().is_empty());
    assert!(
        is_allowed(&bench.begin(false, expired)),
        "not for each page"
    );
}

#[test]
fn a_redirect_within_the_site_waits_for_its_turn_and_one_to_a_known_file_needs_no_request() {
    let (bench, now) = (Bench::default(), Now::read());
    let moved = |to: &str| {
        let mut check = bench.begin(false, now);
        check.note_cache_entry(None, bench.knowledge(), now);
        check.note_turn(bench.knowledge(), now);
        let redirect = RobotsResponse {
            redirect: Some(to.to_owned()),
            ..response(301, "", now)
        };
        check.note_response(Ok(redirect), bench.knowledge(), now);
        check
    };
    let mut within = moved("/rules");
    assert_eq!(within.next_step(), await_turn_step("a.org"));
    within.note_turn(bench.knowledge(), now);
    assert!(matches!(within.next_step(), Step::Request(_)));
    let mut elsewhere = moved("http://b.org/robots.txt");
    let origin = String::from("http://b.org");
    assert_eq!(elsewhere.next_step(), Step::LookUp(origin.clone()));
    let entry = RobotsEntry {
        origin,
        status: Some(200),
        body: b"User-agent: *\nDisallow: /\n".to_vec(),
        fetched_at_ms: now.wall_ms,
        expires_at_ms: now.wall_ms + 1_000,
    };
    elsewhere.note_cache_entry(Some(&entry), bench.knowledge(), now);
    let refused = Permission::Refused {
        outcome: Outcome::Disallowed,
        evidence: None,
    };
    assert_eq!(elsewhere.next_step(), Step::Decided(refused.clone()));
    assert_eq!(bench.begin(false, now).next_step(), Step::Decided(refused));
}

#[test]
fn a_redirect_to_another_site_is_a_turn_of_that_site_and_one_file_is_asked_for_once() {
    let (bench, now) = (Bench::default(), Now::read());
    let redirected = || {
        let mut check = bench.begin(false, now);
        check.note_cache_entry(None, bench.knowledge(), now);
        check.note_turn(bench.knowledge(), now);
        let redirect = RobotsResponse {
            redirect: Some(String::from("http://b.org/robots.txt")),
            ..response(301, "", now)
        };
        check.note_response(Ok(redirect), bench.knowledge(), now);
        check.note_cache_entry(None, bench.knowledge(), now);
        assert_eq!(check.next_step(), await_turn_step("b.org"));
        check
    };
    let (mut first, mut second) = (redirected(), redirected());
    first.note_turn(bench.knowledge(), now);
    first.note_response(Ok(response(200, "", now)), bench.knowledge(), now);
    assert_eq!(first.take_fetched().len(), 2, "as the file of both origins");
    second.note_turn(bench.knowledge(), now);
    let is_allowed = matches!(
        second.next_step(),
        Step::Decided(Permission::Allowed { .. })
    );
    assert!(is_allowed, "without a request");
}
