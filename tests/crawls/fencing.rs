//! Tests leases: processes that are stopped for longer than their lease and then continue, supervisors that die, two
//! supervisors with the same name, and a second dispatcher. The tests check the access log of the sites.
//!
//! All pages are seeds, and robots.txt sets a delay that the dispatcher does not know at first. So the workers get many
//! tasks at once, and could continue for a while without the dispatcher.

use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_tests::Signal;
use webfill_tests::process::send_signal;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::Web;

use crate::keyed_fleet::{Client, Fleet, start_serving};
use crate::wide_web::{PAGES_PER_SITE, SITES, assert_complete, repeated_pages, serve_wide_web};

/// The time between two requests to a site, as its robots.txt requires.
const DELAY: Duration = Duration::from_millis(600);
/// The lease in these fleets, the longest time that a request may take, and the time of a hand-over: the sum of both
/// and one second more.
const LEASE: Duration = Duration::from_secs(1);
const LONGEST_REQUEST: Duration = Duration::from_secs(2);
const HAND_OVER: Duration = Duration::from_secs(4);
/// A lease so long that no process loses it, however busy the machine is.
const LONG_LEASE: Duration = Duration::from_secs(60);
const PAGES: usize = SITES * PAGES_PER_SITE;

/// A crawl of a web of many sites by one dispatcher and its supervisors.
struct Crawl {
    web: Web,
    fleet: Fleet,
    dispatcher: Option<Running>,
    supervisors: Vec<Running>,
    client: Client,
    key: Value,
    lease: Duration,
}

impl Crawl {
    /// Starts a crawl, and waits until some pages are fetched.
    fn start(supervisors: &[&str]) -> Crawl {
        Crawl::start_with_lease(LEASE, supervisors)
    }

    fn start_with_lease(lease: Duration, supervisors: &[&str]) -> Crawl {
        let web = Web::start();
        let pages = serve_wide_web_with_delay(&web);
        let fleet = Fleet::new();
        fleet.new_member("client", "feeder");
        for name in supervisors {
            fleet.new_member("supervisor", name);
        }
        let dispatcher = start_serving(with_lease_and_timeouts(fleet.dispatcher_run(), lease));
        let supervisors: Vec<Running> = supervisors
            .iter()
            .map(|name| with_lease_and_timeouts(fleet.supervisor_run(&web, name), lease).start())
            .collect();
        for name in 0..supervisors.len() {
            fleet.wait_until_logged_times("supervisor_joined", name + 1);
        }
        let client = fleet.client("feeder");
        let key = client.open_crawl("fenced", &pages);
        // Wait until two pages for each site have been requested on average. No process is stopped before that, because
        // a stop could separate the check of the lease from the request that follows it.
        web.log().wait_until("the crawl is under way", |visits| {
            visits.pages().len() >= 2 * SITES
        });
        Crawl {
            web,
            fleet,
            dispatcher: Some(dispatcher),
            supervisors,
            client,
            key,
            lease,
        }
    }

    /// Waits for the end of the crawl, drains the remaining processes, and checks the access log. At most
    /// `repeated_at_most` pages may have been requested twice.
    fn finish(self, repeated_at_most: usize) {
        let status = self.client.wait_until_finished(&self.key);
        assert_eq!(status["outcomes"]["ok"], PAGES, "{status}");
        for process in self.supervisors.into_iter().chain(self.dispatcher) {
            process.signal(Signal::TERM);
            process.finish().expect_code(0);
        }
        assert_complete(&self.fleet.work);
        let repeated = repeated_pages(&self.web);
        assert!(
            repeated.len() <= repeated_at_most,
            "asked again: {repeated:#?}"
        );
        self.web.visits().assert_polite(DELAY);
    }

    fn dispatcher_pid(&self) -> u32 {
        self.dispatcher.as_ref().expect("it runs").pid()
    }

    fn first_worker_pid(&self) -> u32 {
        self.supervisors[0]
            .processes_of_role("worker")
            .remove(0)
            .pid
    }
}

/// Serves a web of many sites whose robots.txt files set a delay. Returns the URLs of its pages.
fn serve_wide_web_with_delay(web: &Web) -> Vec<String> {
    serve_wide_web(web);
    let mut pages = Vec::new();
    for number in 0..SITES {
        let site = web.site(&format!("w{number}.example"));
        site.serve_robots(&format!(
            "User-agent: *\nCrawl-delay: {}\n",
            format_seconds(DELAY)
        ));
        pages.push(site.url("/"));
        pages.extend((1..PAGES_PER_SITE).map(|page| site.url(&format!("/{page}"))));
    }
    pages
}

/// Stops a process for this time. A fixed sleep is right here, because the test is about the length of the stop.
fn stop_for(pid: u32, time: Duration) {
    send_signal(pid, Signal::STOP);
    std::thread::sleep(time);
    send_signal(pid, Signal::CONT);
}

/// A run with this lease, with short requests, and without a delay other than that of robots.txt.
fn with_lease_and_timeouts(run: Run, lease: Duration) -> Run {
    run.env("WEBFILL_DISPATCHER_LEASE", format_seconds(lease))
        .env("WEBFILL_POLITENESS_DELAY", "0")
        .env("WEBFILL_FETCH_CONNECT_TIMEOUT", "0.5")
        .env("WEBFILL_FETCH_TOTAL_TIMEOUT", "1.5")
}

fn format_seconds(time: Duration) -> String {
    time.as_secs_f64().to_string()
}

