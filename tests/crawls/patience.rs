//! Tests that a local crawl ends although its dataset has dead links. It loses no page that a polite second attempt
//! would get.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::isolation::run_isolated;
use webfill_tests::name_server::{NameServer, Reply as NameReply};
use webfill_tests::run::Run;
use webfill_tests::site::{Reply, Web, page, script, status};
use webfill_tests::workplace::Workplace;

/// The default waits before retries and during backoffs, in seconds, by the name of the setting.
const TABLES: [(&str, &str); 12] = [
    ("BACKOFF_ROBOTS", "60,600,3600,21600"),
    ("BACKOFF_UNREACHABLE", "60,600,3600,21600"),
    ("BACKOFF_DNS", "600,3600"),
    ("BACKOFF_BUSY", "60,600,3600,21600"),
    ("BACKOFF_BLOCKED", "3600,14400,86400"),
    ("RETRIES_TIMEOUT", "60,600,3600"),
    ("RETRIES_NETWORK_ERROR", "60,600,3600"),
    ("RETRIES_DNS_ERROR", "300,3600"),
    ("RETRIES_HTTP_429", "300,3600"),
    ("RETRIES_HTTP_502", "60,600"),
    ("RETRIES_HTTP_503", "60,600,3600"),
    ("RETRIES_HTTP_504", "60,600"),
];

fn with_tables(run: Run) -> Run {
    TABLES.iter().fold(run, |run, (name, value)| {
        run.env(&format!("WEBFILL_{name}"), value)
    })
}

/// A crawl with the default waits of retries and backoffs, and with this patience (the longest time that it waits for a
/// site).
pub fn crawl_command(work: &Workplace, web: &Web, patience: &str) -> Run {
    with_tables(work.crawl_without_delay(web))
        .args(["--delay", "0.05", "--patience", patience])
        .arg("--config")
        .arg(work.write_short_timeouts())
}

/// The name of a host and the failure that all of its pages answer with.
fn failing_replies() -> Vec<(&'static str, Reply)> {
    vec![
        ("s429", status(429).header("retry-after", "1").into()),
        ("s429-bare", status(429).into()),
        ("s502", status(502).into()),
        ("s503", status(503).header("retry-after", "1").into()),
        ("s503-bare", status(503).into()),
        ("s504", status(504).into()),
        ("reset", script().reset().into()),
        ("closed", script().into()),
        ("hangs", script().hold_open().into()),
    ]
}

#[test]
fn one_failure_ends_no_page() {
    let web = Web::start();
    let pages = 10;
    let mut urls = Vec::new();
    for (host, failure) in failing_replies() {
        let site = web.site(&format!("{host}.example"));
        for number in 0..pages {
            let path = format!("/{number}");
            urls.push(site.url(&path));
            let (asked, failure) = (AtomicUsize::new(0), failure.clone());
            site.serve_with(&path, move |_| {
                match number % 5 == 2 && asked.fetch_add(1, Ordering::SeqCst) == 0 {
                    true => failure.clone(),
                    false => page("T").into(),
                }
            });
        }
    }
    let work = Workplace::new();
    let run = crawl_command(&work, &web, "60s")
        .args(&urls)
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    let lost: Vec<_> = outcomes.iter().filter(|(_, code)| *code != "ok").collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(run.summary().outcome_count("ok"), urls.len() as u64);
}

