//! Tests politeness as a webmaster sees it: one request at a time, the delay between requests, and the user agent.

use std::time::{Duration, SystemTime};

use webfill_test_needs::needs;
use webfill_tests::site::{Site, Web, page, script, status};
use webfill_tests::workplace::Workplace;

const MS: Duration = Duration::from_millis(1);

/// Serves a root page that links to this many leaf pages.
fn serve_star(site: &Site, leaves: u32) {
    site.serve_otherwise(|_| page("leaf").into());
    let root = (0..leaves).fold(page("root"), |page, leaf| {
        page.mapped_link(&format!("/leaf/{leaf}"))
    });
    site.serve("/", root);
}

#[test]
fn a_site_is_asked_one_page_at_a_time_with_the_delay_between() {
    let web = Web::start();
    let slow = web.site("slow.example");
    serve_star(&slow, 6);
    slow.set_latency(150 * MS);
    serve_star(&web.site("quick.example"), 6);
    // Subdomains belong to one site, so the delay applies to requests to any of them.
    for name in ["www.shared.example", "shared.example", "m.shared.example"] {
        serve_star(&web.site(name), 2);
    }
    let work = Workplace::new();
    let seeds = [
        "slow.example",
        "quick.example",
        "www.shared.example",
        "shared.example",
        "m.shared.example",
    ];
    let urls = seeds.map(|host| format!("http://{host}/"));
    work.crawl_without_delay(&web)
        .args(["--delay", "0.3"])
        .args(urls)
        .finish()
        .expect_code(0);
    let visits = web.visits();
    assert_eq!(visits.pages().len(), 7 + 7 + 3 * 3);
    visits.assert_polite(300 * MS);

    let mut shared = visits.pages();
    shared
        .0
        .retain(|visit| visit.host.ends_with("shared.example"));
    assert_eq!(shared.overlaps(), [""; 0]);
    assert!(
        shared.gaps().iter().all(|gap| *gap >= 300 * MS),
        "{:?}",
        shared.gaps()
    );
}

#[test]
fn a_slow_answer_does_not_shorten_the_next_gap() {
    let web = Web::start();
    let site = web.site("drip.example");
    serve_star(&site, 3);
    let drip = script()
        .send("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<h1>d")
        .pause(600 * MS)
        .send("rip</h1>");
    site.serve("/leaf/0", drip.clone()).serve("/leaf/1", drip);
    let work = Workplace::new();
    work.crawl_without_delay(&web)
        .args(["--delay", "0.3"])
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    web.visits().assert_polite(300 * MS);
    assert_eq!(web.visits().pages().len(), 4);
}

#[test]
fn the_delay_is_fifteen_seconds_unless_somebody_says_otherwise() {
    let web = Web::start();
    let site = web.site("default.example");
    serve_star(&site, 1);
    let work = Workplace::new();
    work.crawl_without_delay(&web)
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(web.visits().pages().len(), 2);
    web.visits().assert_polite(15_000 * MS);
}

#[test]
fn crawl_delay_wins_over_the_default_in_both_directions() {
    let web = Web::start();
    let slower = web.site("slower.example");
    slower.serve_robots("User-agent: *\nCrawl-delay: 0.75\n");
    serve_star(&slower, 3);
    let faster = web.site("faster.example");
    faster.serve_robots("User-agent: *\nCrawl-delay: 0.1\n");
    serve_star(&faster, 3);
    let named = web.site("named.example");
    named.serve_robots("User-agent: *\nCrawl-delay: 60\n\nUser-agent: webfill\nCrawl-delay: 0.5\n");
    serve_star(&named, 3);
    let work = Workplace::new();
    let urls = [slower.url("/"), faster.url("/"), named.url("/")];
    let run = work
        .crawl_without_delay(&web)
        .args(["--delay", "20"])
        .args(urls)
        .time_limit(40_000 * MS);
    run.finish().expect_code(0);
    assert_eq!(web.visits().pages().len(), 12);
    slower.visits().assert_polite(750 * MS);
    faster.visits().assert_polite(100 * MS);
    named.visits().assert_polite(500 * MS);
}

#[test]
fn a_long_crawl_delay_slows_the_site_and_drops_nothing() {
    let web = Web::start();
    let site = web.site("patient.example");
    site.serve_robots("User-agent: *\nCrawl-delay: 4\n");
    serve_star(&site, 2);
    let quick = web.site("quick.example");
    serve_star(&quick, 5);
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args([site.url("/"), quick.url("/")])
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 9);
    site.visits().assert_polite(4_000 * MS);
    let visits = web.visits();
    let position = |host: &str| visits.0.iter().rposition(|visit| visit.host == host);
    assert!(
        position("quick.example") < position("patient.example"),
        "nobody waits for the slow site"
    );
}

#[test]
fn retry_after_is_obeyed_in_seconds_and_as_a_date() {
    let web = Web::start();
    let seconds = web.site("seconds.example");
    seconds.serve("/busy", status(429).header("retry-after", "2"));
    let date = web.site("date.example");
    date.serve_with("/busy", |_| {
        let then = SystemTime::now() + 4_000 * MS;
        status(503).header("retry-after", http_date(then)).into()
    });
    let work = Workplace::new();
    let mut urls = Vec::new();
    for site in [&seconds, &date] {
        site.serve("/next", page("next"));
        urls.extend([site.url("/busy"), site.url("/next")]);
    }
    let run = work.crawl(&web).args(urls).finish().expect_code(0);
    assert_eq!(run.summary().outcome_count("http_error"), 2);
    assert_eq!(run.summary().outcome_count("ok"), 2);
    for (site, least) in [(&seconds, 2_000 * MS), (&date, 2_900 * MS)] {
        let visits = site.visits().pages();
        let busy = visits
            .0
            .iter()
            .position(|visit| visit.path == "/busy")
            .expect("it was asked");
        let Some(gap) = visits.gaps().get(busy).copied() else {
            panic!(
                "{} was asked nothing after it was busy: {:?}",
                site.host(),
                visits.paths()
            );
        };
        assert!(gap >= least, "{}: {gap:?}", site.host());
    }
}

