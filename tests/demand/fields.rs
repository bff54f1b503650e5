//! Tests that every key of a crawl request has an effect.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_tests::site::{Site, page};

use crate::fleet::{Fleet, epoch_seconds, request, request_with};

/// Serves a tree of pages. Each page links to two pages one level below: `/` to `/1` and `/2`, `/1` to `/11` and `/12`,
/// and so on.
fn serve_tree(site: &Site) {
    site.serve_otherwise(|request| {
        let path = request.path.trim_start_matches('/');
        page(&request.path)
            .link(&format!("/{path}1"))
            .link(&format!("/{path}2"))
            .into()
    });
}

fn feed_and_wait(fleet: &Fleet, requests: &[Value], crawl_id: &str) -> BTreeSet<String> {
    fleet.feed(requests);
    fleet.wait_until_done(crawl_id);
    fetched_paths(fleet)
}

fn fetched_paths(fleet: &Fleet) -> BTreeSet<String> {
    fleet.web.visits().pages().paths().into_iter().collect()
}

fn path_set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn without_a_depth_only_the_url_itself_is_fetched() {
    let fleet = Fleet::start();
    serve_tree(&fleet.web.site("t.example"));
    let found = feed_and_wait(&fleet, &[request("http://t.example/", "flat")], "flat");
    assert_eq!(found, path_set(&["t.example/"]));
}

#[test]
fn maxdepth_says_how_deep_every_link_is_followed() {
    let fleet = Fleet::start();
    serve_tree(&fleet.web.site("t.example"));
    let request = request_with("http://t.example/", "deep", json!({"maxdepth": 2}));
    let found = feed_and_wait(&fleet, &[request], "deep");
    let expected = ["", "1", "2", "11", "12", "21", "22"];
    let expected: Vec<String> = expected
        .iter()
        .map(|path| format!("t.example/{path}"))
        .collect();
    assert_eq!(found, expected.into_iter().collect());
}

#[test]
fn the_highest_priority_goes_first_and_a_level_down_is_ten_less() {
    // An operator blocks the site until all requests are queued.
    let fleet = Fleet::start();
    let site = fleet.web.site("p.example");
    site.serve_otherwise(|request| page(&request.path).into());
    site.serve("/first", page("first").link("/deeper"));
    let blocked = ["site", "p.example", "--block-until", "1h"];
    fleet.run(&blocked).expect_code(0);
    let with = |path: &str, crawl: &str, priority: u8, depth: u8| {
        let url = format!("http://p.example{path}");
        request_with(
            &url,
            crawl,
            json!({"priority": priority, "maxdepth": depth}),
        )
    };
    fleet.feed(&[
        with("/low", "low", 30, 0),
        with("/first", "first", 90, 1),
        with("/79", "b", 79, 0),
        with("/81", "c", 81, 0),
        with("/85", "c", 85, 0),
    ]);
    fleet
        .run(&["site", "p.example", "--block-until", "none"])
        .expect_code(0);
    fleet.wait_until_done("low");
    let order: Vec<String> = fleet
        .web
        .visits()
        .pages()
        .0
        .iter()
        .map(|visit| visit.path.clone())
        .collect();
    assert_eq!(order, ["/first", "/85", "/81", "/deeper", "/79", "/low"]);
}

#[test]
fn allowed_domains_keep_a_crawl_on_them() {
    let fleet = Fleet::start();
    let site = fleet.web.site("home.example");
    let elsewhere = ["http://sub.home.example/", "http://away.example/", "/near"];
    site.serve(
        "/",
        elsewhere
            .iter()
            .fold(page("home"), |page, link| page.link(link)),
    );
    site.serve("/near", page("near"));
    fleet.web.site("sub.home.example").serve("/", page("sub"));
    fleet.web.site("away.example").serve("/", page("away"));
    let keys = json!({"maxdepth": 1, "allowed_domains": ["home.example"]});
    let request = request_with("http://home.example/", "domains", keys);
    let found = feed_and_wait(&fleet, &[request], "domains");
    assert_eq!(
        found,
        path_set(&["home.example/", "home.example/near", "sub.home.example/"])
    );
}