#[test]
fn dead_sites_end_in_their_outcomes_and_hold_nothing_up() {
    let web = Web::start();
    let well = web.site("well.example");
    well.serve_otherwise(|_| page("T").into());
    let answers: [(&str, Reply, &str, usize); 9] = [
        ("always429", status(429).into(), "http_error", 3),
        ("always503", status(503).into(), "http_error", 3),
        (
            "an-hour",
            status(503).header("retry-after", "3600").into(),
            "http_error",
            1,
        ),
        ("always502", status(502).into(), "http_error", 3),
        ("resets", script().reset().into(), "network_error", 3),
        ("hangs", script().hold_open().into(), "timeout", 2),
        ("missing", status(404).into(), "http_error", 1),
        ("forbids", status(403).into(), "http_error", 1),
        ("broken", status(500).into(), "http_error", 1),
    ];
    let mut urls = Vec::new();
    for (host, reply, ..) in &answers {
        let (site, reply) = (web.site(&format!("{host}.example")), reply.clone());
        site.serve_robots("");
        site.serve_otherwise(move |_| reply.clone());
        urls.push(site.url("/1"));
    }
    // At one site, robots.txt is unavailable. At the other one, the server asks to wait for an hour.
    let robots = web.site("robots.example");
    robots.serve("/robots.txt", status(503));
    let later = web.site("later.example");
    later.serve("/robots.txt", status(503).header("retry-after", "3600"));
    urls.extend([robots.url("/1"), robots.url("/2"), later.url("/1")]);
    urls.push("http://refused.example/1".into());
    urls.extend((0..30).map(|number| well.url(&format!("/{number}"))));
    let work = Workplace::new();
    let run = crawl_command(&work, &web, "6s")
        .args(["--resolve", "refused.example:80:127.0.0.1:1"])
        .args(&urls)
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    for (host, _, outcome, least) in &answers {
        let url = format!("http://{host}.example/1");
        assert_eq!(outcomes[&url], *outcome, "{url}");
        let asked = web.visits().for_host(&format!("{host}.example")).pages();
        assert!(asked.len() >= *least, "{host}: {}", asked.len());
    }
    for url in ["robots.example/1", "robots.example/2", "later.example/1"] {
        let url = format!("http://{url}");
        assert_eq!(outcomes[&url], "robots_unreachable", "{url}");
    }
    assert_eq!(outcomes["http://refused.example/1"], "robots_unreachable");
    assert!(robots.visits().robots().len() >= 3);
    assert_eq!(later.visits().robots().len(), 1, "it asks for an hour");
    let summary = run.summary();
    assert_eq!(summary.outcome_count("ok"), 30);
    assert_eq!(
        (&summary.json["queued"], &summary.json["backing_off"]),
        (&0.into(), &0.into())
    );
}

/// A page that answers 429 is not given up while its site answers other pages.
#[test]
fn a_429_ends_no_page_while_its_site_answers_others() {
    let web = Web::start();
    let site = web.site("busy.example");
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    site.serve_otherwise(move |request| {
        let is_refused = request.path == "/0" && counted.fetch_add(1, Ordering::SeqCst) < 5;
        match is_refused {
            true => status(429).header("retry-after", "1").into(),
            false => page("T").into(),
        }
    });
    let work = Workplace::new();
    // The page is retried more than three times, although three retries already take longer than the patience.
    crawl_command(&work, &web, "3s")
        .args((0..30).map(|number| site.url(&format!("/{number}"))))
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes[&site.url("/0")], "ok");
    assert_eq!(asked.load(Ordering::SeqCst), 6);
}

#[test]
fn the_next_command_tries_a_dead_site_again() {
    let web = Web::start();
    let site = web.site("back.example");
    let is_well = Arc::new(AtomicUsize::new(0));
    let answers = Arc::clone(&is_well);
    site.serve_with("/robots.txt", move |_| {
        match answers.load(Ordering::SeqCst) {
            0 => status(503).into(),
            _ => status(404).into(),
        }
    });
    site.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let urls = |from: usize| (from..from + 3).map(|n| site.url(&format!("/{n}")));
    let first = crawl_command(&work, &web, "2s")
        .args(urls(0))
        .finish()
        .expect_code(0);
    assert_eq!(first.summary().outcome_count("robots_unreachable"), 3);
    is_well.store(1, Ordering::SeqCst);
    let second = crawl_command(&work, &web, "2s")
        .args(urls(3))
        .finish()
        .expect_code(0);
    assert_eq!(second.summary().outcome_count("ok"), 3);
    let third = crawl_command(&work, &web, "2s")
        .args(["--retry", "robots_unreachable"])
        .finish()
        .expect_code(0);
    assert_eq!(third.summary().outcome_count("ok"), 6);
}

#[test]
fn a_block_outlasts_a_command_and_is_named_by_retry() {
    let web = Web::start();
    let site = web.site("blocks.example");
    site.serve_robots("");
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    site.serve_otherwise(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => status(403).header("cf-mitigated", "challenge").into(),
        _ => page("T").into(),
    });
    let work = Workplace::new();
    let urls = |from: usize| (from..from + 3).map(|n| site.url(&format!("/{n}")));
    let first = crawl_command(&work, &web, "2s")
        .args(urls(0))
        .finish()
        .expect_code(0);
    assert_eq!(first.summary().outcome_count("blocked"), 3);
    let second = crawl_command(&work, &web, "2s")
        .args(urls(3))
        .finish()
        .expect_code(0);
    assert_eq!(second.summary().outcome_count("blocked"), 6);
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the block lasts an hour");
    let third = crawl_command(&work, &web, "2s")
        .args(["--retry", "blocked"])
        .finish()
        .expect_code(0);
    assert_eq!(third.summary().outcome_count("ok"), 6);
}