/// Formats a time by the system command `date`, for example as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let date = std::process::Command::new("date")
        .args([
            "-u",
            "-d",
            &format!("@{seconds}"),
            "+%a, %d %b %Y %H:%M:%S GMT",
        ])
        .env("LC_ALL", "C")
        .output()
        .expect("every system has `date`");
    String::from_utf8_lossy(&date.stdout).trim().to_string()
}

#[test]
fn a_failing_site_is_asked_less_and_less() {
    let web = Web::start();
    let site = web.site("failing.example");
    site.serve_otherwise(|_| status(503).into());
    let urls: Vec<String> = (0..4)
        .map(|number| site.url(&format!("/{number}")))
        .collect();
    let work = Workplace::new();
    work.crawl(&web).args(urls).finish().expect_code(0);
    let gaps = site.visits().pages().gaps();
    assert!(gaps.len() >= 3, "{gaps:?}");
    assert!(
        gaps[1] > gaps[0] && gaps[2] > gaps[1],
        "each wait is longer: {gaps:?}"
    );
}

#[test]
fn a_short_retry_after_does_not_keep_the_pace() {
    let web = Web::start();
    let site = web.site("insists.example");
    site.serve_otherwise(|_| status(429).header("retry-after", "1").into());
    let urls = (0..4).map(|number| site.url(&format!("/{number}")));
    let work = Workplace::new();
    work.crawl(&web).args(urls).finish().expect_code(0);
    let gaps = site.visits().pages().gaps();
    assert_eq!(gaps.len(), 3, "{gaps:?}");
    for (gap, least) in gaps.iter().zip([1_000 * MS, 2_000 * MS, 4_000 * MS]) {
        assert!(*gap >= least, "{gaps:?}");
    }
}

#[test]
fn after_a_slow_answer_the_site_is_left_alone_for_as_long() {
    let web = Web::start();
    let site = web.site("slow.example");
    serve_star(&site, 3);
    site.set_latency(600 * MS);
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect_code(0);
    let gaps = site.visits().pages().gaps();
    assert_eq!(gaps.len(), 3);
    assert!(gaps.iter().all(|gap| *gap >= 1_150 * MS), "{gaps:?}");
}

#[test]
fn requests_name_the_crawler_its_contact_and_nothing_else() {
    let web = Web::start();
    let site = web.site("who.example");
    serve_star(&site, 2);
    web.site("who.example")
        .serve("/leaf/0", page("c").header("set-cookie", "a=b; Path=/"));
    let work = Workplace::new();
    let contact = "https://crawler.example/about";
    work.crawl(&web)
        .args(["--contact", contact])
        .arg("http://user:secret@who.example/")
        .finish()
        .expect_code(0);
    let visits = web.visits();
    assert_eq!(visits.len(), 4);
    for visit in &visits.0 {
        let agent = visit.header("user-agent").expect("an identity");
        assert!(
            agent.starts_with("webfill/") && agent.ends_with(" (+https://crawler.example/about)"),
            "{agent}"
        );
        assert_eq!(visit.method, "GET");
        for secret in [
            "referer",
            "cookie",
            "authorization",
            "from",
            "x-forwarded-for",
        ] {
            assert_eq!(visit.header(secret), None, "{secret} in {visit:?}");
        }
    }
}

#[test]
fn connections_are_reused_between_polite_requests() {
    let web = Web::start();
    let site = web.site("reuse.example");
    serve_star(&site, 5);
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect_code(0);
    assert_eq!(web.visits().len(), 7);
    assert!(
        web.connection_count() <= 3,
        "{} connections for 7 requests",
        web.connection_count()
    );
}

/// Crawls the same sites twice in parallel. Each crawl has its own state folder and store, but both use the same cache.
fn crawl_twice_at_once(web: &Web, cache: &str) {
    let sites = ["one.example", "two.example"];
    for name in sites {
        let site = web.site(name);
        serve_star(&site, 5);
        site.set_latency(100 * MS);
    }
    let works = [Workplace::new(), Workplace::new()];
    let crawls = works.each_ref().map(|work| {
        work.crawl_without_delay(web)
            .args(["--delay", "0.3", "--cache", cache])
            .env("WEBFILL_POLITENESS_CLOCK", "shared")
            .args(sites.map(|host| format!("http://{host}/")))
            .start()
    });
    for crawl in crawls {
        crawl.finish().expect_code(0);
    }
    for work in &works {
        assert_eq!(work.stored().outcomes().len(), 2 * 6);
    }
}

/// Checks that the two crawls together kept the delay, and that only one of them requested robots.txt.
fn assert_shared_clock(cache: &str) {
    let web = Web::start();
    crawl_twice_at_once(&web, cache);
    let visits = web.visits();
    assert_eq!(visits.pages().len(), 2 * 2 * 6);
    assert_eq!(visits.robots().len(), 2, "one for each site");
    visits.assert_polite(300 * MS);
}

#[test]
fn crawls_that_share_nothing_but_a_clock_in_the_cache_keep_their_distance() {
    let shared = Workplace::new();
    assert_shared_clock(&format!("sqlite:{}", shared.path("cache.db").display()));
}

#[needs(mongod)]
#[test]
fn crawls_that_share_nothing_but_a_clock_in_mongodb_keep_their_distance() {
    let database = webfill_test_mongod::fresh_database();
    assert_shared_clock(database.uri());
}
