//! Tests limiters that refuse with statuses other than 429. The pages are fetched later, at a pace that the limiter
//! accepts. A server that sends `Retry-After` with every refusal does not delay its site for long.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use webfill_tests::site::{Page, Reply, Site, Web, page, script, status};
use webfill_tests::workplace::Workplace;

use crate::patience;

const NAMED: Duration = Duration::from_secs(3);

fn epoch_seconds_after(wait: Duration) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    // One more second, because the current second has already begun.
    (now.expect("it is later than 1970").as_secs() + wait.as_secs() + 1).to_string()
}

/// A host's name, and the function that makes its refusal page.
type Refusal = (&'static str, fn() -> Page);

/// Refusals that say how long to wait.
fn refusals() -> Vec<Refusal> {
    vec![
        ("s403", || status(403).header("retry-after", "3")),
        ("s403-spent", || {
            status(403)
                .header("x-ratelimit-limit", "60")
                .header("x-ratelimit-remaining", "0")
                .header("x-ratelimit-reset", epoch_seconds_after(NAMED))
        }),
        ("s403-standard", || {
            status(403).header("ratelimit", "\"default\";r=0;t=3")
        }),
        ("s429-reset", || {
            status(429)
                .header("x-ratelimit-remaining", "0")
                .header("x-ratelimit-reset", epoch_seconds_after(NAMED))
        }),
        ("s429-older", || {
            status(429)
                .header("ratelimit-remaining", "0")
                .header("ratelimit-reset", "3")
        }),
        ("s400", || status(400).header("retry-after", "3")),
        ("s401", || status(401).header("retry-after", "3")),
        ("s402", || status(402).header("retry-after", "3")),
        ("s405", || status(405).header("retry-after", "3")),
        ("s413", || status(413).header("retry-after", "3")),
        ("s418", || status(418).header("retry-after", "3")),
        ("s420", || {
            status(420)
                .header("x-rate-limit-remaining", "0")
                .header("x-rate-limit-reset", epoch_seconds_after(NAMED))
        }),
        ("s500", || status(500).header("retry-after", "3")),
        ("s502", || status(502).header("retry-after", "3")),
        ("s503", || status(503).header("retry-after", "3")),
        ("s529", || status(529).header("retry-after", "3")),
    ]
}

/// Makes a site refuse requests for the time [`NAMED`], beginning with the fourth request. Returns the number of
/// refusals, which grows during the crawl.
fn serve_limited(site: &Site, refusal: fn() -> Page) -> &'static AtomicUsize {
    let refused: &'static AtomicUsize = Box::leak(Box::default());
    let (asked, until) = (AtomicUsize::new(0), Mutex::new(None::<Instant>));
    site.serve_robots("");
    site.serve_otherwise(move |_| {
        let mut until = until.lock().expect("it is not poisoned");
        if asked.fetch_add(1, Ordering::SeqCst) == 3 {
            *until = Some(Instant::now() + NAMED);
        }
        match until.is_some_and(|until| Instant::now() < until) {
            true => {
                refused.fetch_add(1, Ordering::SeqCst);
                refusal().into()
            }
            false => page("T").into(),
        }
    });
    refused
}

#[test]
fn a_refusal_that_names_a_time_ends_no_page_and_is_waited_for() {
    let web = Web::start();
    let (mut urls, mut counters) = (Vec::new(), Vec::new());
    for (host, refusal) in refusals() {
        let site = web.site(&format!("{host}.example"));
        counters.push((host, serve_limited(&site, refusal)));
        urls.extend((0..6).map(|number| site.url(&format!("/{number}"))));
    }
    let work = Workplace::new();
    let run = patience::crawl_command(&work, &web, "60s").args(&urls);
    run.finish().expect_code(0);
    let outcomes = work.stored().outcomes();
    let lost: Vec<_> = outcomes.iter().filter(|(_, code)| *code != "ok").collect();
    assert!(lost.is_empty(), "{lost:?}");
    let early: Vec<_> = counters
        .iter()
        .map(|(host, refused)| (*host, refused.load(Ordering::SeqCst)))
        .filter(|(_, refused)| *refused != 1)
        .collect();
    assert!(early.is_empty(), "asked again before the time: {early:?}");
}

/// A server may send `Retry-After` with every refusal. Then the refused page is retried a few times, but the site does
/// not back off for a minute each time.
#[test]
fn a_retry_after_with_every_refusal_ends_its_page_within_bounds() {
    let web = Web::start();
    let site = web.site("habit.example");
    site.serve_robots("");
    site.serve_otherwise(|_| page("T").into());
    site.serve("/closed", status(403).header("retry-after", "1"));
    site.serve("/gone", status(404).header("retry-after", "3600"));
    let work = Workplace::new();
    let pages = (0..20).map(|number| site.url(&format!("/{number}")));
    patience::crawl_command(&work, &web, "5s")
        .args([site.url("/closed"), site.url("/gone")])
        .args(pages)
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    let of = |code: &str| outcomes.values().filter(|outcome| *outcome == code).count();
    assert_eq!((of("ok"), of("http_error")), (20, 2), "{outcomes:?}");
    let asked = |path: &str| site.visits().for_path(path).len();
    let closed = asked("/closed");
    assert!((2..=6).contains(&closed), "{closed}");
    assert_eq!(asked("/gone"), 1, "there is no such page");
}

