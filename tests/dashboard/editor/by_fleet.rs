//! Tests URLs that a visitor adds to the mapping editor of a fleet's dashboard. The fleet must fetch them as politely
//! as all other URLs.

use serde_json::json;
use webfill_tests::site::{page, redirect, status};

use super::bench::{Bench, heading_mapping};
use crate::fleet::{DELAY, Fleet};
use crate::scene::BLOCKS;

const HOST: &str = "busy.example";

#[test]
fn a_url_is_fetched_once_in_its_sites_turn() {
    let fleet = Fleet::start();
    fleet.feed_pages(HOST, "monday", 400);
    let site = fleet.web.site(HOST);
    site.serve("/wanted", page("Wanted"));
    site.serve("/moved", redirect(&site.url("/wanted?now")));
    site.serve("/wanted?now", page("Moved"));
    let log = fleet.web.log();
    log.wait_until("the crawl is under way", |visits| {
        visits.pages().0.len() > 5
    });
    let bench = Bench::of(fleet.visitor());
    let draft = bench.begin_draft("", "people");
    for path in ["/wanted", "/moved", "/wanted"] {
        bench.request_ok(&draft, "add", &json!({"add": {"url": site.url(path)}}));
    }
    let visits = site.visits();
    visits.assert_polite(DELAY);
    for path in ["/wanted", "/moved", "/wanted?now"] {
        assert_eq!(visits.for_path(path).0.len(), 1, "{path}");
    }
    let paths = visits.pages().paths();
    assert!(
        paths.len() < 400,
        "it went before what was queued: {}",
        paths.len()
    );
    let tried = json!({"mapping": heading_mapping("people", HOST)});
    let tried = bench.request_ok(&draft, "trial", &tried);
    let rows = tried["rows"].as_array().expect("rows").iter();
    let mut read: Vec<&str> = rows.filter_map(|row| row["read"].as_str()).collect();
    read.sort_unstable();
    assert_eq!(read, ["Moved", "Wanted"]);
    // The crawl of the same site must continue after the visitor's requests.
    log.wait_until("the crawl continues", |now| {
        now.pages().0.len() > paths.len() + 5
    });
    site.visits().assert_polite(DELAY);
}

#[test]
fn the_reason_for_an_unfetched_url_is_shown() {
    let mut fleet = Fleet::unstarted();
    fleet.set_setting("BACKOFF_BLOCKED", "3600");
    let site = fleet.web.site("people.example");
    site.serve("/gone", status(404));
    site.serve_robots("User-agent: *\nDisallow: /private/\n");
    let blocks = fleet.web.site(BLOCKS);
    blocks.serve_otherwise(|_| status(403).into());
    fleet.start_dispatcher();
    fleet.start_supervisor();
    let bench = Bench::of(fleet.visitor());
    let draft = bench.begin_draft("", "people");
    let refused = |url: String| bench.request_refused(&draft, "add", &json!({"add": {"url": url}}));
    let gone = refused(site.url("/gone"));
    assert!(gone.contains("the server returned 404"), "{gone}");
    let private = refused(site.url("/private/1"));
    assert!(private.contains("disallowed by robots.txt"), "{private}");
    assert!(site.visits().for_path("/private/1").0.is_empty());
    let feed =
        |n: u32| json!({"url": blocks.url(&format!("/{n}")), "appid": "testapp", "crawlid": "b"});
    fleet.feed(&(0..6).map(feed).collect::<Vec<_>>());
    crate::fleet::wait_for("it backs off", || {
        let answer = fleet.run_action(&json!({"action": "site", "site": BLOCKS}));
        (answer["state"] == "backing_off").then_some(())
    });
    let before = blocks.visits().0.len();
    let backoff = refused(blocks.url("/new"));
    assert!(
        backoff.contains("is backing off: nothing is requested"),
        "{backoff}"
    );
    assert_eq!(blocks.visits().0.len(), before);
}