#[test]
fn allow_regex_and_deny_regex_choose_links_and_deny_wins() {
    let fleet = Fleet::start();
    let site = fleet.web.site("r.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let links = ["/book/1", "/book/2", "/shop/1"];
    site.serve(
        "/book/",
        links
            .iter()
            .fold(page("start"), |page, link| page.link(link)),
    );
    let keys = json!({"maxdepth": 1, "allow_regex": ["/book/"], "deny_regex": ["/2$"]});
    let request = request_with("http://r.example/book/", "regex", keys);
    let found = feed_and_wait(&fleet, &[request], "regex");
    assert_eq!(found, path_set(&["r.example/book/", "r.example/book/1"]));
}

#[test]
fn deny_extensions_have_a_full_default_and_can_be_given() {
    let fleet = Fleet::start();
    let site = fleet.web.site("e.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let denied = [
        "jpg", "png", "gif", "svg", "webp", "mp3", "mp4", "avi", "zip", "tar.gz", "tar", "rar",
        "7z", "exe", "bin", "iso", "dmg", "apk", "doc", "docx", "xls", "xlsx", "ppt", "pptx",
        "odt", "pdf", "css", "js",
    ];
    let links = denied.iter().fold(page("all"), |page, extension| {
        page.link(&format!("/x.{extension}"))
    });
    site.serve("/", links.link("/x.html").link("/x"));
    let default = request_with("http://e.example/", "default", json!({"maxdepth": 1}));
    let found = feed_and_wait(&fleet, &[default], "default");
    assert_eq!(
        found,
        path_set(&["e.example/", "e.example/x.html", "e.example/x"])
    );
    let keys =
        json!({"maxdepth": 1, "deny_extensions": ["html"], "allow_regex": ["(/|pdf|html)$"]});
    let own = request_with("http://e.example/", "own", keys);
    let found = feed_and_wait(&fleet, &[own], "own");
    assert!(
        found.contains("e.example/x.pdf"),
        "the own list replaces the default"
    );
    assert_eq!(
        fleet.web.visits().for_path("/x.html").len(),
        1,
        "in the other crawl"
    );
}

#[test]
fn useragent_is_sent_with_every_request_of_the_crawl_beside_the_contact() {
    let (own, contact) = ("webfill/", "(+https://example.org/crawler)");
    for (replaces, before) in [("false", own), ("true", "shopbot/2.0")] {
        let fleet = Fleet::start_with(&[
            ("POLITENESS_CONTACT", "https://example.org/crawler"),
            ("POLITENESS_USERAGENT_REPLACES_NAME", replaces),
        ]);
        serve_tree(&fleet.web.site("ua.example"));
        let keys = json!({"maxdepth": 1, "useragent": "shopbot/2.0"});
        let request_own = request_with("http://ua.example/", "own", keys);
        feed_and_wait(&fleet, &[request_own], "own");
        for visit in fleet.web.visits().0 {
            let sent = visit.header("user-agent").expect("one is sent");
            let expected = if visit.is_robots() { own } else { before };
            assert!(sent.starts_with(expected), "{}: {sent}", visit.path);
            assert!(sent.contains(contact), "{}: {sent}", visit.path);
            assert_eq!(sent.contains("shopbot/2.0"), !visit.is_robots(), "{sent}");
        }
        assert!(fleet.web.visits().pages().len() > 1);
    }
}

#[test]
fn a_crawl_without_a_useragent_has_none_of_another() {
    let fleet = Fleet::start();
    serve_tree(&fleet.web.site("ua.example"));
    let keys = json!({"useragent": "shopbot/2.0"});
    feed_and_wait(
        &fleet,
        &[request_with("http://ua.example/", "own", keys)],
        "own",
    );
    fleet.feed(&[request("http://ua.example/other", "plain")]);
    fleet.wait_until_done("plain");
    let other = fleet.web.visits().for_path("/other");
    let sent = other.0[0].header("user-agent").expect("one is sent");
    assert!(
        sent.starts_with("webfill/") && !sent.contains("shopbot"),
        "{sent}"
    );
}

#[test]
fn attrs_are_handed_through_to_every_page_and_result() {
    let fleet = Fleet::start();
    serve_tree(&fleet.web.site("a.example"));
    let firehose = fleet.subscribe_firehose("crawled.testapp");
    let attrs = json!({"order": 7, "nested": {"list": [1, null, "x"]}});
    let keys = json!({"maxdepth": 1, "attrs": attrs});
    let request = request_with("http://a.example/", "attrs", keys);
    feed_and_wait(&fleet, &[request], "attrs");
    for _ in 0..3 {
        let (_, result) = firehose.next();
        assert_eq!(result["attrs"], attrs, "{result}");
    }
    let stored = fleet.work.stored().query_texts("SELECT attrs FROM pages");
    assert_eq!(stored.len(), 3);
    for text in stored {
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), attrs);
    }
}

