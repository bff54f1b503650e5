//! Tests the outcomes of pages that a site served before its block was recognised.

use super::*;

/// The site serves some short empty pages before it clearly blocks.
#[test]
fn pages_served_before_a_block_are_fetched_again() {
    let web = Web::start();
    let site = web.site("soft.example");
    let asked = Arc::new(AtomicUsize::new(0));
    site.serve_otherwise(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => page("T").field("name", "First").into(),
        n @ 1..=3 => document("text/html", format!("<p>{}", "x".repeat(n))).into(),
        4 => challenge_by_header().into(),
        _ => page("T").field("name", &request.path).into(),
    });
    let work = Workplace::new();
    let urls: Vec<String> = (0..8).map(|n| site.url(&format!("/{n}"))).collect();
    let run = work
        .crawl(&web)
        .args(&urls)
        .env("WEBFILL_BACKOFF_BLOCKED", "1,1,1")
        .finish()
        .expect_code(0);
    assert_eq!(
        run.summary().outcome_count("ok"),
        8,
        "{}",
        run.summary().json
    );
    let pages = work.stored().pages();
    let without = urls
        .iter()
        .filter(|url| !pages[*url].fields.contains_key("name"));
    assert_eq!(without.count(), 0, "{pages:?}");
    assert_eq!(
        site.visits().pages().len(),
        12,
        "three twice, one after its block"
    );
}

/// If no command waits until the site's backoff ends, the short pages served before the block end as blocked, like the
/// site's other pages. They can be retried. This must be so whether one command fetched all pages or a second one
/// continued.
#[test]
fn pages_served_before_a_block_end_as_blocked_if_no_command_waits() {
    for commands in [1, 2] {
        let web = Web::start();
        let site = web.site("soft.example");
        let asked = Arc::new(AtomicUsize::new(0));
        let is_open = Arc::new(AtomicBool::new(false));
        let open = Arc::clone(&is_open);
        site.serve_otherwise(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
            _ if open.load(Ordering::SeqCst) => page("T").field("name", &request.path).into(),
            0 => page("T").field("name", "First").into(),
            n @ 1..=3 => document("text/html", format!("<p>{}", "x".repeat(n))).into(),
            _ => challenge_by_header().into(),
        });
        let work = Workplace::new();
        let urls: Vec<String> = (0..8).map(|n| site.url(&format!("/{n}"))).collect();
        let crawl = |arguments: &[String]| {
            let run = work.crawl(&web).args(arguments);
            run.env("WEBFILL_BACKOFF_BLOCKED", "3600")
                .finish()
                .expect_code(0)
        };
        if commands == 2 {
            assert_eq!(crawl(&urls[..4]).summary().outcome_count("ok"), 4);
        }
        let summary = crawl(&urls).summary();
        let counts = ["ok", "blocked"].map(|outcome| summary.outcome_count(outcome));
        assert_eq!(counts, [1, 7], "{commands}: {}", summary.json);
        assert_eq!(summary.json["failed"]["retry"][0], "blocked");
        let pages = work.stored().pages();
        assert_eq!(pages[&urls[0]].fields["name"], "First");
        assert!(urls[1..].iter().all(|url| pages[url].outcome == "blocked"));
        is_open.store(true, Ordering::SeqCst);
        let retry = ["--retry", "blocked"].map(String::from);
        assert_eq!(crawl(&retry).summary().outcome_count("ok"), 8, "{commands}");
    }
}

/// Healthy sites might serve the same answer as this site, so it is recognised as a block only at its fifth URL. The
/// values that records got from the first four are removed. If a record was complete because of them, its other URLs
/// are fetched.
#[test]
fn values_that_a_block_put_into_records_are_removed() {
    let web = Web::start();
    let (site, other) = (web.site("weak.example"), web.site("other.example"));
    let is_open = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&is_open);
    site.serve_otherwise(move |request| {
        let is_good = request.path == "/0" || open.load(Ordering::SeqCst);
        match is_good {
            true => page("T").field("name", &request.path).into(),
            false => unknown_challenge().html("<a href='/help'>Help</a>").into(),
        }
    });
    // The other site's slow robots.txt delays its page. So the block completes record 1 before that page is requested.
    let slow = document("text/plain", "").latency(Duration::from_secs(3));
    other.serve("/robots.txt", slow);
    other.serve_otherwise(|_| page("T").field("name", "Ada").into());
    let work = Workplace::new();
    let seeds: Vec<Value> = (0..6)
        .map(|n| {
            let mut urls = vec![site.url(&format!("/{n}"))];
            urls.extend((n == 1).then(|| other.url("/late")));
            json!({"id": n.to_string(), "urls": urls, "fields": {"name": null}})
        })
        .collect();
    let file = work.write_lines("people.jsonl", &seeds);
    let crawl = || {
        let run = work.crawl(&web);
        run.env("WEBFILL_BACKOFF_BLOCKED", "3600")
    };
    let summary = crawl()
        .arg("--seeds")
        .arg(&file)
        .finish()
        .expect_code(0)
        .summary();
    assert_eq!(summary.outcome_count("blocked"), 5, "{}", summary.json);
    assert_eq!(summary.records(), (6, 2), "{}", summary.json);
    assert_eq!(summary.json["failed"]["retry"], json!(["blocked"]));
    let name = |id: &str| work.stored().record(id).fields["name"].clone();
    let names: Vec<Value> = (0..6).map(|n| name(&n.to_string())).collect();
    let expected = json!(["/0", "Ada", null, null, null, null]);
    assert_eq!(Value::Array(names), expected);
    is_open.store(true, Ordering::SeqCst);
    let summary = crawl()
        .args(["--retry", "blocked"])
        .finish()
        .expect_code(0)
        .summary();
    assert_eq!(summary.records(), (6, 6), "{}", summary.json);
    assert_eq!((name("1"), name("5")), ("Ada".into(), "/5".into()));
}
