//! Tests a crawl from its seeds to the stored pages: fields, depth, followed links, and consistent counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;
use webfill_tests::site::{Site, Web, page};
use webfill_tests::workplace::Workplace;

/// Serves a chain: `/0` links to `/1`, which links to `/2`, and so on.
fn serve_chain(site: &Site, length: u32) {
    for step in 0..length {
        let next = format!("/{}", step + 1);
        site.serve(
            &format!("/{step}"),
            page(&step.to_string()).mapped_link(&next),
        );
    }
}

#[test]
fn a_seed_becomes_a_stored_page_with_its_fields() {
    let web = Web::start();
    let site = web.site("ada.example");
    let profile = page("Ada's page")
        .field("name", "  Ada Lovelace\n")
        .field("location", "London");
    site.serve("/profile?id=1", profile.link("/elsewhere"));
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .arg("http://ADA.example:80/profile?id=1#top")
        .finish()
        .expect_code(0);

    let pages = work.stored().pages();
    let stored = &pages["http://ada.example/profile?id=1"];
    assert_eq!(pages.len(), 1);
    assert_eq!(stored.outcome, "ok");
    assert_eq!(stored.status_code, Some(200));
    assert_eq!((stored.depth, stored.parent.as_deref()), (0, None));
    assert_eq!(
        (stored.site.as_str(), stored.crawl_id.as_str()),
        ("ada.example", "test")
    );
    assert_eq!(stored.app_id, "local");
    assert_eq!(stored.mapping.as_deref(), Some("profile"));
    assert!(stored.id.starts_with("local/test/"), "{}", stored.id);
    assert!(
        stored
            .content_type
            .as_deref()
            .is_some_and(|kind| kind.starts_with("text/html"))
    );
    let fields = json!({"title": "Ada's page", "name": "Ada Lovelace", "location": "London"});
    assert_eq!(json!(stored.fields), fields);

    let summary = run.summary();
    assert_eq!(summary.crawl_id(), "test");
    assert_eq!(
        (
            summary.pages(),
            summary.outcome_count("ok"),
            summary.tasks()
        ),
        (1, 1, 1)
    );
    assert_eq!(summary.fields(), 3);
    assert_eq!(summary.bytes() as i64, stored.bytes);
    assert_eq!(web.visits().pages().paths(), ["ada.example/profile?id=1"]);
}

#[test]
fn links_are_followed_down_to_the_depth_and_no_further() {
    let web = Web::start();
    let site = web.site("chain.example");
    serve_chain(&site, 5);
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args(["--depth", "2"])
        .arg(site.url("/0"))
        .finish()
        .expect_code(0);
    let pages = work.stored().pages();
    let depths: Vec<_> = pages
        .values()
        .map(|page| (page.url.as_str(), page.depth))
        .collect();
    assert_eq!(
        depths,
        [
            ("http://chain.example/0", 0),
            ("http://chain.example/1", 1),
            ("http://chain.example/2", 2)
        ]
    );
    assert_eq!(
        pages["http://chain.example/2"].parent.as_deref(),
        Some("http://chain.example/1")
    );
    assert_eq!(run.summary().outcome_count("ok"), 3);
    assert_eq!(web.visits().pages().len(), 3);
}

#[test]
fn the_default_depth_is_one() {
    let web = Web::start();
    let site = web.site("chain.example");
    serve_chain(&site, 5);
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/0")).finish().expect_code(0);
    assert_eq!(
        web.visits().pages().paths(),
        ["chain.example/0", "chain.example/1"]
    );
}

#[test]
fn follow_decides_which_links_become_tasks() {
    for (follow, expected) in [
        (None, vec!["f.example/", "f.example/mapped"]),
        (Some("mapped"), vec!["f.example/", "f.example/mapped"]),
        (
            Some("all"),
            vec!["f.example/", "f.example/mapped", "f.example/plain"],
        ),
        (Some("none"), vec!["f.example/"]),
    ] {
        let web = Web::start();
        let site = web.site("f.example");
        site.serve_otherwise(|_| page("leaf").into());
        site.serve("/", page("root").mapped_link("/mapped").link("plain"));
        let work = Workplace::new();
        let mut run = work.crawl(&web).arg(site.url("/"));
        if let Some(follow) = follow {
            run = run.args(["--follow", follow]);
        }
        run.finish().expect_code(0);
        let mut fetched = web.visits().pages().paths();
        fetched.sort();
        assert_eq!(fetched, expected, "--follow {follow:?}");
    }
}

#[test]
fn links_resolve_against_the_base_of_the_page() {
    let web = Web::start();
    let site = web.site("base.example");
    site.serve_otherwise(|_| page("leaf").into());
    let links = [
        "up",
        "../side",
        "//other.example/x",
        "?q=1",
        "#here",
        "/abs/./a/../b",
    ];
    let root = links.iter().fold(
        page("root").html("<base href=\"/dir/sub/\">"),
        |page, link| page.mapped_link(link),
    );
    site.serve("/start/page", root);
    web.site("other.example").serve("/x", page("x"));
    let work = Workplace::new();
    work.crawl(&web)
        .arg(site.url("/start/page"))
        .finish()
        .expect_code(0);
    let mut fetched = web.visits().pages().paths();
    fetched.sort();
    let expected = [
        "base.example/abs/b",
        "base.example/dir/side",
        "base.example/dir/sub/",
        "base.example/dir/sub/?q=1",
        "base.example/dir/sub/up",
        "base.example/start/page",
        "other.example/x",
    ];
    assert_eq!(fetched, expected);
}