#[test]
fn a_supervisor_that_wakes_up_after_its_lease_starts_nothing_under_it() {
    let crawl = Crawl::start(&["a", "b"]);
    assert_eq!(HAND_OVER, LEASE + LONGEST_REQUEST + Duration::from_secs(1));
    let victim = crawl.supervisors[0].pid();
    stop_for(victim, HAND_OVER + 3 * DELAY);
    crawl.fleet.wait_until_logged("supervisor_lost", "\"a\"");
    // After its stop, the supervisor has joined once more.
    crawl.fleet.wait_until_logged_times("supervisor_joined", 3);
    crawl.finish(SITES);
}

#[test]
fn a_supervisor_stopped_with_its_workers_does_no_harm_when_it_continues() {
    let crawl = Crawl::start(&["a", "b"]);
    let worker = crawl.first_worker_pid();
    send_signal(worker, Signal::STOP);
    stop_for(crawl.supervisors[0].pid(), HAND_OVER + 3 * DELAY);
    send_signal(worker, Signal::CONT);
    crawl.fleet.wait_until_logged("supervisor_lost", "\"a\"");
    crawl.fleet.wait_until_logged_times("supervisor_joined", 3);
    crawl.finish(SITES);
}

#[test]
fn a_worker_that_wakes_up_after_its_lease_starts_nothing_under_it() {
    let crawl = Crawl::start(&["a", "b"]);
    stop_for(crawl.first_worker_pid(), HAND_OVER);
    crawl.finish(SITES);
}

#[test]
fn a_dispatcher_that_stands_still_for_longer_than_the_lease_loses_nothing() {
    let crawl = Crawl::start(&["a", "b"]);
    let stopped_at = Instant::now();
    stop_for(crawl.dispatcher_pid(), HAND_OVER + 2 * DELAY);
    let went_on_at = Instant::now();
    let visits = crawl.web.visits();
    let starts = visits.0.iter().map(|visit| visit.started_at);
    let without_lease = stopped_at + LEASE..went_on_at;
    assert_eq!(
        starts.filter(|start| without_lease.contains(start)).count(),
        0,
        "requests without a lease"
    );
    assert!(
        visits.pages().len() < PAGES,
        "there was something left to do"
    );
    // At each site, one page was in progress, and the next one was already handed out to a worker. Both may be
    // requested twice.
    crawl.finish(2 * SITES);
}

#[test]
fn a_killed_supervisors_sites_go_to_the_other_and_no_delay_is_cut_short() {
    let mut crawl = Crawl::start(&["a", "b"]);
    let killed = crawl.supervisors.remove(0);
    send_signal(killed.pid(), Signal::KILL);
    killed.finish();
    crawl.fleet.wait_until_logged("supervisor_lost", "\"a\"");
    crawl.finish(SITES);
}

#[test]
fn a_killed_supervisor_that_comes_again_has_its_sites_at_once() {
    let mut crawl = Crawl::start_with_lease(LONG_LEASE, &["a"]);
    let killed = crawl.supervisors.remove(0);
    send_signal(killed.pid(), Signal::KILL);
    killed.finish();
    let again =
        with_lease_and_timeouts(crawl.fleet.supervisor_run(&crawl.web, "a"), crawl.lease).start();
    crawl.supervisors.push(again);
    crawl.fleet.wait_until_logged_times("supervisor_joined", 2);
    assert_eq!(crawl.fleet.logged_lines("supervisor_lost").len(), 0);
    crawl.finish(SITES);
}

#[test]
fn a_restarted_dispatcher_continues_with_the_tasks_of_its_supervisors() {
    let mut crawl = Crawl::start_with_lease(LONG_LEASE, &["a", "b"]);
    let killed = crawl.dispatcher.take().expect("it runs");
    send_signal(killed.pid(), Signal::KILL);
    killed.finish();
    let again = with_lease_and_timeouts(crawl.fleet.dispatcher_run(), crawl.lease);
    crawl.dispatcher = Some(start_serving(again));
    crawl.fleet.wait_until_logged_times("supervisor_joined", 4);
    crawl.client = crawl.fleet.client("feeder");
    crawl.finish(0);
}

#[test]
fn a_second_supervisor_of_the_same_name_waits_until_the_first_is_gone() {
    let mut crawl = Crawl::start_with_lease(LONG_LEASE, &["a"]);
    let namesake = crawl.fleet.supervisor_elsewhere(&crawl.web, "a", "a2");
    let namesake = with_lease_and_timeouts(namesake, crawl.lease).start();
    crawl.fleet.wait_until_logged("name_taken", "\"a\"");
    assert_eq!(crawl.fleet.logged_lines("supervisor_joined").len(), 1);
    let first = crawl.supervisors.remove(0);
    first.signal(Signal::TERM);
    first.finish().expect_code(0);
    crawl.fleet.wait_until_logged_times("supervisor_joined", 2);
    crawl.supervisors.push(namesake);
    crawl.finish(0);
}

#[test]
fn a_second_dispatcher_on_the_same_state_is_refused() {
    let crawl = Crawl::start_with_lease(LONG_LEASE, &["a"]);
    let second = crawl.fleet.dispatcher_run().finish().expect_code(1);
    let sentence = second.one_sentence();
    assert!(
        sentence.contains("in use by another dispatcher")
            && sentence.contains(&crawl.dispatcher_pid().to_string()),
        "{sentence}"
    );
    crawl.finish(0);
}
