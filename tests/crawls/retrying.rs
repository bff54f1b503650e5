//! Tests that `webfill crawl --retry` fetches the failed pages of a crawl again, and no other pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page, status};
use webfill_tests::workplace::Workplace;

/// The paths of a site, and whether each path fails while the site is ill.
const PATHS: [(&str, bool); 5] = [
    ("/fine", false),
    ("/ill-1", true),
    ("/ill-2", true),
    ("/ill-3", true),
    ("/parent", false),
];

/// A web with a switch that heals its pages. Until then, the pages `/ill...` answer 500. `/parent` links to one of
/// them.
fn start_ill_web() -> (Web, Arc<AtomicBool>) {
    let web = Web::start();
    let site = web.site("a.example");
    let is_healthy = Arc::new(AtomicBool::new(false));
    let healthy = Arc::clone(&is_healthy);
    site.serve_otherwise(move |request| {
        let is_ill = request.path.starts_with("/ill") && !healthy.load(Ordering::SeqCst);
        match is_ill {
            true => status(500).into(),
            false => page(&request.path).into(),
        }
    });
    site.serve("/parent", page("parent").link("/ill-3"));
    (web, is_healthy)
}

fn crawl_command(work: &Workplace, web: &Web) -> Run {
    work.crawl(web).args(["--follow", "all"])
}

fn run_first_crawl(work: &Workplace, web: &Web) {
    let site = web.site("a.example");
    let seeds = ["/fine", "/ill-1", "/ill-2", "/parent"].map(|path| site.url(path));
    let run = crawl_command(work, web).args(seeds).finish().expect_code(0);
    let summary = run.summary();
    assert_eq!(
        (
            summary.outcome_count("ok"),
            summary.outcome_count("http_error")
        ),
        (2, 3)
    );
    assert_eq!(summary.json["retried"], json!(null));
}

#[test]
fn only_failed_pages_are_fetched_again() {
    let (web, is_healthy) = start_ill_web();
    let work = Workplace::new();
    run_first_crawl(&work, &web);
    is_healthy.store(true, Ordering::SeqCst);

    let run = crawl_command(&work, &web).args(["--retry", "http_error,timeout"]);
    let summary = run.finish().expect_code(0).summary();
    assert_eq!(summary.outcomes(), BTreeMap::from([("ok".into(), 5)]));
    assert_eq!(summary.json["retried"], 3);
    assert_eq!(
        (summary.tasks(), summary.pages()),
        (5, 8),
        "{}",
        summary.json
    );
    for (path, failed) in PATHS {
        let visits = web.visits().for_path(path).len();
        assert_eq!(visits, if failed { 2 } else { 1 }, "{path}");
    }
    let stored = work.stored();
    assert_eq!(stored.pages().len(), PATHS.len());
    for (url, page) in stored.pages() {
        assert_eq!(
            (page.outcome.as_str(), page.status_code),
            ("ok", Some(200)),
            "{url}"
        );
    }
    let tried =
        stored.query_number("SELECT count(*) FROM pages WHERE json_array_length(tries) = 1");
    assert_eq!(tried, 3, "the failed attempts are shown");
    assert_eq!(stored.query_texts("SELECT state FROM crawls"), ["finished"]);

    let again = crawl_command(&work, &web).args(["--retry", "http_error"]);
    assert_eq!(again.finish().expect_code(0).summary().json["retried"], 0);
    assert_eq!(
        web.visits().pages().len(),
        8,
        "nothing was left to fetch again"
    );
}

#[test]
fn a_retried_page_fills_the_records_that_wanted_it() {
    let (web, is_healthy) = start_ill_web();
    let work = Workplace::new();
    let site = web.site("p.example");
    let healthy = Arc::clone(&is_healthy);
    site.serve_with("/ada", move |_| match healthy.load(Ordering::SeqCst) {
        true => page("Ada").field("name", "Ada").into(),
        false => status(500).into(),
    });
    let record = json!({"id": "42", "urls": [site.url("/ada")], "fields": {"name": null}});
    let seeds = work.write_lines("seeds.jsonl", &[record]);
    let run = work.crawl(&web).arg("--seeds").arg(&seeds);
    assert_eq!(run.finish().expect_code(0).summary().records(), (1, 0));
    is_healthy.store(true, Ordering::SeqCst);
    let run = work.crawl(&web).args(["--retry", "http_error"]);
    assert_eq!(run.finish().expect_code(0).summary().records(), (1, 1));
    assert_eq!(work.stored().record("42").fields["name"], "Ada");
}

#[test]
fn senseless_arguments_are_refused_before_anything_is_opened() {
    let work = Workplace::new();
    let web = Web::start();
    let run = work.crawl(&web).args(["--retry", "http_eror"]);
    let run = run.finish().expect_code(2);
    assert!(run.one_sentence().contains("http_eror"), "{}", run.stderr);
    assert!(!work.path("state").exists());
    let fresh = Run::new(["crawl", "http://a.example/", "--retry", "timeout"]).finish();
    let fresh = fresh.expect_code(2);
    assert!(fresh.one_sentence().contains("--crawl"), "{}", fresh.stderr);
}