#[test]
fn every_link_ends_as_a_task_or_with_a_reason() {
    let web = Web::start();
    let site = web.site("count.example");
    let links = [
        "/a",
        "/b",
        "/a",
        "#top",
        "/",
        "mailto:ada@count.example",
        "javascript:void(0)",
        "http://[::bad",
        "/photo.jpg",
        "/archive.zip",
        "http://outside.example/",
        "/private/x",
        "ftp://count.example/f",
    ];
    site.serve(
        "/",
        links
            .iter()
            .fold(page("root"), |page, link| page.link(link)),
    );
    site.serve("/a", page("a").link("/b").link("/deeper").link("/a"));
    site.serve("/b", page("b"));
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .args([
            "--follow",
            "all",
            "--allowed-domains",
            "count.example",
            "--deny-regex",
            "/private/",
        ])
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(
        summary.outcomes().into_iter().collect::<Vec<_>>(),
        [("ok".to_string(), 3)]
    );
    for (reason, least) in [
        ("denied_extension", 2),
        ("denied_pattern", 1),
        ("duplicate", 1),
        ("invalid_url", 1),
        ("out_of_domain", 1),
        ("unsupported_scheme", 3),
    ] {
        assert!(
            summary.skipped_count(reason) >= least,
            "{reason}: {:?}",
            summary.skipped()
        );
    }
    // The seed and all links were judged. Each of these URLs either became a task or was skipped.
    let judged = 1 + summary.links();
    let skipped: u64 = summary.skipped().values().sum();
    assert_eq!(judged, summary.tasks() + skipped, "{}", summary.json);
    assert_eq!(work.stored().pages().len() as u64, summary.tasks());
    assert_eq!(web.visits().pages().len(), 3);
}

#[test]
fn scope_flags_keep_the_crawl_where_it_belongs() {
    let web = Web::start();
    let site = web.site("scope.example");
    let links = [
        "/list/1",
        "/list/2",
        "/list/3",
        "/list/4",
        "/other",
        "/list/no",
        "/list/song.mp3x",
    ];
    site.serve_otherwise(|_| page("leaf").into());
    site.serve(
        "/list/",
        links
            .iter()
            .fold(page("root"), |page, link| page.link(link))
            .link("http://big.example/list/"),
    );
    let work = Workplace::new();
    let excluded = work.write("top.csv", "1,big.example\n2,small.example\n");
    let run = work
        .crawl(&web)
        .args([
            "--follow",
            "all",
            "--allow-regex",
            "/list/",
            "--deny-regex",
            "/no$",
        ])
        .args(["--deny-extensions", "mp3x", "--domain-max-pages", "3"])
        .arg("--exclude-sites")
        .arg(excluded)
        .arg(site.url("/list/"))
        .finish()
        .expect_code(0);
    let summary = run.summary();
    let expected = [
        ("budget", 2),
        ("denied_extension", 1),
        ("denied_pattern", 2),
        ("excluded_site", 1),
    ];
    let skipped = summary.skipped();
    for (reason, count) in expected {
        assert_eq!(
            summary.skipped_count(reason),
            count,
            "{reason}: {skipped:?}"
        );
    }
    assert_eq!(web.visits().pages().len(), 3, "{:?}", web.visits().paths());
    assert!(web.visits().for_host("big.example").is_empty());
}

#[test]
fn many_sites_are_crawled_side_by_side() {
    let web = Web::start();
    let work = Workplace::new();
    let mut seeds = String::new();
    for number in 0..40 {
        let site = web.site(&format!("s{number}.example"));
        site.serve_otherwise(|_| page("leaf").into());
        site.serve("/", page("root").mapped_link("/1").mapped_link("/2"));
        seeds.push_str(&format!("{}\n", site.url("/")));
    }
    let seeds = work.write("seeds.txt", seeds);
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 120);
    let visits = web.visits();
    visits.assert_polite(Duration::from_millis(200));
    assert_eq!(visits.pages().len(), 120);
    assert!(
        visits.counts().values().all(|count| *count == 1),
        "{:?}",
        visits.counts()
    );
    // If the sites were crawled one after another, the first site would have three pages before any other site has one.
    let mut pages_of = BTreeMap::new();
    for visit in visits.pages().0 {
        let pages = pages_of.entry(visit.host).or_insert(0);
        *pages += 1;
        if *pages == 3 {
            break;
        }
    }
    assert!(pages_of.len() > 5, "{pages_of:?}");
    let workers: BTreeSet<_> = work
        .stored()
        .pages()
        .into_values()
        .map(|page| page.worker)
        .collect();
    assert_eq!(workers.len(), 2, "both workers took part: {workers:?}");
}
