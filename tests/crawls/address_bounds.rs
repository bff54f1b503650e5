//! Tests the limits on requests to all sites with the same IP address or hosting provider, by the access log of these
//! sites.

use std::net::IpAddr;
use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::isolation::{add_address, run_isolated};
use webfill_tests::name_server::NameServer;
use webfill_tests::run::Run;
use webfill_tests::site::{Visits, Web, page};
use webfill_tests::stored::Stored;
use webfill_tests::workplace::Workplace;

const MS: Duration = Duration::from_millis(1);

/// If a request is late, the next one may follow sooner than the delay, by at most this time.
const SLACK: Duration = Duration::from_secs(1);

/// Two public addresses of the isolated machine.
const PUBLIC: [&str; 2] = ["93.184.216.34", "93.184.216.35"];

fn parse_ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Creates hosts that serve one page each, with this latency. Returns the names of the hosts.
fn serve_hosts(web: &Web, count: usize, domain: &str, latency: Duration) -> Vec<String> {
    let names = (0..count).map(|number| format!("s{number}{domain}"));
    let names: Vec<String> = names.collect();
    for name in &names {
        let site = web.site(name);
        site.serve_otherwise(|_| page("T").into());
        site.set_latency(latency);
    }
    names
}

fn root_urls(names: &[String]) -> impl Iterator<Item = String> {
    names.iter().map(|name| format!("http://{name}/"))
}

/// A crawl without delays of sites. Its seeds are in a file, because they are too many for a command line.
fn crawl_of_many(work: &Workplace, web: &Web, urls: impl Iterator<Item = String>) -> Run {
    let seeds: Vec<String> = urls.collect();
    let seeds = work.write("seeds.txt", seeds.join("\n"));
    work.crawl_without_delay(web)
        .args(["--delay", "0"])
        .arg("--seeds")
        .arg(seeds)
        .time_limit(120_000 * MS)
}

/// The largest number of requests that were in flight at the same time.
fn max_in_flight(visits: &Visits) -> usize {
    let mut changes = Vec::new();
    for visit in &visits.0 {
        let ended_at = visit.ended_at.expect("the request has ended");
        changes.extend([(visit.started_at, 1), (ended_at, -1)]);
    }
    changes.sort();
    let mut now = 0_isize;
    let in_flight = changes.iter().map(|(_, change)| {
        now += change;
        now
    });
    in_flight.max().unwrap_or(0) as usize
}

/// The time from the start of the first request to the start of the last.
fn request_span(visits: &Visits) -> Duration {
    let starts = visits.0.iter().map(|visit| visit.started_at);
    let (first, last) = (starts.clone().min(), starts.max());
    let (first, last) = (first.expect("a request"), last.expect("a request"));
    last.duration_since(first)
}

/// Checks that the requests to all sites together are as far apart as the delay requires. The first page after a
/// robots.txt may follow immediately.
fn assert_spread(visits: &Visits, delay: Duration) {
    let least = delay * (visits.len() as u32 - 2) - SLACK;
    let span = request_span(visits);
    assert!(
        span >= least,
        "{} requests in {span:?}, not in {least:?}",
        visits.len()
    );
}

/// Checks that each page was requested once, and nothing else except robots.txt.
fn assert_each_once(visits: &Visits, pages: usize) {
    let counts = visits.counts();
    let repeated: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(repeated.is_empty(), "{repeated:?}");
    assert_eq!(visits.pages().len(), pages);
}

/// The number of deliveries of the task that was handed out most often.
fn most_deliveries(work: &Workplace) -> i64 {
    let frontier = Stored::open(&work.path("state/dispatcher.db"));
    frontier.query_number("SELECT max(attempt) FROM tasks")
}

#[test]
fn the_sites_of_one_address_share_its_limits() {
    let web = Web::start();
    let names = serve_hosts(&web, 300, ".example", 20 * MS);
    let work = Workplace::new();
    let run = crawl_of_many(&work, &web, root_urls(&names))
        .env("WEBFILL_POLITENESS_ADDRESS_DELAY", "0.01")
        .env("WEBFILL_POLITENESS_ADDRESS_IN_FLIGHT", "4")
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 300);
    let visits = web.visits();
    assert_each_once(&visits, 300);
    assert_eq!(visits.len(), 600);
    assert!(max_in_flight(&visits) <= 4, "{}", max_in_flight(&visits));
    assert_spread(&visits, 10 * MS);
}

