//! Tests robots.txt: it is requested first and once, and obeyed in every form.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::isolation::run_isolated;
use webfill_tests::site::robots::odd_robots;
use webfill_tests::site::{Web, document, page, status};
use webfill_tests::workplace::Workplace;

#[test]
fn robots_txt_is_requested_first_and_once_and_forbidden_pages_are_never_fetched() {
    let web = Web::start();
    let work = Workplace::new();
    let mut urls = Vec::new();
    for number in 0..6 {
        let site = web.site(&format!("r{number}.example"));
        site.serve_robots("User-agent: *\nDisallow: /closed\nAllow: /closed/but/open\n");
        site.serve_otherwise(|_| page("leaf").into());
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
        .replace_flag("--workers", "3")
        .args(urls)
        .finish()
        .expect_code(0);
    let visits = web.visits();
    for host in visits.hosts() {
        let visits = visits.for_host(&host);
        assert!(visits.0[0].is_robots(), "{host}: robots.txt comes first");
        assert_eq!(visits.robots().len(), 1, "{host}: once");
        let mut pages = visits.pages().paths();
        pages.sort();
        assert_eq!(
            pages,
            ["/", "/closed/but/open", "/open"].map(|path| format!("{host}{path}"))
        );
    }
    assert_eq!(run.summary().outcome_count("disallowed"), 6 * 3);
    assert_eq!(run.summary().outcome_count("ok"), 6 * 3);
    assert_eq!(run.summary().pages(), 6 * 3, "robots.txt is no page");
}

#[test]
fn each_origin_has_its_own_robots_txt() {
    let web = Web::start_tls(&["both.example"]);
    let site = web.site("both.example");
    site.serve_with("/robots.txt", |request| match request.tls {
        true => webfill_tests::site::document("text/plain", "User-agent: *\nDisallow: /\n").into(),
        false => status(404).into(),
    });
    site.serve("/", page("T"));
    let work = Workplace::new();
    work.crawl(&web)
        .args([site.url("/"), site.https_url("/")])
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes["http://both.example/"], "ok");
    assert_eq!(outcomes["https://both.example/"], "disallowed");
}

