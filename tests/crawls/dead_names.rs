//! Tests names whose name servers never answer, answer late, or answer that the name does not exist. Such names delay
//! no other site, cost no URL of an available site, and are not looked up again and again.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use webfill_test_needs::needs;
use webfill_tests::isolation::{add_address, run_isolated};
use webfill_tests::name_server::{NameServer, Reply};
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

const PUBLIC: &str = "93.184.216.34";
const DELAY: Duration = Duration::from_secs(1);

fn public_address() -> IpAddr {
    PUBLIC.parse().expect("an address")
}

fn reply_for_name(name: &str) -> Reply {
    match name.split('-').next() {
        Some("dead") => Reply::Silence,
        Some("missing") => Reply::NoSuchName,
        Some("slow") => Reply::Late(Duration::from_secs(2), vec![public_address()]),
        _ => Reply::Addresses(vec![public_address()]),
    }
}

/// A web at a public address. The names of its hosts begin with this kind (such as `dead` or `slow`), and every path
/// of a host has a page.
fn start_web(kind: &str, hosts: usize) -> Web {
    add_address(PUBLIC);
    let web = Web::start_on(public_address());
    serve_hosts(&web, kind, hosts);
    web
}

fn serve_hosts(web: &Web, kind: &str, hosts: usize) {
    for number in 0..hosts {
        web.site(&host_name(kind, number))
            .serve_otherwise(|_| page("T").into());
    }
}

fn host_name(kind: &str, number: usize) -> String {
    format!("{kind}-{number}.example")
}

/// The URLs of the pages, ordered so that the hosts take turns.
fn page_urls(kind: &str, hosts: usize, pages: usize, port: u16) -> Vec<String> {
    (0..pages)
        .flat_map(|page| (0..hosts).map(move |number| (page, number)))
        .map(|(page, number)| format!("http://{}:{port}/{page}", host_name(kind, number)))
        .collect()
}

fn crawl_command(work: &Workplace) -> Run {
    work.plain_crawl()
        .replace_flag("--workers", "1")
        .args(["--delay", &DELAY.as_secs().to_string()])
        .args(["--contact", "https://crawler.example/about"])
        // No limit per address applies, because all hosts are at one address.
        .env("WEBFILL_POLITENESS_ADDRESS_DELAY", "0")
        .env("WEBFILL_POLITENESS_ADDRESS_IN_FLIGHT", "1000000")
}

/// For each host of a kind, the time between its first and its last page; the times are sorted.
fn host_spans(web: &Web, kind: &str, hosts: usize, pages: usize) -> Vec<Duration> {
    let visits = web.visits().pages();
    let span = |number| {
        let of_host = visits.for_host(&host_name(kind, number));
        assert_eq!(of_host.len(), pages, "{}", host_name(kind, number));
        let starts = || of_host.0.iter().map(|visit| visit.started_at);
        starts().max().expect("a page") - starts().min().expect("a page")
    };
    let mut spans: Vec<Duration> = (0..hosts).map(span).collect();
    spans.sort();
    spans
}

/// The crawl has more dead sites than a supervisor with one worker can hold tasks, so a task that waits for a name must
/// not take a place. Its pace is compared with that of a crawl without dead sites at the same time, because a busy
/// machine slows down both.
#[needs(namespaces)]
#[test]
fn healthy_sites_keep_their_pace_beside_dead_names() {
    const HEALTHY: usize = 60;
    const DEAD: usize = 300;
    const PAGES: usize = 9;
    run_isolated(
        "dead_names::healthy_sites_keep_their_pace_beside_dead_names",
        || {
            let web = start_web("healthy", HEALTHY);
            serve_hosts(&web, "calm", HEALTHY);
            let port = web.plain_address().port();
            let names_folder = Workplace::new();
            let _names =
                NameServer::start_replying(&names_folder.path(""), |name, _| reply_for_name(name));
            let crawl_pages = |urls: Vec<String>| {
                let work = Workplace::new();
                let run = crawl_command(&work).args(urls).finish();
                run.expect_code(0).summary()
            };
            let summary = std::thread::scope(|threads| {
                threads.spawn(|| crawl_pages(page_urls("calm", HEALTHY, PAGES, port)));
                let mut urls = page_urls("dead", DEAD, 2, port);
                urls.extend(page_urls("healthy", HEALTHY, PAGES, port));
                crawl_pages(urls)
            });
            assert_eq!(summary.outcome_count("ok"), (HEALTHY * PAGES) as u64);
            assert_eq!(summary.outcome_count("dns_error"), 2 * DEAD as u64);
            let spans = |kind| host_spans(&web, kind, HEALTHY, PAGES);
            let (healthy, calm) = (spans("healthy"), spans("calm"));
            // Some hosts are delayed a lot by chance, so a quarter of them is not judged.
            let share = calm[HEALTHY / 4].as_secs_f64() / healthy[HEALTHY / 4].as_secs_f64();
            assert!(
                share >= 0.75,
                "{share:.3} of the pace: {healthy:?}, without dead sites {calm:?}"
            );
        },
    );
}

