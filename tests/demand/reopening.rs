//! Tests that ended tasks are queued again when an application asks for this.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::{page, status};

use crate::clients::post;
use crate::fleet::{APP, Fleet, action, request, wait_for};

/// Sites that fail until they are healed. A path such as `/500-a` is then answered with the status at its beginning.
struct IllSites {
    is_healthy: Arc<AtomicBool>,
    urls: Vec<String>,
}

impl IllSites {
    fn serve(fleet: &Fleet, hosts: &[&str]) -> IllSites {
        let is_healthy = Arc::new(AtomicBool::new(false));
        let mut urls = Vec::new();
        for host in hosts {
            let site = fleet.web.site(host);
            let healthy = Arc::clone(&is_healthy);
            site.serve_otherwise(move |request| {
                let number = request.path.trim_start_matches('/').split('-').next();
                let code = number.and_then(|number| number.parse().ok());
                match code.filter(|_| !healthy.load(Ordering::SeqCst)) {
                    Some(code) => status(code).into(),
                    None => page(&request.path).into(),
                }
            });
            let paths = ["/500-a", "/500-b", "/404-c", "/fine"];
            urls.extend(paths.map(|path| site.url(path)));
        }
        IllSites { is_healthy, urls }
    }

    /// Crawls all pages of these sites, and waits for the end of the crawl.
    fn crawl(&self, fleet: &Fleet, crawl_id: &str) {
        let requests: Vec<Value> = self.urls.iter().map(|url| request(url, crawl_id)).collect();
        fleet.feed(&requests);
        fleet.wait_until_done(crawl_id);
    }

    fn serve_pages_again(&self) {
        self.is_healthy.store(true, Ordering::SeqCst);
    }
}

fn retry_request(crawl_id: &str, more: Value) -> Value {
    let mut retry = action("retry", Some(crawl_id));
    for (key, value) in more.as_object().expect("an object") {
        retry[key] = value.clone();
    }
    retry
}

/// All stored pages by their URLs, sorted.
fn export_pages(fleet: &Fleet) -> Vec<(String, Value)> {
    let run = Run::new(["export", "pages", "--store", &fleet.store_uri()]);
    let lines = run.finish().expect_code(0).stdout;
    let pages = lines.lines().map(|line| {
        let page: Value = serde_json::from_str(line).expect("JSON");
        (page["url"].as_str().expect("text").to_owned(), page)
    });
    let mut pages: Vec<(String, Value)> = pages.collect();
    pages.sort_by(|one, other| one.0.cmp(&other.0));
    pages
}

fn count_visits(fleet: &Fleet, host: &str) -> Vec<usize> {
    let of_path = |path| fleet.web.visits().for_host(host).for_path(path).len();
    ["/500-a", "/500-b", "/404-c", "/fine"].map(of_path).into()
}

#[test]
fn only_the_named_outcomes_statuses_and_sites_are_fetched_again() {
    let fleet = Fleet::start();
    let sites = IllSites::serve(&fleet, &["a.example", "b.example"]);
    sites.crawl(&fleet, "c");
    sites.serve_pages_again();

    let narrow = retry_request(
        "c",
        json!({"outcome": ["http_error", "timeout"], "status": [500], "site": "a.example"}),
    );
    let answer = fleet.client().ask(&narrow);
    assert_eq!(answer["total_requeued"], 2, "{answer}");
    assert_eq!(
        (&answer["action"], &answer["appid"], &answer["crawlid"]),
        (&json!("retry"), &json!(APP), &json!("c")),
        "{answer}"
    );
    assert_eq!(answer["uuid"], "someuuid", "{answer}");
    fleet.wait_until_done("c");
    assert_eq!(count_visits(&fleet, "a.example"), [2, 2, 1, 1]);
    assert_eq!(count_visits(&fleet, "b.example"), [1, 1, 1, 1]);
    let again = fleet.client().ask(&narrow);
    assert_eq!(again["total_requeued"], 0, "they are ok now: {again}");

    let rest = retry_request("c", json!({"outcome": ["http_error"]}));
    assert_eq!(fleet.client().ask(&rest)["total_requeued"], 4);
    fleet.wait_until_done("c");
    assert_eq!(count_visits(&fleet, "a.example"), [2, 2, 2, 1]);
    assert_eq!(count_visits(&fleet, "b.example"), [2, 2, 2, 1]);

    let pages = export_pages(&fleet);
    assert_eq!(pages.len(), 8, "one document for each URL");
    for (url, page) in &pages {
        assert_eq!(page["outcome"], "ok", "{page}");
        let tried: Vec<&Value> = page["tries"].as_array().into_iter().flatten().collect();
        assert_eq!(tried.len(), usize::from(!url.ends_with("fine")), "{page}");
        for attempt in tried {
            assert_eq!(attempt["outcome"], "http_error", "{page}");
        }
    }
    let info = fleet.info("c");
    assert_eq!(info["outcomes"], json!({"ok": 8}), "{info}");
    assert_eq!((&info["done"], &info["pages"]), (&json!(8), &json!(14)));
}