#[needs(namespaces)]
#[test]
fn odd_robots_files_do_no_harm() {
    run_isolated("robots::odd_robots_files_do_no_harm", || {
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
        let run = work
            .crawl(&web)
            .arg("--config")
            .arg(work.write_short_timeouts());
        run.arg("--seeds").arg(seeds).finish().expect_code(0);
        let outcomes = work.stored().outcomes();
        let mut faults = Vec::new();
        for odd in &files {
            for (path, right) in [("/open", odd.open), ("/closed", odd.closed)] {
                let url = format!("http://{}{path}", odd.host());
                let outcome = outcomes.get(&url).map_or("none", String::as_str);
                let fetched = !web.visits().for_host(&odd.host()).for_path(path).is_empty();
                if !right.contains(&outcome) || fetched != (outcome == "ok") {
                    faults.push(format!(
                        "{url}: {outcome} (fetched: {fetched}), right: {right:?}"
                    ));
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let huge = web.visits().for_host("robots-50-mb.example").robots();
        assert!(
            huge.0[0].sent_bytes < 16 << 20,
            "only the beginning is read: {}",
            huge.0[0].sent_bytes
        );
        assert!(huge.0[0].cut_short);
    });
}

#[test]
fn an_unreachable_robots_txt_closes_the_site_for_now() {
    let web = Web::start();
    let site = web.site("down.example");
    site.serve("/robots.txt", status(503).header("retry-after", "1"));
    site.serve_otherwise(|_| page("T").into());
    let urls: Vec<String> = (0..3)
        .map(|number| site.url(&format!("/{number}")))
        .collect();
    let work = Workplace::new();
    let run = work.crawl(&web).args(urls).finish().expect_code(0);
    assert!(site.visits().pages().is_empty());
    assert_eq!(run.summary().outcome_count("robots_unreachable"), 3);
    assert_eq!(site.visits().robots().len(), 3, "each task asked");
}

#[test]
fn a_failed_robots_txt_costs_the_task_that_requested_it_and_is_requested_later_again() {
    let web = Web::start();
    let site = web.site("flaps.example");
    let asked = AtomicU32::new(0);
    site.serve_with("/robots.txt", move |_| {
        match asked.fetch_add(1, Ordering::Relaxed) {
            0..3 => status(500).into(),
            _ => document("text/plain", "User-agent: *\n").into(),
        }
    });
    site.serve_otherwise(|_| page("T").into());
    let urls = (0..40).map(|number| site.url(&format!("/{number}")));
    let work = Workplace::new();
    let run = work.crawl_without_delay(&web).args(["--delay", "0"]);
    let run = run.args(urls).finish().expect_code(0);
    let failed = run.summary().outcome_count("robots_unreachable");
    assert!(failed <= 3, "{failed} tasks ended, of three that asked");
    assert_eq!(run.summary().outcome_count("ok"), 40 - failed);
    let gaps = site.visits().robots().gaps();
    for (gap, least_s) in gaps.iter().zip([1, 2, 4]) {
        assert!(*gap >= Duration::from_secs(least_s), "{gaps:?}");
    }
}

#[test]
fn the_last_good_robots_txt_applies_for_a_day_while_a_new_one_cannot_be_fetched() {
    let web = Web::start();
    let site = web.site("lasting.example");
    site.serve_robots("User-agent: *\nDisallow: /closed\n");
    site.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let crawl = |name: &str, paths: &[&str]| {
        let urls = paths.iter().map(|path| site.url(path));
        let run = work.crawl(&web).replace_flag("--crawl", name);
        let run = run.args(urls).finish().expect_code(0);
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
    assert_eq!(run.summary().outcome_count("ok"), 2);
    assert_eq!(run.summary().outcome_count("disallowed"), 1);
    assert_eq!(asked, 2, "once, and not for each page");

    fetched_ago(25);
    let (run, _) = crawl("old", &["/4"]);
    assert_eq!(run.summary().outcome_count("robots_unreachable"), 1);
}

#[test]
fn a_429_for_robots_txt_delays_the_site() {
    let web = Web::start();
    let site = web.site("busy.example");
    site.serve("/robots.txt", status(429).header("retry-after", "2"));
    site.serve("/", page("T"));
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/")).finish().expect_code(0);
    let visits = site.visits();
    if let Some(page) = visits.pages().0.first() {
        let wait = page.started_at - visits.robots().0[0].started_at;
        assert!(wait >= Duration::from_secs(2), "asked again after {wait:?}");
    }
}

#[test]
fn robots_txt_can_be_ignored_on_this_machine() {
    let web = Web::start();
    let site = web.site("own.example");
    site.serve_robots("User-agent: *\nDisallow: /\n");
    site.serve("/", page("T"));
    let work = Workplace::new();
    work.crawl(&web)
        .arg("--ignore-robots")
        .arg(site.url("/"))
        .finish()
        .expect_code(0);
    assert_eq!(web.visits().paths(), ["own.example/"]);
}

#[needs(namespaces)]
#[test]
fn public_addresses_always_obey_robots_txt() {
    run_isolated("robots::public_addresses_always_obey_robots_txt", || {
        webfill_tests::isolation::add_address("93.184.216.34");
        let web = Web::start_on("93.184.216.34".parse().expect("an address"));
        let site = web.site("public.example");
        site.serve_robots("User-agent: *\nDisallow: /closed\n");
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
            .expect_code(0);
        let outcomes = work.stored().outcomes();
        assert_eq!(outcomes["http://public.example/closed"], "disallowed");
        assert_eq!(outcomes["http://public.example/open"], "ok");
    });
}

#[test]
fn robots_txt_is_kept_for_the_next_crawl() {
    let web = Web::start();
    let site = web.site("kept.example");
    site.serve_robots("User-agent: *\nDisallow: /closed\n");
    site.serve("/1", page("1")).serve("/2", page("2"));
    let work = Workplace::new();
    work.crawl(&web).arg(site.url("/1")).finish().expect_code(0);
    work.crawl(&web)
        .replace_flag("--crawl", "second")
        .args([site.url("/2"), site.url("/closed")])
        .finish()
        .expect_code(0);
    assert_eq!(
        site.visits().robots().len(),
        1,
        "{:?}",
        site.visits().paths()
    );
    assert_eq!(site.visits().pages().len(), 2);
}
