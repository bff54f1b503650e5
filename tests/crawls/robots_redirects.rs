//! Tests a robots.txt behind redirects: each request waits for its turn at the site that the redirect leads to.

use std::time::Duration;

use webfill_tests::site::{Web, document, page, redirect};
use webfill_tests::workplace::Workplace;

#[test]
fn robots_txt_may_be_behind_a_redirect_to_another_host() {
    let web = Web::start();
    let site = web.site("moved.example");
    site.serve(
        "/robots.txt",
        redirect("http://elsewhere.example/the-rules"),
    );
    site.serve("/closed", page("T")).serve("/open", page("T"));
    let rules = "User-agent: webfill\nDisallow: /closed\n";
    let elsewhere = web.site("elsewhere.example");
    elsewhere.serve("/the-rules", document("text/plain", rules));
    let work = Workplace::new();
    work.crawl(&web)
        .args([site.url("/closed"), site.url("/open")])
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes["http://moved.example/closed"], "disallowed");
    assert_eq!(outcomes["http://moved.example/open"], "ok");
}

#[test]
fn each_redirect_of_robots_txt_within_a_site_waits_for_the_delay() {
    let web = Web::start();
    let site = web.site("hops.example");
    site.serve("/robots.txt", redirect("/a"));
    site.serve("/a", redirect("http://www.hops.example/robots.txt"));
    site.serve("/", page("T"));
    let www = web.site("www.hops.example");
    www.serve_robots("User-agent: *\n").serve("/", page("T"));
    let work = Workplace::new();
    work.crawl_without_delay(&web)
        .args(["--delay", "0.5"])
        .args([site.url("/"), www.url("/")])
        .finish()
        .expect_code(0);
    let visits = web.visits();
    let paths = visits.paths();
    let robots = "www.hops.example/robots.txt";
    let asked = paths.iter().filter(|path| *path == robots).count();
    assert_eq!(asked, 1, "what a redirect led to is known: {paths:?}");
    assert_eq!(visits.overlaps(), [""; 0]);
    // Only the gaps between redirects are checked, because the first page may follow its robots.txt immediately.
    let hops = &visits.gaps()[..2];
    let least = Duration::from_millis(500);
    assert!(hops.iter().all(|gap| *gap >= least), "{hops:?}, {paths:?}");
}

#[test]
fn a_file_that_many_sites_redirect_to_is_not_asked_for_by_all_of_them() {
    let web = Web::start();
    let registrar = web.site("registrar.example");
    registrar
        .serve_robots("User-agent: *\n")
        .serve("/", page("T"));
    let parked = (0..30).map(|number| web.site(&format!("parked{number}.example")));
    let mut urls = vec![registrar.url("/")];
    for site in parked {
        site.serve("/robots.txt", redirect(&registrar.url("/robots.txt")));
        site.serve("/", page("T"));
        urls.push(site.url("/"));
    }
    let work = Workplace::new();
    let run = work.crawl(&web).args(urls).finish().expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 31);
    let asked = registrar.visits().robots();
    assert!(asked.len() <= 2, "once by each worker: {}", asked.len());
}

#[test]
fn other_files_that_many_sites_redirect_to_are_asked_for_in_turn() {
    let web = Web::start();
    let registrar = web.site("registrar.example");
    registrar.serve_otherwise(|_| document("text/plain", "User-agent: *\n").into());
    let mut urls = Vec::new();
    for number in 0..8 {
        let site = web.site(&format!("parked{number}.example"));
        let target = registrar.url(&format!("/rules/{number}"));
        site.serve("/robots.txt", redirect(&target));
        site.serve("/", page("T"));
        urls.push(site.url("/"));
    }
    let work = Workplace::new();
    // With several workers, the result must be the same whichever worker follows a redirect.
    let run = work.crawl(&web).replace_flag("--workers", "4");
    let run = run.args(urls).finish().expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 8);
    let asked = registrar.visits();
    assert_eq!(asked.len(), 8);
    assert_eq!(asked.overlaps(), [""; 0]);
    let least = Duration::from_millis(200);
    assert!(
        asked.gaps().iter().all(|gap| *gap >= least),
        "{:?}",
        asked.gaps()
    );
}

#[test]
fn a_site_whose_first_page_comes_up_during_a_visit_waits_for_its_end_only() {
    const PAIRS: usize = 8;
    let web = Web::start();
    let (mut registrars, mut links) = (Vec::new(), page("T"));
    let mut urls = vec![web.site("links.example").url("/")];
    for number in 0..PAIRS {
        let registrar = web.site(&format!("registrar{number}.example"));
        // Requests for robots.txt at this site take so long that the crawl meanwhile finds the site's first page on
        // another site.
        registrar.serve(
            "/robots.txt",
            document("text/plain", "User-agent: *\n").latency(Duration::from_secs(4)),
        );
        registrar.serve("/", page("T"));
        links = links.mapped_link(&registrar.url("/"));
        let parked = web.site(&format!("parked{number}.example"));
        parked.serve("/robots.txt", redirect(&registrar.url("/robots.txt")));
        parked.serve("/", page("T"));
        urls.push(parked.url("/"));
        registrars.push(registrar);
    }
    let links = links.latency(Duration::from_secs(1));
    web.site("links.example").serve("/", links);
    let work = Workplace::new();
    // With four workers, some redirects lead to sites that another worker crawls.
    let run = work.crawl(&web).replace_flag("--workers", "4").args(urls);
    let run = run
        .time_limit(Duration::from_secs(40))
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().outcome_count("ok"), 2 * PAIRS as u64 + 1);
    let least = Duration::from_millis(200);
    for registrar in registrars {
        let visits = registrar.visits();
        assert_eq!(visits.robots().len(), 1, "{:?}", visits.paths());
        assert_eq!(visits.overlaps(), [""; 0]);
        assert!(visits.gaps().iter().all(|gap| *gap >= least));
    }
}

#[test]
fn a_file_at_a_site_that_another_worker_crawls_counts_as_unreachable() {
    let web = Web::start();
    let registrar = web.site("registrar.example");
    registrar.serve_otherwise(|_| page("T").into());
    let mut urls: Vec<String> = (0..12).map(|n| registrar.url(&format!("/{n}"))).collect();
    for number in 0..8 {
        let site = web.site(&format!("parked{number}.example"));
        let target = registrar.url(&format!("/rules/{number}"));
        // The redirect comes so late that the registrar's pages are already being fetched.
        let later = redirect(&target).latency(Duration::from_secs(4));
        site.serve("/robots.txt", later);
        site.serve("/", page("T"));
        urls.push(site.url("/"));
    }
    let work = Workplace::new();
    let run = work
        .crawl_without_delay(&web)
        .args(["--delay", "1"])
        .replace_flag("--workers", "4")
        .env("WEBFILL_BACKOFF_ROBOTS", "1")
        .args(urls)
        .finish()
        .expect_code(0);
    let asked = registrar.visits();
    let (overlaps, gaps) = (asked.overlaps(), asked.pages().gaps());
    assert_eq!(overlaps, [""; 0]);
    let least = Duration::from_secs(1);
    assert!(gaps.iter().all(|gap| *gap >= least), "{gaps:?}");
    let refused = run.summary().outcome_count("robots_unreachable");
    assert!(refused >= 1, "at least one has another worker");
    assert_eq!(run.summary().outcome_count("ok"), 20 - refused);
}