/// A site that asks to wait for longer than the crawl's patience ends with its outcome, and gets no further requests.
#[test]
fn a_limit_beyond_the_patience_ends_the_site_at_once() {
    let web = Web::start();
    let site = web.site("spent.example");
    site.serve_robots("");
    site.serve_otherwise(|_| {
        let reset = epoch_seconds_after(Duration::from_secs(3_000));
        status(403)
            .header("x-ratelimit-remaining", "0")
            .header("x-ratelimit-reset", reset)
            .into()
    });
    let work = Workplace::new();
    let urls = (0..10).map(|number| site.url(&format!("/{number}")));
    let run = patience::crawl_command(&work, &web, "10s")
        .args(urls)
        .finish();
    let run = run.expect_code(0);
    assert_eq!(run.summary().outcome_count("http_error"), 10);
    assert_eq!(site.visits().pages().len(), 1);
}

/// Hosts with a page that always fails: the host's name, the answer, and the outcome of the page.
fn lasting_failures() -> Vec<(&'static str, Reply, &'static str)> {
    let every_time = || status(429).header("retry-after", "1");
    vec![
        ("s429", status(429).into(), "http_error"),
        ("s429-wait", every_time().into(), "http_error"),
        ("s503", status(503).into(), "http_error"),
        ("resets", script().reset().into(), "network_error"),
        ("hangs", script().hold_open().into(), "timeout"),
    ]
}

/// In each test case, the failing page is the first, a middle or the last page of its site.
#[test]
fn a_page_that_always_fails_ends_no_other() {
    let web = Web::start();
    let mut urls = Vec::new();
    let mut closed = Vec::new();
    for (name, reply, outcome) in lasting_failures() {
        for position in [0, 6, 11] {
            let site = web.site(&format!("{name}-{position}.example"));
            site.serve_robots("");
            site.serve_otherwise(|_| page("T").into());
            let path = format!("/{position}");
            site.serve(&path, reply.clone());
            closed.push((site.url(&path), outcome));
            urls.extend((0..12).map(|number| site.url(&format!("/{number}"))));
        }
    }
    let work = Workplace::new();
    let run = patience::crawl_command(&work, &web, "5s").args(&urls);
    run.finish().expect_code(0);
    assert_all_others_are_ok(&work, &closed, urls.len());
}

/// At first, the crawl knows only the failing page of the site. It finds the links to the other pages when it no longer
/// waits for the failing one.
#[test]
fn pages_that_are_found_after_one_has_failed_for_good_are_fetched() {
    const CHAIN: usize = 12;
    let web = Web::start();
    let hub = web.site("hub.example");
    hub.serve_robots("");
    let (mut urls, mut closed) = (vec![hub.url("/0")], Vec::new());
    let mut last = page("end").latency(Duration::from_secs(1));
    for (name, reply, outcome) in lasting_failures() {
        let site = web.site(&format!("{name}.example"));
        site.serve_robots("");
        site.serve_otherwise(|_| page("T").into());
        site.serve("/closed", reply);
        closed.push((site.url("/closed"), outcome));
        urls.push(site.url("/closed"));
        last = (0..3).fold(last, |page, number| {
            page.link(&site.url(&format!("/late-{number}")))
        });
    }
    for number in 0..CHAIN {
        let next = hub.url(&format!("/{}", number + 1));
        // Each page has other words. If the words were the same, the chain would count as endless.
        let words = [
            "alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "oak",
        ];
        let title: Vec<&str> = (0..12)
            .map(|nth| words[(number * 5 + nth * nth) % 8])
            .collect();
        let linked = page(&title.join(" ")).latency(Duration::from_secs(1));
        let linked = linked.link(&next);
        hub.serve(&format!("/{number}"), linked);
    }
    hub.serve(&format!("/{CHAIN}"), last);
    let work = Workplace::new();
    let depth = (CHAIN + 1).to_string();
    patience::crawl_command(&work, &web, "3s")
        .args(["--follow", "all", "--depth", &depth])
        .args(&urls)
        .finish()
        .expect_code(0);
    let late = 3 * lasting_failures().len();
    assert_all_others_are_ok(&work, &closed, urls.len() + CHAIN + late);
}

/// Checks that each of the `closed` pages has its outcome, and that all other pages are fetched.
fn assert_all_others_are_ok(work: &Workplace, closed: &[(String, &str)], pages: usize) {
    let mut outcomes = work.stored().outcomes();
    assert_eq!(outcomes.len(), pages, "{outcomes:?}");
    for (url, outcome) in closed {
        let ended = outcomes.remove(url);
        assert_eq!(ended.as_deref(), Some(*outcome), "{url}");
    }
    outcomes.retain(|_, outcome| outcome != "ok");
    assert!(outcomes.is_empty(), "{outcomes:?}");
}

/// The server sends a partial answer (206) although the request did not ask for a part.
#[test]
fn a_part_of_a_page_is_no_page() {
    let web = Web::start();
    let site = web.site("part.example");
    let part = script().send(
        "HTTP/1.1 206 Partial Content\r\ncontent-type: text/html\r\n\
         content-range: bytes 0-20/9000\r\ncontent-length: 21\r\n\r\n<html><h1>The half</h",
    );
    site.serve("/", Reply::from(part));
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect_code(0);
    assert_eq!(work.stored().outcomes()[&site.url("/")], "http_error");
}
