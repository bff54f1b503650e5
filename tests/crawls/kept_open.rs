//! Tests keep-alive connections that servers close between two requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use webfill_tests::site::{Page, Reply, Script, Site, Web, page, script, status};
use webfill_tests::workplace::Workplace;

const PAGES: usize = 6;

/// Answers the first `times` requests for a path with the script `how`, and later ones with the page `then`.
fn serve_failing_first(site: &Site, path: &str, times: usize, how: Script, then: Page) {
    let asked = Arc::new(AtomicUsize::new(0));
    site.serve_with(path, move |_| -> Reply {
        match asked.fetch_add(1, Ordering::Relaxed) < times {
            true => how.clone().into(),
            false => then.clone().into(),
        }
    });
}

fn crawl_all_pages(web: &Web, site: &Site, delay: &str) -> Workplace {
    let work = Workplace::new();
    let urls = (0..PAGES).map(|number| site.url(&format!("/{number}")));
    let run = work.crawl(web).replace_flag("--delay", delay);
    run.args(urls).finish().expect_code(0);
    work
}

#[test]
fn a_request_lost_with_a_closed_connection_is_repeated_immediately_and_once() {
    for (name, how) in [("closed", script()), ("reset", script().reset())] {
        let web = Web::start();
        let site = web.site("closing.example");
        for number in 0..PAGES {
            // A request is first sent on the connection of the previous request. The server closes this connection, so
            // the request is repeated.
            serve_failing_first(&site, &format!("/{number}"), 1, how.clone(), page("T"));
        }
        let work = crawl_all_pages(&web, &site, "0.2");
        let outcomes = work.stored().outcomes();
        assert!(
            outcomes.values().all(|outcome| outcome == "ok"),
            "{name}: {outcomes:?}"
        );
        let pages = site.visits().pages();
        assert_eq!(pages.len(), 2 * PAGES, "{name}");
        for pair in pages.0.chunks(2) {
            assert_eq!(pair[0].path, pair[1].path, "{name}: the next request");
            assert_ne!(pair[0].connection, pair[1].connection, "{name}");
        }
        assert_eq!(site.visits().overlaps(), [""; 0], "{name}");
        // The delay is kept between requests that were answered.
        let answered: Vec<_> = site
            .visits()
            .0
            .into_iter()
            .filter(|visit| visit.status.is_some())
            .collect();
        for pair in answered.windows(2).skip(1) {
            let gap = pair[1].started_at - pair[0].started_at;
            assert!(gap >= Duration::from_millis(200), "{name}: {gap:?}");
        }
    }
}

#[test]
fn a_request_answered_with_408_on_a_used_connection_is_repeated() {
    let web = Web::start();
    let site = web.site("late.example");
    let late = script()
        .send("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    for number in 0..PAGES {
        serve_failing_first(&site, &format!("/{number}"), 1, late.clone(), page("T"));
    }
    let outcomes = crawl_all_pages(&web, &site, "0.2").stored().outcomes();
    assert!(
        outcomes.values().all(|outcome| outcome == "ok"),
        "{outcomes:?}"
    );
}

#[test]
fn a_broken_new_connection_and_a_partial_answer_are_not_retried_immediately() {
    let begun = script()
        .send("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\n<h1>");
    for (name, robots, how) in [
        ("new", status(404).header("connection", "close"), script()),
        (
            "new-and-reset",
            status(404).header("connection", "close"),
            script().reset(),
        ),
        ("begun", status(404), begun),
    ] {
        let web = Web::start();
        let site = web.site(&format!("{name}.example"));
        site.serve("/robots.txt", robots);
        site.serve("/", how);
        let work = Workplace::new();
        work.crawl(&web)
            .replace_flag("--delay", "1")
            .arg(site.url("/"))
            .finish()
            .expect_code(0);
        assert_eq!(
            work.stored().outcomes()[&site.url("/")],
            "network_error",
            "{name}"
        );
        let gaps = site.visits().for_path("/").gaps();
        let least = Duration::from_secs(1);
        assert!(gaps.iter().all(|gap| *gap >= least), "{name}: {gaps:?}");
    }
}

#[test]
fn a_request_that_http_2_did_not_process_is_repeated_immediately_and_once() {
    let web = Web::start_tls(&["two.example"]);
    let site = web.site("two.example");
    for number in 0..PAGES {
        serve_failing_first(
            &site,
            &format!("/{number}"),
            1,
            script().refuse(),
            page("T"),
        );
    }
    serve_failing_first(&site, "/always", 100, script().refuse(), page("T"));
    let work = Workplace::new();
    let urls = (0..PAGES).map(|number| site.https_url(&format!("/{number}")));
    let run = work.crawl(&web).args(urls).arg(site.https_url("/always"));
    run.finish().expect_code(0);
    let outcomes = work.stored().outcomes();
    for number in 0..PAGES {
        assert_eq!(outcomes[&site.https_url(&format!("/{number}"))], "ok");
        assert_eq!(site.visits().for_path(&format!("/{number}")).len(), 2);
    }
    assert_eq!(outcomes[&site.https_url("/always")], "network_error");
    let always = site.visits().for_path("/always");
    assert_eq!(always.len() % 2, 0, "each turn asks twice");
}

#[test]
fn a_site_with_a_long_delay_is_asked_to_close_its_connections() {
    let web = Web::start();
    for (delay, kept) in [("0.2", true), ("5", false)] {
        let site = web.site(&format!("delay{}.example", delay.replace('.', "-")));
        site.serve("/0", page("0")).serve("/1", page("1"));
        let work = Workplace::new();
        let run = work.crawl(&web).replace_flag("--delay", delay);
        run.args([site.url("/0"), site.url("/1")])
            .finish()
            .expect_code(0);
        let pages = site.visits().pages();
        assert_eq!(pages.len(), 2);
        for visit in &pages.0 {
            assert_eq!(
                visit.header("connection") == Some("close"),
                !kept,
                "delay {delay}"
            );
        }
        // The first page is requested after robots.txt, on the same connection.
        let first = &site.visits().robots().0[0];
        assert_eq!(first.connection, pages.0[0].connection, "delay {delay}");
        assert_eq!(
            pages.0[0].connection == pages.0[1].connection,
            kept,
            "delay {delay}"
        );
    }
}
