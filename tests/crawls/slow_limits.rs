//! Tests limiters that accept fewer than one request in two seconds. They answer 429 without a time to wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use webfill_tests::site::{Site, Web, page, status};
use webfill_tests::workplace::Workplace;

use crate::patience;

/// Refuses and counts each request that comes earlier than `every` after the last accepted one.
fn serve_limited(site: &Site, every: Duration) -> Arc<AtomicUsize> {
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    let accepted: Mutex<Option<Instant>> = Mutex::new(None);
    site.serve_robots("");
    site.serve_otherwise(move |_| {
        let mut accepted = accepted.lock().expect("it is not poisoned");
        if accepted.is_some_and(|at| at.elapsed() < every) {
            counted.fetch_add(1, Ordering::SeqCst);
            return status(429).into();
        }
        *accepted = Some(Instant::now());
        page("T").into()
    });
    refused
}

#[test]
fn a_slow_limiter_without_retry_after_costs_no_page() {
    let web = Web::start();
    let hosts = [("three.example", 3, 16), ("ten.example", 10, 6)];
    let mut urls = Vec::new();
    let mut counters = Vec::new();
    for (host, seconds, pages) in hosts {
        let site = web.site(host);
        counters.push(serve_limited(&site, Duration::from_secs(seconds)));
        urls.extend((0..pages).map(|number| site.url(&format!("/{number}"))));
    }
    let work = Workplace::new();
    let crawl = || patience::crawl_command(&work, &web, "20s").time_limit(Duration::from_secs(280));
    crawl().args(&urls).finish().expect_code(0);
    let outcomes = work.stored().outcomes();
    for url in &urls {
        assert_eq!(outcomes[url], "ok", "{url}");
    }
    let refused: Vec<_> = counters
        .iter()
        .map(|count| count.swap(0, Ordering::SeqCst))
        .collect();
    assert!(refused[0] <= 8 && refused[1] <= 10, "{refused:?}");
    // The next command already knows the pace of the site, so it gets few refusals.
    let more = (100..104).map(|number| format!("http://three.example/{number}"));
    crawl().args(more).finish().expect_code(0);
    let summary = work.stored().outcomes();
    assert_eq!(
        summary.values().filter(|code| *code == "ok").count(),
        urls.len() + 4
    );
    let refused = counters[0].load(Ordering::SeqCst);
    assert!(refused <= 1, "{refused}");
}