#[needs(namespaces)]
#[test]
fn a_name_that_does_not_exist_is_looked_up_once_more_and_ends() {
    run_isolated(
        "patience::a_name_that_does_not_exist_is_looked_up_once_more_and_ends",
        || {
            let names_folder = Workplace::new();
            let names =
                NameServer::start_replying(&names_folder.path(""), |_, _| NameReply::NoSuchName);
            let work = Workplace::new();
            let started = Instant::now();
            with_tables(work.plain_crawl())
                .args(["--delay", "1", "--patience", "120s"])
                .args(["--contact", "https://crawler.example/about"])
                .args((0..4).map(|number| format!("http://gone.example/{number}")))
                .finish()
                .expect_code(0);
            let outcomes = work.stored().outcomes();
            assert_eq!(outcomes.len(), 4);
            assert!(
                outcomes.values().all(|code| code == "dns_error"),
                "{outcomes:?}"
            );
            // Each look-up sends one query for IPv4 addresses and one for IPv6 addresses.
            assert_eq!(names.question_count("gone.example"), 4);
            assert!(started.elapsed() >= Duration::from_secs(5));
        },
    );
}

fn record(id: &str, urls: &[String]) -> Value {
    json!({"id": id, "urls": urls, "fields": {"name": null}})
}

#[test]
fn an_unreachable_record_is_listed_once_with_its_reason() {
    let web = Web::start();
    let (well, gone) = (web.site("well.example"), web.site("gone.example"));
    well.serve("/1", page("Ada").field("name", "Ada"))
        .serve("/empty", page("nothing"));
    gone.serve_robots("");
    gone.serve("/gone", status(404)).serve("/ill", status(503));
    let refused = String::from("http://refused.example/1");
    let seeds = [
        record("resolved", &[gone.url("/gone"), well.url("/1")]),
        record("open", &[well.url("/empty"), refused.clone()]),
        record("missing", &[gone.url("/gone"), gone.url("/ill")]),
        record("refused, \"too\"", &[refused]),
    ];
    let work = Workplace::new();
    let file = work.write_lines("people.jsonl", &seeds);
    let crawl = || {
        crawl_command(&work, &web, "2s")
            .args(["--resolve", "refused.example:80:127.0.0.1:1"])
            .arg("--dead")
            .arg(work.path("dead.csv"))
    };
    let run = crawl().arg("--seeds").arg(&file).finish().expect_code(0);
    let json = run.summary().json;
    assert_eq!(json["records"]["unreachable"], 2, "{json}");
    assert_eq!(
        json["failed"],
        json!({
            "urls": 3,
            "sites": 2,
            "by": {"404": 1, "503": 1, "robots_unreachable": 1},
            "retry": ["503", "robots_unreachable"],
        })
    );
    let listed = std::fs::read_to_string(work.path("dead.csv")).expect("the list");
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert_eq!(lines[0], "id,url,outcome,status_code,site,why");
    assert!(
        lines[1].starts_with("missing,http://gone.example/gone,http_error,404,gone.example,"),
        "{listed}"
    );
    assert!(
        lines[2]
            .starts_with("\"refused, \"\"too\"\"\",http://refused.example/1,robots_unreachable,"),
        "{listed}"
    );
    let again = crawl()
        .replace_flag("--summary", "human")
        .finish()
        .expect_code(0);
    for part in [
        "1 of 4 resolved, 2 unreachable",
        "3 URLs at 2 sites: 1 404, 1 503, 1 robots_unreachable",
        "--retry 503,robots_unreachable",
    ] {
        assert!(again.stdout.contains(part), "`{part}`: {}", again.stdout);
    }
    let retried = crawl().args(["--retry", "503,404"]).finish().expect_code(0);
    assert_eq!(retried.summary().json["retried"], 2);
}

#[test]
fn one_line_shows_what_a_crawl_waits_for() {
    let web = Web::start();
    let site = web.site("slow.example");
    site.serve_robots("User-agent: *\nCrawl-delay: 3600\n");
    site.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let run = crawl_command(&work, &web, "1m").replace_flag("--progress", "plain");
    let mut running = run.args([site.url("/1"), site.url("/2")]).start();
    running.wait_for_stderr("1 site waits until ");
    running.wait_for_stderr("(1 delay)");
    running.signal(Signal::INT);
    running.finish().expect_code(11);
}

/// Ten ways a site can be dead, each with the outcome that its URL gets.
const WAYS: [(&str, &str); 10] = [
    ("refuses", "robots_unreachable"),
    ("resets", "network_error"),
    ("hangs", "timeout"),
    ("no-tls", "tls_error"),
    ("no-robots", "robots_unreachable"),
    ("missing", "http_error"),
    ("broken", "http_error"),
    ("busy", "http_error"),
    ("an-hour", "http_error"),
    ("blocks", "blocked"),
];

