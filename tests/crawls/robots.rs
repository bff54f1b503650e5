//! robots.txt: requested first and once, and obeyed in every form.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::isolation::isolated;
use webfill_tests::site::robots::odd_robots;
use webfill_tests::site::{Web, document, page, redirect, status};
use webfill_tests::workplace::Workplace;

#[test]
fn it_is_asked_first_and_once_and_what_it_closes_is_never_fetched() {
    let web = Web::start();
    let work = Workplace::new();
    let mut urls = Vec::new();
    for number in 0..6 {
        let site = web.site(&format!("r{number}.example"));
        site.robots("User-agent: *\nDisallow: /closed\nAllow: /closed/but/open\n");
        site.otherwise(|_| page("leaf").into());
        let links = [
            "/open",
            "/closed",
            "/closed/x",
            "/closed/but/open",
            "/%63losed/escaped",
        ];
        site.serve(
            "/",
            links
                .iter()
                .fold(page("root"), |page, link| page.mapped_link(link)),
        );
        urls.push(site.url("/"));
    }
    let run = work
        .crawl(&web)
        .instead("--workers", "3")
        .args(urls)
        .finish()
        .expect(0);
    let visits = web.visits();
    for host in visits.hosts() {
        let visits = visits.of_host(&host);
        assert!(visits.0[0].is_robots(), "{host}: robots.txt comes first");
        assert_eq!(visits.robots().len(), 1, "{host}: once");
        let mut pages = visits.pages().paths();
        pages.sort();
        assert_eq!(
            pages,
            ["/", "/closed/but/open", "/open"].map(|path| format!("{host}{path}"))
        );
    }
    assert_eq!(run.summary().outcome("disallowed"), 6 * 3);
    assert_eq!(run.summary().outcome("ok"), 6 * 3);
    assert_eq!(run.summary().pages(), 6 * 3, "robots.txt is no page");
}

#[test]
fn each_origin_has_its_own() {
    let web = Web::start_tls(&["both.example"]);
    let site = web.site("both.example");
    site.serve_with("/robots.txt", |request| match request.tls {
        true => webfill_tests::site::document("text/plain", "User-agent: *\nDisallow: /\n").into(),
        false => status(404).into(),
    });
    site.serve("/", page("T"));
    let work = Workplace::new();
    work.crawl(&web)
        .args([site.url("/"), site.https("/")])
        .finish()
        .expect(0);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes["http://both.example/"], "ok");
    assert_eq!(outcomes["https://both.example/"], "disallowed");
}