#[test]
fn five_thousand_sites_of_one_address_are_crawled_slowly() {
    let web = Web::start();
    let names = serve_hosts(&web, 5_000, ".example", 20 * MS);
    let work = Workplace::new();
    let run = crawl_of_many(&work, &web, root_urls(&names))
        .args(["--ignore-robots"])
        .env("WEBFILL_POLITENESS_ADDRESS_DELAY", "0")
        .env("WEBFILL_POLITENESS_ADDRESS_IN_FLIGHT", "30")
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 5_000);
    let visits = web.visits();
    assert_each_once(&visits, 5_000);
    assert!(max_in_flight(&visits) <= 30, "{}", max_in_flight(&visits));
}

#[test]
fn the_sites_of_one_provider_share_its_limits_at_any_address() {
    let webs = ["127.0.0.2", "127.0.0.3", "127.0.0.4"].map(|at| Web::start_on(parse_ip(at)));
    let work = Workplace::new();
    let mut run = work
        .plain_crawl()
        .args(["--allow-private-networks", "--delay", "0"]);
    for (number, web) in webs.iter().enumerate() {
        let names = serve_hosts(web, 4, &format!("-{number}.github.io"), 20 * MS);
        let port = web.plain_address().port();
        for name in &names {
            let at = web.plain_address().ip();
            run = run.args(["--resolve", &format!("{name}:80:{at}:{port}")]);
        }
        run = run.args(root_urls(&names));
    }
    let run = run
        .env("WEBFILL_POLITENESS_ADDRESS_DELAY", "0.2")
        .env("WEBFILL_POLITENESS_ADDRESS_IN_FLIGHT", "1")
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 12);
    let visits = Visits(webs.iter().flat_map(|web| web.visits().0).collect());
    assert_each_once(&visits, 12);
    assert_eq!(max_in_flight(&visits), 1);
    assert_spread(&visits, 200 * MS);
    assert_eq!(
        most_deliveries(&work),
        1,
        "bounded from the first request on"
    );
}

#[test]
fn loopback_is_only_limited_on_request() {
    let web = Web::start();
    let names = serve_hosts(&web, 300, ".example", 300 * MS);
    let work = Workplace::new();
    let run = crawl_of_many(&work, &web, root_urls(&names))
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 300);
    assert!(max_in_flight(&web.visits()) > 8);
    assert_eq!(most_deliveries(&work), 1);
}

#[needs(namespaces)]
#[test]
fn public_addresses_are_limited_by_default() {
    run_isolated(
        "address_bounds::public_addresses_are_limited_by_default",
        || {
            add_address(PUBLIC[0]);
            let web = Web::start_on(parse_ip(PUBLIC[0]));
            let names = serve_hosts(&web, 15, ".example", 20 * MS);
            let work = Workplace::new();
            let _names = NameServer::start(&work.path(""), |_, _| vec![parse_ip(PUBLIC[0])]);
            let port = web.plain_address().port();
            let urls = names.iter().map(|name| format!("http://{name}:{port}/"));
            public_crawl(&work).args(urls).finish().expect_code(0);
            let visits = web.visits();
            assert_each_once(&visits, 15);
            assert_spread(&visits, 200 * MS);
            assert_eq!(most_deliveries(&work), 2, "once to learn the address");
        },
    );
}

#[needs(namespaces)]
#[test]
fn a_name_that_resolves_to_another_address_each_time_is_crawled() {
    run_isolated(
        "address_bounds::a_name_that_resolves_to_another_address_each_time_is_crawled",
        || {
            PUBLIC.iter().for_each(|address| add_address(address));
            let web = Web::start_on(parse_ip("0.0.0.0"));
            let names = serve_hosts(&web, 1, ".example", 20 * MS);
            let work = Workplace::new();
            let _names = NameServer::start(&work.path(""), |_, asked| {
                vec![parse_ip(PUBLIC[asked as usize % 2])]
            });
            let port = web.plain_address().port();
            let urls = (0..4).map(|number| format!("http://{}:{port}/{number}", names[0]));
            public_crawl(&work).args(urls).finish().expect_code(0);
            assert_each_once(&web.visits(), 4);
            let most = most_deliveries(&work);
            assert!((2..=6).contains(&most), "{most}");
        },
    );
}

fn public_crawl(work: &Workplace) -> Run {
    work.plain_crawl().args([
        "--delay",
        "0.05",
        "--contact",
        "https://crawler.example/about",
    ])
}