/// Creates a site that is dead in one of these [`WAYS`]. Returns a URL of the site.
fn serve_dead_site(web: &Web, way: &str, host: &str) -> String {
    let site = web.site(host);
    if way == "no-robots" {
        site.serve("/robots.txt", status(500));
    }
    let answer: Reply = match way {
        "resets" => script().reset().into(),
        "hangs" => script().hold_open().into(),
        "missing" => status(404).into(),
        "broken" => status(500).into(),
        "busy" => status(429).into(),
        "an-hour" => status(503).header("retry-after", "3600").into(),
        _ => status(403).header("cf-mitigated", "challenge").into(),
    };
    site.serve("/1", answer);
    match way {
        "no-tls" => format!("https://{host}/1"),
        _ => site.url("/1"),
    }
}

/// All datasets have some dead links. In this test, they are a tenth of a thousand records.
#[test]
fn a_crawl_of_a_thousand_records_ends_although_a_tenth_of_them_is_dead() {
    let web = Web::start();
    let mut seeds = Vec::new();
    for number in 0..90 {
        let site = web.site(&format!("well-{number}.example"));
        site.serve_otherwise(|request| page("T").field("name", &request.path).into());
        let pages = (0..10).map(|page| (page, site.url(&format!("/{page}"))));
        seeds.extend(pages.map(|(page, url)| record(&format!("{number}-{page}"), &[url])));
    }
    let mut refused = Vec::new();
    let mut dead = Vec::new();
    for (way, outcome) in WAYS {
        for number in 0..10 {
            let host = format!("{way}-{number}.example");
            let url = serve_dead_site(&web, way, &host);
            let port = web.plain_address().port();
            match way {
                "refuses" => refused.push(format!("{host}:80:127.0.0.1:1")),
                // The port of this host belongs to a server that does not speak TLS.
                "no-tls" => refused.push(format!("{host}:443:127.0.0.1:{port}")),
                _ => {}
            }
            seeds.insert(seeds.len() / 2, record(&host, std::slice::from_ref(&url)));
            dead.push((url, outcome));
        }
    }
    let work = Workplace::new();
    let file = work.write_lines("people.jsonl", &seeds);
    let resolve = refused.iter().flat_map(|value| ["--resolve", value]);
    let run = crawl_command(&work, &web, "8s")
        .args(resolve)
        .arg("--seeds")
        .arg(&file)
        .arg("--dead")
        .arg(work.path("dead.csv"))
        .finish()
        .expect_code(0);
    let json = run.summary().json;
    let records = &json["records"];
    assert_eq!(
        (
            &records["total"],
            &records["resolved"],
            &records["unreachable"]
        ),
        (&1_000.into(), &900.into(), &100.into()),
        "{json}"
    );
    let outcomes = work.stored().outcomes();
    for (url, outcome) in &dead {
        assert_eq!(outcomes[url], *outcome, "{url}");
    }
    let listed = std::fs::read_to_string(work.path("dead.csv")).expect("the list");
    assert_eq!(listed.lines().count(), 101, "each once, below a header");
}

/// The limiter accepts five requests per second, and a burst of three. Its refusals cost no page. After the first few
/// refusals, the crawl keeps to the limiter's pace, and so does the next command.
#[test]
fn a_limiter_is_met_after_a_few_refusals_and_its_pace_is_kept() {
    const PER_SECOND: f64 = 5.0;
    const BURST: f64 = 3.0;
    let web = Web::start();
    let site = web.site("limited.example");
    let bucket = Arc::new(Mutex::new((BURST, Instant::now())));
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    site.serve_otherwise(move |_| {
        let mut bucket = bucket.lock().expect("it is not poisoned");
        let (tokens, at) = *bucket;
        let tokens = (tokens + at.elapsed().as_secs_f64() * PER_SECOND).min(BURST);
        *bucket = (tokens - f64::from(u8::from(tokens >= 1.0)), Instant::now());
        match tokens >= 1.0 {
            true => page("T").into(),
            false => {
                counted.fetch_add(1, Ordering::SeqCst);
                status(429).header("retry-after", "1").into()
            }
        }
    });
    let work = Workplace::new();
    let run = |from: usize, pages: usize| {
        crawl_command(&work, &web, "60s")
            .args((from..from + pages).map(|number| site.url(&format!("/{number}"))))
            .finish()
            .expect_code(0);
        refused.swap(0, Ordering::SeqCst)
    };
    let first = run(0, 90);
    // A crawl on a busy machine may be so slow that it gets no refusal.
    assert!(first <= 6, "{first} refusals");
    let second = run(90, 40);
    assert!(second <= 2, "{second} refusals by the next command");
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes.values().filter(|code| *code == "ok").count(), 130);
}