#[needs(namespaces)]
#[test]
fn a_slow_name_server_loses_no_url_and_is_asked_once_for_a_page() {
    const HOSTS: usize = 150;
    run_isolated(
        "dead_names::a_slow_name_server_loses_no_url_and_is_asked_once_for_a_page",
        || {
            let web = start_web("slow", HOSTS);
            let names_folder = Workplace::new();
            let names =
                NameServer::start_replying(&names_folder.path(""), |name, _| reply_for_name(name));
            let work = Workplace::new();
            let urls = page_urls("slow", HOSTS, 1, web.plain_address().port());
            let run = crawl_command(&work).args(urls).finish().expect_code(0);
            assert_eq!(run.summary().outcome_count("ok"), HOSTS as u64);
            // A look-up sends one query for IPv4 addresses and one for IPv6 addresses.
            assert_eq!(names.question_count("slow-7.example"), 2);
        },
    );
}

#[needs(namespaces)]
#[test]
fn a_dead_or_missing_name_is_not_looked_up_again_immediately() {
    run_isolated(
        "dead_names::a_dead_or_missing_name_is_not_looked_up_again_immediately",
        || {
            let work = Workplace::new();
            let names = NameServer::start_replying(&work.path(""), |name, _| reply_for_name(name));
            // Each port is a separate origin, with its own robots.txt.
            let ports = 8_081..8_084;
            let urls: Vec<String> = ports
                .flat_map(|port| {
                    [
                        page_urls("dead", 1, 1, port),
                        page_urls("missing", 1, 1, port),
                    ]
                    .concat()
                })
                .collect();
            let started = Instant::now();
            crawl_command(&work).args(&urls).finish().expect_code(0);
            let outcomes = work.stored().outcomes();
            for url in &urls {
                assert_eq!(outcomes[url], "dns_error", "{url}");
            }
            // The answer of a look-up is remembered for a minute, so the limit grows with the duration of the crawl. A
            // name that does not exist may be looked up once more within that minute.
            let most = 2 * (2 + started.elapsed().as_secs() as usize / 60);
            for name in ["dead-0.example", "missing-0.example"] {
                let questions = names.question_count(name);
                assert!((2..=most).contains(&questions), "{name}: {questions}");
            }
        },
    );
}

#[needs(namespaces)]
#[test]
fn an_interrupted_crawl_does_not_wait_for_name_servers() {
    run_isolated(
        "dead_names::an_interrupted_crawl_does_not_wait_for_name_servers",
        || {
            let work = Workplace::new();
            let names = NameServer::start_replying(&work.path(""), |name, _| reply_for_name(name));
            // The look-up of this name takes ten seconds, and the crawl is interrupted before.
            let mut running = crawl_command(&work)
                .args(page_urls("dead", 1, 1, 8_081))
                .start();
            running.wait_until("the name is asked for", |_| {
                names.question_count("dead-0.example") > 0
            });
            running.signal(Signal::INT);
            running.finish().expect_code(11);
            // The task has no outcome, because the crawl did not wait for the look-up.
            assert!(work.stored().outcomes().is_empty());
        },
    );
}