#[test]
fn domain_max_pages_bounds_the_pages_of_each_site() {
    let fleet = Fleet::start();
    let site = fleet.web.site("m.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let links = (1..20).fold(page("start"), |page, link| page.link(&format!("/{link}")));
    site.serve("/", links.link("http://n.example/"));
    fleet.web.site("n.example").serve("/", page("n"));
    let keys = json!({"maxdepth": 1, "domain_max_pages": 5});
    let request = request_with("http://m.example/", "max", keys);
    let found = feed_and_wait(&fleet, &[request], "max");
    assert_eq!(
        found.iter().filter(|path| path.starts_with("m.")).count(),
        5
    );
    assert!(found.contains("n.example/"));
}

#[test]
fn a_crawl_that_expires_is_purged_with_a_notification() {
    let fleet = Fleet::start();
    let site = fleet.web.site("x.example");
    site.serve_otherwise(|request| page(&request.path).into());
    fleet
        .run(&["site", "x.example", "--block-until", "1h"])
        .expect_code(0);
    let firehose = fleet.subscribe_firehose("outbound.testapp");
    let expires = epoch_seconds() + 3;
    let requests: Vec<Value> = (0..40)
        .map(|number| {
            let url = format!("http://x.example/{number}");
            request_with(&url, "brief", json!({"expires": expires}))
        })
        .collect();
    fleet.feed(&requests);
    let info = fleet.info("brief");
    assert_eq!(info["total_pending"], 40, "{info}");
    let notification = firehose.wait_for(|message| message["action"] == "expired");
    assert!(epoch_seconds() >= expires, "not before its time");
    assert_eq!(
        (
            &notification["total_expired"],
            &notification["crawlid"],
            &notification["appid"],
            &notification["spiderid"]
        ),
        (
            &json!(40),
            &json!("brief"),
            &json!("testapp"),
            &json!("link")
        ),
        "{notification}"
    );
    assert_eq!(fleet.info("brief")["total_pending"], 0);
    fleet
        .run(&["site", "x.example", "--block-until", "none"])
        .expect_code(0);
    fleet.feed(&[request("http://x.example/after", "after")]);
    fleet.wait_until_done("after");
    assert_eq!(
        fetched_paths(&fleet),
        path_set(&["x.example/after"]),
        "nothing of it was fetched"
    );
}

#[test]
fn the_raw_body_is_included_on_request() {
    let fleet = Fleet::start();
    let site = fleet.web.site("b.example");
    site.serve("/", page("with").html("<p>Zoë</p>"));
    site.serve("/without", page("without"));
    let firehose = fleet.subscribe_firehose("crawled.testapp");
    fleet.feed(&[request_with(
        "http://b.example/",
        "body",
        json!({"body": true}),
    )]);
    let result = firehose.wait_for(|result| result["crawlid"] == "body");
    let body = result["body"]
        .as_str()
        .unwrap_or_else(|| panic!("no body: {result}"));
    assert!(
        body.starts_with("<!DOCTYPE html>") && body.contains("<p>Zoë</p>"),
        "{body}"
    );
    fleet.feed(&[request("http://b.example/without", "plain")]);
    let result = firehose.wait_for(|result| result["crawlid"] == "plain");
    assert!(result.get("body").is_none_or(Value::is_null), "{result}");
}

#[test]
fn a_url_is_fetched_once_for_each_crawl_id_and_a_repetition_expands_the_frontier() {
    let fleet = Fleet::start();
    serve_tree(&fleet.web.site("d.example"));
    let url = "http://d.example/";
    feed_and_wait(&fleet, &[request(url, "a"), request(url, "a")], "a");
    assert_eq!(fleet.web.visits().pages().len(), 1, "once for a crawl");
    feed_and_wait(&fleet, &[request(url, "b")], "b");
    assert_eq!(
        fleet.web.visits().pages().len(),
        2,
        "another crawl is its own"
    );
    // A second request with the same crawl id fetches new pages, but no pages that the crawl already has.
    fleet.feed(&[request(url, "a"), request("http://d.example/more", "a")]);
    fleet
        .web
        .log()
        .wait_until("the new one is fetched", |visits| visits.pages().len() == 3);
    fleet.wait_until_done("a");
    assert_eq!(fleet.web.visits().pages().0[2].path, "/more");
}

#[test]
fn keys_given_later_hold_for_the_crawl_from_then_on() {
    let fleet = Fleet::start();
    serve_tree(&fleet.web.site("k.example"));
    let first = request_with("http://k.example/9", "k", json!({"attrs": {"run": 1}}));
    feed_and_wait(&fleet, &[first], "k");
    assert_eq!(fetched_paths(&fleet), path_set(&["k.example/9"]));
    let second = request_with("http://k.example/8", "k", json!({"maxdepth": 1}));
    let found = feed_and_wait(&fleet, &[second], "k");
    assert_eq!(
        found,
        path_set(&["k.example/9", "k.example/8", "k.example/81", "k.example/82"])
    );
    let kept = fleet
        .work
        .stored()
        .query_texts("SELECT attrs FROM pages WHERE url LIKE '%/81'");
    assert_eq!(
        kept,
        [json!({"run": 1}).to_string()],
        "what is left out stays"
    );
}