#[test]
fn pages_are_retried_by_http_as_by_the_command() {
    let fleet = Fleet::start();
    let sites = IllSites::serve(&fleet, &["a.example"]);
    sites.crawl(&fleet, "c");
    sites.serve_pages_again();
    let (code, answer) = post(
        &fleet,
        "/retry",
        &json!({"appid": APP, "crawlid": "c", "outcome": ["http_error"], "status": [404]}),
    );
    assert_eq!(
        (code, &answer["total_requeued"]),
        (200, &json!(1)),
        "{answer}"
    );
    fleet.wait_until_done("c");
    let args = ["retry", APP, "c", "--outcome", "http_error,timeout"];
    let output = fleet.run(&args).expect_code(0).stdout;
    assert_eq!(output.trim(), "testapp/c: 2 finished URLs re-queued");
    fleet.wait_until_done("c");
    assert_eq!(count_visits(&fleet, "a.example"), [2, 2, 2, 1]);
    let narrow = ["--status", "500", "--site", "a.example"];
    let answer = fleet.run_json(&[&args[..], &narrow].concat());
    assert_eq!(answer["total_requeued"], 0, "{answer}");
}

#[test]
fn a_crawl_that_had_finished_runs_again_also_in_the_store() {
    let fleet = Fleet::start();
    let sites = IllSites::serve(&fleet, &["a.example"]);
    sites.crawl(&fleet, "c");
    let state = || {
        let found = fleet.work.stored();
        found.query_texts("SELECT state FROM crawls WHERE crawl_id = 'c'")
    };
    wait_for("it is finished in the store", || {
        (state() == ["finished"]).then_some(())
    });
    fleet
        .run(&["site", "a.example", "--block-until", "1h"])
        .expect_code(0);
    let ask = retry_request("c", json!({"outcome": ["http_error"]}));
    assert_eq!(fleet.client().ask(&ask)["total_requeued"], 3);
    let info = fleet.info("c");
    assert_eq!(
        (&info["state"], &info["total_pending"], &info["done"]),
        (&json!("running"), &json!(3), &json!(1)),
        "{info}"
    );
    wait_for("it runs in the store", || {
        (state() == ["running"]).then_some(())
    });
}

#[test]
fn tasks_that_cannot_be_queued_again_are_refused_with_the_reason() {
    let fleet = Fleet::start();
    let sites = IllSites::serve(&fleet, &["a.example"]);
    sites.crawl(&fleet, "over");
    let of = |more| fleet.client().ask(&retry_request("over", more))["error"].clone();
    let below = of(json!({"outcome": ["ok"], "site": "www.a.example"}));
    assert_eq!(below["path"], "$.site", "{below}");
    fleet.client().ask(&action("stop", Some("over")));
    let stopped = of(json!({"outcome": ["http_error"]}));
    assert_eq!(stopped["path"], "$.crawlid", "{stopped}");
    let misspelt = of(json!({"outcome": ["http_error", "http_eror"]}));
    assert_eq!(misspelt["path"], "$.outcome[1]", "{misspelt}");
    let (code, unknown) = post(
        &fleet,
        "/retry",
        &json!({"appid": APP, "crawlid": "none", "outcome": ["ok"]}),
    );
    assert_eq!(
        (code, &unknown["error"]["path"]),
        (400, &json!("$.crawlid")),
        "{unknown}"
    );
    let run = fleet.run(&["retry", APP, "over", "--outcome", "http_error"]);
    let run = run.expect_code(1);
    assert!(run.stderr.contains("stopped permanently"), "{}", run.stderr);
    fleet
        .run(&["retry", APP, "over", "--outcome", "http_eror"])
        .expect_code(2);
    assert_eq!(count_visits(&fleet, "a.example"), [1, 1, 1, 1]);
}