#[needs(namespaces)]
#[test]
fn odd_files_do_no_harm_and_stop_nothing() {
    isolated("robots::odd_files_do_no_harm_and_stop_nothing", || {
        let web = Web::start();
        let work = Workplace::new();
        let mut urls = Vec::new();
        let files = odd_robots();
        for odd in &files {
            let site = web.site(&odd.host());
            odd.serve_on(&site);
            urls.extend([site.url("/open"), site.url("/closed")]);
        }
        let seeds = work.write("seeds.txt", urls.join("\n"));
        let run = work.crawl(&web).arg("--config").arg(work.short_timeouts());
        run.arg("--seeds").arg(seeds).finish().expect(0);
        let outcomes = work.stored().outcomes();
        let mut faults = Vec::new();
        for odd in &files {
            for (path, right) in [("/open", odd.open), ("/closed", odd.closed)] {
                let url = format!("http://{}{path}", odd.host());
                let outcome = outcomes.get(&url).map_or("none", String::as_str);
                let fetched = !web.visits().of_host(&odd.host()).of_path(path).is_empty();
                if !right.contains(&outcome) || fetched != (outcome == "ok") {
                    faults.push(format!(
                        "{url}: {outcome} (fetched: {fetched}), right: {right:?}"
                    ));
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let huge = web.visits().of_host("robots-50-mb.example").robots();
        assert!(
            huge.0[0].sent_bytes < 16 << 20,
            "only the beginning is read: {}",
            huge.0[0].sent_bytes
        );
        assert!(huge.0[0].cut_short);
    });
}

#[test]
fn it_may_be_behind_a_redirect_to_another_host() {
    let web = Web::start();
    let site = web.site("moved.example");
    site.serve(
        "/robots.txt",
        redirect("http://elsewhere.example/the-rules"),
    );
    site.serve("/closed", page("T")).serve("/open", page("T"));
    let rules = "User-agent: webfill\nDisallow: /closed\n";
    let elsewhere = web.site("elsewhere.example");
    elsewhere.serve(
        "/the-rules",
        webfill_tests::site::document("text/plain", rules),
    );
    let work = Workplace::new();
    work.crawl(&web)
        .args([site.url("/closed"), site.url("/open")])
        .finish()
        .expect(0);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes["http://moved.example/closed"], "disallowed");
    assert_eq!(outcomes["http://moved.example/open"], "ok");
}

#[test]
fn an_unreachable_file_closes_the_site_for_now() {
    let web = Web::start();
    let site = web.site("down.example");
    site.serve("/robots.txt", status(503).header("retry-after", "1"));
    site.otherwise(|_| page("T").into());
    let urls: Vec<String> = (0..3)
        .map(|number| site.url(&format!("/{number}")))
        .collect();
    let work = Workplace::new();
    let run = work.crawl(&web).args(urls).finish().expect(0);
    assert!(site.visits().pages().is_empty());
    assert_eq!(run.summary().outcome("robots_unreachable"), 3);
    assert_eq!(site.visits().robots().len(), 3, "each task asked");
}

#[test]
fn a_failed_file_costs_the_task_that_asked_and_the_next_one_asks_later() {
    let web = Web::start();
    let site = web.site("flaps.example");
    let asked = AtomicU32::new(0);
    site.serve_with("/robots.txt", move |_| {
        match asked.fetch_add(1, Ordering::Relaxed) {
            0..3 => status(500).into(),
            _ => document("text/plain", "User-agent: *\n").into(),
        }
    });
    site.otherwise(|_| page("T").into());
    let urls = (0..40).map(|number| site.url(&format!("/{number}")));
    let work = Workplace::new();
    let run = work.crawl_without_delay(&web).args(["--delay", "0"]);
    let run = run.args(urls).finish().expect(0);
    let failed = run.summary().outcome("robots_unreachable");
    assert!(failed <= 3, "{failed} tasks ended, of three that asked");
    assert_eq!(run.summary().outcome("ok"), 40 - failed);
    let gaps = site.visits().robots().gaps();
    for (gap, least_s) in gaps.iter().zip([1, 2, 4]) {
        assert!(*gap >= Duration::from_secs(least_s), "{gaps:?}");
    }
}

#[test]
fn the_last_good_file_applies_for_a_day_while_a_new_one_cannot_be_had() {
    let web = Web::start();
    let site = web.site("lasting.example");
    site.robots("User-agent: *\nDisallow: /closed\n");
    site.otherwise(|_| page("T").into());
    let work = Workplace::new();
    let crawl = |name: &str, paths: &[&str]| {
        let urls = paths.iter().map(|path| site.url(path));
        let run = work.crawl(&web).instead("--crawl", name);
        let run = run.args(urls).finish().expect(0);
        (run, site.visits().robots().len())
    };
    let fetched_ago = |hours: i64| {
        let sql = "UPDATE robots SET
            fetched_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?1 || ' hours'),
            expires_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', (?1 + 1) || ' hours')";
        let store = rusqlite::Connection::open(work.path("store.db")).expect("a store");
        let changed = store.execute(sql, [-hours]).expect("the table exists");
        assert_eq!(changed, 1);
    };
    crawl("fresh", &["/1"]);
    site.serve("/robots.txt", status(503));

    fetched_ago(23);
    let (run, asked) = crawl("stale", &["/2", "/3", "/closed"]);
    assert_eq!(run.summary().outcome("ok"), 2);
    assert_eq!(run.summary().outcome("disallowed"), 1);
    assert_eq!(asked, 2, "once, and not for each page");

    fetched_ago(25);
    let (run, _) = crawl("old", &["/4"]);
    assert_eq!(run.summary().outcome("robots_unreachable"), 1);
}

#[test]
fn each_redirect_of_it_within_the_site_takes_a_turn() {
    let web = Web::start();
    let site = web.site("hops.example");
    site.serve("/robots.txt", redirect("/a"));
    site.serve("/a", redirect("http://www.hops.example/robots.txt"));
    site.serve("/", page("T"));
    let www = web.site("www.hops.example");
    www.robots("User-agent: *\n").serve("/", page("T"));
    let work = Workplace::new();
    work.crawl_without_delay(&web)
        .args(["--delay", "0.5"])
        .args([site.url("/"), www.url("/")])
        .finish()
        .expect(0);
    let visits = web.visits();
    let paths = visits.paths();
    let robots = "www.hops.example/robots.txt";
    let asked = paths.iter().filter(|path| *path == robots).count();
    assert_eq!(asked, 1, "what a redirect led to is known: {paths:?}");
    assert_eq!(visits.overlaps(), [""; 0]);
    // The first page follows its robots.txt directly.
    let hops = &visits.gaps()[..2];
    let least = Duration::from_millis(500);
    assert!(hops.iter().all(|gap| *gap >= least), "{hops:?}, {paths:?}");
}

#[test]
fn a_file_that_many_sites_redirect_to_is_not_asked_for_by_all_of_them() {
    let web = Web::start();
    let registrar = web.site("registrar.example");
    registrar.robots("User-agent: *\n").serve("/", page("T"));
    let parked = (0..30).map(|number| web.site(&format!("parked{number}.example")));
    let mut urls = vec![registrar.url("/")];
    for site in parked {
        site.serve("/robots.txt", redirect(&registrar.url("/robots.txt")));
        site.serve("/", page("T"));
        urls.push(site.url("/"));
    }
    let work = Workplace::new();
    let run = work.crawl(&web).args(urls).finish().expect(0);
    assert_eq!(run.summary().outcome("ok"), 31);
    let asked = registrar.visits().robots();
    assert!(asked.len() <= 2, "once by each worker: {}", asked.len());
}

#[test]
fn other_files_that_many_sites_redirect_to_are_asked_for_in_turn() {
    let web = Web::start();
    let registrar = web.site("registrar.example");
    registrar.otherwise(|_| document("text/plain", "User-agent: *\n").into());
    let mut urls = Vec::new();
    for number in 0..8 {
        let site = web.site(&format!("parked{number}.example"));
        let target = registrar.url(&format!("/rules/{number}"));
        site.serve("/robots.txt", redirect(&target));
        site.serve("/", page("T"));
        urls.push(site.url("/"));
    }
    let work = Workplace::new();
    // Whichever worker has been led there.
    let run = work.crawl(&web).instead("--workers", "4");
    let run = run.args(urls).finish().expect(0);
    assert_eq!(run.summary().outcome("ok"), 8);
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
        // The visit lasts while the first page of its site is found.
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
    // Some of the visits are made by other workers than those that own the sites.
    let run = work.crawl(&web).instead("--workers", "4").args(urls);
    let run = run.time_limit(Duration::from_secs(40)).finish().expect(0);
    assert_eq!(run.summary().outcome("ok"), 2 * PAIRS as u64 + 1);
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
    registrar.otherwise(|_| page("T").into());
    let mut urls: Vec<String> = (0..12).map(|n| registrar.url(&format!("/{n}"))).collect();
    for number in 0..8 {
        let site = web.site(&format!("parked{number}.example"));
        let target = registrar.url(&format!("/rules/{number}"));
        // By then the registrar's pages are being fetched.
        let later = redirect(&target).latency(Duration::from_secs(4));
        site.serve("/robots.txt", later);
        site.serve("/", page("T"));
        urls.push(site.url("/"));
    }
    let work = Workplace::new();
    let run = work
        .crawl_without_delay(&web)
        .args(["--delay", "1"])
        .instead("--workers", "4")
        .env("WEBFILL_RESTS_ROBOTS", "1")
        .args(urls)
        .finish()
        .expect(0);
    let asked = registrar.visits();
    let (overlaps, gaps) = (asked.overlaps(), asked.pages().gaps());
    assert_eq!(overlaps, [""; 0]);
    let least = Duration::from_secs(1);
    assert!(gaps.iter().all(|gap| *gap >= least), "{gaps:?}");
    let refused = run.summary().outcome("robots_unreachable");
    assert!(refused >= 1, "at least one has another worker");
    assert_eq!(run.summary().outcome("ok"), 20 - refused);
}

#[test]
fn a_busy_robots_file_pushes_the_clock_of_the_site() {
    let web = Web::start();
    let site = web.site("busy.example");
    site.serve("/robots.txt", status(429).header("retry-after", "2"));
    site.serve("/", page("T"));
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect(0);
    let visits = site.visits();
    if let Some(page) = visits.pages().0.first() {
        let wait = page.started_at - visits.robots().0[0].started_at;
        assert!(wait >= Duration::from_secs(2), "asked again after {wait:?}");
    }
}

#[test]
fn it_can_be_ignored_on_this_machine() {
    let web = Web::start();
    let site = web.site("own.example");
    site.robots("User-agent: *\nDisallow: /\n");
    site.serve("/", page("T"));
    let work = Workplace::new();
    work.crawl(&web)
        .arg("--ignore-robots")
        .arg(site.url("/"))
        .finish()
        .expect(0);
    assert_eq!(web.visits().paths(), ["own.example/"]);
}

#[needs(namespaces)]
#[test]
fn it_cannot_be_ignored_on_public_addresses() {
    isolated("robots::it_cannot_be_ignored_on_public_addresses", || {
        webfill_tests::isolation::add_address("93.184.216.34");
        let web = Web::start_on("93.184.216.34".parse().expect("an address"));
        let site = web.site("public.example");
        site.robots("User-agent: *\nDisallow: /closed\n");
        site.serve("/closed", page("T")).serve("/open", page("T"));
        let work = Workplace::new();
        let urls = [site.url("/closed"), site.url("/open")];
        work.crawl(&web)
            .args([
                "--ignore-robots",
                "--contact",
                "https://crawler.example/about",
            ])
            .args(urls)
            .finish()
            .expect(0);
        let outcomes = work.stored().outcomes();
        assert_eq!(outcomes["http://public.example/closed"], "disallowed");
        assert_eq!(outcomes["http://public.example/open"], "ok");
    });
}

#[test]
fn it_is_kept_for_the_next_crawl() {
    let web = Web::start();
    let site = web.site("kept.example");
    site.robots("User-agent: *\nDisallow: /closed\n");
    site.serve("/1", page("1")).serve("/2", page("2"));
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/1")).finish().expect(0);
    work.crawl(&web)
        .instead("--crawl", "second")
        .args([site.url("/2"), site.url("/closed")])
        .finish()
        .expect(0);
    assert_eq!(
        site.visits().robots().len(),
        1,
        "{:?}",
        site.visits().paths()
    );
    assert_eq!(site.visits().pages().len(), 2);
}

/// What a page says of its links, as a header and in its head, and whether they are followed.
const DIRECTIVES: &[(&str, &str, &str, bool)] = &[
    ("plain", "", "", true),
    (
        "nofollow",
        "",
        "<meta name=robots content='noindex, nofollow'>",
        false,
    ),
    ("none", "", "<META NAME='ROBOTS' CONTENT='NONE'>", false),
    ("own", "", "<meta name=webfill content=nofollow>", false),
    ("noindex", "", "<meta name=robots content=noindex>", true),
    ("other", "", "<meta name=googlebot content=nofollow>", true),
    ("tag", "nofollow", "", false),
    ("tag-none", "noarchive, none", "", false),
    ("tag-own", "webfill: noindex, nofollow", "", false),
    ("tag-other", "googlebot: noindex, nofollow", "", true),
    ("tag-noindex", "noindex", "", true),
];

#[test]
fn links_of_a_page_that_says_nofollow_are_followed_only_if_a_mapping_selects_them() {
    for (follow, mapped) in [("all", false), ("all", true), ("mapped", true)] {
        let (web, work) = (Web::start(), Workplace::new());
        let site = web.site("said.example");
        site.otherwise(|_| page("leaf").into());
        for (name, tag, head, _) in DIRECTIVES {
            let answer = page("root")
                .html(*head)
                .mapped_link(&format!("/from-{name}"));
            let answer = match tag.is_empty() {
                true => answer,
                false => answer.header("X-Robots-Tag", *tag),
            };
            site.serve(&format!("/{name}"), answer);
        }
        if !mapped {
            std::fs::remove_file(work.path("mappings/profile.json")).expect("our own");
        }
        let urls = DIRECTIVES
            .iter()
            .map(|(name, ..)| site.url(&format!("/{name}")));
        let run = work
            .crawl_without_delay(&web)
            .args(["--delay", "0", "--follow", follow]);
        run.args(urls).finish().expect(0);
        let fetched = web.visits().pages().paths();
        for (name, _, _, is_followed) in DIRECTIVES {
            let is_fetched = fetched.contains(&format!("said.example/from-{name}"));
            let expected = *is_followed || follow == "mapped";
            assert_eq!(
                is_fetched, expected,
                "--follow {follow}, mapped: {mapped}, {name}"
            );
        }
    }
}
